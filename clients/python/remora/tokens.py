"""Counts of tokens, and how they are counted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from remora.chat_format import ChatMessage
from remora.messages import to_messages
from remora.v1 import text_service_pb2


@dataclass(frozen=True, slots=True)
class TokenCount:
    """The tokens of texts, or of messages."""

    counts: tuple[int, ...]
    """One for each, in order."""
    total: int
    """Their sum; for messages, plus 3 once."""
    encoding: str
    """How they were counted: `o200k_base`, `cl100k_base` or `approximate`."""
    exact: bool
    """Whether the counts are exact."""
    margin: float
    """If they are not exact: the usual relative error for English text."""
    uncounted_parts: int
    """How many messages have parts that are not counted."""

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
    """The encoding by its own name or a model's; None: the server's default. Raises ValueError for both."""
    if encoding is not None and model is not None:
        raise ValueError("give an encoding or a model, not both")
    if model is not None:
        return text_service_pb2.Encoding(model=model)
    return text_service_pb2.Encoding(name=encoding) if encoding is not None else None


def count_request(
    content: str | ChatMessage | Sequence[str] | Sequence[ChatMessage], encoding: text_service_pb2.Encoding | None
) -> text_service_pb2.CountTokensRequest:
    """The request that counts texts, or messages, one or several."""
    several = [content] if isinstance(content, str) else content
    if isinstance(several, list | tuple) and all(isinstance(item, str) for item in several):
        return text_service_pb2.CountTokensRequest(encoding=encoding, texts=several)
    return text_service_pb2.CountTokensRequest(encoding=encoding, messages=to_messages(content))
