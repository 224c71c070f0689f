"""The search among items: those of a tenant are brought into the engine when they are first searched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

import duckdb

from remora_server._native import ColdItems, Core, ItemLoad
from remora_server.domain.calls import Access, Read
from remora_server.domain.errors import ItemsTooLarge, MemoryExhausted
from remora_server.domain.items import ItemSearch, NamespaceListing
from remora_server.locking import Level
from remora_server.storage.commit.commits import Commits
from remora_server.storage.commit.deadlines import require_time
from remora_server.storage.commit.locks import Locks
from remora_server.storage.database.database import Database
from remora_server.storage.records.expiries import UnappliedExpiries
from remora_server.storage.records.pages import Row, Selection, each_page
from remora_server.storage.records.reader import LONG_AGO
from remora_server.storage.schema.expressions import expression
from remora_server.storage.schema.kinds import STORE_ITEMS

LOADED_AT_ONCE = 1_000
"""Rows that are read together: a load needs memory for these besides what it fills."""

EncodedPlace: TypeAlias = tuple[bytes, bytes]
"""A namespace and a key."""
Hit: TypeAlias = tuple[float | None, bytes, EncodedPlace, int, int | None]
"""A score, the item as replies have it, its place, its revision, and until when it lives if it is refreshed."""
T = TypeVar("T")


class ItemIndex:
    """Searches the items of tenants, which it loads, as `VectorIndex` does.

    `budget` is how many bytes those of one may take.
    """

    def __init__(self, core: Core, database: Database, commits: Commits, budget: int) -> None:
        self._core = core
        self._items = core.items
        self._database = database
        self._commits = commits
        self._budget = budget
        self._loads = Locks(Level.LOAD)

    def search(self, read: Read, search: ItemSearch, now: int) -> tuple[list[Hit], int]:
        """What is found, and the revision that it shows; not refreshed, if what has expired is found, too.

        Raises ItemsTooLarge.
        """
        prefix = STORE_ITEMS.encode_leading(*search.prefix)
        where = None if search.filter is None else expression(search.filter)
        given = search.query
        query = None if given is None else (given.model, given.values, given.similarity.value)

        def find() -> tuple[list[Hit], int]:
            return self._items.search(
                STORE_ITEMS.number,
                read.tenant_id,
                prefix,
                expression=where,
                query=query,
                skip=search.skip,
                limit=search.limit,
                now=LONG_AGO if search.sees_expired else now,
                refresh=search.refreshes and not search.sees_expired,
            )

        return self._loaded(read, find)

    def namespaces(self, read: Read, listing: NamespaceListing, now: int) -> tuple[list[list[str]], bool, int]:
        """Namespaces, whether more follow, and the revision that this shows. Raises ItemsTooLarge."""
        matches = [("suffix" if match.at_end else "prefix", list(match.labels)) for match in listing.matches]

        def find() -> tuple[list[list[str]], bool, int]:
            return self._items.namespaces(
                STORE_ITEMS.number,
                read.tenant_id,
                matches=matches,
                max_depth=listing.max_depth,
                skip=listing.skip,
                limit=listing.limit,
                now=LONG_AGO if listing.sees_expired else now,
            )

        return self._loaded(read, find)

    def created(self, access: Access, places: Sequence[EncodedPlace], now: int) -> list[int | None]:
        """When items were created, None where none is, by what is published. Brief, unlike a search.

        Raises ItemsTooLarge.
        """

        def find() -> list[int | None]:
            return self._items.created(STORE_ITEMS.number, access.tenant_id, places, now=now)

        try:
            return find()
        except ColdItems:
            return self._loaded(access, find)

    def expired(self, access: Access, now: int) -> list[EncodedPlace]:
        """The places of what has expired. Raises ItemsTooLarge."""
        return self._loaded(access, lambda: self._items.expired(STORE_ITEMS.number, access.tenant_id, now=now))

    def _loaded(self, access: Access, find: Callable[[], T]) -> T:
        """What is found once the tenant's items are in memory. A search takes its time: there must be some left."""
        while True:
            require_time(access.deadline)
            try:
                return find()
            except ColdItems:
                pass
            with self._loads.of(access, access.tenant_id):
                try:
                    return find()
                except ColdItems:
                    self._load(access)

    def _load(self, access: Access) -> None:
        """Load them with one query, or in pages where their values take more memory together than there is."""
        try:
            self._load_with(access, self._fill)
        except MemoryExhausted:
            self._load_with(access, self._fill_in_pages)

    def _load_with(self, access: Access, fill: Callable[[Access, UnappliedExpiries, ItemLoad], None]) -> None:
        load = self._items.begin(STORE_ITEMS.number, access.tenant_id)
        try:
            accepted = self._core.kind_touched(STORE_ITEMS.number)
            self._commits.wait_published(accepted, access.deadline)
            self._commits.wait_applied(accepted, access.deadline)
            fill(access, UnappliedExpiries(self._core, STORE_ITEMS, access.tenant_id), load)
            load.finish()
        finally:
            load.abandon()

    def _fill(self, access: Access, later: UnappliedExpiries, load: ItemLoad) -> None:
        selection = _of_tenant(access)

        def read(cursor: duckdb.DuckDBPyConnection) -> None:
            with later.source(cursor) as source:
                cursor.execute(selection.query(source), selection.parameters)
                while rows := cursor.fetchmany(LOADED_AT_ONCE):
                    self._take(access, load, rows)

        self._database.snapshot(read)

    def _fill_in_pages(self, access: Access, later: UnappliedExpiries, load: ItemLoad) -> None:
        for rows in each_page(self._database, _of_tenant(access), rows=LOADED_AT_ONCE, source=later.source):
            self._take(access, load, rows)

    def _take(self, access: Access, load: ItemLoad, rows: list[Row]) -> None:
        taken = load.fill(rows)
        if taken > self._budget:
            raise ItemsTooLarge(taken, self._budget)
        require_time(access.deadline)


def _of_tenant(access: Access) -> Selection:
    columns = "partition, key, body, revision, expire_time"
    return Selection(STORE_ITEMS.name, columns, "tenant_id = ?", [access.tenant_id])
