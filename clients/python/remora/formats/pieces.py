"""What a message says, whatever the format it is in: pieces that each format reads and writes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from remora import _json
from remora.chat_format import ChatFields, ToolCall
from remora.formats.sizes import size_of_data_url
from remora.media import Image, Media


@dataclass(frozen=True, slots=True)
class Text:
    """Words."""

    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """An image by its address, which may be a data URL."""

    url: str
    detail: str = ""
    """OpenAI's `detail`; empty where there is none."""

    @property
    def image(self) -> Image:
        """Its size, as far as the address holds it."""
        width, height = size_of_data_url(self.url)
        return Image(width, height, "low" if self.detail == "low" else "high")


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool returned."""

    call_id: str
    pieces: tuple["Text | Picture | Other", ...]

    @property
    def text(self) -> str:
        """Its words."""
        return joined(self.pieces)


@dataclass(frozen=True, slots=True)
class Other:
    """What only its own format can write, such as audio."""

    kind: str
    """What it is, for people."""
    is_private: bool = False
    """Whether it is for the model that made it alone, such as its reasoning: no other format mentions it."""

    @property
    def text(self) -> str:
        """What stands for it in other formats."""
        return "" if self.is_private else f"[{self.kind}]"


Piece: TypeAlias = Text | Picture | ToolCall | Result | Other


@dataclass(frozen=True, slots=True)
class Said:
    """A message in pieces."""

    role: str
    """`user`, `assistant`, `system`, `tool` or any other."""
    pieces: tuple[Piece, ...]
    name: str = ""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tools that it calls."""
        return tuple(piece for piece in self.pieces if isinstance(piece, ToolCall))

    @property
    def results(self) -> tuple[Result, ...]:
        """What tools returned."""
        return tuple(piece for piece in self.pieces if isinstance(piece, Result))

    @property
    def is_private(self) -> bool:
        """Whether there is nothing in it for another model."""
        return bool(self.pieces) and all(isinstance(piece, Other) and piece.is_private for piece in self.pieces)

    @property
    def text(self) -> str:
        """Its words and those of its results."""
        return joined(self.pieces)

    @property
    def fields(self) -> ChatFields:
        """What the server reads of it."""
        ids = tuple(dict.fromkeys(result.call_id for result in self.results if result.call_id))
        return ChatFields(self.role, self.text, self.name, self.calls, ids)

    @property
    def media(self) -> Media:
        """What it holds besides text and tools."""
        pieces = [inner for piece in self.pieces for inner in (piece.pieces if isinstance(piece, Result) else (piece,))]
        return Media(
            tuple(piece.image for piece in pieces if isinstance(piece, Picture)),
            tuple(piece.kind for piece in pieces if isinstance(piece, Other)),
        )

    @classmethod
    def of_fields(cls, fields: ChatFields) -> "Said":
        """The message of which nothing but the fields is known."""
        text = (Text(fields.text),) if fields.text else ()
        ids = fields.tool_result_ids
        results = [Result(call_id, text if number == 0 else ()) for number, call_id in enumerate(ids)]
        return cls(fields.role, (*(results or text), *fields.tool_calls), fields.name)


def shown(pieces: Iterable[Piece]) -> tuple[Text | Picture | Other, ...]:
    """Those pieces that a tool's result may consist of."""
    return tuple(piece for piece in pieces if isinstance(piece, Text | Picture | Other))


def joined(pieces: Sequence[Piece]) -> str:
    """The words of pieces, line by line."""
    return "\n".join(piece.text for piece in pieces if isinstance(piece, Text | Result) and piece.text)


def told(piece: Piece) -> str:
    """The words that stand for a piece where it can only be told."""
    return piece.text if isinstance(piece, Text | Result | Other) else ""


def arguments_object(call: ToolCall) -> dict[str, Any]:
    """The arguments as an object, where a format wants one: what is none is its only value."""
    value = _json.loads_or_none(call.arguments) if call.arguments else {}
    return value if isinstance(value, dict) else {"arguments": call.arguments.decode(errors="replace")}


def arguments_text(call: ToolCall) -> str:
    """The arguments as the model wrote them."""
    return call.arguments.decode(errors="replace")


def encoded_arguments(arguments: object) -> bytes:
    """Arguments as they are stored: a text as it is, anything else as JSON."""
    return arguments.encode() if isinstance(arguments, str) else _json.dumps(arguments)


def text_in(mapping: object, key: str) -> str:
    """The text at a key of a mapping; empty where there is none."""
    value = mapping.get(key) if isinstance(mapping, dict) else None
    return value if isinstance(value, str) else ""
