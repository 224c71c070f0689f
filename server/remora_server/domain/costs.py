"""What chat messages cost in tokens, as OpenAI's cookbook counts them ("How to count tokens with tiktoken")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct, field

from remora_server.domain.images import Image, image_rule
from remora_server.domain.tokens import O200K_BASE, TokenCounter, TokenEncoding

TOKENS_PER_MESSAGE = 3
TOKENS_PER_NAME = 1
REPLY_PRIMING = 3
"""Every reply of a model is primed with `<|start|>assistant<|message|>`. The whole costs that, not a message."""
SHORT = 2_048
"""Characters of the texts whose counts a request keeps."""
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
    """How a request counts. `model` is the one whose rule for images holds; empty: none is named.

    Texts of up to SHORT characters are counted once: roles, names, lines of facts and of recalled messages.
    """

    tokens: TokenCounter
    encoding: TokenEncoding = O200K_BASE
    model: str = ""
    counted: dict[str, int] = field(default_factory=dict)

    def texts(self, texts: Sequence[str]) -> list[int]:
        """The tokens of each text."""
        counted = self.counted
        new = [text for text in texts if text not in counted]
        if not new:
            return [counted[text] for text in texts]
        found = dict(zip(new, self.tokens.count(self.encoding, new), strict=True))
        counts = [counted[text] if text in counted else found[text] for text in texts]
        counted.update({text: count for text, count in found.items() if len(text) <= SHORT})
        return counts

    def messages(self, messages: Sequence[ChatMessage]) -> list[int]:
        """What each message costs: 3, its role, its text, its tools' names and arguments, its images by the model's
        rule, and 1 more for a name with it. The whole costs REPLY_PRIMING more.
        """
        texts = self._message_texts(messages)
        plain = {role: TOKENS_PER_MESSAGE + self.texts([role])[0] for role in {message.role for message in messages}}
        return [
            text
            + (self._around(message) if message.name or message.tool_calls or message.images else plain[message.role])
            for message, text in zip(messages, texts, strict=True)
        ]

    def _around(self, message: ChatMessage) -> int:
        """What a message costs beside its text."""
        words = [message.role]
        cost = TOKENS_PER_MESSAGE
        if message.name:
            words.append(message.name)
            cost += TOKENS_PER_NAME
        for call in message.tool_calls:
            words += [call.name, call.arguments]
        if message.images:
            cost += self.images(message)
        return cost + sum(self.texts(words))

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
        whole = [count for count in known if count is not None]
        if len(whole) == len(known):
            return whole
        unknown = [message.text for message, count in zip(messages, known, strict=True) if count is None]
        counted = iter(self.texts(unknown))
        return [next(counted) if count is None else count for count in known]
