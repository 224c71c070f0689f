"""Servers and clients: a real server without a model, and one whose replies each test writes."""

import asyncio
import inspect
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
from tests.client.scripted_server import ScriptedServer
from tests.patience import PATIENCE

from remora import AsyncRemora, Remora
from remora.testing import serve


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A server without a model."""
    with serve("--model=none") as endpoint:
        yield endpoint


@pytest.fixture
def memory(endpoint: str, request: pytest.FixtureRequest) -> Iterator[Remora]:
    """A client of it, with a tenant of the test's own."""
    with Remora(endpoint, tenant=request.node.name[:60], timeout=PATIENCE) as memory:
        yield memory


@pytest.fixture
def socket() -> Iterator[Path]:
    """A path short enough for a socket; nothing is there yet."""
    with tempfile.TemporaryDirectory(prefix="remora-") as directory:
        yield Path(directory) / "s"


@pytest.fixture
def server(socket: Path) -> Iterator[ScriptedServer]:
    with ScriptedServer(f"unix:{socket}") as running:
        yield running


@pytest.fixture(params=["sync", "async"])
def connect(request: pytest.FixtureRequest) -> Iterator[Callable[..., Remora]]:
    """Makes sync or async clients; the async one is driven from here, call by call."""
    if request.param == "sync":
        yield Remora
        return
    with asyncio.Runner() as runner:
        yield lambda *args, **keywords: cast("Remora", Driven(AsyncRemora(*args, **keywords), runner))


@pytest.fixture
def client(connect: Callable[..., Remora], server: ScriptedServer) -> Iterator[Remora]:
    made = connect(server.endpoint, timeout=PATIENCE)
    yield made
    made.close()


class Driven:
    """An async object whose coroutines run to their end where they are called."""

    def __init__(self, target: object, runner: asyncio.Runner) -> None:
        self._target = target
        self._runner = runner

    def __getattr__(self, name: str) -> object:
        return self._driven(getattr(self._target, name))

    def _driven(self, value: object) -> object:
        if inspect.isroutine(value):
            return lambda *args, **keywords: self._driven(value(*args, **keywords))
        if inspect.iscoroutine(value):
            return self._runner.run(value)
        is_handle = type(value).__module__.startswith("remora._async")
        return Driven(value, self._runner) if is_handle else value
