"""The server that a framework's memory plugs into. It runs in .venv, without the framework's packages."""

from __future__ import annotations

import asyncio
import tempfile
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.failed_names import pytest_terminal_summary
from tests.faults.sidecar import ROOT, Sidecar

__all__ = ["pytest_terminal_summary"]


class Server(Sidecar):
    """A server of this directory's packages, which a test may kill and start again. It keeps its data meanwhile."""

    def _program(self) -> list[str]:
        packages = f"{ROOT / 'server'}:{ROOT / 'clients' / 'python'}"
        return ["env", f"PYTHONPATH={packages}", str(ROOT / ".venv" / "bin" / "python"), "-m", "remora_server.main"]


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A server that runs as long as the session, with the embedding model."""
    with tempfile.TemporaryDirectory(prefix="remora-") as directory:
        server = Server(Path(directory), "--model-dir", str(ROOT / ".cache" / "model"))
        server.start()
        yield server
        server.stop()


@pytest.fixture
def own_server() -> Iterator[Server]:
    """A server of the test's own, to kill."""
    with tempfile.TemporaryDirectory(prefix="remora-") as directory:
        server = Server(Path(directory), "--model-dir", str(ROOT / ".cache" / "model"))
        server.start()
        yield server
        server.kill()


@dataclass(frozen=True)
class Silent:
    """A server that takes connections and never answers. `reached` is set once somebody has sent it something."""

    endpoint: str
    reached: asyncio.Event


@pytest.fixture
async def silent() -> AsyncIterator[Silent]:
    """Such a server."""
    reached = asyncio.Event()

    async def take(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        reached.set()

    listening = await asyncio.start_server(take, "127.0.0.1", 0)
    yield Silent(f"127.0.0.1:{listening.sockets[0].getsockname()[1]}", reached)
    listening.close()


@pytest.fixture
def tenant() -> str:
    """A tenant that only this test uses."""
    return f"test-{uuid.uuid4().hex}"
