"""The search among vectors: partitions are brought into the engine when they are first searched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import duckdb

from remora_server import _native
from remora_server._native import ColdVectors, Core, VectorLoad
from remora_server.domain.calls import Access, Read
from remora_server.domain.errors import MemoryExhausted, VectorsTooLarge
from remora_server.domain.filters import Filter
from remora_server.domain.vectors import VectorQuery
from remora_server.locking import Level
from remora_server.storage.commit.commits import Commits
from remora_server.storage.commit.deadlines import require_time
from remora_server.storage.commit.locks import Locks
from remora_server.storage.database.database import Database
from remora_server.storage.records.pages import Row, Selection, each_page
from remora_server.storage.records.reader import Partition
from remora_server.storage.schema.expressions import expression
from remora_server.storage.schema.kinds import VECTORS, Kind

LOADED_AT_ONCE = 1_000
"""Rows that are read together: a load needs memory for these besides what it fills."""

T = TypeVar("T")


class VectorIndex:
    """Searches partitions of a kind whose records are vectors, which it loads.

    A load begins by having changes gather; then it waits until DuckDB holds what was accepted before, and reads it.
    `budget` is how many bytes a partition may take. `by_words`: their texts are searched, too.
    """

    def __init__(
        self,
        core: Core,
        database: Database,
        commits: Commits,
        budget: int,
        *,
        kind: Kind = VECTORS,
        by_words: bool = False,
    ) -> None:
        self._core = core
        self._vectors = core.vectors
        self._database = database
        self._commits = commits
        self._budget = budget
        self._loads = Locks(Level.LOAD)
        self._kind = kind
        self._by_words = by_words

    def search(
        self, read: Read, place: Partition, user_id: str, query: VectorQuery
    ) -> tuple[list[tuple[float, bytes]], int]:
        """Scores and bodies of the nearest vectors, and the revision that they show. Raises VectorsTooLarge."""
        where = _expression(query.filter)

        def find() -> tuple[list[tuple[float, bytes]], int]:
            return self._vectors.search(
                self._kind.number,
                read.tenant_id,
                place.partition,
                query.values,
                k=query.k,
                threshold=query.threshold,
                expression=where,
            )

        return self._loaded(read, place, user_id, find)

    def search_text(
        self,
        read: Read,
        place: Partition,
        user_id: str,
        text: str,
        vector: bytes | None,
        *,
        k: int,
        threshold: float | None,
        passing: Filter,
        comparable: Filter,
    ) -> tuple[list[tuple[float, bytes]], int]:
        """Scores and bodies of the records that answer a text best, and the revision that they show.

        The text's `vector` is compared with those of `comparable` records. Raises VectorsTooLarge.
        """
        where, compared = expression(passing), expression(comparable)

        def find() -> tuple[list[tuple[float, bytes]], int]:
            return self._vectors.search_text(
                self._kind.number,
                read.tenant_id,
                place.partition,
                text,
                vector,
                k=k,
                threshold=threshold,
                expression=where,
                comparable=compared,
            )

        return self._loaded(read, place, user_id, find)

    def count(self, read: Read, place: Partition, user_id: str, passing: Filter) -> tuple[int, int]:
        """How many vectors pass, and the revision that this shows. Raises VectorsTooLarge."""
        where = _expression(passing)

        def find() -> tuple[int, int]:
            return self._vectors.count(self._kind.number, read.tenant_id, place.partition, expression=where)

        return self._loaded(read, place, user_id, find)

    def keys(self, access: Access, place: Partition, user_id: str, passing: Filter) -> list[bytes]:
        """The keys of the vectors that pass. Raises VectorsTooLarge."""
        where = _expression(passing)

        def find() -> list[bytes]:
            return self._vectors.keys(self._kind.number, access.tenant_id, place.partition, expression=where)

        return self._loaded(access, place, user_id, find)

    def _loaded(self, access: Access, place: Partition, user_id: str, find: Callable[[], T]) -> T:
        """What is found once the partition is in memory."""
        while True:
            try:
                return find()
            except ColdVectors:
                require_time(access.deadline)
            with self._loads.of(access, place.partition):
                try:
                    return find()
                except ColdVectors:
                    self._load(access, place, user_id)

    def _load(self, access: Access, place: Partition, user_id: str) -> None:
        """Load it with one query, or in pages where its bodies take more memory together than there is."""
        try:
            self._load_with(access, place, user_id, self._fill)
        except MemoryExhausted:
            self._load_with(access, place, user_id, self._fill_in_pages)

    def _load_with(
        self, access: Access, place: Partition, user_id: str, fill: Callable[[Access, Partition, VectorLoad], None]
    ) -> None:
        load = self._vectors.begin(
            self._kind.number, access.tenant_id, place.partition, user_id, by_words=self._by_words
        )
        try:
            accepted = self._core.kind_touched(self._kind.number)
            self._commits.wait_published(accepted, access.deadline)
            self._commits.wait_applied(accepted, access.deadline)
            fill(access, place, load)
            load.finish()
        finally:
            load.abandon()

    def _fill(self, access: Access, place: Partition, load: VectorLoad) -> None:
        selection = _of_place(access, place)

        def read(cursor: duckdb.DuckDBPyConnection) -> None:
            cursor.execute(selection.query(selection.table), selection.parameters)
            while rows := cursor.fetchmany(LOADED_AT_ONCE):
                self._take(access, load, rows)

        self._database.snapshot(read)

    def _fill_in_pages(self, access: Access, place: Partition, load: VectorLoad) -> None:
        for rows in each_page(self._database, _of_place(access, place), rows=LOADED_AT_ONCE):
            self._take(access, load, rows)

    def _take(self, access: Access, load: VectorLoad, rows: list[Row]) -> None:
        taken = load.fill(rows)
        if taken > self._budget:
            raise VectorsTooLarge(taken, self._budget)
        require_time(access.deadline)


def _of_place(access: Access, place: Partition) -> Selection:
    where = "place = ? AND (tenant_id, conversation_uid, partition) = (?, 0, ?)"
    at = _native.place(access.tenant_id, 0, place.partition)
    return Selection(place.kind.name, "key, body", where, [at, access.tenant_id, place.partition])


def _expression(given: Filter | None) -> tuple[Any, ...] | None:
    return None if given is None else expression(given)
