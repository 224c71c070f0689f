"""Records of kinds against a dict that does the same, over restarts and crashes and with next to no memory for them."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from google.protobuf.message import Message
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.examples import examples
from tests.storage.declared import DRAFTS, FAMILY, ITEMS, LINES, NOTES, PROFILES, Item
from tests.storage.opening import READ, WRITE, open_store

from remora.v1 import step_pb2, working_memory_pb2
from remora_server.domain.calls import Outcome, Write
from remora_server.domain.conversations import ConversationDraft
from remora_server.storage import local_store
from remora_server.storage.local_store import LocalStore
from remora_server.storage.records import expiry, uploads
from remora_server.storage.records.expiry import Expiry
from remora_server.storage.records.queries import Condition, RecordsQuery
from remora_server.storage.records.reader import Partition, PartitionQuery
from remora_server.storage.records.records import ABSENT, Move, Put, Remove, RemovePartitions
from remora_server.storage.records.refusals import RecordNotFound, RevisionMismatch, UploadNamed
from remora_server.storage.records.uploads import Upload, Uploaded
from remora_server.storage.schema.kinds import Kind, Kinds

MODELLED = Kinds(*FAMILY, DRAFTS)
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
    uid: int = 0
    journaled_time: int | None = None
    """The expire time that a crash leaves."""
    refreshed_since: int | None = None
    """Since when the journal lacks its expire time."""


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
        self.patched = ExitStack()
        for patched in (
            patch.object(Expiry, "start"),  # it does nothing that the test does not ask for
            patch.object(expiry, "SWEPT_AT_ONCE", 2),
            patch.object(uploads, "UNNAMED_SECONDS", 15),
        ):
            self.patched.enter_context(patched)
        self.store = self.opened(self.directory / "0")
        self.uid = self.store.conversations.create(WRITE, ConversationDraft(id="c", user_id="owner")).revision
        self.model: dict[Key, Kept] = {}
        self.uploads = 0
        self.named: str | None = None

    def opened(self, directory: Path) -> LocalStore:
        with patch.object(local_store, "SteadyClock", lambda: self.clock):
            return open_store(directory, kinds=MODELLED, record_bytes=self.record_bytes)

    def teardown(self) -> None:
        self.store.close()
        self.patched.close()
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
                expires = draft.expire_time
                self.model[key] = Kept(move.kind, move.message, revision, ordinal, expires, move.uid, expires)
            elif isinstance(move, Remove):
                self.removed(move.kind, move.partition, move.key)
            elif isinstance(move, RemovePartitions):
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

    @rule(namespace=NAMESPACES, item_id=IDS, content=CONTENTS, parts=st.integers(1, 3), spare=st.booleans())
    def put_uploaded(
        self, *, namespace: tuple[str, ...], item_id: str, content: bytes, parts: int, spare: bool
    ) -> None:
        item = Item(namespace=namespace, id=item_id, content=content)
        body = item.SerializeToString()
        self.uploads += 1
        self.named = f"u{self.uploads}"
        length = len(body) // parts
        for index in range(parts):
            part = body[index * length : (index + 1) * length if index + 1 < parts else None]
            self.store.records.upload_part(WRITE, Upload(self.named, ITEMS), index, part)
        if spare:
            self.store.records.upload_part(WRITE, Upload(self.named, ITEMS), parts, b"spare")
        move = Put(ITEMS, 0, item, uploaded=Uploaded(self.named, parts))
        self.write(move)

    @precondition(lambda self: self.named)
    @rule()
    def upload_a_named_part_again(self) -> None:
        """Refused, but for parts that have been swept."""
        with suppress(UploadNamed):
            self.store.records.upload_part(WRITE, Upload(self.named or "", ITEMS), 0, b"again")

    @rule(user=USERS, ids=st.lists(IDS, min_size=1, unique=True), content=CONTENTS, lives=st.integers(-1, 10))
    def put_drafts(self, user: str, ids: list[str], content: bytes, lives: int) -> None:
        self.put_under_lock(*(self.draft(user, each, content, lives) for each in ids))

    def draft(self, user: str, draft_id: str, content: bytes, lives: int) -> Put:
        draft = step_pb2.Step(user_id=user, id=draft_id, conversation_id="c", result=content)
        draft.create_time.FromMicroseconds(self.clock.now + lives * SECOND)
        return Put(DRAFTS, self.uid, draft)

    def put_under_lock(self, *moves: Move) -> None:
        """Write records of a conversation, as a noun does."""
        with self.store.conversations.locked(WRITE, "c"):
            made = self.store.records.changes(WRITE, moves)
            accepted = self.store.commits.accept(WRITE, self.clock.now, made, Outcome(revision=0))
        self.store.commits.wait_published(accepted.revision, None)
        self.wrote(accepted.revision, moves)

    @rule(user=USERS, draft_id=IDS)
    def sweep_beside_a_writer(self, user: str, draft_id: str) -> None:
        """Of a draft that the sweep has found to be expired."""
        self.put_under_lock(self.draft(user, draft_id, b"old", -1))
        new = self.draft(user, draft_id, b"new", 10)
        writer = threading.Thread(target=self.put_under_lock, args=(new,))
        has_expired = self.store.records.has_expired

        def looked(access: Write, place: Partition, key: bytes) -> bool:
            found = has_expired(access, place, key)
            if key == DRAFTS.place(new.message)[1] and place.partition == new.partition and place.kind is DRAFTS:
                writer.start()
                writer.join(0.02)
            return found

        self.store.commits.settle()
        with patch.object(self.store.records, "has_expired", looked):
            self.store.expiry.sweep()
        writer.join()
        self.swept()

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
        self.removed(DRAFTS, DRAFTS.encode_partition(user), b"", whole=True)

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
            if kept.refreshed_since is None:
                kept.refreshed_since = self.clock.now

    @rule(seconds=st.integers(1, 10))
    def time_passes(self, seconds: int) -> None:
        self.clock.now += seconds * SECOND

    @rule(seconds=st.sampled_from([0, 5]))
    def journal_refreshed(self, seconds: int) -> None:
        """What has been in memory alone for so long, and nothing else."""
        older_than = self.clock.now - seconds * SECOND
        refreshed = [kept for kept in self.model.values() if kept.refreshed_since is not None]
        due = [kept for kept in refreshed if (kept.refreshed_since or 0) <= older_than]
        before = self.store.core.accepted()
        self.store.expiry.journal(older_than=older_than)
        accepted = self.store.core.accepted()
        assert (accepted > before) == bool(due)
        self.store.commits.wait_published(accepted, None)
        self.journaled(due)

    def journaled(self, due: Iterable[Kept]) -> None:
        for kept in due:
            kept.journaled_time, kept.refreshed_since = kept.expire_time, None

    @rule()
    def sweep(self) -> None:
        self.store.commits.settle()
        self.store.expiry.sweep()
        self.swept()

    def swept(self) -> None:
        """What has expired by memory and by the database is gone."""
        for key, kept in list(self.model.items()):
            has_expired = kept.journaled_time is not None and kept.journaled_time <= self.clock.now
            if has_expired and self.has_expired(kept):
                del self.model[key]

    @rule()
    def apply(self) -> None:
        self.store.commits.settle()

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.journaled(self.model.values())
        self.store = self.opened(self.directory / str(self.copies))

    @rule()
    def crash(self) -> None:
        """Go on with the files as they are at this moment: without what was refreshed and not journaled."""
        self.copies += 1
        shutil.copytree(self.directory / str(self.copies - 1), self.directory / str(self.copies))
        self.store.close()
        self.store = self.opened(self.directory / str(self.copies))
        for kept in self.model.values():
            kept.expire_time, kept.refreshed_since = kept.journaled_time, None

    @invariant()
    def every_key_reads_as_the_models(self) -> None:
        for (_, partition, key), kept in self.model.items():
            found, revision = self.store.records.get(READ, Partition(kept.kind, kept.uid, partition), key)
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
