"""Threads of the local store: all checkpoints, values and writes that have one thread's id."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, TypeVar

from msgspec import Struct

from remora.v1.checkpoint_pb2 import ChannelBlob, Checkpoint, CheckpointPart, CheckpointWrite
from remora_server.domain import json_members
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.checkpoints import DELTA_COUNTERS, ThreadQuery, ThreadSummary
from remora_server.storage.commit.changes import Change
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.channel_values import ChannelValues, Scope, key_of, new_fork, scope_at, scope_of
from remora_server.storage.nouns.checkpoint_saving import blob_key
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.records.reader import Partition, PartitionQuery
from remora_server.storage.records.records import Move, Put, Remove, RemovePartitions
from remora_server.storage.schema import keys
from remora_server.storage.schema.keys import KeyType, encode
from remora_server.storage.schema.kinds import (
    CHANNEL_BLOBS,
    CHECKPOINT_PARTS,
    CHECKPOINT_WRITES,
    CHECKPOINTS,
    Kind,
)

_KINDS = (CHECKPOINTS, CHANNEL_BLOBS, CHECKPOINT_WRITES, CHECKPOINT_PARTS)
_MOST_MOVES = 20_000
"""How many removals one journal record has."""
_COPIED_BYTES = 4 << 20
"""The approximate number of bytes that one journal record copies."""
_ALL = 1_000

T = TypeVar("T", ChannelBlob, Checkpoint, CheckpointPart, CheckpointWrite)
_Copied: TypeAlias = ChannelBlob | Checkpoint | CheckpointPart | CheckpointWrite

_THREADS = """
SELECT thread_id, count(*), min(create_time), max(create_time) FROM checkpoints
WHERE tenant_id = $tenant AND thread_id > $after AND ($user = '' OR thread_id IN (
    SELECT thread_id FROM checkpoints WHERE tenant_id = $tenant AND user_id = $user))
GROUP BY thread_id HAVING $before IS NULL OR max(create_time) < $before
ORDER BY thread_id LIMIT $limit
"""
_SCOPES_OF_RUNS = """
SELECT DISTINCT partition FROM checkpoints
WHERE tenant_id = ? AND run_id IN (SELECT unnest(?::VARCHAR[])) ORDER BY partition
"""


class Threads:
    """Lists, copies, prunes and deletes threads."""

    def __init__(
        self, context: StoreContext, values: ChannelValues, *, is_deleted: Callable[[str, str, int], bool]
    ) -> None:
        """`is_deleted` says, under the locks of its records, whether a tenant's user was deleted since a revision."""
        self._is_deleted = is_deleted
        self._commits = context.commits
        self._commands = context.commands
        self._database = context.database
        self._records = context.records
        self._values = values

    def list(self, read: Read, query: ThreadQuery) -> tuple[Sequence[ThreadSummary], int]:
        revision = self._commits.begin_query_of(read, CHECKPOINTS.number)
        parameters = {
            "tenant": read.tenant_id,
            "after": query.after,
            "user": query.user_id,
            "before": query.updated_before,
            "limit": query.limit,
        }
        return [ThreadSummary(*row) for row in self._database.rows(_THREADS, parameters)], revision

    def delete(self, write: Write, thread_id: str) -> Outcome:
        prefix = _thread_prefix(thread_id)
        moves = [RemovePartitions(kind, 0, prefix, is_prefix=True) for kind in _KINDS]

        def plan(_: None, _now: int) -> Planned:
            return Planned(self._records.changes(write, moves), Outcome(revision=0))

        return self._commands.run(write, self._records.held(write, moves), plan)

    def delete_runs(self, write: Write, run_ids: Sequence[str]) -> Outcome:
        runs = frozenset(run_ids)

        def thin(part: Write) -> Outcome:
            scopes = self._scopes_of_runs(write, run_ids)
            return self._thin(write, part, scopes, lambda found: _but_of_runs(found, runs))

        return self._commands.run_in_parts(write, thin)

    def prune(self, write: Write, thread_ids: Sequence[str], *, keep_latest: bool) -> Outcome:
        choose = _latest if keep_latest else _none
        *others, last = dict.fromkeys(thread_ids)

        def thin(part: Write) -> Outcome:
            outcomes = [self._thin(part, part, self._scopes(write, each), choose) for each in others]
            deleted = sum(outcome.deleted_records for outcome in outcomes)
            return self._thin(write, part, self._scopes(write, last), choose, deleted)

        return self._commands.run_in_parts(write, thin)

    def copy(self, write: Write, source: str, target: str) -> Outcome:
        def put(part: Write) -> Outcome:
            copied = 0
            last = _Copy([])
            since = self._commits.begin(_read(write))
            for copy in _in_parts(self._copies(write, source, target)):
                if last.messages:
                    self._put(part, last, 0, since)
                copied, last = copied + last.checkpoints, copy
            return self._put(write, last, copied, since)

        return self._commands.run_in_parts(write, put)

    def _scopes_of_runs(self, write: Write, run_ids: Sequence[str]) -> Sequence[Scope]:
        self._commits.begin_query_of(_read(write), CHECKPOINTS.number)
        rows = self._database.rows(_SCOPES_OF_RUNS, [write.tenant_id, list(run_ids)])
        return [scope_at(partition) for (partition,) in rows]

    def _scopes(self, write: Write, thread_id: str) -> Sequence[Scope]:
        """The namespaces of a thread that have anything."""
        found: set[bytes] = set()
        prefix = _thread_prefix(thread_id)
        for kind in (CHECKPOINTS, CHANNEL_BLOBS, CHECKPOINT_WRITES):
            self._commits.begin_query_of(_read(write), kind.number)
            rows = self._database.rows(
                f"SELECT DISTINCT partition FROM {kind.name} WHERE tenant_id = ? AND partition >= ? AND partition < ?",  # noqa: S608 - a table of ours
                [write.tenant_id, prefix, prefix[:-1] + bytes([prefix[-1] + 1])],
            )
            found.update(partition for (partition,) in rows)
        return [scope_at(partition) for partition in sorted(found)]

    def _thin(self, write: Write, part: Write, scopes: Sequence[Scope], choose: _Choose, deleted: int = 0) -> Outcome:
        """Remove what is not chosen of some scopes: what is too much for one journal record, in several, as `part`
        before the last. The outcome counts checkpoints, with `deleted` before.
        """
        held = [place for scope in scopes for place in (scope.checkpoints, scope.blobs, scope.writes)]
        while True:
            step = _Thinning(self, write, scopes, choose)
            outcome = self._commands.run(part, self._records.held_places(write, held), step.planned_if_too_much)
            deleted += outcome.deleted_records
            if not outcome.deleted:
                break
        step = _Thinning(self, write, scopes, choose)
        return self._commands.run(write, self._records.held_places(write, held), lambda *_: step.planned(deleted))

    def found(self, write: Write, scopes: Sequence[Scope]) -> dict[Scope, _Contents]:
        """The content of some scopes, under their locks: everything that was accepted."""
        self._commits.wait_accepted(write.deadline)
        read = _read(write)
        return {scope: _Contents(self._checkpoints(read, scope), self._keys(read, scope.blobs)) for scope in scopes}

    def removals(
        self, write: Write, found: Mapping[Scope, _Contents], chosen: Mapping[Scope, _Chosen]
    ) -> Sequence[Move]:
        """The moves after which scopes have what was chosen: checkpoints first, without which the rest is not seen."""
        moves: list[Move] = []
        for scope, kept in chosen.items():
            contents = found[scope]
            moves += [Put(CHECKPOINTS, 0, checkpoint) for checkpoint in kept.changed]
            gone = [each for each in contents.checkpoints if each not in kept.ids]
            moves += [Remove(CHECKPOINTS, 0, scope.partition, CHECKPOINTS.encode_key(each)) for each in gone]
        for scope, kept in chosen.items():
            moves += self._unused(write, scope, found[scope], kept)
        return moves

    def _unused(self, write: Write, scope: Scope, contents: _Contents, kept: _Chosen) -> Iterator[Move]:
        """The values that no kept checkpoint has, nor any value that differs from them; the writes of those that go."""
        live = self._live(write, scope, contents, kept)
        writes = self._keys(_read(write), scope.writes)
        unused = [(CHANNEL_BLOBS, key) for key in contents.blobs if key not in live]
        unused += [(CHECKPOINT_WRITES, key) for key in writes if not _is_kept(key, contents, kept)]
        gone = set(unused)
        named = {upload_id for key, upload_id in contents.blobs.items() if (CHANNEL_BLOBS, key) not in gone}
        named.update(upload_id for key, upload_id in writes.items() if (CHECKPOINT_WRITES, key) not in gone)
        for kind, key in unused:
            yield Remove(kind, 0, scope.partition, key)
            upload_id = (contents.blobs if kind is CHANNEL_BLOBS else writes)[key]
            if upload_id not in named:
                yield from _without_parts(scope, upload_id)

    def _live(self, write: Write, scope: Scope, contents: _Contents, kept: _Chosen) -> set[bytes]:
        """Where the values stand that stay."""
        read, live = _read(write), set[bytes]()
        for checkpoint_id in kept.ids:
            for channel in contents.checkpoints[checkpoint_id].channels:
                key = blob_key(channel)
                if channel.empty or key in live or key not in contents.blobs:
                    continue
                live.add(key)
                value = self._values.look(read, scope, key)
                if value is not None:
                    live.update(base.key for base in self._values.bases(read, value))
        return live

    def _checkpoints(self, read: Read, scope: Scope) -> dict[str, Checkpoint]:
        """All checkpoints of a scope, by id, ascending."""
        found = [Checkpoint.FromString(body) for body in self.bodies(read, scope.checkpoints)]
        return {each.id: each for each in found}

    def _keys(self, read: Read, place: Partition) -> dict[bytes, str]:
        """The keys of a partition, each with the upload that has its value."""
        column = place.kind.column_names.index("value_upload_id")
        records = self._records.bodiless(read, place, PartitionQuery(limit=_ALL))
        return {each.key: str(each.columns[column] or "") for each in records}

    def changes(self, write: Write, moves: Sequence[Move]) -> Sequence[Change]:
        """The changes of a write, under the locks."""
        return self._records.changes(write, moves)

    def bodies(self, read: Read, place: Partition) -> Iterator[bytes]:
        """Those of all records of a partition."""
        query = PartitionQuery(limit=_ALL)
        while True:
            page = self._records.page(read, place, query)
            yield from (record.body for record in page.records)
            if not page.more:
                return
            query = PartitionQuery(limit=_ALL, after=(page.records[-1].key,))

    def _put(self, write: Write, part: _Copy, before: int, since: int) -> Outcome:
        """Write a part of a copy, but for what is of users who were deleted since it was read."""
        copies = [(message.user_id, Put(kind, 0, message)) for kind, message in part.messages]
        held = self._records.held_places(write, [Partition(put.kind, 0, put.partition) for _, put in copies])

        def plan(_: None, _now: int) -> Planned | None:
            count = before + part.checkpoints
            outcome = Outcome(revision=0, imported_records=count)
            users = {user_id for user_id, _ in copies}
            deleted = {user_id for user_id in users if self._is_deleted(write.tenant_id, user_id, since)}
            moves = [put for user_id, put in copies if user_id not in deleted]
            return Planned(self._records.changes(write, moves), outcome) if copies or count else None

        return self._commands.run(write, held, plan)

    def _copies(self, write: Write, source: str, target: str) -> Iterator[tuple[Kind, _Copied]]:
        """A thread's records as the target is to have them: what others need comes first."""
        for scope in self._scopes(write, source):
            yield from _Copying(self, write, scope, scope_of(target, scope.checkpoint_ns)).messages()


class _Contents(Struct, frozen=True):
    """The checkpoints of a scope by id, ascending, and where its values stand, each with the upload that has it."""

    checkpoints: dict[str, Checkpoint]
    blobs: dict[bytes, str]


class _Chosen(Struct, frozen=True):
    """The ids of the checkpoints that stay, and those of them that change."""

    ids: frozenset[str] = frozenset()
    changed: tuple[Checkpoint, ...] = ()


_Choose: TypeAlias = Callable[[Mapping[Scope, _Contents]], Mapping[Scope, _Chosen]]
"""What stays of some scopes. A scope that is not named stays as a whole."""


class _Thinning:
    """Plans the removals, on the accepted records at the time of the call."""

    def __init__(self, threads: Threads, write: Write, scopes: Sequence[Scope], choose: _Choose) -> None:
        self._threads, self._write, self._scopes, self._choose = threads, write, scopes, choose

    def planned_if_too_much(self, _: None, _now: int) -> Planned | None:
        """The first part of the removals, if they are too many for one journal record."""
        moves = self._moves()
        return self._planned(moves[:_MOST_MOVES], 0) if len(moves) > _MOST_MOVES else None

    def planned(self, deleted: int) -> Planned | None:
        """All of it. The outcome counts what was removed before, also where nothing is left to remove."""
        moves = self._moves()
        return self._planned(moves, deleted) if moves or deleted else None

    def _moves(self) -> Sequence[Move]:
        found = self._threads.found(self._write, self._scopes)
        return self._threads.removals(self._write, found, self._choose(found))

    def _planned(self, moves: Sequence[Move], deleted: int) -> Planned:
        checkpoints = sum(isinstance(move, Remove) and move.kind is CHECKPOINTS for move in moves)
        outcome = Outcome(revision=0, deleted=True, deleted_records=deleted + checkpoints)
        return Planned(self._threads.changes(self._write, moves), outcome)


def _none(found: Mapping[Scope, _Contents]) -> Mapping[Scope, _Chosen]:
    return dict.fromkeys(found, _Chosen())


def _latest(found: Mapping[Scope, _Contents]) -> Mapping[Scope, _Chosen]:
    """The newest checkpoint of each namespace, and what its channels are rebuilt from."""
    chosen = {
        scope: _with_ancestors(contents, frozenset(list(contents.checkpoints)[-1:]))
        for scope, contents in found.items()
    }
    for scope, contents in found.items():
        if _is_old_call(scope, contents, found, chosen):
            chosen[scope] = _Chosen()
    return chosen


def _is_old_call(
    scope: Scope, contents: _Contents, found: Mapping[Scope, _Contents], chosen: Mapping[Scope, _Chosen]
) -> bool:
    """Whether a namespace is that of a subgraph's call (its task follows a colon) whose root checkpoint goes. One whose
    root checkpoint is not there yet stays: it may be saved after its calls.
    """
    if ":" not in scope.checkpoint_ns or not contents.checkpoints:
        return False
    newest = contents.checkpoints[list(contents.checkpoints)[-1]]
    parents = json_members.members(newest.metadata).get("parents")
    root_id = parents.get("") if isinstance(parents, dict) else None
    root = scope_of(scope.thread_id, "")
    return (
        root in found
        and isinstance(root_id, str)
        and root_id in found[root].checkpoints
        and root_id not in chosen[root].ids
    )


def _but_of_runs(found: Mapping[Scope, _Contents], run_ids: frozenset[str]) -> Mapping[Scope, _Chosen]:
    """All checkpoints but those of some runs, and what the channels of the others are rebuilt from."""
    return {
        scope: _with_ancestors(
            contents, frozenset(each.id for each in contents.checkpoints.values() if each.run_id not in run_ids)
        )
        for scope, contents in found.items()
    }


def _with_ancestors(contents: _Contents, ids: frozenset[str]) -> _Chosen:
    """Checkpoints with the ancestors that their channels are rebuilt from. One whose parent goes has none then."""
    kept = ids.union(*(_rebuilt_from(contents, contents.checkpoints[each]) for each in ids))
    changed = []
    for each in kept:
        checkpoint = contents.checkpoints[each]
        if checkpoint.parent_id and checkpoint.parent_id not in kept:
            orphan = Checkpoint()
            orphan.CopyFrom(checkpoint)
            orphan.parent_id = ""
            changed.append(orphan)
    return _Chosen(kept, tuple(changed))


def _rebuilt_from(contents: _Contents, checkpoint: Checkpoint) -> set[str]:
    """The ancestors, back to one that has the value, of the channels that a checkpoint keeps as writes."""
    counters = json_members.members(checkpoint.metadata).get(DELTA_COUNTERS)
    missing = set(counters) - _with_values(contents, checkpoint) if isinstance(counters, dict) else set()
    ancestors: set[str] = set()
    parent = contents.checkpoints.get(checkpoint.parent_id)
    while missing and parent is not None and parent.id not in ancestors:
        ancestors.add(parent.id)
        missing -= _with_values(contents, parent)
        parent = contents.checkpoints.get(parent.parent_id)
    return ancestors


def _with_values(contents: _Contents, checkpoint: Checkpoint) -> set[str]:
    """The channels that have a value in a checkpoint."""
    return {each.channel for each in checkpoint.channels if not each.empty and blob_key(each) in contents.blobs}


class _Copy(Struct, frozen=True):
    """Records that one write copies, and how many checkpoints are among them."""

    messages: list[tuple[Kind, _Copied]]
    checkpoints: int = 0


class _Copying:
    """Gives the records of a scope as they are to stand in another. A value that is not there yet gets a new fork."""

    def __init__(self, threads: Threads, write: Write, source: Scope, target: Scope) -> None:
        self._threads, self._write, self._source, self._target = threads, write, source, target
        self._forks: dict[bytes, int] = {}
        """Of each value of the source, the fork in the target."""
        self._there: dict[tuple[str, str], list[ChannelBlob]] = {}
        """The values of the target by channel and version."""
        self._holders: dict[str, bytes] = {}
        """Of each upload that a value of the target names, the place of that value."""

    def messages(self) -> Iterator[tuple[Kind, _Copied]]:
        read = _read(self._write)
        # Before the values: of one that is saved meanwhile, they may not be among these.
        checkpoints = list(self._threads.bodies(read, self._source.checkpoints))
        blobs = [ChannelBlob.FromString(body) for body in self._threads.bodies(read, self._source.blobs)]
        for body in self._threads.bodies(read, self._target.blobs):
            there = ChannelBlob.FromString(body)
            self._there.setdefault((there.channel, there.version), []).append(there)
            self._holders[there.upload_id] = key_of(there)
        held = map(CheckpointWrite.FromString, self._threads.bodies(read, self._target.writes))
        self._holders.update((each.upload_id, _place_of(each)) for each in held)
        for blob in sorted(blobs, key=lambda each: each.depth):
            yield from self._blob(read, blob)
        for body in self._threads.bodies(read, self._source.writes):
            write = self._moved(CheckpointWrite.FromString(body))
            uploaded, write.upload_id = write.upload_id, self._upload(read, write.upload_id, _place_of(write))
            yield from self._parts(read, uploaded, write.upload_id, _place_of(write))
            yield CHECKPOINT_WRITES, write
        for body in checkpoints:
            checkpoint = self._moved(Checkpoint.FromString(body))
            for channel in checkpoint.channels:
                fork = None if channel.empty else self._forks.get(blob_key(channel))
                channel.fork, channel.empty = fork or 0, fork is None
            yield CHECKPOINTS, checkpoint

    def _blob(self, read: Read, blob: ChannelBlob) -> Iterator[tuple[Kind, _Copied]]:
        key = key_of(blob)
        if blob.depth:
            base = self._forks.get(CHANNEL_BLOBS.encode_key(blob.channel, blob.base_version, blob.base_fork))
            if base is None:
                return  # Both were saved meanwhile.
            blob.base_fork = base
        copy = self._moved(blob)
        there, uploaded = self._there.setdefault((copy.channel, copy.version), []), copy.upload_id
        for each in there:
            copy.fork = each.fork
            copy.upload_id = self._upload(read, uploaded, key_of(copy))
            if copy == each:
                self._forks[key] = each.fork
                return
        self._forks[key] = copy.fork = new_fork()
        copy.upload_id = self._upload(read, uploaded, key_of(copy))
        there.append(copy)
        yield from self._parts(read, uploaded, copy.upload_id, key_of(copy))
        yield CHANNEL_BLOBS, copy

    def _upload(self, read: Read, upload_id: str, place: bytes) -> str:
        """What the upload of a copied value is called: as before, unless that is the upload of another value there, or
        one that is not complete.
        """
        if not upload_id:
            return ""
        another = hashlib.blake2b(place + upload_id.encode(), digest_size=16).hexdigest()
        if another in self._holders or self._holders.get(upload_id, place) != place:
            return another
        parts = map(CheckpointPart.FromString, self._threads.bodies(read, self._target.parts(upload_id)))
        return another if any(part.HasField("expire_time") for part in parts) else upload_id

    def _parts(self, read: Read, upload_id: str, name: str, place: bytes) -> Iterator[tuple[Kind, _Copied]]:
        """The parts of an upload, under the name that it has in the target."""
        if upload_id:
            self._holders[name] = place
            for body in self._threads.bodies(read, self._source.parts(upload_id)):
                part = self._moved(CheckpointPart.FromString(body))
                part.upload_id = name
                part.ClearField("expire_time")
                yield CHECKPOINT_PARTS, part

    def _moved(self, message: T) -> T:
        message.thread_id = self._target.thread_id
        return message


def _place_of(write: CheckpointWrite) -> bytes:
    """Where a task's write stands."""
    return b"write/" + CHECKPOINT_WRITES.encode_key(write.checkpoint_id, write.task_id, write.index)


def _in_parts(messages: Iterable[tuple[Kind, _Copied]]) -> Iterator[_Copy]:
    """What is copied, as much at a time as one journal record takes."""
    held: list[tuple[Kind, _Copied]] = []
    size = 0
    for kind, message in messages:
        held.append((kind, message))
        size += message.ByteSize()
        if size > _COPIED_BYTES:
            yield _copy(held)
            held, size = [], 0
    if held:
        yield _copy(held)


def _copy(messages: list[tuple[Kind, _Copied]]) -> _Copy:
    return _Copy(messages, sum(kind is CHECKPOINTS for kind, _ in messages))


def _is_kept(key: bytes, contents: _Contents, kept: _Chosen) -> bool:
    """Whether a task's write stays: that of a checkpoint that does, or that has not come yet."""
    checkpoint_id = str(keys.decode(CHECKPOINT_WRITES.key_types, key)[0])
    return checkpoint_id in kept.ids or bool(kept.ids and checkpoint_id not in contents.checkpoints)


def _without_parts(scope: Scope, upload_id: str) -> Iterator[Move]:
    """A removed value is removed with its upload, which no other names and which does not grow any more."""
    if upload_id:
        place = scope.parts(upload_id)
        yield RemovePartitions(place.kind, 0, place.partition)


def _thread_prefix(thread_id: str) -> bytes:
    """The prefix of the partitions of a thread."""
    return encode([KeyType.TEXT], [thread_id])


def _read(write: Write) -> Read:
    return Read(write.tenant_id, deadline=write.deadline)
