"""Plans one write of checkpoints, on what is accepted and on what the same request saved before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from remora.v1.checkpoint_pb2 import ChannelBlob, ChannelVersion, Checkpoint, CheckpointWrite
from remora.v1.checkpoint_pb2 import Version as VersionMessage
from remora_server.domain.calls import Write
from remora_server.domain.checkpoints import CheckpointDraft, TaskDraft, UploadName, ValueDraft, stored_version
from remora_server.storage.commit.changes import Change
from remora_server.storage.nouns.channel_values import Base, ChannelValues, PlannedValue, Scope, new_fork, scope_of
from remora_server.storage.records.reader import Partition
from remora_server.storage.records.records import Put, Records
from remora_server.storage.schema.kinds import CHANNEL_BLOBS, CHECKPOINT_WRITES, CHECKPOINTS


class Saving:
    """Plans a write, under the locks of `places`."""

    def __init__(self, records: Records, values: ChannelValues, write: Write) -> None:
        self._records, self._values, self._write = records, values, write
        self._checkpoints: dict[tuple[Scope, str], Checkpoint] = {}
        self._blobs: dict[Scope, dict[bytes, PlannedValue]] = {}
        self._of_version: dict[tuple[Scope, str, str], list[PlannedValue]] = {}
        """The same values by channel and version, as they were planned."""
        self._writes: dict[tuple[Scope, bytes], CheckpointWrite] = {}
        self._uploads: dict[tuple[Scope, UploadName], str] = {}

    def checkpoint(self, checkpoint: Checkpoint, values: Mapping[str, ValueDraft]) -> None:
        """Save a checkpoint. Raises UploadIncomplete."""
        scope = scope_of(checkpoint.thread_id, checkpoint.checkpoint_ns)
        before = self._known(scope, checkpoint.parent_id)
        for channel in checkpoint.channels:
            inherited = before.get(channel.channel)
            if channel.channel in values:
                channel.fork = self._place(scope, checkpoint, channel, values[channel.channel], inherited)
                channel.empty = False
            elif channel.empty:
                channel.fork = 0
            elif inherited is not None and inherited.version == channel.version:
                channel.fork, channel.empty = inherited.fork, inherited.empty
            else:
                channel.fork = self._last_fork(scope, channel)
        self._checkpoints[scope, checkpoint.id] = checkpoint

    def task(self, task: TaskDraft) -> None:
        """Save what a task wrote. Raises UploadIncomplete."""
        scope = scope_of(task.name.thread_id, task.name.checkpoint_ns)
        for write in task.writes:
            key = CHECKPOINT_WRITES.encode_key(task.name.checkpoint_id, task.task_id, write.index)
            if not task.replace and self._has_write(scope, key):
                continue
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
                data=write.value.data,
                size=len(write.value.data),
            )
            if write.value.upload is not None:
                upload = write.value.upload
                message.size = self._values.uploaded_size(self._write, scope, upload, task.user_id)
                message.upload_id, message.upload_parts = upload.id, upload.parts
                self._uploads[scope, upload] = task.user_id
            self._writes[scope, key] = message

    def changes(self) -> list[Change]:
        """The changes of the write: values before the checkpoints that have them."""
        puts = [
            *(Put(CHANNEL_BLOBS, 0, each.blob) for planned in self._blobs.values() for each in planned.values()),
            *(Put(CHECKPOINT_WRITES, 0, message) for message in self._writes.values()),
            *(Put(CHECKPOINTS, 0, checkpoint) for checkpoint in self._checkpoints.values()),
        ]
        kept = [
            change
            for (scope, upload), user_id in self._uploads.items()
            for change in self._values.kept(self._write, scope, upload, user_id)
        ]
        return [*kept, *self._records.changes(self._write, puts)]

    def stored(self, revision: int) -> None:
        """Note that the write is accepted."""
        for scope, planned in self._blobs.items():
            self._values.stored(self._write, scope, list(planned.values()), revision)

    def _known(self, scope: Scope, checkpoint_id: str) -> dict[str, ChannelVersion]:
        """The channels of a checkpoint by name; none if it is not there."""
        found = self._checkpoints.get((scope, checkpoint_id)) if checkpoint_id else None
        if found is None and checkpoint_id:
            key = CHECKPOINTS.encode_key(checkpoint_id)
            for record in self._records.accepted(self._write, scope.checkpoints, [key]):
                found = Checkpoint.FromString(record.body)
        return {} if found is None else {each.channel: each for each in found.channels}

    def _place(
        self,
        scope: Scope,
        checkpoint: Checkpoint,
        channel: ChannelVersion,
        draft: ValueDraft,
        inherited: ChannelVersion | None,
    ) -> int:
        """Plan a value, and return its fork. A value that exists already is not stored again."""
        same = self._same(scope, checkpoint, channel, draft)
        if same is not None:
            return same
        version, fork = version_text(channel.version), new_fork()
        key = CHANNEL_BLOBS.encode_key(channel.channel, version, fork)
        blob = ChannelBlob(
            thread_id=scope.thread_id,
            checkpoint_ns=scope.checkpoint_ns,
            channel=channel.channel,
            version=version,
            fork=fork,
            user_id=checkpoint.user_id,
        )
        value = self._values.plan(self._write, scope, key, blob, draft=draft, parent=self._base(scope, inherited))
        self._blobs.setdefault(scope, {})[key] = value
        self._of_version.setdefault((scope, channel.channel, version), []).append(value)
        if value.upload is not None:
            self._uploads[scope, value.upload] = checkpoint.user_id
        return fork

    def _base(self, scope: Scope, inherited: ChannelVersion | None) -> Base | None:
        """The value that a channel has in the parent."""
        if inherited is None or inherited.empty:
            return None
        key = blob_key(inherited)
        planned = self._blobs.get(scope, {}).get(key)
        if planned is not None:
            return _planned_base(planned)
        found = self._values.look(self._write, scope, key)
        return None if found is None else self._values.base(self._write, found)

    def _same(self, scope: Scope, checkpoint: Checkpoint, channel: ChannelVersion, draft: ValueDraft) -> int | None:
        """The fork of a checkpoint's value where its user has it already; None if there is none."""
        if draft.upload is not None:
            return None
        version, wanted = version_text(channel.version), (draft.type, draft.data, checkpoint.user_id)
        for each in self._of_version.get((scope, channel.channel, version), ()):
            if (each.blob.type, each.data, each.blob.user_id) == wanted:
                return each.blob.fork
        for found in self._values.of_version(self._write, scope, channel.channel, version):
            if self._values.is_same(self._write, found, draft, checkpoint.user_id):
                return found.fork
        return None

    def _last_fork(self, scope: Scope, channel: ChannelVersion) -> int:
        """Which of the values with a version was stored last; 0 if there is none."""
        version = version_text(channel.version)
        planned = self._of_version.get((scope, channel.channel, version))
        if planned:
            return planned[-1].blob.fork
        found = self._values.last(self._write, scope, channel.channel, version)
        return found.fork if found else 0

    def _has_write(self, scope: Scope, key: bytes) -> bool:
        if (scope, key) in self._writes:
            return True
        return self._records.stored(self._write, scope.writes, key, with_partition=True) is not None


def places_of(checkpoints: Iterable[CheckpointDraft], tasks: Iterable[TaskDraft]) -> Iterable[Partition]:
    """The partitions that a write locks."""
    for draft in checkpoints:
        checkpoint = draft.name
        scope = scope_of(checkpoint.thread_id, checkpoint.checkpoint_ns)
        yield from (scope.checkpoints, scope.blobs)
        yield from (scope.parts(value.upload.id) for value in draft.values.values() if value.upload)
    for task in tasks:
        scope = scope_of(task.name.thread_id, task.name.checkpoint_ns)
        yield scope.writes
        yield from (scope.parts(write.value.upload.id) for write in task.writes if write.value.upload)


def version_text(version: VersionMessage) -> str:
    """A version as it is stored."""
    kind = version.WhichOneof("kind")
    return stored_version(getattr(version, kind)) if kind else ""


def blob_key(channel: ChannelVersion) -> bytes:
    """Where the value stands that a channel has in a checkpoint."""
    return CHANNEL_BLOBS.encode_key(channel.channel, version_text(channel.version), channel.fork)


def _planned_base(planned: PlannedValue) -> Base | None:
    """A value of the same write as a base; None if its bytes are not at hand."""
    blob, data = planned.blob, planned.data
    if data is None:
        return None
    return Base(blob.user_id, blob.size, blob.depth, blob.version, blob.fork, lambda: (blob.type, data))
