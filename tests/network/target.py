"""A server under abuse, and the memory that it takes."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from concurrent import futures
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from tests.faults.changed_server import WAITING
from tests.faults.sidecar import Sidecar
from tests.network.honest import OPTIONS, reason
from tests.patience import PATIENCE
from tests.ports import free_port

from remora.v1 import conversation_service_pb2 as pb
from remora.v1 import conversation_service_pb2_grpc

MIB = 1 << 20
TRANSPORTS = ("native", "grpcio")
WAITS = ("counts_wait",)
"""The change of a server whose room is to be looked at."""
LATER_SECONDS = 10.0


def unless_grpcio(reason: str) -> list[object]:
    """The values of a parameter that names the transport, where grpcio cannot what is tried."""
    return ["native", pytest.param("grpcio", marks=pytest.mark.skip(reason=reason))]


class Target(Sidecar):
    """A server without a model, on a Unix socket and on a port."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.tcp = f"127.0.0.1:{free_port()}"
        super().__init__(directory, "--model", "none", "--listen", self.tcp, *arguments)

    def endpoint_of(self, kind: str) -> str:
        """Where it listens: `unix` or `tcp`."""
        return self.tcp if kind == "tcp" else self.endpoint

    def memory(self) -> float:
        """The memory that it has now, in MiB."""
        return self._status("VmRSS")

    def sockets(self) -> int:
        """How many sockets it has, those included that listen."""
        links = (self._linked(entry) for entry in Path(f"/proc/{self.pid}/fd").iterdir())
        return sum(link.startswith("socket:") for link in links)

    @staticmethod
    def _linked(entry: Path) -> str:
        try:
            return str(entry.readlink())
        except FileNotFoundError:
            return ""

    def _status(self, name: str) -> float:
        found = re.search(rf"{name}:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text())
        assert found
        return int(found[1]) / 1024

    @contextmanager
    def grows_at_most(self, mebibytes: float) -> Iterator[None]:
        """Its memory, at its highest meanwhile, is at most so much above what it is now."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")  # the high-water mark starts anew
        before = self.memory()
        yield
        grown = self._status("VmHWM") - before
        assert grown <= mebibytes, f"its memory grew by {grown:.0f} MiB"


@contextmanager
def serving(
    *arguments: str,
    changes: tuple[str, ...] = (),
    failpoints: dict[str, str] | None = None,
    token: str | None = None,
) -> Iterator[Target]:
    """A server that answers. `token` is one that it takes, if it requires one."""
    with tempfile.TemporaryDirectory(prefix="remora-") as directory:
        target = Target(Path(directory), *arguments)
        target.changes, target.failpoints, target.token = changes, failpoints or {}, token
        target.start()
        try:
            yield target
        finally:
            target.kill()


def has_room_for(target: Target, calls: int, *, seconds: float = PATIENCE) -> bool:
    """Whether exactly so many calls can wait at a time, and the next is refused. For servers with the change WAITS.

    Each is made on a connection of its own, of whose calls only some are answered at a time. Refusals come in the order
    of the calls: where two of them find no room, both are refused before another that comes later.
    """
    with ThreadPoolExecutor(calls + 2) as pool, held(target) as ask:
        waiting = [pool.submit(ask) for _ in range(calls + 1)]
        if not futures.wait(waiting, seconds, futures.FIRST_COMPLETED).done:
            return False
        another = pool.submit(ask)
        if not futures.wait([another], min(seconds, LATER_SECONDS)).done:
            return False  # there is more room than there was
        return sum(call.done() for call in waiting) == 1


@contextmanager
def held(target: Target) -> Iterator[Callable[[], None]]:
    """Makes calls that wait until this ends, or are refused at once."""
    file = target.directory / "held"
    file.touch()
    request = pb.CountConversationsRequest(user_id=f"{WAITING}{file}")

    def ask() -> None:
        with grpc.insecure_channel(target.endpoint, options=OPTIONS) as channel:
            try:
                conversation_service_pb2_grpc.ConversationServiceStub(channel).CountConversations(
                    request, timeout=PATIENCE, wait_for_ready=True
                )
            except grpc.RpcError as error:
                if reason(error) != "OVERLOADED":
                    raise

    try:
        yield ask
    finally:
        file.unlink()
