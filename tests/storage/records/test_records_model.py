"""Records of kinds against a dict that does the same, over restarts and crashes and with next to no memory for them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from google.protobuf.message import Message
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.examples import examples
from tests.storage.declared import FAMILY, ITEMS, LINES, NOTES, PROFILES, Item
from tests.storage.opening import READ, WRITE, open_store

from remora.v1 import step_pb2, working_memory_pb2
from remora_server.storage import local_store
from remora_server.storage.local_store import LocalStore
from remora_server.storage.records.queries import Condition, RecordsQuery
from remora_server.storage.records.reader import Partition, PartitionQuery
from remora_server.storage.records.records import ABSENT, Move, Put, Remove, RemovePartitions
from remora_server.storage.records.refusals import RecordNotFound, RevisionMismatch
from remora_server.storage.schema.kinds import Kind

NAMESPACES = st.sampled_from([("a",), ("a", "b"), ("a", "b", "c"), ("ab",), ()])
IDS = st.sampled_from(["i1", "i2", "i3", "i4"])
USERS = st.sampled_from(["sarah", "tom"])
NUMBERS = st.integers(-2, 2)
STATUSES = st.sampled_from(["new", "old"])
CONTENTS = st.binary(max_size=300)
SECOND = 1_000_000
BEGINNING = 1_800_000_000 * SECOND

Key = tuple[str, bytes, bytes]
"""A kind's name, a partition and a key."""


@dataclass
class Kept:
    """A record of the model. `order` is its place among all writes."""

    kind: Kind
    message: Any  # of the kind's type
    revision: int
    ordinal: int
    expire_time: int | None = None


class SetClock:
    """A clock that only the test moves."""

    def __init__(self) -> None:
        self.now = BEGINNING

    def __call__(self) -> int:
        return self.now


class RecordsMachine(RuleBasedStateMachine):
    """Does each thing to the store and to the model, and compares what both show."""

    record_bytes = 4 << 20

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="remora-records-"))
        self.clock = SetClock()
        self.copies = 0
        self.store = self.opened(self.directory / "0")
        self.model: dict[Key, Kept] = {}

    def opened(self, directory: Path) -> LocalStore:
        with patch.object(local_store, "SteadyClock", lambda: self.clock):
            return open_store(directory, kinds=FAMILY, record_bytes=self.record_bytes)

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.directory)

    def seen(self, kind: Kind, partition: bytes | None = None) -> list[Kept]:
        """What readers see of a kind."""
        return [
            kept
            for (name, place, _), kept in self.model.items()
            if name == kind.name and partition in (None, place) and not self.has_expired(kept)
        ]

    def has_expired(self, kept: Kept) -> bool:
        return kept.expire_time is not None and kept.expire_time <= self.clock.now

    def write(self, *moves: Move) -> None:
        self.wrote(self.store.records.write(WRITE, moves).revision, moves)

    def wrote(self, revision: int, moves: tuple[Move, ...]) -> None:
        """Do to the model what the store did."""
        for ordinal, move in enumerate(moves):
            if isinstance(move, Put):
                draft = move.kind.draft(move.message)
                key = (move.kind.name, draft.partition, draft.key)
                self.model.pop(key, None)
                self.model[key] = Kept(move.kind, move.message, revision, ordinal, draft.expire_time)
            elif isinstance(move, Remove):
                self.removed(move.kind, move.partition, move.key)
            else:
                self.removed(move.kind, move.partition, b"", is_prefix=move.is_prefix, whole=True)

    def removed(
        self, kind: Kind, partition: bytes, key: bytes, *, is_prefix: bool = False, whole: bool = False
    ) -> None:
        gone = [
            found
            for found in self.model
            if found[0] == kind.name
            and (found[1].startswith(partition) if is_prefix else found[1] == partition)
            and (whole or found[2] == key)
        ]
        for found in gone:
            del self.model[found]
        for child in FAMILY.children(kind):
            self.removed(child, partition + key, b"", is_prefix=True, whole=True)

    def revision_of(self, kind: Kind, message: Message) -> int:
        kept = self.model.get((kind.name, *kind.place(message)))
        return ABSENT if kept is None or self.has_expired(kept) else kept.revision

    @rule(
        namespace=NAMESPACES, ids=st.lists(IDS, min_size=1, max_size=3, unique=True), number=NUMBERS,
        status=STATUSES, content=CONTENTS, lives=st.none() | st.integers(1, 20), expects=st.booleans(),
    )  # fmt: skip
    def put_items(
        self,
        *,
        namespace: tuple[str, ...],
        ids: list[str],
        number: int,
        status: str,
        content: bytes,
        lives: int | None,
        expects: bool,
    ) -> None:
        moves = []
        for item_id in ids:
            item = Item(
                namespace=namespace, id=item_id, number=number, status=status, score=number / 4, content=content
            )
            if lives:
                item.expire_time.FromMicroseconds(self.clock.now + lives * SECOND)
            moves.append(Put(ITEMS, 0, item, expected=self.revision_of(ITEMS, item) if expects else None))
        self.write(*moves)

    @rule(namespace=NAMESPACES, item_id=IDS, off=st.sampled_from([-1, 1]))
    def put_expecting_another_revision(self, namespace: tuple[str, ...], item_id: str, off: int) -> None:
        item = Item(namespace=namespace, id=item_id)
        other = Item(namespace=namespace, id="beside")
        wrong = self.revision_of(ITEMS, item) + off
        with pytest.raises(RevisionMismatch) as refused:
            self.store.records.write(WRITE, [Put(ITEMS, 0, other), Put(ITEMS, 0, item, expected=wrong)])
        assert refused.value.found == wrong - off

    @rule(namespace=NAMESPACES, item_id=IDS)
    def remove_item(self, namespace: tuple[str, ...], item_id: str) -> None:
        item = Item(namespace=namespace, id=item_id)
        self.write(Remove(ITEMS, 0, *ITEMS.place(item), expected=self.revision_of(ITEMS, item)))

    @rule(namespace=NAMESPACES, item_id=IDS, content=CONTENTS)
    def move_item(self, namespace: tuple[str, ...], item_id: str, content: bytes) -> None:
        """Two partitions in one write, one of which goes before."""
        self.write(
            RemovePartitions(ITEMS, 0, ITEMS.encode_partition(namespace)),
            Put(ITEMS, 0, Item(namespace=[*namespace, "moved"], id=item_id, content=content)),
        )

    @rule(user=USERS, content=CONTENTS)
    def put_profile(self, user: str, content: bytes) -> None:
        scope = working_memory_pb2.WorkingMemoryScope(user_id=user)
        profile = working_memory_pb2.WorkingMemoryRecord(scope=scope, content=content)
        self.write(Put(PROFILES, 0, profile))

    @rule(user=USERS, ids=st.lists(IDS, min_size=1, max_size=3, unique=True), index=NUMBERS, lines=st.integers(0, 2))
    def put_notes(self, user: str, ids: list[str], index: int, lines: int) -> None:
        notes = [step_pb2.Step(user_id=user, id=each, step_index=index, operation_id="o" * (index + 2)) for each in ids]
        moves = [Put(NOTES, 0, note) for note in notes]
        moves += [
            Put(LINES, 0, step_pb2.Step(user_id=user, id=each, step_index=line, content=f"{line} of {each}"))
            for each in ids
            for line in range(lines)
        ]
        if (PROFILES.name, *PROFILES.place(_profile(user))) in self.model:
            self.write(*moves)
        else:
            with pytest.raises(RecordNotFound):
                self.store.records.write(WRITE, moves)

    @rule(user=USERS)
    def remove_profile(self, user: str) -> None:
        self.write(Remove(PROFILES, 0, *PROFILES.place(_profile(user))))

    @rule(user=USERS, note=IDS)
    def remove_note(self, user: str, note: str) -> None:
        self.write(Remove(NOTES, 0, NOTES.encode_partition(user), NOTES.encode_key(note)))

    @rule(user=USERS)
    def delete_user(self, user: str) -> None:
        self.store.users.delete(WRITE, user)
        self.removed(PROFILES, *PROFILES.place(_profile(user)))

    @rule(namespace=NAMESPACES, item_id=IDS, lives=st.none() | st.integers(1, 20))
    def refresh(self, namespace: tuple[str, ...], item_id: str, lives: int | None) -> None:
        item = Item(namespace=namespace, id=item_id)
        partition, key = ITEMS.place(item)
        kept = self.model.get((ITEMS.name, partition, key))
        expire_time = None if lives is None else self.clock.now + lives * SECOND
        is_there = kept is not None and not self.has_expired(kept)
        assert self.store.records.refresh(READ, Partition(ITEMS, 0, partition), key, expire_time) == is_there
        if kept is not None and is_there:
            kept.expire_time = expire_time

    @rule(seconds=st.integers(1, 10))
    def time_passes(self, seconds: int) -> None:
        self.clock.now += seconds * SECOND

    @rule()
    def journal_refreshed(self) -> None:
        self.store.expiry.journal(older_than=self.clock.now)

    @rule()
    def sweep(self) -> None:
        self.store.commits.settle()
        self.store.expiry.sweep()
        self.model = {key: kept for key, kept in self.model.items() if not self.has_expired(kept)}

    @rule()
    def apply(self) -> None:
        self.store.commits.settle()

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.store = self.opened(self.directory / str(self.copies))

    @rule()
    def crash(self) -> None:
        """Go on with the files as they are at this moment."""
        self.store.expiry.journal(older_than=self.clock.now)
        self.copies += 1
        shutil.copytree(self.directory / str(self.copies - 1), self.directory / str(self.copies))
        self.store.close()
        self.store = self.opened(self.directory / str(self.copies))

    @invariant()
    def every_key_reads_as_the_models(self) -> None:
        for (_, partition, key), kept in self.model.items():
            found, revision = self.store.records.get(READ, Partition(kept.kind, 0, partition), key)
            if self.has_expired(kept):
                assert found is None
            else:
                assert found is not None
                assert kept.kind.message.FromString(found.body) == kept.message
                assert (found.revision, found.expire_time) == (kept.revision, kept.expire_time)
                assert revision >= found.revision

    @rule(data=st.data(), limit=st.integers(1, 4), newest=st.booleans())
    def partitions_are_listed_in_each_order(self, data: st.DataObject, limit: int, *, newest: bool) -> None:
        for kind in (ITEMS, NOTES, LINES):
            places = sorted({partition for name, partition, _ in self.model if name == kind.name}) or [b"none"]
            place = Partition(kind, 0, data.draw(st.sampled_from(places)))
            order = data.draw(st.integers(0, len(kind.orders)))
            expected = [_read(kept) for kept in sorted(self.seen(kind, place.partition), key=_sorted_by(order))]
            assert self.store.records.count(READ, place)[0] == len(expected)
            assert self.paged(place, order, limit, newest=newest) == expected

    def paged(self, place: Partition, order: int, limit: int, *, newest: bool) -> list[tuple[bytes, int]]:
        """All records of a partition, page by page."""
        found: list[tuple[bytes, int]] = []
        after = before = None
        while True:
            query = PartitionQuery(order=order, newest=newest, after=after, before=before, limit=limit)
            page = self.store.records.page(READ, place, query)
            read = [(record.key, record.revision) for record in page.records]
            found = read + found if newest else found + read
            if not page.more:
                return found
            end = page.records[0 if newest else -1].position(place.kind, order)
            after, before = (None, end) if newest else (end, None)

    @rule(namespace=NAMESPACES, status=STATUSES, order=st.integers(0, 2), descending=st.booleans())
    def namespaces_are_searched_by_prefix(
        self, namespace: tuple[str, ...], status: str, order: int, *, descending: bool
    ) -> None:
        query = RecordsQuery(
            ITEMS,
            prefix=ITEMS.encode_leading(*namespace),
            where=(Condition("status", "=", status),),
            order=order,
            descending=descending,
            limit=3,
        )
        found: list[tuple[bytes, int]] = []
        while True:
            page = self.store.records.query(READ, query)
            found += [(each.record.key, each.record.revision) for each in page.records]
            if not page.more:
                break
            query = RecordsQuery(**{**_fields(query), "after": page.records[-1].position})
        chosen = [
            kept
            for kept in self.seen(ITEMS)
            if tuple(kept.message.namespace[: len(namespace)]) == namespace and kept.message.status == status
        ]
        expected = [_read(kept) for kept in sorted(chosen, key=_sorted_by(order, across=True), reverse=descending)]
        assert found == expected


def _profile(user: str) -> working_memory_pb2.WorkingMemoryRecord:
    return working_memory_pb2.WorkingMemoryRecord(scope=working_memory_pb2.WorkingMemoryScope(user_id=user))


def _read(kept: Kept) -> tuple[bytes, int]:
    return kept.kind.place(kept.message)[1], kept.revision


def _fields(query: RecordsQuery) -> dict[str, Any]:
    return {name: getattr(query, name) for name in query.__struct_fields__}


def _sorted_by(order: int, *, across: bool = False) -> Callable[[Kept], tuple[Any, ...]]:
    def place(kept: Kept) -> tuple[Any, ...]:
        draft = kept.kind.draft(kept.message)
        if order == 0:
            return (draft.partition, draft.key) if across else (draft.key,)
        columns = [draft.columns[column] for column in kept.kind.orders[order - 1]]
        return (*columns, kept.revision, kept.ordinal)

    return place


class WithoutMemory(RecordsMachine):
    """With memory for hardly a record."""

    record_bytes = 1


SETTINGS = settings(max_examples=examples(30), stateful_step_count=30, suppress_health_check=[HealthCheck.too_slow])
TestRecords = RecordsMachine.TestCase
TestRecords.settings = SETTINGS
TestWithoutMemory = WithoutMemory.TestCase
TestWithoutMemory.settings = SETTINGS
