"""Collections of vectors of the local store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

from remora.v1.vector_pb2 import VectorCollection
from remora_server import wire
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.errors import CollectionExists, CollectionNotFound, DimensionMismatch
from remora_server.domain.replies import fitting
from remora_server.domain.vectors import CollectionDraft, CollectionPage, StoredCollection
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.records.reader import Partition
from remora_server.storage.records.records import Move, Put, Remove, RemovePartitions
from remora_server.storage.schema.kinds import VECTOR_COLLECTIONS, VECTORS

_KEY = b""
"""The key of the one record of a collection's partition."""

_TOTALS = f"SELECT count(*), coalesce(sum(body_bytes), 0) FROM {VECTORS.name} WHERE tenant_id = ? AND collection_id = ?"  # noqa: S608 - a table of ours
_LISTED = f"SELECT id, body FROM {VECTOR_COLLECTIONS.name} WHERE tenant_id = ? AND id > ? ORDER BY id LIMIT ?"  # noqa: S608 - a table of ours


def place_of_collection(collection_id: str) -> Partition:
    """Where a collection stands."""
    return Partition(VECTOR_COLLECTIONS, 0, VECTOR_COLLECTIONS.encode_partition(collection_id))


def claim(collection_id: str) -> Move:
    """What moves where a collection may change: it is locked by whoever writes its vectors."""
    return Remove(VECTOR_COLLECTIONS, 0, place_of_collection(collection_id).partition, _KEY)


class VectorCollections:
    """Creates, reads, clears and deletes collections. Whoever writes vectors of one holds its lock."""

    def __init__(self, context: StoreContext) -> None:
        self._commits = context.commits
        self._commands = context.commands
        self._database = context.database
        self._records = context.records

    def create(self, write: Write, draft: CollectionDraft) -> Outcome:
        def plan(_: None, now: int) -> Planned:
            if self.accepted(write, draft.id) is not None:
                raise CollectionExists(draft.id)
            return self._planned(write, [_put(_new(draft.id, draft.dimension, now))])

        return self._commands.run(write, self.held(write, draft.id), plan)

    def get(self, read: Read, collection_id: str) -> StoredCollection:
        revision = self._commits.begin_query_of(read, VECTORS.number)
        found, shown = self._records.get(read, place_of_collection(collection_id), _KEY)
        if found is None:
            raise CollectionNotFound(collection_id)
        [(count, size)] = self._database.rows(_TOTALS, [read.tenant_id, collection_id])
        return StoredCollection(found.body, count, int(size), min(revision, shown))

    def list(self, read: Read, after: str, limit: int) -> CollectionPage:
        revision = self._commits.begin_query_of(read, VECTOR_COLLECTIONS.number)
        rows = self._database.rows(_LISTED, [read.tenant_id, after, limit + 1])
        page = fitting(rows[:limit], lambda row: len(row[1]))
        following = page[-1][0] if len(page) < len(rows) else None
        return CollectionPage(tuple(body for _, body in page), following, revision)

    def clear(self, write: Write, collection_id: str) -> Outcome:
        def plan(_: None, _now: int) -> Planned | None:
            found = self.accepted(write, collection_id)
            if found is None:
                return None
            found.current_dimension = found.dimension
            return self._planned(write, [_vectors_of(collection_id), _put(found)])

        return self._commands.run(write, self.held(write, collection_id), plan)

    def delete(self, write: Write, collection_id: str, *, allow_missing: bool) -> Outcome:
        def plan(_: None, _now: int) -> Planned | None:
            if self.accepted(write, collection_id) is None:
                if allow_missing:
                    return None
                raise CollectionNotFound(collection_id)
            gone = [_vectors_of(collection_id), claim(collection_id)]
            return self._planned(write, gone, Outcome(revision=0, deleted=True))

        return self._commands.run(write, self.held(write, collection_id), plan)

    def held(self, write: Write, collection_id: str) -> AbstractContextManager[None]:
        """The lock of a collection and of all of its vectors."""
        return self._records.held_place(write, place_of_collection(collection_id))

    def accepted(self, write: Write, collection_id: str) -> VectorCollection | None:
        """A collection as writers build on it, under its lock."""
        found = self._records.accepted(write, place_of_collection(collection_id), [_KEY])
        return VectorCollection.FromString(found[0].body) if found else None

    def dimension(self, read: Read, collection_id: str) -> int:
        """The dimension of a collection's vectors as readers see it; 0 if there is none."""
        found, _ = self._records.get(read, place_of_collection(collection_id), _KEY)
        return 0 if found is None else _dimension_of(VectorCollection.FromString(found.body))

    def joined(
        self,
        write: Write,
        collection_id: str,
        dimensions: Sequence[tuple[str, int]],
        now: int,
        given: VectorCollection | None = None,
    ) -> Iterator[Move]:
        """What changes of a collection as vectors of some dimensions come, under its lock. Each has its field's name.

        `given`: the collection as the same write puts it. Raises DimensionMismatch if not all of the vectors have
        the collection's dimension.
        """
        found = given or self.accepted(write, collection_id)
        expected = 0 if found is None else _dimension_of(found)
        for field, dimension in dimensions:
            expected = expected or dimension
            if dimension != expected:
                raise DimensionMismatch(field, expected, dimension)
        if found is None:
            found = _new(collection_id, 0, now)
        if found.current_dimension != expected:
            found.current_dimension = expected
            yield _put(found)

    def _planned(self, write: Write, moves: Sequence[Move], outcome: Outcome | None = None) -> Planned:
        return Planned(self._records.changes(write, moves), outcome or Outcome(revision=0))


def _new(collection_id: str, dimension: int, now: int) -> VectorCollection:
    return VectorCollection(
        id=collection_id, dimension=dimension, current_dimension=dimension, create_time=wire.timestamp(now)
    )


def _dimension_of(collection: VectorCollection) -> int:
    return collection.current_dimension or collection.dimension


def _put(collection: VectorCollection) -> Move:
    return Put(VECTOR_COLLECTIONS, 0, collection)


def _vectors_of(collection_id: str) -> Move:
    """The vectors of all users of a collection."""
    return RemovePartitions(VECTORS, 0, VECTORS.encode_partition(collection_id), is_prefix=True)
