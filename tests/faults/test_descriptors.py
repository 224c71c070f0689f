"""A server that may open no more files: connections wait, what needs a file is refused, and all goes on when it may."""

from __future__ import annotations

import re
import resource
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest
from tests.faults.served_store import ServedStore, refused
from tests.network.frames import Peer
from tests.patience import PATIENCE, eventually

from remora import Remora
from remora.errors import RemoraError
from remora.v1.admin_service_pb2 import GetStatusRequest
from remora.v1.admin_service_pb2_grpc import AdminServiceStub

pytestmark = pytest.mark.slow

SEGMENT_BYTES = 1 << 20
IDLE = 20
LOOK_SECONDS = 2.0
BURST_SECONDS = 0.002
"""What a thread that rests runs before it pauses, on average: a tenth of this, in truth. Who asks again without a pause
runs until the processor is taken from it, however little of the machine it gets.
"""


class Store(ServedStore):
    """A server whose files can be limited, and connections that use them up."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        super().__init__(directory, f"--segment-bytes={SEGMENT_BYTES}", *arguments)
        self._callers: list[grpc.Channel] = []

    def descriptors(self) -> int:
        """How many the server has."""
        return sum(1 for _ in Path(f"/proc/{self.sidecar.pid}/fd").iterdir())

    def limit(self, descriptors: int) -> None:
        """Let the server have no descriptor with this number or a greater one."""
        _, most = resource.prlimit(self.sidecar.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(self.sidecar.pid, resource.RLIMIT_NOFILE, (descriptors, most))

    def exhaust(self) -> None:
        """Connect until the server can open nothing any more. Who has made a call keeps its connection."""
        limit = self.descriptors() + 20
        self.limit(limit)
        while not self._is_exhausted():
            channel = grpc.insecure_channel(self.sidecar.endpoint, options=[("grpc.use_local_subchannel_pool", 1)])
            self._callers.append(channel)
            call = AdminServiceStub(channel).GetStatus.future(GetStatusRequest(), timeout=PATIENCE)
            eventually(lambda call=call: call.done() or self._is_exhausted())  # type: ignore[misc]
        assert self.descriptors() >= limit

    def _is_exhausted(self) -> bool:
        return "no connection can be accepted" in self.sidecar.log.read_text()

    def rests(self) -> bool:
        """Whether its threads do little at a time while nobody asks anything."""
        before = self.work()
        time.sleep(LOOK_SECONDS)
        after = self.work()
        return all(
            after[thread][0] - ran <= BURST_SECONDS * (after[thread][1] - pauses + 1)
            for thread, (ran, pauses) in before.items()
            if thread in after
        )

    def work(self) -> dict[str, tuple[float, int]]:
        """For how many seconds each of its threads ran so far, and how often it paused by itself."""
        threads = Path(f"/proc/{self.sidecar.pid}/task").iterdir()
        return {thread.name: (seconds_of(thread), pauses_of(thread)) for thread in threads}

    def free(self) -> None:
        """Close the connections."""
        for channel in self._callers:
            channel.close()
        self._callers.clear()

    def close(self) -> None:
        self.free()
        super().close()


def seconds_of(thread: Path) -> float:
    """The time on a processor (sched_info of the kernel's Documentation/scheduler/sched-stats.rst)."""
    return int((thread / "schedstat").read_text().split()[0]) / 1e9


def pauses_of(thread: Path) -> int:
    """The switches to another thread that it made itself."""
    found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", (thread / "status").read_text(), re.MULTILINE)
    assert found
    return int(found[1])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    opened.close()


def test_connections_without_a_descriptor_wait_and_connected_clients_are_served(store: Store) -> None:
    store.sidecar.start()
    store.append()

    store.exhaust()
    store.append()
    assert store.listed() == store.acknowledged
    with Remora(store.sidecar.endpoint, timeout=1.0) as late, pytest.raises(RemoraError) as raised:
        late.status()
    assert raised.value.code.name in ("DEADLINE_EXCEEDED", "UNAVAILABLE")
    assert store.status().store.writable
    eventually(store.rests)

    store.free()
    with Remora(store.sidecar.endpoint, timeout=PATIENCE) as late:
        assert late.status().store.writable
    assert store.listed() == store.acknowledged


def test_the_oldest_idle_connection_gives_its_descriptor_only_to_the_one_that_waits(store: Store) -> None:
    store.sidecar.start()
    limit = store.descriptors() + IDLE
    store.limit(limit)
    with ExitStack() as opened:
        idle: list[Peer] = []
        while store.descriptors() < limit:
            idle.append(opened.enter_context(connected(store)))
        # Nobody waits, and the last descriptor was taken just now.
        assert all(peer.answers() for peer in idle)

        opened.enter_context(connected(store))
        oldest, *others = idle
        oldest.until_closed()
        assert all(peer.answers() for peer in others)
    assert "no connection can be accepted" not in store.sidecar.log.read_text()


def connected(store: Store) -> Peer:
    """A connection that the server has answered, without a call."""
    peer = Peer(store.sidecar.endpoint)
    peer.open()
    assert peer.answers()
    return peer


def test_a_journal_that_can_prepare_no_segment_refuses_and_goes_on_when_it_can(store: Store) -> None:
    store.sidecar.start()
    store.append()
    store.exhaust()

    refusal = store.append_until_refused(size=100_000)

    assert (refusal.code.name, refusal.reason) == ("RESOURCE_EXHAUSTED", "STORE_FULL")
    assert refusal.retry_delay
    assert "Too many open files" in store.status().store.failure
    assert not store.status().store.writable
    assert store.listed() == store.acknowledged
    eventually(store.rests)

    store.free()
    eventually(lambda: refused(lambda: store.append(100_000)), until=lambda refusal: refusal is None)
    assert store.listed() == store.acknowledged
    assert eventually(lambda: store.status().store.writable)
    assert eventually(store.applied)
    store.sidecar.kill()
    store.sidecar.start()
    assert store.listed() == store.acknowledged
    assert store.conversations() == ["held"]


def test_a_server_that_does_not_rest_is_found_out(store: Store) -> None:
    store.sidecar.changes = ("look_without_a_pause",)
    store.sidecar.start()
    store.append()
    eventually(store.applied)

    assert not store.rests()
