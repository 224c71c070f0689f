"""Checkpoints of the local store, with the values of their channels and the writes that are pending."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from remora.v1.checkpoint_pb2 import ChannelVersion, Checkpoint, CheckpointWrite
from remora.v1.checkpoint_service_pb2 import ChannelHistoryStep, FoundCheckpoint
from remora_server import wire
from remora_server.domain.calls import Access, Outcome, Read, Write
from remora_server.domain.checkpoints import (
    ChannelHistory,
    ChannelQuery,
    ChannelValueName,
    CheckpointDraft,
    CheckpointName,
    CheckpointPage,
    CheckpointPosition,
    CheckpointQuery,
    HistoryPosition,
    PartDraft,
    TaskDraft,
    ValuePart,
    WriteValueName,
)
from remora_server.domain.errors import CheckpointValueNotFound, StoreDamaged
from remora_server.domain.replies import REPLY_BYTES
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.channel_values import ChannelValue, ChannelValues, Scope, behind, scope_at, scope_of
from remora_server.storage.nouns.checkpoint_saving import Saving, blob_key, places_of
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.records.queries import CONTAINS, Condition, RecordsQuery
from remora_server.storage.records.reader import PartitionQuery, Record
from remora_server.storage.schema.keys import KeyType, encode
from remora_server.storage.schema.kinds import BY_CHECKPOINT_ID, CHECKPOINT_WRITES, CHECKPOINTS

_ENTRY_BYTES = 64
"""The most bytes around a value in a reply, without its names."""
_ANCESTORS_AT_ONCE = 64
_WRITES_AT_ONCE = 1_000


class Checkpoints:
    """Saves, finds and lists checkpoints."""

    def __init__(self, context: StoreContext, values: ChannelValues) -> None:
        self._commits = context.commits
        self._commands = context.commands
        self._records = context.records
        self._values = values

    def save(self, write: Write, checkpoints: Sequence[CheckpointDraft], tasks: Sequence[TaskDraft]) -> Outcome:
        saving = Saving(self._records, self._values, write)

        def plan(_: None, now: int) -> Planned | None:
            for draft in checkpoints:
                checkpoint = Checkpoint.FromString(draft.body)
                checkpoint.create_time.CopyFrom(wire.timestamp(now))
                saving.checkpoint(checkpoint, draft.values)
            for task in tasks:
                saving.task(task)
            changes = saving.changes()
            users = [*(draft.user_id for draft in checkpoints), *(task.user_id for task in tasks)]
            return Planned(changes, Outcome(revision=0), users[0], tell=saving.stored) if changes else None

        return self._commands.run(write, self._records.held_places(write, places_of(checkpoints, tasks)), plan)

    def upload(self, write: Write, part: PartDraft) -> Outcome:
        scope = scope_of(part.thread_id, part.checkpoint_ns)

        def plan(_: None, _now: int) -> Planned:
            moves = self._values.upload(write, part)
            return Planned(self._records.changes(write, moves), Outcome(revision=0), part.user_id)

        return self._commands.run(write, self._records.held_place(write, scope.parts(part.upload_id)), plan)

    def get(self, read: Read, names: Sequence[CheckpointName]) -> tuple[bytes, int]:
        revision = self._commits.begin(read)
        found: list[bytes] = []
        room = REPLY_BYTES
        for name in names:
            record = self._record(read, name)
            entry = b"" if record is None else self._found(read, self._scope(name), record, room)
            if found and len(entry) > room:
                break
            found.append(entry)
            room -= len(entry) + _ENTRY_BYTES
        return wire.elements(wire.LIST_FIELD, found), revision

    def list(self, read: Read, query: CheckpointQuery) -> CheckpointPage:
        records, more, revision = self._in_thread(read, query) if _is_of_scope(query) else self._anywhere(read, query)
        found: list[bytes] = []
        room = REPLY_BYTES
        for scope, record in records:
            entry = self._found(read, scope, record, room if found else REPLY_BYTES)
            if found and len(entry) > room:
                break
            found.append(entry)
            room -= len(entry) + _ENTRY_BYTES
        following = _position(records[len(found) - 1][1]) if found and (more or len(found) < len(records)) else None
        return CheckpointPage(wire.elements(wire.LIST_FIELD, found), following, revision)

    def history(self, read: Read, query: ChannelQuery) -> ChannelHistory:
        revision = self._commits.begin(read)
        scope = self._scope(query.name)
        if query.after is None:
            target = self._record(read, query.name)
            parent_id = Checkpoint.FromString(target.body).parent_id if target else ""
            position = HistoryPosition(parent_id, query.channels)
        else:
            position = query.after
        walk = _Walk(self, read, scope, position, query.limit)
        steps = wire.elements(wire.LIST_FIELD, walk.steps())
        return ChannelHistory(steps, walk.following, revision)

    def read_value(self, read: Read, name: ChannelValueName | WriteValueName, offset: int) -> ValuePart:
        revision = self._commits.begin(read)
        scope = scope_of(name.thread_id, name.checkpoint_ns)
        if isinstance(name, WriteValueName):
            key = CHECKPOINT_WRITES.encode_key(name.checkpoint_id, name.task_id, name.index)
            found, _ = self._records.get(read, scope.writes, key)
            if found is None:
                raise CheckpointValueNotFound(f"the write {name.index} of the task {name.task_id!r}")
            stored = CheckpointWrite.FromString(found.body)
            data = self._values.slice(read, scope, stored, offset, min(offset + REPLY_BYTES, stored.size))
            return ValuePart(stored.type, data, stored.size, found.revision, revision)
        value = self._values.named(read, scope, name.channel, name.version, name.fork)
        if value is None:
            raise CheckpointValueNotFound(f"the channel {name.channel!r}")
        value_type, data = self._values.part(read, value, offset, min(offset + REPLY_BYTES, value.size))
        return ValuePart(value_type, data, value.size, value.revision, revision)

    def pending(self, access: Access, scope: Scope, checkpoint_id: str) -> Sequence[tuple[Record, CheckpointWrite]]:
        """The writes of a checkpoint, in their order."""
        found: list[Record] = []
        begin = encode([KeyType.TEXT], [checkpoint_id])
        query = PartitionQuery(newest=True, after=(begin,), before=(behind(begin),), limit=_WRITES_AT_ONCE)
        read = access if isinstance(access, Read) else Read(access.tenant_id, deadline=access.deadline)
        while True:
            page = self._records.page(read, scope.writes, query)
            found[:0] = page.records
            if not page.more:
                break
            query = PartitionQuery(newest=True, after=(begin,), before=(page.records[0].key,), limit=_WRITES_AT_ONCE)
        writes = [(record, CheckpointWrite.FromString(record.body)) for record in found]
        return sorted(writes, key=lambda each: (each[1].task_path, each[1].task_id, each[1].index))

    def ancestor(self, read: Read, scope: Scope, checkpoint_id: str, known: dict[bytes, Record]) -> Record | None:
        """A checkpoint by its id. `known` are some that were read with those before, and get more."""
        key = CHECKPOINTS.encode_key(checkpoint_id)
        if key not in known:
            query = PartitionQuery(newest=True, before=(behind(key),), limit=_ANCESTORS_AT_ONCE)
            known.clear()
            known.update((each.key, each) for each in self._records.page(read, scope.checkpoints, query).records)
        return known.get(key)

    def values_in(
        self, read: Read, scope: Scope, channels: Sequence[ChannelVersion], *, only: Container[str] | None = None
    ) -> Iterator[tuple[ChannelVersion, ChannelValue]]:
        """The values of some channels that are there, not read yet."""
        for each in channels:
            if not each.empty and (only is None or each.channel in only):
                value = self._values.look(read, scope, blob_key(each))
                if value is not None:
                    yield each, value

    def whole(self, read: Read, value: ChannelValue) -> tuple[str, bytes]:
        """The type and the bytes of a value."""
        return self._values.whole(read, value)

    def _scope(self, name: CheckpointName) -> Scope:
        return scope_of(name.thread_id, name.checkpoint_ns)

    def _record(self, read: Read, name: CheckpointName) -> Record | None:
        place = self._scope(name).checkpoints
        if name.checkpoint_id:
            return self._records.get(read, place, CHECKPOINTS.encode_key(name.checkpoint_id))[0]
        newest = self._records.page(read, place, PartitionQuery(newest=True, limit=1)).records
        return newest[0] if newest else None

    def _found(self, read: Read, scope: Scope, record: Record, room: int) -> bytes:
        """A checkpoint with all that belongs to it, in wire form; values that have no room are left out of it."""
        while True:
            try:
                return self._complete(read, scope, record, room)
            except StoreDamaged:
                # Its values may have been deleted meanwhile, with the checkpoint.
                again, _ = self._records.get(read, scope.checkpoints, record.key)
                if again is None:
                    return b""
                if again.revision == record.revision:
                    raise
                record = again

    def _complete(self, read: Read, scope: Scope, record: Record, room: int) -> bytes:
        reply = FoundCheckpoint()
        reply.checkpoint.MergeFromString(record.body)
        room -= len(record.body)
        for each, value in self.values_in(read, scope, reply.checkpoint.channels):
            entry = reply.values.add(channel=each.channel)
            entry.value.size = value.size
            room -= _ENTRY_BYTES + len(each.channel)
            if value.size > room:
                entry.value.omitted = True
                continue
            entry.value.type, entry.value.data = self._values.whole(read, value)
            room -= value.size
        self.fill_writes(read, scope, self.pending(read, scope, reply.checkpoint.id), reply, room)
        return reply.SerializeToString()

    def fill_writes(
        self,
        read: Read,
        scope: Scope,
        writes: Sequence[tuple[Record, CheckpointWrite]],
        reply: FoundCheckpoint | ChannelHistoryStep,
        room: int,
    ) -> None:
        """Put pending writes into a reply; values that have no room are left out of it."""
        for _, stored in writes:
            pending = reply.writes.add(
                task_id=stored.task_id, task_path=stored.task_path, channel=stored.channel, index=stored.index
            )
            pending.value.type, pending.value.size = stored.type, stored.size
            room -= _ENTRY_BYTES + len(stored.channel) + len(stored.task_path) + len(stored.task_id)
            if stored.size > room:
                pending.value.omitted = True
                continue
            pending.value.data = self._values.slice(read, scope, stored, 0, stored.size)
            room -= stored.size

    def _in_thread(self, read: Read, query: CheckpointQuery) -> tuple[Sequence[tuple[Scope, Record]], bool, int]:
        """Checkpoints of one namespace, from memory, the greatest id first."""
        scope = scope_of(query.thread_id, query.checkpoint_ns or "")
        ids = [each for each in (query.before_id, query.after.id if query.after else "") if each]
        before = (CHECKPOINTS.encode_key(min(ids, key=str.encode)),) if ids else None
        page = self._records.page(
            read, scope.checkpoints, PartitionQuery(newest=True, before=before, limit=query.limit)
        )
        return [(scope, record) for record in reversed(page.records)], page.more, page.revision

    def _anywhere(self, read: Read, query: CheckpointQuery) -> tuple[Sequence[tuple[Scope, Record]], bool, int]:
        found = self._records.query(read, _records_query(query))
        return (
            [(scope_at(each.place.partition), each.record) for each in found.records],
            found.more,
            found.revision,
        )


class _Walk:
    """Goes back from a checkpoint, as long as some channels have no value."""

    def __init__(
        self, checkpoints: Checkpoints, read: Read, scope: Scope, position: HistoryPosition, limit: int
    ) -> None:
        self._checkpoints, self._read, self._scope = checkpoints, read, scope
        self._limit = limit
        self._at, self._channels = position.checkpoint_id, dict.fromkeys(position.channels)
        self.following: HistoryPosition | None = None
        """Where the next page begins, once the steps have been read."""

    def steps(self) -> Iterator[bytes]:
        """The ancestors that have values of the channels, in wire form."""
        room, told, passed, known = REPLY_BYTES, 0, set[str](), dict[bytes, Record]()
        while self._at and self._channels and self._at not in passed:
            record = self._checkpoints.ancestor(self._read, self._scope, self._at, known)
            if record is None:
                return
            step = self._step(record, room)
            encoded = step.SerializeToString()
            if told and (len(encoded) > room or told == self._limit):
                self.following = HistoryPosition(self._at, tuple(self._channels))
                return
            if step.writes or step.values:
                yield encoded
                told += 1
                room -= len(encoded) + _ENTRY_BYTES
            for each in step.values:
                del self._channels[each.channel]
            passed.add(self._at)
            self._at = Checkpoint.FromString(record.body).parent_id

    def _step(self, record: Record, room: int) -> ChannelHistoryStep:
        checkpoint = Checkpoint.FromString(record.body)
        step = ChannelHistoryStep(checkpoint_id=checkpoint.id)
        own = self._checkpoints
        for each, value in own.values_in(self._read, self._scope, checkpoint.channels, only=self._channels):
            entry = step.values.add(channel=each.channel)
            step.channels.append(each)
            entry.value.size, entry.value.omitted = value.size, value.size > room
            if not entry.value.omitted:
                entry.value.type, entry.value.data = own.whole(self._read, value)
                room -= value.size
        writes = own.pending(self._read, self._scope, checkpoint.id)
        mine = [each for each in writes if each[1].channel in self._channels]
        own.fill_writes(self._read, self._scope, mine, step, room)
        return step


def _is_of_scope(query: CheckpointQuery) -> bool:
    """Whether a query selects only by thread, namespace and ids."""
    of_scope = query.thread_id and query.checkpoint_ns is not None
    return bool(of_scope) and not (query.checkpoint_id or query.members or query.user_id or query.run_id)


def _position(record: Record) -> CheckpointPosition:
    checkpoint_id, revision, ordinal = record.position(CHECKPOINTS, BY_CHECKPOINT_ID)
    return CheckpointPosition(str(checkpoint_id), int(str(revision)), int(str(ordinal)))


def _records_query(query: CheckpointQuery) -> RecordsQuery:
    after = query.after
    return RecordsQuery(
        CHECKPOINTS,
        prefix=_prefix(query),
        user_id=query.user_id or None,
        where=tuple(_conditions(query)),
        order=BY_CHECKPOINT_ID,
        descending=True,
        after=None if after is None else (after.id, after.revision, after.ordinal),
        limit=query.limit,
    )


def _prefix(query: CheckpointQuery) -> bytes:
    if not query.thread_id:
        return b""
    if query.checkpoint_ns is None:
        return encode([KeyType.TEXT], [query.thread_id])
    return CHECKPOINTS.encode_partition(query.thread_id, query.checkpoint_ns)


def _conditions(query: CheckpointQuery) -> Iterator[Condition]:
    if query.checkpoint_ns is not None and not query.thread_id:
        yield Condition("checkpoint_ns", "=", query.checkpoint_ns)
    if query.checkpoint_id:
        yield Condition("id", "=", query.checkpoint_id)
    if query.before_id:
        yield Condition("id", "<", query.before_id)
    if query.run_id:
        yield Condition("run_id", "=", query.run_id)
    for digest in query.members:
        yield Condition("metadata_members", CONTAINS, digest)
