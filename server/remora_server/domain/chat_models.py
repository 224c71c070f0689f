"""Models that complete texts: what is asked of one, what it answers, and that it may fail."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct


class Prompt(Struct, frozen=True):
    """What to do, and the text to do it with. They reach the model as its system's and its user's message."""

    instruction: str
    text: str


class Completion(Struct, frozen=True):
    """What a model wrote: never blank. `model` is the one that was asked. `truncated`: it had more to say."""

    text: str
    model: str
    truncated: bool = False


class ChatModelFailed(Exception):
    """There is no completion; later there may be one. `wait` is after how many seconds at the earliest.

    The text says why, without what was sent or answered.
    """

    def __init__(self, cause: str, wait: float = 0.0) -> None:
        super().__init__(cause)
        self.wait = wait


class ChatModel(Protocol):
    """Completes prompts. Safe to share between threads. Never ask one under a lock."""

    @property
    def name(self) -> str:
        """The name that is recorded with what it wrote."""

    def complete(self, prompt: Prompt, max_tokens: int, timeout: float) -> Completion:
        """Complete a prompt with at most so many tokens, within so many seconds. Raises ChatModelFailed."""
