"""A Remora server for tests: `serve()`, and pytest fixtures around it.

    # conftest.py
    pytest_plugins = ["remora.testing"]

    # test_agent.py
    def test_agent_remembers(memory):
        memory.conversation("c").append({"role": "user", "content": "hello"})

It also needs the server (`pip install remora-server`), and keeps everything in memory.
"""

import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from remora._local_server import start_private
from remora._sync.client import Remora

CALL_SECONDS = 60.0


@contextmanager
def serve(*arguments: str) -> Iterator[str]:
    """Runs a new server, all in memory, and gives its endpoint once it is healthy.

    `arguments` are added to the command `remora serve`. Raises ServerNotStartedError, with what the server wrote, if
    it is not healthy within five minutes: a machine that runs tests may be busy.
    """
    with tempfile.TemporaryDirectory(prefix="remora-") as directory:
        server = start_private(Path(directory), *arguments)
        try:
            yield server.endpoint
        finally:
            server.release()


@pytest.fixture(scope="session")
def remora_server() -> Iterator[str]:
    """The endpoint of a server that runs as long as the session."""
    with serve() as endpoint:
        yield endpoint


@pytest.fixture
def remora_tenant() -> str:
    """A tenant that only this test uses."""
    return f"test-{uuid.uuid4().hex}"


@pytest.fixture
def memory(remora_server: str, remora_tenant: str) -> Iterator[Remora]:
    """A client whose tenant is empty, and whose calls may take a minute: a machine that runs tests may be busy."""
    with Remora(remora_server, tenant=remora_tenant, timeout=CALL_SECONDS) as client:
        yield client
