"""A server on this machine: found where it listens, or started here, and gone with the last process that wants it.

Each process that wants the server holds a lease: a shared lock on a file beside its socket. The server waits for the
exclusive lock, gets it when no lease is left, and stops. The system releases the lock of a process however it ends, so
a server outlives neither `kill -9` nor the end of a notebook's kernel. A server that stops keeps the exclusive lock to
its end, so nobody takes it for a running one.
"""

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import uuid
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import grpc

from remora import _refusals
from remora._endpoint import require_no_endpoint, require_short, resolve_endpoint, short_default
from remora.address import default_endpoint, require_own_default
from remora.errors import ServerNotStartedError

IN_MEMORY = ":memory:"
UNIX = "unix:"

START_SECONDS = 300.0
"""How long a server may take until it is healthy: a machine that runs tests may be busy."""
STOP_SECONDS = 10.0
POLL_SECONDS = 0.02

SERVING = b"\x08\x01"
"""grpc.health.v1.HealthCheckResponse(status=SERVING)."""
OPTIONS = (("grpc.default_authority", "localhost"), ("grpc.use_local_subchannel_pool", 1))


@dataclass(frozen=True, slots=True)
class Lease:
    """A shared lock on a file. The server that the file belongs to stays while there is one."""

    file: Path
    descriptor: int

    @property
    def arguments(self) -> tuple[str, str]:
        """What makes a server heed it."""
        return "--lease", str(self.file)


class LocalServer:
    """A server that this process found or started, held by a lease until `release`.

    `own` is one that nobody shares: its lease is given up with this object, too.
    """

    def __init__(self, endpoint: str, lease: Lease | None, own: "subprocess.Popen[bytes] | None" = None) -> None:
        self.endpoint = endpoint
        self._lease = lease
        self._own = own
        self._starter = os.getpid()
        if lease is not None and own is not None:
            self._given_up = weakref.finalize(self, os.close, lease.descriptor)
            self._given_up.atexit = False  # the system does it then

    def release(self) -> None:
        """Gives up the lease, and waits for the end of a server that nobody shares. Again it does nothing.

        A forked child gives up its copy of the lease, and the server goes on: its parent still holds it.
        """
        lease, self._lease = self._lease, None
        if lease is None:
            return
        if self._own is None:
            os.close(lease.descriptor)
            return
        self._given_up()
        if self._starter == os.getpid():
            wait_or_kill(self._own)


def find_or_start(data: "str | os.PathLike[str] | None") -> LocalServer:
    """The server of the data in a directory (None: the usual one), or a new one of data in memory.

    Raises ServerNotStartedError if there is none and none can be started, InvalidFieldError for an endpoint as data.
    """
    if data == IN_MEMORY:
        return start_private(_usual_directory())
    if isinstance(data, str) and data.startswith(":"):
        raise _refusals.invalid("data", f"is {data!r}; did you mean {IN_MEMORY!r}? The directory is './{data}'")
    if isinstance(data, str):
        require_no_endpoint(data, "data")
    if data is None:
        endpoint = resolve_endpoint(None)
    else:
        endpoint = short_default(f"unix:{_usual_directory() / _name_of(data)}.sock")
    require_own_default(endpoint)
    if not endpoint.startswith(UNIX):
        return _found_elsewhere(endpoint)
    lease = _take_lease(endpoint)
    with _kept_unless_failed(lease), _starting_alone(lease.file.parent):
        if not is_healthy(endpoint):
            arguments = [] if data is None else ["--data", os.fspath(data)]
            with lease.file.with_suffix(".log").open("w+b") as log:
                launch(endpoint, [*lease.arguments, *arguments], log)
    return LocalServer(endpoint, lease)


def _found_elsewhere(endpoint: str) -> LocalServer:
    if not is_healthy(endpoint):
        raise _not_started(
            f"no server answers at {endpoint}, and one is started on a Unix socket only: see `remora serve`"
        )
    return LocalServer(endpoint, None)


def start_private(directory: Path, *arguments: str) -> LocalServer:
    """A new server that keeps nothing and nobody else finds, its socket in this directory.

    `arguments` are added to the command `remora serve`. Raises ServerNotStartedError.
    """
    endpoint = f"unix:{directory / f'memory-{uuid.uuid4().hex[:16]}'}.sock"
    require_short(endpoint, "the server's endpoint", "set $XDG_RUNTIME_DIR, or in tests $TMPDIR, to a shorter one")
    lease = _take_lease(endpoint)
    with _kept_unless_failed(lease), tempfile.TemporaryFile() as log:
        own = launch(endpoint, [*lease.arguments, "--data", IN_MEMORY, *arguments], log)
    return LocalServer(endpoint, lease, own)


def _usual_directory() -> Path:
    """The directory of the usual socket. Raises PermissionError if it is another user's."""
    require_own_default(default_endpoint())
    return _socket_of(default_endpoint()).parent


def _name_of(data: "str | os.PathLike[str]") -> str:
    """One name for each directory, however it is written."""
    return f"data-{hashlib.sha256(os.fsencode(Path(data).expanduser().resolve())).hexdigest()[:16]}"


def _socket_of(endpoint: str) -> Path:
    return Path(endpoint.removeprefix(UNIX)).absolute()


def _not_started(text: str) -> ServerNotStartedError:
    return ServerNotStartedError(text, code=grpc.StatusCode.FAILED_PRECONDITION, reason="SERVER_NOT_STARTED")


def _take_lease(endpoint: str) -> Lease:
    """A lease of the server on this socket. One that is stopping has to end first; it removes the file at last."""
    socket = _socket_of(endpoint)
    socket.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lease_file = socket.with_suffix(".lease")
    deadline = time.monotonic() + START_SECONDS
    while True:
        lease = Lease(lease_file, os.open(lease_file, os.O_RDWR | os.O_CREAT, 0o600))
        with _kept_unless_failed(lease):
            _lock(lease.descriptor, fcntl.LOCK_SH, deadline, f"a server that is stopping holds {lease_file}")
            if _is_file(lease.descriptor, lease_file):
                return lease
        os.close(lease.descriptor)


@contextmanager
def _kept_unless_failed(lease: Lease) -> Iterator[None]:
    try:
        yield
    except BaseException:
        os.close(lease.descriptor)
        raise


def _is_file(descriptor: int, file: Path) -> bool:
    """Whether the open file is still the one of this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), file.stat())
    except FileNotFoundError:
        return False


@contextmanager
def _starting_alone(directory: Path) -> Iterator[None]:
    """No other process starts a server meanwhile: it finds this one's."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        deadline = time.monotonic() + START_SECONDS
        _lock(descriptor, fcntl.LOCK_EX, deadline, f"another process is starting a server in {directory}")
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int, kind: int, deadline: float, reason: str) -> None:
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise _not_started(f"{reason}, for {START_SECONDS:.0f} s now") from None
            time.sleep(POLL_SECONDS)
        else:
            return


def launch(endpoint: str, arguments: Sequence[str], log: IO[bytes]) -> "subprocess.Popen[bytes]":
    """Runs `remora serve`, which is healthy then. Raises ServerNotStartedError, with what it wrote, if it never is.

    It goes into a session of its own, so that Ctrl-C in a terminal leaves it to the leases.
    """
    process = subprocess.Popen(  # noqa: S603 - our own command
        [*_command(endpoint), "--listen", endpoint, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        _wait_until_healthy(process, endpoint, log)
    except BaseException:
        process.kill()
        process.wait()
        raise
    threading.Thread(target=process.wait, name="remora-server", daemon=True).start()  # reaps it
    return process


def _command(endpoint: str) -> list[str]:
    """What serves: the package in this environment, else the `remora` on the path."""
    if importlib.util.find_spec("remora_server") is not None:
        return [sys.executable, "-m", "remora_server"]
    found = shutil.which("remora", path=str(Path(sys.executable).parent)) or shutil.which("remora")
    if found is None:
        raise _not_started(
            f"no server answers at {endpoint}, and the package that would serve there is not installed: "
            "pip install remora-server"
        )
    return [found, "serve"]


def _wait_until_healthy(process: "subprocess.Popen[bytes]", endpoint: str, log: IO[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    with grpc.insecure_channel(endpoint, options=OPTIONS) as channel:
        while not _answers_healthy(channel, 1.0):
            if process.poll() is not None or time.monotonic() > deadline:
                log.seek(0)
                told = log.read().decode(errors="replace").strip()
                raise _not_started(f"the server at {endpoint} did not start; it says: {told}")
            time.sleep(POLL_SECONDS)


def is_healthy(endpoint: str) -> bool:
    """Whether a server serves there."""
    if endpoint.startswith(UNIX) and not _socket_of(endpoint).exists():
        return False
    with grpc.insecure_channel(endpoint, options=OPTIONS) as channel:
        return _answers_healthy(channel, 5.0)


def _answers_healthy(channel: grpc.Channel, seconds: float) -> bool:
    """Asks grpc.health.v1, whose messages are too small to need generated code."""
    check: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/grpc.health.v1.Health/Check")
    try:
        return check(b"", timeout=seconds) == SERVING
    except grpc.RpcError:
        return False


def wait_or_kill(process: "subprocess.Popen[bytes]") -> None:
    """Waits for the end of a server that was told to end; kills it if that takes too long."""
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
