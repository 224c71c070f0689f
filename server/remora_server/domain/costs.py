"""What chat messages cost in tokens, as OpenAI's cookbook counts them ("How to count tokens with tiktoken")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Protocol

from msgspec import Struct

from remora_server.domain.tokens import O200K_BASE, TokenCounter, TokenEncoding

TOKENS_PER_MESSAGE = 3
TOKENS_PER_NAME = 1
REPLY_PRIMING = 3
"""Every reply of a model is primed with `<|start|>assistant<|message|>`: a cost of the whole, not of a message."""


class ToolCall(Struct, frozen=True):
    """One call of a tool; `arguments` as the model wrote them, read as UTF-8."""

    id: str
    name: str
    arguments: str


class ChatMessage(Protocol):
    """What of a message is sent to a model. `token_count` is the text's in o200k_base, None where it is not known."""

    @property
    def role(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def tool_calls(self) -> Sequence[ToolCall]: ...

    @property
    def token_count(self) -> int | None: ...


def text_costs(tokens: TokenCounter, encoding: TokenEncoding, messages: Sequence[ChatMessage]) -> list[int]:
    """The tokens of each message's text, those that are known already without counting them again."""
    if encoding != O200K_BASE:
        return tokens.count(encoding, [message.text for message in messages])
    known = [message.token_count for message in messages]
    unknown = [message.text for message, count in zip(messages, known, strict=True) if count is None]
    counted = iter(tokens.count(encoding, unknown) if unknown else ())
    return [next(counted) if count is None else count for count in known]


def message_costs(tokens: TokenCounter, encoding: TokenEncoding, messages: Sequence[ChatMessage]) -> list[int]:
    """What each message costs: 3, its role, its text, its tools' names and arguments, and 1 more for a name with it.

    The whole costs REPLY_PRIMING more. Opaque parts are not counted.
    """
    words = [list(_words(message)) for message in messages]
    counts = _count_distinct(tokens, encoding, [word for listed in words for word in listed])
    texts = text_costs(tokens, encoding, messages)
    return [
        TOKENS_PER_MESSAGE + text + sum(islice(counts, len(listed))) + (TOKENS_PER_NAME if message.name else 0)
        for message, text, listed in zip(messages, texts, words, strict=True)
    ]


def _words(message: ChatMessage) -> Iterator[str]:
    yield message.role
    if message.name:
        yield message.name
    for call in message.tool_calls:
        yield call.name
        yield call.arguments


def _count_distinct(tokens: TokenCounter, encoding: TokenEncoding, texts: list[str]) -> Iterator[int]:
    """The tokens of each text, where most texts are the same few roles and names."""
    distinct = list(dict.fromkeys(texts))
    counts = dict(zip(distinct, tokens.count(encoding, distinct), strict=True))
    return map(counts.__getitem__, texts)
