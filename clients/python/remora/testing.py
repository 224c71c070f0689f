"""A Remora server for tests: `serve()`, and pytest fixtures around it.

    # conftest.py
    pytest_plugins = ["remora.testing"]

    # test_agent.py
    def test_agent_remembers(memory):
        memory.conversation("c").append({"role": "user", "content": "hello"})

It also needs the server (`pip install remora-server`), and keeps everything in memory.
"""

import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from remora._sync.calls import OPTIONS
from remora._sync.client import Remora

SERVING = b"\x08\x01"
"""grpc.health.v1.HealthCheckResponse(status=SERVING)."""

START_SECONDS = 300.0
CALL_SECONDS = 60.0
STOP_SECONDS = 10.0


@contextmanager
def serve(*arguments: str) -> Iterator[str]:
    """Runs a new server, all in memory, and gives its endpoint once it is healthy.

    `arguments` are added to the command `remora serve`. Raises RuntimeError, with what the server wrote, if it is
    not healthy within five minutes: a machine that runs tests may be busy.
    """
    with tempfile.TemporaryDirectory(prefix="remora-") as directory:
        endpoint = f"unix:{directory}/remora.sock"
        log = Path(directory) / "log"
        command = [_executable(), "serve", "--data", ":memory:", "--listen", endpoint, *arguments]
        with log.open("wb") as output:
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)  # noqa: S603 - our own command
        try:
            _wait_until_healthy(process, endpoint, log)
            yield endpoint
        finally:
            _stop(process)


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


def _executable() -> str:
    """The `remora` beside this Python, else the one on the path."""
    found = shutil.which("remora", path=str(Path(sys.executable).parent)) or shutil.which("remora")
    if found is None:
        raise RuntimeError("there is no `remora` to run: pip install remora-server")
    return found


def _wait_until_healthy(process: "subprocess.Popen[bytes]", endpoint: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    with grpc.insecure_channel(endpoint, options=OPTIONS) as channel:
        while not _is_healthy(channel):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not become healthy:\n{log.read_text(errors='replace')}")
            time.sleep(0.05)


def _is_healthy(channel: grpc.Channel) -> bool:
    """Asks grpc.health.v1, whose messages are too small to need generated code."""
    check: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/grpc.health.v1.Health/Check")
    try:
        return check(b"", timeout=1.0) == SERVING
    except grpc.RpcError:
        return False


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
