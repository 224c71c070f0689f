"""The calls of CheckpointService that block their thread: saves with their uploads, and reads with all values."""

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from remora._requests import REQUEST_BYTES
from remora._saved_checkpoints import PARTS_AT_ONCE, Missing, Saved, in_requests, in_turns, missing_in_turns, omitted
from remora._sync.client import Remora
from remora.v1 import checkpoint_service_pb2 as wire
from remora.v1.checkpoint_pb2 import ChannelVersion, Checkpoint

LONG_WORK = 6.0
"""How many times as long as others a call may take that goes through whole threads, or moves a part of a long value."""


def new_id() -> str:
    """The id of an upload."""
    return uuid.uuid4().hex


class Blocking:
    """Calls that block their thread, of one client."""

    def __init__(self, client: Remora, timeout: float) -> None:
        self.client = client
        self._calls = client._calls  # noqa: SLF001 - of this package
        self._timeout = timeout

    @property
    def _stubs(self) -> Any:  # noqa: ANN401 - the generated stub
        return self._calls.stubs.checkpoints

    def save(self, saved: Saved) -> None:
        """Saves a checkpoint or what a task wrote."""
        self.save_all([saved])

    def save_all(self, several: Sequence[Saved]) -> None:
        """Saves checkpoints and what tasks wrote, in their order, in as few requests as they fit into."""
        for saved in several:
            if saved.size > REQUEST_BYTES:
                self._upload(saved)
        for some in in_requests(several):
            request = wire.SaveCheckpointsRequest()
            for saved in some:
                saved.add_to(request)
            self._calls.revision.advance(self._calls.call(self._stubs.SaveCheckpoints, request).revision)

    def _upload(self, saved: Saved) -> None:
        with ThreadPoolExecutor(PARTS_AT_ONCE) as threads:
            for some in in_turns(saved.uploads(new_id)):
                list(threads.map(self._upload_part, some))

    def _upload_part(self, part: wire.UploadCheckpointPartRequest) -> None:
        self._calls.call(self._stubs.UploadCheckpointPart, part, self._timeout * LONG_WORK)

    def get(self, name: wire.CheckpointName) -> wire.FoundCheckpoint | None:
        """A checkpoint with all of its values; None if there is none."""
        [found] = self.get_all([name])
        return found

    def get_all(self, names: Sequence[wire.CheckpointName]) -> list[wire.FoundCheckpoint | None]:
        """Up to 100 checkpoints with all of their values, in the order of their names; None where there is none."""
        found: list[wire.FoundCheckpoint | None] = []
        while len(found) < len(names):
            request = wire.GetCheckpointsRequest(names=names[len(found) :])
            reply = self._calls.read(self._stubs.GetCheckpoints, request)
            for each in reply.checkpoints:
                found.append(self._completed(each, names[len(found)]) if each.checkpoint.id else None)
        return found

    def has_newest_value(self, thread_id: str, checkpoint_id: str, channel: str) -> bool:
        """Whether a channel of a thread's root graph has no newer value than in a checkpoint.

        The thread may have newer checkpoints, if they go on from that value: a channel that is kept as its writes has
        none of its own in most of them.
        """
        newest = self._place(wire.CheckpointName(thread_id=thread_id))
        if newest.id <= checkpoint_id:
            return True
        own = self._place(wire.CheckpointName(thread_id=thread_id, checkpoint_id=checkpoint_id))
        value = _value_of(own.channels, channel)
        return value is not None and value == (_value_of(newest.channels, channel) or self._inherited(newest, channel))

    def _place(self, name: wire.CheckpointName) -> Checkpoint:
        """A checkpoint without its values; without an id if there is none."""
        [found] = self._calls.read(self._stubs.GetCheckpoints, wire.GetCheckpointsRequest(names=[name])).checkpoints
        checkpoint: Checkpoint = found.checkpoint
        return checkpoint

    def _inherited(self, checkpoint: Checkpoint, channel: str) -> ChannelVersion | None:
        """The value that a channel has in the nearest ancestor that has one."""
        name = wire.CheckpointName(thread_id=checkpoint.thread_id, checkpoint_id=checkpoint.id)
        request = wire.ListChannelHistoryRequest(name=name, channels=[channel], page_size=1_000)
        values = (value for step in self._steps(request) if (value := _value_of(step.channels, channel)))
        return next(values, None)

    def pages(self, request: wire.ListCheckpointsRequest) -> Iterator[wire.FoundCheckpoint]:
        """Checkpoints, page after page."""
        while True:
            page = self._calls.read(self._stubs.ListCheckpoints, request)
            for found in page.checkpoints:
                yield self._completed(found, name_of(found))
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def history(self, request: wire.ListChannelHistoryRequest) -> list[wire.ChannelHistoryStep]:
        """All steps of a history."""
        steps = list(self._steps(request))
        self._fill(found for step in steps for found in omitted(step, request.name))
        return steps

    def _steps(self, request: wire.ListChannelHistoryRequest) -> Iterator[wire.ChannelHistoryStep]:
        """The same, page after page; values that had no room in their page are left out."""
        while True:
            page = self._calls.read(self._stubs.ListChannelHistory, request)
            yield from page.steps
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def write(self, method: Callable[[Any], Any], request: Any) -> Any:  # noqa: ANN401 - any write of the service
        """A write that goes through whole threads."""
        return self._calls.write(method(self._stubs), request, self._timeout * LONG_WORK)

    def _completed(self, found: wire.FoundCheckpoint, name: wire.CheckpointName) -> wire.FoundCheckpoint:
        self._fill(omitted(found, name))
        return found

    def _fill(self, omitted_values: Iterable[tuple[wire.Value, wire.ReadCheckpointValueRequest]]) -> None:
        with ThreadPoolExecutor(PARTS_AT_ONCE) as threads:
            for some in missing_in_turns(omitted_values):
                for missing, part in zip(some, threads.map(self._read_part, some), strict=True):
                    missing.add(part)

    def _read_part(self, missing: Missing) -> Any:  # noqa: ANN401 - the reply, through the generated stub
        return self._calls.read(self._stubs.ReadCheckpointValue, missing.request, self._timeout * LONG_WORK)


def _value_of(channels: Iterable[ChannelVersion], channel: str) -> ChannelVersion | None:
    """Which value a channel has; None if it has none."""
    return next((each for each in channels if each.channel == channel and not each.empty), None)


def name_of(found: wire.FoundCheckpoint) -> wire.CheckpointName:
    """The thread and the namespace of a checkpoint that was found."""
    return wire.CheckpointName(thread_id=found.checkpoint.thread_id, checkpoint_ns=found.checkpoint.checkpoint_ns)
