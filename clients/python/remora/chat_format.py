"""What the server reads of a message, as an OpenAI chat message.

A message that role, name, text and tool fields describe completely is stored as these fields. Any other (content parts,
unknown keys, another format) is also stored whole, as JSON: see `remora.formats`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from remora._arguments import checked_fields


class Dumped(Protocol):
    """An object such as openai's ChatCompletionMessage, or any other of pydantic."""

    def model_dump(self) -> dict[str, Any]:
        """The message as a dict."""


class Spoken(Protocol):
    """An object with the attributes of a chat message."""

    @property
    def role(self) -> str:
        """Who speaks."""

    @property
    def content(self) -> object:
        """What is said."""


ChatMessage: TypeAlias = Mapping[str, Any] | Dumped | Spoken
"""A message in one of the formats of `remora.formats`: a mapping, or an object with `model_dump()` or with `role` and
`content`.
"""

ATTRIBUTES = ("role", "content", "name", "tool_calls", "tool_call_id")


@checked_fields
@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a tool.

    Attributes:
        id: The id that the result names.
        name: The tool's name.
        arguments: The arguments as the model wrote them, usually JSON.
    """

    id: str
    name: str
    arguments: bytes


class ChatFields(NamedTuple):
    """What the server reads of a chat message."""

    role: str
    text: str
    name: str
    tool_calls: tuple[ToolCall, ...]
    tool_result_ids: tuple[str, ...]


def as_mapping(message: ChatMessage) -> dict[str, Any]:
    """The message as plain dicts, lists and scalars; fields of objects that are None are left out.

    Raises TypeError for a missing role, and for keys that are not strings.
    """
    mapping = as_form(message)
    if not isinstance(mapping.get("role"), str):
        raise TypeError(f"a chat message needs a role: {type(message).__name__}")
    return mapping


def as_form(message: ChatMessage) -> dict[str, Any]:
    """The same of what may be no message."""
    form = plain(message)
    if isinstance(form, dict):
        return form
    form = {key: plain(value) for key in ATTRIBUTES if (value := getattr(message, key, None)) is not None}
    if hasattr(message, "content") or "tool_calls" in form:
        form.setdefault("content", None)
    return form


def render(fields: ChatFields) -> dict[str, Any]:
    """The chat message that the fields make."""
    silent = fields.tool_calls and not fields.text
    message: dict[str, Any] = {"role": fields.role, "content": None if silent else fields.text}
    if fields.name:
        message["name"] = fields.name
    if fields.tool_calls:
        message["tool_calls"] = [_render_call(call) for call in fields.tool_calls]
    if fields.role == "tool" and len(fields.tool_result_ids) == 1:
        message["tool_call_id"] = fields.tool_result_ids[0]
    return message


def _render_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments.decode(errors="replace")}
    return {"id": call.id, "type": "function", "function": function}


def plain(value: object) -> Any:  # noqa: ANN401 - JSON of any shape
    """Mappings, sequences and models as dicts and lists, anything else as it is; fields of models that are None go."""
    if isinstance(value, Mapping):
        return {_key(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain(item) for item in value]
    if callable(getattr(value, "model_dump", None)):
        return {key: plain(item) for key, item in _dumped(value).items() if item is not None or key == "content"}
    return value


def _dumped(model: Any) -> dict[str, Any]:  # noqa: ANN401 - pydantic's, or what looks like it
    """What a model holds: of pydantic's models, at any depth, without the fields that are None because nobody set them.

    A provider may refuse null where it sent nothing.
    """
    whole: dict[str, Any] = model.model_dump()
    if not hasattr(model, "model_fields_set"):
        return whole
    without_unset: dict[str, Any] = _without_unset(whole, model.model_dump(exclude_unset=True))
    return without_unset


def _without_unset(whole: Any, given: Any) -> Any:  # noqa: ANN401 - JSON of any shape
    if isinstance(whole, dict) and isinstance(given, dict):
        kept = {key: value for key, value in whole.items() if value is not None or key in given}
        return {key: _without_unset(value, given.get(key)) for key, value in kept.items()}
    if isinstance(whole, list) and isinstance(given, list):
        return [_without_unset(*both) for both in zip(whole, given, strict=True)]
    return whole


def _key(key: object) -> str:
    if isinstance(key, str):
        return key
    raise TypeError(f"keys of a chat message are strings, not {type(key).__name__}")
