"""Models that complete texts: prompts, completions and failures."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct


class Prompt(Struct, frozen=True):
    """An instruction and the text for it. The model gets them as its system message and its user message."""

    instruction: str
    text: str


class Completion(Struct, frozen=True):
    """A model's text, which is never blank. `model` is the one that was asked. `truncated`: the text is incomplete."""

    text: str
    model: str
    truncated: bool = False


class ChatModelFailed(Exception):
    """A completion failed, and may succeed later. `wait` is the least pause in seconds.

    The text says why, without quoting the request or the answer.
    """

    def __init__(self, cause: str, wait: float = 0.0) -> None:
        super().__init__(cause)
        self.wait = wait


class ChatModel(Protocol):
    """Completes prompts. Safe to share between threads. Never ask one under a lock."""

    @property
    def name(self) -> str:
        """The name that is recorded with its texts."""

    def complete(self, prompt: Prompt, max_tokens: int, timeout: float) -> Completion:
        """Complete a prompt with at most so many tokens, within so many seconds. Raises ChatModelFailed."""
