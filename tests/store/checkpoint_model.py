"""The model's checkpoints: dicts of messages, each value whole."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from tests.store.workflow_model import Books

from remora.v1.checkpoint_pb2 import ChannelVersion, Checkpoint, CheckpointWrite
from remora.v1.checkpoint_service_pb2 import ChannelHistoryStep, FoundCheckpoint
from remora_server import wire
from remora_server.domain import json_members
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.checkpoints import (
    DELTA_COUNTERS,
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
    ThreadQuery,
    ThreadSummary,
    UploadName,
    ValueDraft,
    ValuePart,
    WriteValueName,
)
from remora_server.domain.errors import CheckpointValueNotFound, UploadIncomplete, UploadNamed
from remora_server.domain.replies import REPLY_BYTES
from remora_server.domain.uploads import PART_BYTES
from remora_server.rpc.handlers import decode

Scope: TypeAlias = tuple[str, str]
"""A thread and a namespace."""
Place: TypeAlias = tuple[str, str, int]
"""A channel, a version, and which value of it."""


@dataclass
class Blob:
    """A value of a channel."""

    type: str
    data: bytes
    user_id: str
    revision: int
    upload_id: str = ""


@dataclass
class Upload:
    """An upload of a user."""

    parts: dict[int, tuple[bytes, str]] = field(default_factory=dict)
    named: bool = False


@dataclass
class Contents:
    """What a scope has."""

    checkpoints: dict[str, Checkpoint] = field(default_factory=dict)
    blobs: dict[Place, Blob] = field(default_factory=dict)
    writes: dict[tuple[str, str, int], tuple[CheckpointWrite, int]] = field(default_factory=dict)
    uploads: dict[str, Upload] = field(default_factory=dict)

    def value(self, channel: ChannelVersion) -> Blob | None:
        return None if channel.empty else self.blobs.get(place_of(channel))

    def named(self, channel: str, version: str, fork: int) -> Blob | None:
        """A value of a version; without a fork, the one that was stored last."""
        own = [each for place, each in self.blobs.items() if place[:2] == (channel, version) and fork in {0, place[2]}]
        return own[-1] if own else None

    def ordered(self) -> list[Checkpoint]:
        return [self.checkpoints[each] for each in sorted(self.checkpoints, key=str.encode)]

    def found(self, checkpoint: Checkpoint) -> FoundCheckpoint:
        reply = FoundCheckpoint(checkpoint=checkpoint)
        for channel in checkpoint.channels:
            blob = self.value(channel)
            if blob is not None:
                value = reply.values.add(channel=channel.channel).value
                value.type, value.data, value.size = blob.type, blob.data, len(blob.data)
        self.show_writes(reply, checkpoint.id)
        return reply

    def show_writes(
        self, reply: FoundCheckpoint | ChannelHistoryStep, checkpoint_id: str, channels: Sequence[str] | None = None
    ) -> None:
        own = [write for key, (write, _) in self.writes.items() if key[0] == checkpoint_id]
        for write in sorted(own, key=lambda each: (each.task_path, each.task_id, each.index)):
            if channels is None or write.channel in channels:
                pending = reply.writes.add(
                    task_id=write.task_id, task_path=write.task_path, channel=write.channel, index=write.index
                )
                pending.value.type, pending.value.data = write.type, write.data
                pending.value.size = len(write.data)

    def keep(self, ids: set[str]) -> int:
        """Drop what no kept checkpoint needs; how many checkpoints that were."""
        gone = set(self.checkpoints) - ids
        self.checkpoints = {each: self.checkpoints[each] for each in ids}
        for checkpoint in self.checkpoints.values():
            if checkpoint.parent_id not in ids:
                checkpoint.parent_id = ""
        live = {place_of(each) for one in self.checkpoints.values() for each in one.channels if not each.empty}
        self.blobs = {place: blob for place, blob in self.blobs.items() if place in live}
        self.writes = {key: write for key, write in self.writes.items() if ids and key[0] not in gone}
        named = {blob.upload_id for blob in self.blobs.values()} | {each.upload_id for each, _ in self.writes.values()}
        self.uploads = {name: each for name, each in self.uploads.items() if not each.named or name in named}
        return len(gone)

    def with_ancestors(self, ids: set[str]) -> set[str]:
        """With what the channels of some checkpoints are rebuilt from."""
        kept = set(ids)
        for each in ids:
            checkpoint = self.checkpoints[each]
            counters = json_members.members(checkpoint.metadata).get(DELTA_COUNTERS)
            missing = set(counters) if isinstance(counters, dict) else set()
            seen: set[str] = set()
            while missing and checkpoint.id not in seen:
                seen.add(checkpoint.id)
                missing -= {channel.channel for channel in checkpoint.channels if self.value(channel)}
                if not missing or checkpoint.parent_id not in self.checkpoints:
                    break
                checkpoint = self.checkpoints[checkpoint.parent_id]
                kept.add(checkpoint.id)
        return kept


@dataclass
class ThreadRows:
    """A tenant's threads."""

    scopes: dict[Scope, Contents] = field(default_factory=dict)
    forks: int = 0
    """The last one that was given to a value: none is given twice."""

    def of(self, thread_id: str, checkpoint_ns: str) -> Contents:
        return self.scopes.setdefault((thread_id, checkpoint_ns), Contents())

    def forget(self, user_id: str) -> None:
        for contents in self.scopes.values():
            contents.checkpoints = {k: v for k, v in contents.checkpoints.items() if v.user_id != user_id}
            contents.blobs = {k: v for k, v in contents.blobs.items() if v.user_id != user_id}
            contents.writes = {k: v for k, v in contents.writes.items() if v[0].user_id != user_id}
            for upload in contents.uploads.values():
                upload.parts = {k: v for k, v in upload.parts.items() if v[1] != user_id}
            contents.uploads = {name: each for name, each in contents.uploads.items() if each.parts}

    def save(self, checkpoints: Sequence[CheckpointDraft], tasks: Sequence[TaskDraft], revision: int, now: int) -> None:
        """All or none."""
        after = copy.deepcopy(self.scopes)
        before, self.scopes = self.scopes, after
        try:
            named = [self._save(draft, revision, now) for draft in checkpoints]
            named += [self._write(task, revision) for task in tasks]
        except UploadIncomplete:
            self.scopes = before
            raise
        for upload in (each for several in named for each in several):
            upload.named = True

    def _save(self, draft: CheckpointDraft, revision: int, now: int) -> list[Upload]:
        checkpoint = Checkpoint.FromString(draft.body)
        checkpoint.create_time.CopyFrom(wire.timestamp(now))
        contents = self.of(checkpoint.thread_id, checkpoint.checkpoint_ns)
        parent = contents.checkpoints.get(checkpoint.parent_id)
        inherited = {each.channel: each for each in parent.channels} if parent else {}
        named = []
        for channel in checkpoint.channels:
            given, before = draft.values.get(channel.channel), inherited.get(channel.channel)
            if given is not None:
                named += self._put(contents, channel, given, checkpoint.user_id, revision)
                channel.empty = False
            elif channel.empty:
                channel.fork = 0
            elif before is not None and before.version == channel.version:
                channel.fork, channel.empty = before.fork, before.empty
            else:
                channel.fork = 0
                forks = [place[2] for place in contents.blobs if place[:2] == place_of(channel)[:2]]
                channel.fork = forks[-1] if forks else 0
        contents.checkpoints[checkpoint.id] = checkpoint
        return named

    def _put(
        self, contents: Contents, channel: ChannelVersion, given: ValueDraft, user_id: str, revision: int
    ) -> list[Upload]:
        data, uploads, upload_id = given.data, [], ""
        if given.upload is not None:
            upload_id = given.upload.id
            data, upload = uploaded(contents, given.upload, user_id)
            uploads = [upload]
        for place, there in contents.blobs.items():
            is_same = not upload_id and (there.type, there.data, there.user_id) == (given.type, data, user_id)
            if place[:2] == place_of(channel)[:2] and is_same:
                channel.fork = place[2]
                return []
        self.forks += 1
        channel.fork = self.forks
        contents.blobs[place_of(channel)] = Blob(given.type, data, user_id, revision, upload_id)
        return uploads

    def _write(self, task: TaskDraft, revision: int) -> list[Upload]:
        contents, uploads = self.of(task.name.thread_id, task.name.checkpoint_ns), []
        for write in task.writes:
            key = (task.name.checkpoint_id, task.task_id, write.index)
            if key in contents.writes and not task.replace:
                continue
            data = write.value.data
            message = CheckpointWrite(
                thread_id=task.name.thread_id,
                checkpoint_ns=task.name.checkpoint_ns,
                checkpoint_id=task.name.checkpoint_id,
                task_id=task.task_id,
                index=write.index,
                task_path=task.task_path,
                channel=write.channel,
                user_id=task.user_id,
                type=write.value.type,
            )
            if write.value.upload is not None:
                data, upload = uploaded(contents, write.value.upload, task.user_id)
                message.upload_id = write.value.upload.id
                uploads.append(upload)
            message.data = data
            contents.writes[key] = (message, revision)
        return uploads

    def upload(self, part: PartDraft) -> None:
        upload = self.of(part.thread_id, part.checkpoint_ns).uploads.setdefault(part.upload_id, Upload())
        if upload.named:
            raise UploadNamed(part.upload_id)
        upload.parts[part.index] = (part.data, part.user_id)

    def delete(self, thread_id: str) -> None:
        self.scopes = {scope: each for scope, each in self.scopes.items() if scope[0] != thread_id}

    def delete_runs(self, run_ids: Sequence[str]) -> int:
        gone = 0
        for contents in self.scopes.values():
            own = {each.id for each in contents.checkpoints.values() if each.run_id not in run_ids}
            if len(own) < len(contents.checkpoints):
                gone += contents.keep(contents.with_ancestors(own))
        return gone

    def prune(self, thread_id: str, *, keep_latest: bool) -> int:
        own = {scope: each for scope, each in self.scopes.items() if scope[0] == thread_id}
        roots = self.of(thread_id, "").ordered()
        kept_roots = self.of(thread_id, "").with_ancestors({roots[-1].id}) if roots else set()
        root_ids = {each.id for each in roots}
        gone = 0
        for (_, checkpoint_ns), contents in own.items():
            newest = contents.ordered()[-1:]
            ids = contents.with_ancestors({each.id for each in newest}) if keep_latest else set()
            if ":" in checkpoint_ns and newest:
                parents = json_members.members(newest[0].metadata).get("parents")
                root = parents.get("") if isinstance(parents, dict) else None
                if root in root_ids and root not in kept_roots:
                    ids = set()
            gone += contents.keep(ids)
        return gone

    def copy(self, source: str, target: str) -> int:
        """Into a thread that has nothing, or an earlier copy."""
        copied = 0
        for (thread_id, checkpoint_ns), contents in list(self.scopes.items()):
            if thread_id != source:
                continue
            into = self.of(target, checkpoint_ns)
            into.blobs |= copy.deepcopy(contents.blobs)
            into.writes |= copy.deepcopy(contents.writes)
            into.uploads |= {name: copy.deepcopy(each) for name, each in contents.uploads.items() if each.named}
            for checkpoint in contents.ordered():
                moved = Checkpoint()
                moved.CopyFrom(checkpoint)
                moved.thread_id = target
                for channel in moved.channels:
                    if contents.value(channel) is None:
                        channel.fork, channel.empty = 0, True
                into.checkpoints[moved.id] = moved
                copied += 1
        return copied

    def listed(self) -> Iterator[tuple[Contents, Checkpoint]]:
        """All checkpoints, the greatest id first."""
        rows = [(contents, each) for contents in self.scopes.values() for each in contents.checkpoints.values()]
        yield from sorted(rows, key=lambda row: row[1].id.encode(), reverse=True)


class TenantWithThreads(Protocol):
    """What of a tenant is needed here."""

    threads: ThreadRows


class Checkpoints:
    def __init__(self, books: Books) -> None:
        self._books = books

    def save(self, write: Write, checkpoints: Sequence[CheckpointDraft], tasks: Sequence[TaskDraft]) -> Outcome:
        def change(tenant: TenantWithThreads, revision: int, now: int) -> Outcome | None:
            if not checkpoints and not tasks:
                return None
            tenant.threads.save(checkpoints, tasks, revision, now)
            return Outcome(0)

        return self._books.write(write, change)

    def upload(self, write: Write, part: PartDraft) -> Outcome:
        def change(tenant: TenantWithThreads, _revision: int, _now: int) -> Outcome:
            tenant.threads.upload(part)
            return Outcome(0)

        return self._books.write(write, change)

    def get(self, read: Read, names: Sequence[CheckpointName]) -> tuple[bytes, int]:
        tenant, revision = self._books.read(read)
        found = []
        for name in names:
            contents = tenant.threads.of(name.thread_id, name.checkpoint_ns)
            ordered = contents.ordered()
            checkpoint = contents.checkpoints.get(name.checkpoint_id) if name.checkpoint_id else None
            if not name.checkpoint_id and ordered:
                checkpoint = ordered[-1]
            found.append(contents.found(checkpoint).SerializeToString() if checkpoint else b"")
        return wire.elements(wire.LIST_FIELD, found), revision

    def list(self, read: Read, query: CheckpointQuery) -> CheckpointPage:
        tenant, revision = self._books.read(read)
        passing = [row for row in tenant.threads.listed() if _passes(row[1], query)]
        if query.after is not None:
            passing = passing[query.after.revision :]
        page = passing[: query.limit]
        place = (query.after.revision if query.after else 0) + len(page)
        following = CheckpointPosition(page[-1][1].id, place) if len(passing) > len(page) else None
        found = [contents.found(each).SerializeToString() for contents, each in page]
        return CheckpointPage(wire.elements(wire.LIST_FIELD, found), following, revision)

    def history(self, read: Read, query: ChannelQuery) -> ChannelHistory:
        tenant, revision = self._books.read(read)
        contents = tenant.threads.of(query.name.thread_id, query.name.checkpoint_ns)
        ordered = contents.ordered()
        newest = ordered[-1].id if ordered else ""
        target = contents.checkpoints.get(query.name.checkpoint_id or newest)
        at, channels = (target.parent_id if target else ""), list(query.channels)
        if query.after is not None:
            at, channels = query.after.checkpoint_id, list(query.after.channels)
        steps: list[bytes] = []
        seen: set[str] = set()
        while at in contents.checkpoints and channels and at not in seen:
            if len(steps) == query.limit:
                position = HistoryPosition(at, tuple(channels))
                return ChannelHistory(wire.elements(wire.LIST_FIELD, steps), position, revision)
            seen.add(at)
            step = ChannelHistoryStep(checkpoint_id=at)
            contents.show_writes(step, at, channels)
            for channel in contents.checkpoints[at].channels:
                blob = contents.value(channel)
                if channel.channel in channels and blob is not None:
                    step.channels.append(channel)
                    value = step.values.add(channel=channel.channel).value
                    value.type, value.data, value.size = blob.type, blob.data, len(blob.data)
                    channels.remove(channel.channel)
            if step.writes or step.values:
                steps.append(step.SerializeToString())
            at = contents.checkpoints[at].parent_id
        return ChannelHistory(wire.elements(wire.LIST_FIELD, steps), None, revision)

    def read_value(self, read: Read, name: ChannelValueName | WriteValueName, offset: int) -> ValuePart:
        tenant, revision = self._books.read(read)
        contents = tenant.threads.of(name.thread_id, name.checkpoint_ns)
        if isinstance(name, WriteValueName):
            found = contents.writes.get((name.checkpoint_id, name.task_id, name.index))
            if found is None:
                raise CheckpointValueNotFound(f"the write {name.index} of the task {name.task_id!r}")
            kind, data, stored = found[0].type, found[0].data, found[1]
        else:
            blob = contents.named(name.channel, name.version, name.fork)
            if blob is None:
                raise CheckpointValueNotFound(f"the channel {name.channel!r}")
            kind, data, stored = blob.type, blob.data, blob.revision
        return ValuePart(kind, data[offset : offset + REPLY_BYTES], len(data), stored, revision)


class Threads:
    def __init__(self, books: Books) -> None:
        self._books = books

    def list(self, read: Read, query: ThreadQuery) -> tuple[Sequence[ThreadSummary], int]:
        tenant, revision = self._books.read(read)
        by_thread: dict[str, list[Checkpoint]] = {}
        for _, checkpoint in tenant.threads.listed():
            by_thread.setdefault(checkpoint.thread_id, []).append(checkpoint)
        found = []
        for thread_id in sorted(by_thread, key=str.encode):
            own = by_thread[thread_id]
            times = [each.create_time.ToMicroseconds() for each in own]
            fits = not query.user_id or any(each.user_id == query.user_id for each in own)
            is_old = query.updated_before is None or max(times) < query.updated_before
            if fits and is_old and thread_id > query.after:
                found.append(ThreadSummary(thread_id, len(own), min(times), max(times)))
        return found[: query.limit], revision

    def delete(self, write: Write, thread_id: str) -> Outcome:
        def change(tenant: TenantWithThreads, _revision: int, _now: int) -> Outcome:
            tenant.threads.delete(thread_id)
            return Outcome(0)

        return self._books.write(write, change)

    def delete_runs(self, write: Write, run_ids: Sequence[str]) -> Outcome:
        def change(tenant: TenantWithThreads, _revision: int, _now: int) -> Outcome | None:
            gone = tenant.threads.delete_runs(run_ids)
            return Outcome(0, deleted=True, deleted_records=gone) if gone else None

        return self._books.write(write, change)

    def copy(self, write: Write, source: str, target: str) -> Outcome:
        def change(tenant: TenantWithThreads, _revision: int, _now: int) -> Outcome | None:
            copied = tenant.threads.copy(source, target)
            return Outcome(0, imported_records=copied) if copied else None

        return self._books.write(write, change)

    def prune(self, write: Write, thread_ids: Sequence[str], *, keep_latest: bool) -> Outcome:
        def change(tenant: TenantWithThreads, _revision: int, _now: int) -> Outcome | None:
            gone = sum(tenant.threads.prune(each, keep_latest=keep_latest) for each in dict.fromkeys(thread_ids))
            return Outcome(0, deleted=True, deleted_records=gone) if gone else None

        return self._books.write(write, change)


def place_of(channel: ChannelVersion) -> Place:
    return channel.channel, decode.version(channel.version), channel.fork


def uploaded(contents: Contents, name: UploadName, user_id: str) -> tuple[bytes, Upload]:
    """The bytes of an upload. Raises UploadIncomplete."""
    upload = contents.uploads.get(name.id, Upload())
    for index in range(name.parts):
        data, owner = upload.parts.get(index, (b"", None))
        is_short = len(data) < PART_BYTES and index < name.parts - 1
        if index not in upload.parts or owner != user_id or upload.named or is_short:
            raise UploadIncomplete(name.id, index)
    return b"".join(upload.parts[index][0] for index in range(name.parts)), upload


def _passes(checkpoint: Checkpoint, query: CheckpointQuery) -> bool:
    given: list[tuple[Any, Any]] = [
        (query.thread_id, checkpoint.thread_id),
        (query.checkpoint_id, checkpoint.id),
        (query.user_id, checkpoint.user_id),
        (query.run_id, checkpoint.run_id),
    ]
    if any(wanted and wanted != found for wanted, found in given):
        return False
    if query.checkpoint_ns is not None and checkpoint.checkpoint_ns != query.checkpoint_ns:
        return False
    if query.before_id and checkpoint.id.encode() >= query.before_id.encode():
        return False
    return set(query.members) <= set(json_members.digests(checkpoint.metadata))
