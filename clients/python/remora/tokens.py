"""Counts of tokens, and how they are counted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Self, TypeAlias, cast

from remora import _refusals
from remora._bounds import Name
from remora.messages import MessageLike, to_messages
from remora.v1 import text_service_pb2

EncodingName: TypeAlias = Literal["o200k_base", "cl100k_base", "approximate"]
"""How tokens are counted."""
ModelName: TypeAlias = Annotated[str, Name(256)]
"""The name of a model, such as `gpt-4o`, 1 to 256 bytes."""


@dataclass(frozen=True, slots=True)
class TokenCount:
    """The tokens of texts, or of messages.

    Attributes:
        counts: One for each, in order.
        total: Their sum; for messages, plus 3 once.
        encoding: How they were counted: `o200k_base`, `cl100k_base` or `approximate`.
        exact: Whether the counts are exact.
        margin: If they are not exact: the usual relative error for English text.
        uncounted_parts: How many messages have parts that are not counted.
    """

    counts: tuple[int, ...]
    total: int
    encoding: str
    exact: bool
    margin: float
    uncounted_parts: int

    @classmethod
    def from_proto(cls, response: text_service_pb2.CountTokensResponse) -> Self:
        """The count from the wire."""
        return cls(
            counts=tuple(response.counts),
            total=response.total,
            encoding=response.encoding,
            exact=response.exact,
            margin=response.margin,
            uncounted_parts=response.uncounted_parts,
        )


def encoding_to_proto(encoding: str | None, model: str | None) -> text_service_pb2.Encoding | None:
    """The encoding by its own name or a model's; None: the server's default. Raises InvalidFieldError for both."""
    if encoding is not None and model is not None:
        raise _refusals.invalid("encoding", "and model are both given; give one, not both")
    if model is not None:
        return text_service_pb2.Encoding(model=model)
    return text_service_pb2.Encoding(name=encoding) if encoding is not None else None


def count_request(
    content: str | MessageLike | Sequence[str] | Sequence[MessageLike], encoding: text_service_pb2.Encoding | None
) -> text_service_pb2.CountTokensRequest:
    """The request that counts texts, or messages, one or several."""
    several = [content] if isinstance(content, str) else content
    if isinstance(several, list | tuple) and all(isinstance(item, str) for item in several):
        return text_service_pb2.CountTokensRequest(encoding=encoding, texts=several)
    return text_service_pb2.CountTokensRequest(encoding=encoding, messages=to_messages(cast("MessageLike", content)))
