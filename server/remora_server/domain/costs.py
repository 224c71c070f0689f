"""What chat messages cost in tokens, as OpenAI's cookbook counts them ("How to count tokens with tiktoken")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Protocol

from msgspec import Struct

from remora_server.domain.images import Image, image_rule
from remora_server.domain.tokens import O200K_BASE, TokenCounter, TokenEncoding

TOKENS_PER_MESSAGE = 3
TOKENS_PER_NAME = 1
REPLY_PRIMING = 3
"""Every reply of a model is primed with `<|start|>assistant<|message|>`. The whole costs that, not a message."""
UNKNOWN_PARTS = "parts of unknown content"


class ToolCall(Struct, frozen=True):
    """One call of a tool; `arguments` as the model wrote them, read as UTF-8."""

    id: str
    name: str
    arguments: str


class ChatMessage(Protocol):
    """The parts of a message that are sent to a model.

    `token_count` is the text's in o200k_base, None if it is unknown. `uncounted` names what the message has besides
    its text, tools and images.
    """

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

    @property
    def images(self) -> Sequence[Image]: ...

    @property
    def uncounted(self) -> Sequence[str]: ...


class Counting(Struct, frozen=True):
    """How a request counts. `model` is the one whose rule for images holds; empty: none is named."""

    tokens: TokenCounter
    encoding: TokenEncoding = O200K_BASE
    model: str = ""

    def texts(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text."""
        return self.tokens.count(self.encoding, texts)

    def messages(self, messages: Sequence[ChatMessage]) -> list[int]:
        """What each message costs: 3, its role, its text, its tools' names and arguments, its images by the model's
        rule, and 1 more for a name with it. The whole costs REPLY_PRIMING more.
        """
        words = [list(_words(message)) for message in messages]
        counts = self._distinct([word for listed in words for word in listed])
        texts = self._message_texts(messages)
        return [
            TOKENS_PER_MESSAGE
            + text
            + sum(islice(counts, len(listed)))
            + self.images(message)
            + (TOKENS_PER_NAME if message.name else 0)
            for message, text, listed in zip(messages, texts, words, strict=True)
        ]

    def uncounted(self, message: ChatMessage) -> tuple[str, ...]:
        """The parts of the message that are not in its cost, in words for people."""
        if not message.images:
            return tuple(message.uncounted)
        rule = image_rule(self.model)
        why = f"image: no rule for {self.model or 'an unnamed model'}" if rule is None else "image of unknown size"
        return *message.uncounted, *(why for tokens in self._images(message) if tokens is None)

    def images(self, message: ChatMessage) -> int:
        """The cost of a message's images, as far as it is known."""
        return sum(tokens or 0 for tokens in self._images(message))

    def _images(self, message: ChatMessage) -> list[int | None]:
        """The cost of each image; None if it is unknown."""
        if not message.images:
            return []
        rule = image_rule(self.model)
        return [rule.tokens(image) if rule else None for image in message.images]

    def _message_texts(self, messages: Sequence[ChatMessage]) -> list[int]:
        """The tokens of each message's text. Known counts are not computed again."""
        if self.encoding != O200K_BASE:
            return self.texts([message.text for message in messages])
        known = [message.token_count for message in messages]
        unknown = [message.text for message, count in zip(messages, known, strict=True) if count is None]
        counted = iter(self.texts(unknown) if unknown else ())
        return [next(counted) if count is None else count for count in known]

    def _distinct(self, texts: list[str]) -> Iterator[int]:
        """The tokens of each text. Most texts are the same few roles and names, which are counted once."""
        distinct = list(dict.fromkeys(texts))
        counts = dict(zip(distinct, self.texts(distinct), strict=True))
        return map(counts.__getitem__, texts)


def _words(message: ChatMessage) -> Iterator[str]:
    yield message.role
    if message.name:
        yield message.name
    for call in message.tool_calls:
        yield call.name
        yield call.arguments
