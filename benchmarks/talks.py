"""A user's many conversations, with vectors, and questions of them; the same at each run."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property

import numpy as np
from benchmarks.texts import WORDS, texts
from numpy.typing import NDArray

from remora import Embedding, Message

DIMENSION = 384
BEGIN = datetime(2024, 1, 1, 9, tzinfo=UTC)
CONTENT_WORDS = WORDS[60:]
QUESTIONS = (
    "What did we say about the {} and the {}?",
    "When did I mention the {} {}?",
    "Which {} did you find for the {} in March 2024?",
    "{} {} {} {}",
)


@dataclass(frozen=True)
class Talks:
    """So many messages of 500 bytes in so many conversations, one a day.

    Each message has a vector of its own, without a pattern: scores of all messages are wanted, whatever they are, so
    that what a search costs does not depend on what the vectors say.
    """

    user_id: str
    messages: int
    conversations: int

    @property
    def length(self) -> int:
        """Messages of a conversation."""
        return self.messages // self.conversations

    @cached_property
    def texts(self) -> list[str]:
        """What is said; of what the user says, every second text asks."""
        said = texts(self.messages, self.messages)
        return [f"{text}?" if number % 4 == 0 else text for number, text in enumerate(said)]

    @cached_property
    def vectors(self) -> NDArray[np.float32]:
        """A row for each message."""
        return np.random.default_rng(self.messages).standard_normal((self.messages, DIMENSION), np.float32)

    def role(self, number: int) -> str:
        """User and assistant in turn."""
        return "assistant" if number % 2 else "user"

    def conversation_id(self, number: int) -> str:
        """The conversation of a message, or of a conversation's first one."""
        return f"{self.user_id}-{number // self.length}"

    def each(self, model: str) -> Iterator[tuple[str, list[Message]]]:
        """Each conversation's id with its messages; the vectors are said to be of a model."""
        for begin in range(0, self.messages, self.length):
            yield self.conversation_id(begin), [self._message(begin + at, model) for at in range(self.length)]

    def _message(self, number: int, model: str) -> Message:
        day, minute = divmod(number, self.length)
        return Message(
            self.role(number),
            self.texts[number],
            id=f"m{number}",
            sent_time=BEGIN + timedelta(days=day, minutes=minute),
            embedding=Embedding(model, self.vectors[number].tobytes()),
        )


def questions(count: int) -> list[str]:
    """Questions for two to four words that few texts have."""
    chance = random.Random(3)
    return [QUESTIONS[number % len(QUESTIONS)].format(*chance.sample(CONTENT_WORDS, 4)) for number in range(count)]
