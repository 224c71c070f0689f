"""The facts that are candidates of a context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from remora_server.domain.calls import Read
from remora_server.domain.context import ContextFacts, ContextRequest
from remora_server.domain.context_messages import ContextMessage, MessageReader
from remora_server.domain.facts import FactQuery, FactTimes, StaticFact
from remora_server.domain.memory_items import FoundItems


class FactFinder(Protocol):
    """The facts that a context needs: see `domain.fact_memory.FactMemory`."""

    def search(self, read: Read, user_id: str, query: FactQuery) -> FoundItems: ...

    def newest(self, read: Read, user_id: str, times: FactTimes, limit: int) -> Sequence[bytes]: ...

    def static(self, read: Read) -> tuple[Sequence[StaticFact], int | None, int]: ...


class FoundFact(Struct, frozen=True):
    """A fact of a user as a message; `score` None if there was no query."""

    message: ContextMessage
    score: float | None = None


class KnownFacts(Struct, frozen=True):
    """The facts for one request. Their messages belong to no conversation and have negative sequences."""

    read: Read
    request: ContextRequest
    finder: FactFinder
    reader: MessageReader
    user_id: str

    def static(self) -> list[ContextMessage]:
        """The tenant's static facts, in their order."""
        if not self.request.static_facts:
            return []
        facts, _, _ = self.finder.static(self.read)
        return [self.reader.static_fact(fact, -number) for number, fact in enumerate(facts, 1)]

    def found(self, text: str, behind: int) -> list[FoundFact]:
        """The user's facts that answer a text, or the request's vector, best first; those recorded last without either,
        or if none can be compared with the vector. `behind` is how many others there are.
        """
        asked = self.request.facts
        if asked is None or not self.user_id:
            return []
        encoded = self._encoded(asked, text)
        return [
            FoundFact(self.reader.fact(body, -number), score)
            for number, (body, score) in enumerate(encoded, 1 + behind)
        ]

    def _encoded(self, asked: ContextFacts, text: str) -> Sequence[tuple[bytes, float | None]]:
        vector = self.request.vector
        if not text and vector is None:
            return self._newest(asked)
        query = FactQuery(
            text=text,
            k=asked.k,
            threshold=asked.threshold,
            times=asked.times,
            model="" if vector is None else vector.model,
            vector=None if vector is None else vector.values,
        )
        hits = self.finder.search(self.read, self.user_id, query).hits
        if not text and asked.threshold is None and not any(hit.score for hit in hits):
            return self._newest(asked)
        return [(hit.encoded, hit.score) for hit in hits]

    def _newest(self, asked: ContextFacts) -> Sequence[tuple[bytes, float | None]]:
        return [(body, None) for body in self.finder.newest(self.read, self.user_id, asked.times, asked.k)]
