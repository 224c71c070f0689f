"""A server in one line: found or started, shared by processes, and gone with the last of them however it ends."""

import asyncio
import gc
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.patience import PATIENCE, eventually

import remora
from remora import AsyncRemora, Remora, errors
from remora._local_server import LocalServer, find_or_start, is_healthy

HELLO = {"role": "user", "content": "hello"}

STARTING = """
import sys
from remora import Remora

memory = Remora.start(sys.argv[1] if sys.argv[1:] else None, timeout=300.0)
started = memory.status().server.start_time
print(memory.endpoint, started.ToNanoseconds(), flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def usual_places(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The usual address and the usual data are the test's own."""
    monkeypatch.delenv("REMORA_ENDPOINT", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(directory))
    monkeypatch.setenv("XDG_DATA_HOME", str(directory / "data"))
    monkeypatch.setenv("REMORA_MODEL", "none")
    return directory / "remora"


@pytest.fixture
def processes() -> Iterator[list["subprocess.Popen[str]"]]:
    """Processes that are killed at the end, if they are still there."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def starting(*arguments: str) -> "subprocess.Popen[str]":
    """A process that starts a server, says which, and stays until its standard input ends."""
    return subprocess.Popen(
        [sys.executable, "-c", STARTING, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def said(process: "subprocess.Popen[str]") -> list[str]:
    assert process.stdout is not None
    return process.stdout.readline().split()


def is_gone(endpoint: str) -> bool:
    return not is_healthy(endpoint)


@pytest.mark.slow
def test_a_start_is_one_line_and_what_is_written_stays(usual_places: Path) -> None:
    with Remora.start(timeout=PATIENCE) as memory:
        memory.conversation("c").append(HELLO)
        endpoint = memory.endpoint
    eventually(lambda: is_gone(endpoint))

    with Remora.start(timeout=PATIENCE) as memory:
        found = [message.text for message in memory.conversation("c").messages()]

    assert endpoint == f"unix:{usual_places}/remora.sock"
    assert found == ["hello"]


@pytest.mark.slow
def test_a_server_is_found_where_it_listens_and_stays_as_long_as_anybody_wants_it() -> None:
    first, second = Remora.start(timeout=PATIENCE), Remora.start(timeout=PATIENCE)
    assert first.status().server.start_time == second.status().server.start_time

    first.close()
    assert second.conversation("c").append(HELLO).ids
    second.close()

    eventually(lambda: is_gone(first.endpoint))


@pytest.mark.slow
def test_a_server_that_nobody_started_so_stays(usual_places: Path) -> None:
    endpoint = f"unix:{usual_places}/remora.sock"
    command = [sys.executable, "-m", "remora_server", "--data", ":memory:", "--listen", endpoint]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as serving:
        eventually(lambda: is_healthy(endpoint))
        Remora.start(timeout=PATIENCE).close()

        with Remora(timeout=PATIENCE) as memory:
            assert memory.count_conversations() == 0
        serving.terminate()


def test_the_module_runs_commands_too() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "remora_server", "--version"], capture_output=True, text=True, check=True
    )

    assert ran.stdout == f"remora {remora.__version__}\n"


@pytest.mark.slow
def test_data_in_memory_is_of_one_client_and_gone_with_it(usual_places: Path) -> None:
    with Remora.start(":memory:", timeout=PATIENCE) as one, Remora.start(":memory:", timeout=PATIENCE) as other:
        one.conversation("c").append(HELLO)

        assert other.count_conversations() == 0
    assert is_gone(one.endpoint)
    assert list(usual_places.iterdir()) == []


@pytest.mark.slow
def test_a_server_of_one_client_is_gone_with_what_makes_its_calls() -> None:
    memory = Remora.start(":memory:", timeout=PATIENCE)
    endpoint, chat = memory.endpoint, memory.conversation("c")
    del memory
    gc.collect()
    chat.append(HELLO)
    assert [message.text for message in chat.messages()] == ["hello"]

    del chat
    gc.collect()

    eventually(lambda: is_gone(endpoint))


def test_a_data_directory_has_one_server_however_it_is_written(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory)
    with Remora.start("mine", timeout=PATIENCE) as one, Remora.start(directory / "mine", timeout=PATIENCE) as other:
        assert one.endpoint == other.endpoint
    assert (directory / "mine").is_dir()


@pytest.mark.slow
def test_processes_that_start_at_once_end_with_one_server(processes: list["subprocess.Popen[str]"]) -> None:
    processes += [starting() for _ in range(3)]

    servers = {tuple(said(process)) for process in processes}

    assert len(servers) == 1


@pytest.mark.slow
@pytest.mark.parametrize("data", [(), (":memory:",)], ids=["usual", "memory"])
@pytest.mark.parametrize("end", ["kill", "exit"])
def test_a_server_is_gone_with_its_process_however_that_ends(
    processes: list["subprocess.Popen[str]"], usual_places: Path, data: tuple[str, ...], end: str
) -> None:
    processes.append(starting(*data))
    endpoint, _ = said(processes[0])
    assert is_healthy(endpoint)

    if end == "kill":
        processes[0].send_signal(signal.SIGKILL)
    else:
        assert processes[0].stdin is not None
        processes[0].stdin.close()

    eventually(lambda: is_gone(endpoint))
    eventually(lambda: not list(usual_places.glob("*.lease")) and not list(usual_places.glob("*.sock")))


@pytest.mark.slow
def test_a_server_that_was_killed_is_followed_by_the_next() -> None:
    with Remora.start(timeout=PATIENCE) as first:
        first.conversation("c").append(HELLO)
        pid = next(int(entry.name) for entry in Path("/proc").iterdir() if _serves(entry, first.endpoint))
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: is_gone(first.endpoint))

        with Remora.start(timeout=PATIENCE) as second:
            assert second.conversation("c").messages()[0].text == "hello"


def _serves(process: Path, endpoint: str) -> bool:
    try:
        return endpoint.encode() in (process / "cmdline").read_bytes()
    except OSError:
        return False


@pytest.mark.slow
def test_an_async_client_starts_a_server_too() -> None:
    async def turn() -> str:
        async with await AsyncRemora.start(":memory:", timeout=PATIENCE) as memory:
            await memory.conversation("c").append(HELLO)
            assert (await memory.conversation("c").messages())[0].text == "hello"
            return memory.endpoint

    assert is_gone(asyncio.run(turn()))


@pytest.mark.slow
@pytest.mark.parametrize("has_ended", [False, True], ids=["while it starts", "when it has started"])
def test_a_start_that_is_cancelled_leaves_no_server(
    usual_places: Path, monkeypatch: pytest.MonkeyPatch, *, has_ended: bool
) -> None:
    started: list[LocalServer] = []
    has_started, goes_on = threading.Event(), threading.Event()

    def start(data: str) -> LocalServer:
        started.append(find_or_start(data))
        has_started.set()
        goes_on.wait(PATIENCE)
        return started[0]

    async def cancel() -> None:
        thread = ThreadPoolExecutor(1)
        asyncio.get_running_loop().set_default_executor(thread)
        starting = asyncio.create_task(AsyncRemora.start(":memory:"))
        await asyncio.sleep(0)
        has_started.wait(PATIENCE)
        if has_ended:
            goes_on.set()
            thread.submit(lambda: None).result()  # the loop stands still, and has not been told
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        goes_on.set()

    monkeypatch.setattr("remora._async.client.find_or_start", start)
    asyncio.run(cancel())

    eventually(lambda: is_gone(started[0].endpoint))
    assert list(usual_places.iterdir()) == []


def test_without_the_servers_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    monkeypatch.setattr(shutil, "which", lambda *_args, **_keywords: None)

    with pytest.raises(errors.ServerNotStartedError, match=r"no server answers at unix:.*: pip install remora-server"):
        Remora.start()


@pytest.mark.slow
def test_a_server_that_does_not_start_says_why(directory: Path) -> None:
    (directory / "file").touch()

    with pytest.raises(errors.ServerNotStartedError, match=r"did not start; it says: remora: .*file"):
        Remora.start(directory / "file")


def test_a_server_is_not_started_on_a_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMORA_ENDPOINT", "localhost:1")

    with pytest.raises(errors.ServerNotStartedError, match="no server answers at localhost:1"):
        Remora.start()


def test_a_lease_that_is_not_there_is_refused(directory: Path) -> None:
    command = [sys.executable, "-m", "remora_server", "--data", ":memory:", "--lease", str(directory / "none")]

    ended = subprocess.run(command, capture_output=True, text=True, check=False)

    assert ended.returncode == 1
    assert ended.stderr == f"remora: the lease {directory / 'none'} cannot be opened: No such file or directory\n"
