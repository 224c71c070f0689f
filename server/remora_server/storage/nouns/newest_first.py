"""Lists of a user's records that are searched, too: those that pass a filter, the newest first."""

from __future__ import annotations

from collections.abc import Iterator, Set

from msgspec import Struct

from remora_server.domain.calls import Read
from remora_server.domain.memory_items import ItemPage
from remora_server.domain.replies import REPLY_BYTES, fitting
from remora_server.domain.workflows import PartPosition
from remora_server.storage.nouns.run_parts import position_of, stored_position
from remora_server.storage.records.reader import Partition, PartitionQuery, Record, RecordPage
from remora_server.storage.records.records import Records
from remora_server.storage.schema.kinds import Position


class NewestFirst(Struct, frozen=True):
    """The records of a partition in an order of their kind, from its end."""

    records: Records
    place: Partition
    order: int

    def page(self, read: Read, keys: Set[bytes] | None, after: PartPosition | None, limit: int) -> ItemPage:
        """Those with some keys, or (None) all, behind a position."""
        found: list[Record] = []
        revisions = []
        for page in self._pages(read, stored_position(after), limit + 1):
            found += [record for record in reversed(page.records) if keys is None or record.key in keys]
            revisions.append(page.revision)
            if len(found) > limit or sum(map(_size, found)) > REPLY_BYTES:
                break
        kept = fitting(found[:limit], _size)
        last = kept[-1].position(self.place.kind, self.order) if len(kept) < len(found) else None
        return ItemPage(tuple(record.body for record in kept), position_of(last), revisions[0])

    def _pages(self, read: Read, before: Position | None, limit: int) -> Iterator[RecordPage]:
        """Pages, the newest page first; each ascends."""
        more = True
        while more:
            query = PartitionQuery(order=self.order, newest=True, before=before, limit=limit)
            page = self.records.page(read, self.place, query)
            yield page
            more = page.more
            before = page.records[0].position(self.place.kind, self.order) if page.records else before


def _size(record: Record) -> int:
    return len(record.body)
