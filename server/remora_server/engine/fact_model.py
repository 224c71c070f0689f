"""The chat model that finds facts and picks some: `domain.fact_memory.FactModel`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from remora_server.domain.chat_models import ChatModel, ChatModelFailed, Prompt
from remora_server.domain.fact_prompts import (
    MOST_TOKENS,
    ModelFacts,
    extraction_prompt,
    facts_read,
    numbers_picked,
    picking_prompt,
)
from remora_server.locking import Level, new_lock

SHARE = 0.75
"""The model's share of the time that a caller leaves. The rest is for what replaces the model if it fails."""


class ChatFactModel:
    """Asks a chat model. Safe to share between threads: at most `waiters` calls wait for it, others fail at once. One
    has `timeout` seconds at most.
    """

    def __init__(self, model: ChatModel, *, timeout: float, waiters: int) -> None:
        self._model = model
        self._timeout = timeout
        self._free = waiters
        self._lock = new_lock(Level.LEAF)

    def facts_in(self, texts: Sequence[str], deadline: float | None) -> ModelFacts:
        """The facts in what a user says, in each by itself. Raises ChatModelFailed."""
        text, name = self._asked(extraction_prompt(texts), deadline)
        found = facts_read(text, len(texts))
        if found is None:
            raise ChatModelFailed("the answer is not a JSON array")
        return ModelFacts(tuple(found), name)

    def picked(self, message: str, facts: Sequence[str], deadline: float | None) -> tuple[list[int], str]:
        """Which facts bear on a message, by their places, the most helpful first; and who says so. Raises
        ChatModelFailed.
        """
        text, name = self._asked(picking_prompt(message, facts), deadline)
        picked = numbers_picked(text, len(facts))
        if picked is None:
            raise ChatModelFailed("the answer is not a JSON array")
        return picked, name

    def _asked(self, prompt: Prompt, deadline: float | None) -> tuple[str, str]:
        left = self._timeout if deadline is None else (deadline - time.monotonic()) * SHARE
        with self._waiting():
            completion = self._model.complete(prompt, MOST_TOKENS, min(left, self._timeout))
        return completion.text, completion.model

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        with self._lock:
            if not self._free:
                raise ChatModelFailed("too many calls wait for the model")
            self._free -= 1
        try:
            yield
        finally:
            with self._lock:
                self._free += 1
