"""Who writes summaries: the chat model. Without one, summaries are extracted from the messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from remora_server import _native
from remora_server.domain.chat_models import ChatModel, Completion
from remora_server.domain.extraction import EXTRACTIVE, Vectors, extract
from remora_server.domain.search import TextVector
from remora_server.domain.summarizing import SummaryPlan
from remora_server.domain.tokens import APPROXIMATE, APPROXIMATE_CHARACTERS, TokenCounter, TokenEncoding

WITHOUT_TEXT = "There were messages without text."
"""The extracted summary of messages that say nothing in words, such as images."""


class BackgroundModel(Protocol):
    """Makes vectors at low priority: see `engine.encoder.BackgroundEmbedder`."""

    def embed(self, texts: Sequence[str]) -> list[TextVector]: ...


class Author:
    """Writes summaries, within their bounds. A model has `timeout` seconds for one. Safe to share between threads."""

    def __init__(
        self,
        tokens: TokenCounter,
        model: ChatModel | None = None,
        *,
        encoder: BackgroundModel | None = None,
        timeout: float = 60.0,
    ) -> None:
        self._tokens = tokens
        self._model = model
        self._encoder = encoder
        self._timeout = timeout

    def write(self, plan: SummaryPlan) -> Completion:
        """The summary of what is planned. Raises ChatModelFailed."""
        if self._model is None:
            return Completion(self._extracted(plan), EXTRACTIVE)
        made = self._model.complete(plan.prompt, plan.max_summary_tokens, self._timeout)
        return Completion(self._within(made.text, plan.max_summary_tokens, plan.encoding), made.model)

    def _extracted(self, plan: SummaryPlan) -> str:
        earlier = "" if plan.earlier is None else plan.earlier.text

        def count(texts: Sequence[str]) -> list[int]:
            return self._tokens.count(plan.encoding, texts)

        found = extract(earlier, plan.messages, plan.max_summary_tokens, count, self._vectors)
        return self._within(found, plan.max_summary_tokens, plan.encoding) or WITHOUT_TEXT

    def _vectors(self, texts: Sequence[str]) -> Vectors | None:
        if self._encoder is None:
            return None
        return [made.values for made in self._encoder.embed(texts)]

    def _within(self, text: str, most: int, encoding: TokenEncoding) -> str:
        """As much of a text as has at most so many tokens."""
        if encoding == APPROXIMATE:
            return text[: most * APPROXIMATE_CHARACTERS]
        return _native.trim_tokens(encoding.name, text, most)
