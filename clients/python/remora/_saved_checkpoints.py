"""What the save of a checkpoint sends: its draft, its values and their uploads. Makes no calls, knows no framework."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from remora._requests import REQUEST_BYTES
from remora.errors import InternalError
from remora.v1 import checkpoint_pb2
from remora.v1 import checkpoint_service_pb2 as wire

PART_BYTES = 1 << 20
MOST_AT_ONCE = 100
"""Checkpoints of one request."""
MOST_WRITES = 10_000
"""Writes of one message."""
PARTS_AT_ONCE = 16
BYTES_AT_ONCE = 4 * PART_BYTES
"""How many calls for parts of values, and how many of their bytes, are under way at once."""
NO_VERSION = ""
"""The version of a value whose channel has none. LangGraph takes it for that of a channel that was never written."""


T = TypeVar("T")


@dataclass(slots=True)
class Upload:
    """A value that is too long for its request: it is uploaded first, in parts."""

    value: wire.Value
    data: bytes
    request: wire.UploadCheckpointPartRequest

    def parts(self) -> Iterable[wire.UploadCheckpointPartRequest]:
        """The requests that store it, and then name it in its value."""
        count = math.ceil(len(self.data) / PART_BYTES)
        for index in range(count):
            part = wire.UploadCheckpointPartRequest()
            part.CopyFrom(self.request)
            part.index, part.data = index, self.data[index * PART_BYTES : (index + 1) * PART_BYTES]
            yield part
        self.value.upload.id, self.value.upload.parts = self.request.upload_id, count


@dataclass(slots=True)
class Saved:
    """What one call of a saver saves."""

    draft: wire.CheckpointDraft | None = None
    task: wire.TaskWrites | None = None
    values: list[wire.Value] = field(default_factory=list)

    @property
    def size(self) -> int:
        """Its bytes in a request."""
        message = self.draft if self.draft is not None else self.task
        return 0 if message is None else message.ByteSize()

    def uploads(self, new_id: Callable[[], str]) -> list[Upload]:
        """Takes the longest values out, until the others fit into a request."""
        size = self.size
        taken = []
        for value in sorted(self.values, key=lambda value: len(value.data), reverse=True):
            if size <= REQUEST_BYTES:
                break
            size -= len(value.data)
            taken.append(self._upload(value, new_id()))
        return taken

    def _upload(self, value: wire.Value, upload_id: str) -> Upload:
        place: Any
        if self.draft is not None:
            place, user_id = self.draft.checkpoint, self.draft.checkpoint.user_id
        else:
            task = cast("wire.TaskWrites", self.task)
            place, user_id = task.name, task.user_id
        request = wire.UploadCheckpointPartRequest(
            thread_id=place.thread_id, checkpoint_ns=place.checkpoint_ns, upload_id=upload_id, user_id=user_id
        )
        data = value.data
        value.ClearField("data")
        return Upload(value, data, request)

    def add_to(self, request: wire.SaveCheckpointsRequest) -> None:
        """Puts it into a request."""
        if self.draft is not None:
            request.checkpoints.append(self.draft)
        if self.task is not None:
            request.writes.extend(_parts_of(self.task))


def _parts_of(task: wire.TaskWrites) -> Iterator[wire.TaskWrites]:
    """The writes of a task, as many at a time as one message takes."""
    if len(task.writes) <= MOST_WRITES:
        yield task
        return
    for begin in range(0, len(task.writes), MOST_WRITES):
        yield wire.TaskWrites(
            name=task.name,
            task_id=task.task_id,
            task_path=task.task_path,
            replace=task.replace,
            user_id=task.user_id,
            writes=task.writes[begin : begin + MOST_WRITES],
        )


def in_turns(uploads: Iterable[Upload]) -> Iterator[list[wire.UploadCheckpointPartRequest]]:
    """The parts of uploads, as many at a time as are under way at once. All are to be stored before they are named."""
    return _turns((part for upload in uploads for part in upload.parts()), lambda part: len(part.data))


def _turns(items: Iterable[T], size_of: Callable[[T], int]) -> Iterator[list[T]]:
    held: list[T] = []
    size = 0
    for item in items:
        if held and (size + size_of(item) > BYTES_AT_ONCE or len(held) == PARTS_AT_ONCE):
            yield held
            held, size = [], 0
        held.append(item)
        size += size_of(item)
    if held:
        yield held


def in_requests(several: Sequence[Saved]) -> Iterable[Sequence[Saved]]:
    """As many at a time as one request takes, in their order."""
    held: list[Saved] = []
    size = 0
    for saved in several:
        if held and (size + saved.size > REQUEST_BYTES or len(held) == MOST_AT_ONCE):
            yield held
            held, size = [], 0
        held.append(saved)
        size += saved.size
    if held:
        yield held


def omitted(
    found: wire.FoundCheckpoint | wire.ChannelHistoryStep, config: wire.CheckpointName
) -> Iterable[tuple[wire.Value, wire.ReadCheckpointValueRequest]]:
    """The values that a reply had no room for, each with the request that reads its first part."""
    if isinstance(found, wire.ChannelHistoryStep):
        channels, checkpoint_id = found.channels, found.checkpoint_id
    else:
        channels, checkpoint_id = found.checkpoint.channels, found.checkpoint.id
    versions = {each.channel: each for each in channels}
    for entry in found.values:
        if entry.value.omitted:
            request = wire.ReadCheckpointValueRequest(
                thread_id=config.thread_id, checkpoint_ns=config.checkpoint_ns, channel=versions[entry.channel]
            )
            yield entry.value, request
    for write in found.writes:
        if write.value.omitted:
            named = wire.WriteName(checkpoint_id=checkpoint_id, task_id=write.task_id, index=write.index)
            yield (
                write.value,
                wire.ReadCheckpointValueRequest(
                    thread_id=config.thread_id, checkpoint_ns=config.checkpoint_ns, write=named
                ),
            )


def missing_in_turns(
    omitted_values: Iterable[tuple[wire.Value, wire.ReadCheckpointValueRequest]],
) -> Iterator[list["Missing"]]:
    """Values that replies had no room for, as many at a time as are read at once, until each has all of its parts."""
    missing = (Missing(value, request) for value, request in omitted_values)
    for turn in _turns(missing, lambda each: each.size):
        left = turn
        while left := [each for each in left if each]:
            yield left


class Missing:
    """A value that a reply had no room for, as it is read part by part. It may be replaced meanwhile."""

    def __init__(self, value: wire.Value, request: wire.ReadCheckpointValueRequest) -> None:
        self.request = request
        """What reads the next part."""
        self._value = value
        self.size = value.size
        """Its bytes."""
        self._parts: list[bytes] = []
        self._revision = 0

    def __bool__(self) -> bool:
        """Whether a part is missing; of an empty value, its type is."""
        return not self._parts or self.request.offset < self.size

    def add(self, part: wire.ReadCheckpointValueResponse) -> None:
        """Takes the next part; if it is of another value than those before, all are read again."""
        if self._parts and part.value_revision != self._revision:
            self._parts.clear()
            self.request.offset = 0
            return
        self._revision, self.size = part.value_revision, part.size
        self._parts.append(part.data)
        self.request.offset += len(part.data)
        if not self:
            self._value.type, self._value.data = part.type, b"".join(self._parts)
        elif not part.data:
            raise InternalError("a value of a checkpoint ends before its size")


def with_unversioned(
    versions: Mapping[str, str | int | float], values: Iterable[str]
) -> Mapping[str, str | int | float]:
    """The versions of channels and, behind them, `NO_VERSION` for each other channel that has a value."""
    return {**versions, **{channel: NO_VERSION for channel in values if channel not in versions}}


def set_version(message: checkpoint_pb2.Version, given: str | float) -> None:
    """Sets a version, of whichever type it is."""
    if isinstance(given, str):
        message.text = given
    elif isinstance(given, int):
        message.integer = given
    else:
        message.number = given


def version_of(message: checkpoint_pb2.Version) -> str | int | float:
    """The version that a message has."""
    kind = message.WhichOneof("kind")
    return cast("str | int | float", getattr(message, kind or "text"))
