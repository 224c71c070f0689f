"""The calls of CheckpointService that block their thread: saves with their uploads, and reads with all values."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from remora._requests import REQUEST_BYTES
from remora._saved_checkpoints import Missing, Saved, in_requests, omitted
from remora._sync.client import Remora
from remora.v1 import checkpoint_service_pb2 as wire

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
        for upload in saved.uploads(new_id):
            for part in upload.parts():
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

    def newest_id(self, thread_id: str) -> str:
        """The newest checkpoint of a thread's root graph; empty if there is none."""
        request = wire.GetCheckpointsRequest(names=[wire.CheckpointName(thread_id=thread_id)])
        [found] = self._calls.read(self._stubs.GetCheckpoints, request).checkpoints
        return str(found.checkpoint.id)

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
        steps: list[wire.ChannelHistoryStep] = []
        while True:
            page = self._calls.read(self._stubs.ListChannelHistory, request)
            for step in page.steps:
                for value, read in omitted(step, request.name):
                    self._fill(value, read)
                steps.append(step)
            if not page.next_page_token:
                return steps
            request.page_token = page.next_page_token

    def write(self, method: Callable[[Any], Any], request: Any) -> Any:  # noqa: ANN401 - any write of the service
        """A write that goes through whole threads."""
        return self._calls.write(method(self._stubs), request, self._timeout * LONG_WORK)

    def _completed(self, found: wire.FoundCheckpoint, name: wire.CheckpointName) -> wire.FoundCheckpoint:
        for value, request in omitted(found, name):
            self._fill(value, request)
        return found

    def _fill(self, value: wire.Value, request: wire.ReadCheckpointValueRequest) -> None:
        missing = Missing(value, request)
        while missing:
            missing.add(self._calls.read(self._stubs.ReadCheckpointValue, missing.request, self._timeout * LONG_WORK))


def name_of(found: wire.FoundCheckpoint) -> wire.CheckpointName:
    """The thread and the namespace of a checkpoint that was found."""
    return wire.CheckpointName(thread_id=found.checkpoint.thread_id, checkpoint_ns=found.checkpoint.checkpoint_ns)
