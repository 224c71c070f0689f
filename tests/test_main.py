"""The command line: what it prints, how it ends, and a server as its users start it."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2
from tests.patience import PATIENCE
from tests.tokens import token_file

from remora.v1 import conversation_service_pb2 as pb
from remora.v1 import text_service_pb2
from remora_server.commands import serve
from remora_server.main import main

FOREIGN = "avx512" if platform.machine() in ("arm64", "aarch64") else "neon"
"""An instruction set of other processors."""

CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("REMORA_")}


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ.keys() - CLEAN.keys():
        monkeypatch.delenv(name)


def command(directory: Path, *arguments: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "remora_server.main",
        "serve",
        "--model=none",
        f"--data={directory / 'data'}",
        f"--listen=unix:{directory / 's'}",
        *arguments,
    ]


@contextmanager
def serving(directory: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server that is ready, and whose log is in the directory."""
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(command(directory, *arguments), env=CLEAN, stderr=log)
        try:
            wait_until_ready(process, f"unix:{directory / 's'}")
            yield process
        finally:
            process.kill()
            process.wait()


def wait_until_ready(process: subprocess.Popen[bytes], endpoint: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_ready(endpoint):
        assert process.poll() is None, "the server died"
        assert time.monotonic() < deadline, "the server did not become ready"
        time.sleep(0.05)


def is_ready(endpoint: str) -> bool:
    request = health_pb2.HealthCheckRequest(service="readiness")
    try:
        reply = call(endpoint, "/grpc.health.v1.Health/Check", request.SerializeToString())
    except grpc.RpcError:
        return False
    return health_pb2.HealthCheckResponse.FromString(reply).status == health_pb2.HealthCheckResponse.SERVING


def call(endpoint: str, path: str, request: bytes) -> bytes:
    with grpc.insecure_channel(endpoint) as channel:
        ask: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(path)
        return ask(request, timeout=PATIENCE)


def append(endpoint: str, text: str) -> None:
    request = pb.AppendMessagesRequest(
        conversation_id="c",
        messages=[{"role": "user", "text": text}],  # type: ignore[list-item]
        create_if_missing={},  # type: ignore[arg-type]
    )
    call(endpoint, "/remora.v1.ConversationService/AppendMessages", request.SerializeToString())


def texts(endpoint: str) -> list[str]:
    request = pb.ListMessagesRequest(conversation_id="c")
    reply = call(endpoint, "/remora.v1.ConversationService/ListMessages", request.SerializeToString())
    return [message.text for message in pb.ListMessagesResponse.FromString(reply).messages]


def refused(directory: Path, *arguments: str) -> tuple[int, str]:
    """The exit code and the error of a server that does not start."""
    done = subprocess.run(
        command(directory, *arguments), env=CLEAN, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_server_that_is_told_to_stop_ends_well_and_keeps_what_it_holds(
    directory: Path, number: signal.Signals
) -> None:
    endpoint = f"unix:{directory / 's'}"
    with serving(directory) as process:
        append(endpoint, "kept")
        process.send_signal(number)
        assert process.wait(PATIENCE) == 0
        told = (directory / "log").read_text("utf-8").splitlines()

    assert [line for line in told if " info " not in line] == []
    assert told[-1].endswith(" stopped")
    with serving(directory):
        assert texts(endpoint) == ["kept"]


def test_a_server_that_outlives_its_terminal_does_not_stop_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    handlers = {signal.SIGHUP: signal.SIG_IGN}
    monkeypatch.setattr("signal.getsignal", lambda number: handlers.get(number, signal.SIG_DFL))
    monkeypatch.setattr("signal.signal", handlers.__setitem__)

    serve.stop_at_signals(threading.Event())

    assert handlers.pop(signal.SIGHUP) is signal.SIG_IGN  # `nohup` had it ignored
    assert handlers.keys() == {signal.SIGTERM, signal.SIGINT}


@pytest.mark.slow
def test_a_server_that_was_killed_is_followed_by_the_next(directory: Path) -> None:
    endpoint = f"unix:{directory / 's'}"
    with serving(directory) as process:
        append(endpoint, "kept")
        process.kill()
        process.wait(PATIENCE)

    with serving(directory):
        assert texts(endpoint) == ["kept"]


@pytest.mark.slow
def test_a_second_server_on_one_directory_is_refused_in_one_line(directory: Path) -> None:
    with serving(directory):
        code, error = refused(directory, f"--listen=unix:{directory / 'other'}", f"--data={directory / 'data'}")

    assert code == 1
    assert error.count("\n") == 1
    assert "another process" in error


@pytest.mark.slow
def test_a_second_server_on_one_address_is_refused_in_one_line(directory: Path) -> None:
    with serving(directory):
        code, error = refused(directory, "--data=:memory:")

    assert code == 1
    assert (
        error == f"remora: another process listens on unix:{directory / 's'}: stop it, or listen elsewhere (--listen)\n"
    )


@pytest.mark.slow
def test_a_newer_format_is_refused_in_one_line(directory: Path) -> None:
    (directory / "data").mkdir()
    (directory / "data" / "FORMAT").write_text(json.dumps({"format_version": 99, "store_id": "00" * 16}))

    code, error = refused(directory)

    assert code == 1
    assert error.count("\n") == 1
    assert "upgrade Remora" in error


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["native", "grpcio"])
def test_a_start_that_fails_leaves_no_socket_behind(directory: Path, transport: str) -> None:
    (directory / "data").mkdir()
    (directory / "data" / "FORMAT").write_text(json.dumps({"format_version": 99, "store_id": "00" * 16}))

    code, error = refused(directory, f"--transport={transport}")

    assert (code, "upgrade Remora" in error) == (1, True)
    assert not (directory / "s").exists()


@pytest.mark.slow
def test_an_address_that_cannot_be_taken_leaves_none_of_the_others_behind(directory: Path) -> None:
    (directory / "no-socket").touch()

    code, error = refused(directory, f"--listen=unix:{directory / 'first'}", f"--listen=unix:{directory / 'no-socket'}")

    assert (code, "is not a socket" in error) == (1, True)
    assert not (directory / "first").exists()


@pytest.mark.slow
def test_a_damaged_database_is_refused_in_one_line(directory: Path) -> None:
    with serving(directory) as process:
        process.terminate()
        process.wait(PATIENCE)
    (directory / "data" / "remora.duckdb").write_text("no database")
    [segment] = (directory / "data" / "journal").glob("*.journal")
    segment.write_bytes(b"")

    code, error = refused(directory, "--log-level=error")

    assert code == 1
    assert error.count("\n") == 1
    assert "cannot be read" in error
    assert "remora repair" in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["serve", "--nonsense"], "unrecognized arguments: --nonsense"),
        (["serve", "--lis", "unix:/s"], "unrecognized arguments: --lis"),
        (
            ["serve", "--mem-limit=1GiB"],
            "remora serve: unrecognized arguments: --mem-limit; did you mean --memory-limit?",
        ),
        (["serve", "--memory_limit", "1GiB"], "did you mean --memory-limit?"),
        (["import", "--form", "voltagent"], "remora import: unrecognized arguments: --form; did you mean --from?"),
        (["--versoin"], "remora: unrecognized arguments: --versoin; did you mean --version?"),
        (["model", "install", "--from-whel=a"], "remora model install: unrecognized arguments: --from-whel; did you"),
        (["context", "--limt"], "remora context: unrecognized arguments: --limt\n"),
        (["nonsense"], "invalid choice: 'nonsense'"),
        (["model", "install", "--from-dir", "a", "--from-wheel", "b"], "not allowed with argument"),
    ],
)
def test_a_wrong_command_line_is_refused_in_one_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)

    error = capsys.readouterr().err
    assert exit_.value.code == 2
    assert words in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["serve", "--threads=none"], 2, "--threads: threads must be a whole number"),
        (["config", "--config=/not/there"], 2, "/not/there: No such file"),
        (["serve", "--data=:memory:", "--model=none", "--listen=0.0.0.0:0"], 1, "--token-file"),
        (
            ["serve", "--data=:memory:", "--model=none", "--listen=nowhere"],
            2,
            "--listen: listen must be unix:/path or host:port, not 'nowhere'",
        ),
        (["serve", "--data=:memory:", "--model=none", "--token-file=/not/there"], 1, "/not/there cannot be read"),
        (["serve", "--data=:memory:", "--model=none", f"--kernels={FOREIGN}"], 1, f"cannot run {FOREIGN}"),
        (["model", "install", "--from-dir=/not/there", "--dir=/proc/not"], 1, "cannot be installed"),
    ],
)
def test_a_failure_is_reported_in_one_line(
    arguments: list[str],
    code: int,
    words: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("remora_server.logs.configure", lambda *_: None)
    monkeypatch.setattr("signal.signal", lambda *_: None)

    assert main(arguments) == code

    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


@pytest.mark.slow
def test_a_token_file_with_a_malformed_line_is_named(directory: Path) -> None:
    file = token_file(directory / "tokens", "secret")

    code, error = refused(directory, f"--token-file={file}")

    assert code == 1
    assert error.startswith(f"remora: {file}: line 1 is not a new token, a blank and its tenant: name a file")


@pytest.mark.slow
@pytest.mark.parametrize("mode", [0o644, 0o604, 0o602, 0o666])
def test_a_token_file_that_everybody_can_read_or_change_is_refused(directory: Path, mode: int) -> None:
    file, link = token_file(directory / "tokens", "secret acme"), directory / "link"
    file.chmod(mode)
    link.symlink_to(file)

    for named in (file, link):
        code, error = refused(directory, f"--token-file={named}")

        assert code == 1
        assert error.startswith(f"remora: every user of this machine can read or change {named}: `chmod 600` it")
        assert error.count("\n") == 1


@pytest.mark.parametrize("mode", [0o400, 0o440, 0o640])
def test_a_token_file_of_its_owner_and_its_group_is_taken(directory: Path, mode: int) -> None:
    file = token_file(directory / "tokens", "secret acme")
    file.chmod(mode)

    with serving(directory, f"--token-file={file}"):
        pass


def test_tokens_are_asked_for(directory: Path) -> None:
    file = token_file(directory / "tokens", "secret acme")

    with serving(directory, f"--token-file={file}"), pytest.raises(grpc.RpcError) as raised:
        texts(f"unix:{directory / 's'}")

    assert raised.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_without_a_model_nothing_is_embedded(directory: Path) -> None:
    request = text_service_pb2.EmbedRequest(texts=["t"]).SerializeToString()

    with serving(directory), pytest.raises(grpc.RpcError) as raised:
        call(f"unix:{directory / 's'}", "/remora.v1.TextService/Embed", request)

    assert raised.value.code() == grpc.StatusCode.FAILED_PRECONDITION


def test_the_settings_are_shown_with_their_origins(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "--data", "/d", "--listen", "unix:/a", "--listen", "unix:/b", "--insecure"]) == 0

    shown = capsys.readouterr().out.splitlines()
    assert 'listen: ["unix:/a", "unix:/b"]  # --listen' in shown
    assert 'data: "/d"  # --data' in shown
    assert "insecure: true  # --insecure" in shown
    assert "threads: 16  # default" in shown
    assert any(line.startswith("window_bytes: ") and line.endswith("  # fitted to memory_limit") for line in shown)


def test_the_version_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0

    assert capsys.readouterr().out.strip()
