"""Vectors of the local store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from remora.v1.vector_pb2 import Vector
from remora_server import wire
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.errors import DimensionMismatch
from remora_server.domain.filters import Filter
from remora_server.domain.vectors import (
    FLOAT_BYTES,
    FoundVectors,
    NearestVectors,
    VectorDraft,
    VectorHit,
    VectorQuery,
    VectorScope,
)
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.nouns.vector_collections import VectorCollections
from remora_server.storage.nouns.vector_index import VectorIndex
from remora_server.storage.records.reader import Partition
from remora_server.storage.records.records import PutDraft, Remove
from remora_server.storage.schema.kinds import VECTORS, draft_vectors


class Vectors:
    """Writes, finds and deletes vectors."""

    def __init__(self, context: StoreContext, collections: VectorCollections, index: VectorIndex) -> None:
        self._core = context.core
        self._commits = context.commits
        self._commands = context.commands
        self._records = context.records
        self._collections = collections
        self._index = index

    def upsert(self, write: Write, scope: VectorScope, drafts: Sequence[VectorDraft]) -> Outcome:
        def plan(_: None, now: int) -> Planned:
            dimensions = [(draft.field, draft.dimension) for draft in drafts]
            records = draft_vectors(scope.collection_id, scope.user_id, _dated(drafts, now))
            moves = [
                *self._collections.joined(write, scope.collection_id, dimensions, now),
                *(PutDraft(VECTORS, 0, record) for record in records),
            ]
            return Planned(self._records.changes(write, moves), Outcome(revision=0), scope.user_id)

        return self._commands.run(write, self._collections.held(write, scope.collection_id), plan)

    def search(self, read: Read, scope: VectorScope, query: VectorQuery) -> NearestVectors:
        self._commits.begin(read)
        self._require_dimension(read, scope, query)
        hits, revision = self._index.search(read, _place(scope), scope.user_id, query)
        return NearestVectors(tuple(VectorHit(score, body) for score, body in hits), revision)

    def _require_dimension(self, read: Read, scope: VectorScope, query: VectorQuery) -> None:
        expected, found = self._collections.dimension(read, scope.collection_id), len(query.values) // FLOAT_BYTES
        if expected not in (0, found):
            raise DimensionMismatch(query.field, expected, found)

    def get(self, read: Read, scope: VectorScope, ids: Sequence[str]) -> FoundVectors:
        keys = [VECTORS.encode_key(one) for one in ids]
        found, more, revision = self._records.several(read, _place(scope), keys)
        encoded = tuple(record.body + Vector(revision=record.revision).SerializeToString() for record in found)
        return FoundVectors(encoded, more, revision)

    def delete(self, write: Write, scope: VectorScope, ids: Sequence[str]) -> Outcome:
        place, keys = _place(scope), [VECTORS.encode_key(one) for one in dict.fromkeys(ids)]

        def plan(_: None, _now: int) -> Planned | None:
            return self._removal(write, scope, self._records.there(write, place, keys))

        return self._commands.run(write, self._collections.held(write, scope.collection_id), plan)

    def delete_where(self, write: Write, scope: VectorScope, passing: Filter) -> Outcome:
        def plan(_: None, _now: int) -> Planned | None:
            # Nothing more is accepted of the collection under its lock: what is published by now is all.
            self._commits.wait_published(self._core.kind_touched(VECTORS.number), write.deadline)
            return self._removal(write, scope, self._index.keys(write, _place(scope), scope.user_id, passing))

        return self._commands.run(write, self._collections.held(write, scope.collection_id), plan)

    def _removal(self, write: Write, scope: VectorScope, keys: Sequence[bytes]) -> Planned | None:
        if not keys:
            return None
        partition = _place(scope).partition
        gone = self._records.changes(write, [Remove(VECTORS, 0, partition, key) for key in keys])
        return Planned(gone, Outcome(revision=0, deleted_records=len(keys)), scope.user_id)

    def count(self, read: Read, scope: VectorScope, passing: Filter | None) -> tuple[int, int]:
        if passing is None:
            return self._records.stored_count(read, _place(scope))
        self._commits.begin(read)
        return self._index.count(read, _place(scope), scope.user_id, passing)


def _place(scope: VectorScope) -> Partition:
    return Partition(VECTORS, 0, VECTORS.encode_partition(scope.collection_id, scope.user_id))


def _dated(drafts: Sequence[VectorDraft], now: int) -> Iterator[tuple[str, bytes]]:
    """The vectors with the time of their write, behind their ids."""
    time = Vector(update_time=wire.timestamp(now)).SerializeToString()
    return ((draft.id, draft.body + time) for draft in drafts)
