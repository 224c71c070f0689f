"""`remora doctor` of a data directory that a process serves: the server says how its store is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import grpc
import pytest
from tests.faults.sidecar import Sidecar
from tests.patience import PATIENCE
from tests.tokens import token_file

from remora import Remora
from remora.v1 import conversation_service_pb2 as pb
from remora.v1.conversation_pb2 import Conversation
from remora_server.main import main


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remora_server.commands.doctor.ASKING_SECONDS", PATIENCE)


@contextmanager
def started(**failpoints: str) -> Iterator[Sidecar]:
    """A server that answers."""
    with TemporaryDirectory(prefix="remora-") as directory:
        sidecar = Sidecar(Path(directory), "--model", "none")
        sidecar.failpoints = failpoints
        sidecar.start()
        try:
            yield sidecar
        finally:
            sidecar.kill()


@pytest.fixture
def served() -> Iterator[Sidecar]:
    with started() as sidecar:
        yield sidecar


def doctor(
    capsys: pytest.CaptureFixture[str], sidecar: Sidecar, *arguments: str, at: str = ""
) -> tuple[int, dict[str, Any]]:
    """The exit code of the doctor and what it says for scripts."""
    capsys.readouterr()
    data = sidecar.directory / "data"
    code = main(
        ["doctor", "--json", "--model=none", f"--data={data}", f"--listen={at or sidecar.endpoint}", *arguments]
    )
    return code, json.loads(capsys.readouterr().out)


def create_many(sidecar: Sidecar) -> None:
    """Ask without repeats: a store that has failed stays so."""
    with Remora(sidecar.endpoint) as memory:
        for number in range(10):
            request = pb.CreateConversationRequest(conversation=Conversation(id=f"c{number}", user_id="u"))
            memory.stubs.conversations.CreateConversation(request, timeout=PATIENCE)


def findings(said: dict[str, Any]) -> list[str]:
    return [finding["what"] for finding in said["findings"]]


@pytest.mark.slow
def test_a_server_that_demands_tokens_is_asked_with_the_operators(capsys: pytest.CaptureFixture[str]) -> None:
    with TemporaryDirectory(prefix="remora-") as directory:
        tokens = token_file(Path(directory) / "tokens", "t acme\n")
        sidecar = Sidecar(Path(directory), "--model=none", f"--token-file={tokens}", token="t")
        sidecar.start()
        try:
            code, said = doctor(capsys, sidecar)
        finally:
            sidecar.kill()

    assert (code, findings(said)) == (0, [])
    assert said["server"]["endpoint"] == sidecar.endpoint


def test_the_server_of_a_store_says_how_it_is(capsys: pytest.CaptureFixture[str], served: Sidecar) -> None:
    with Remora(served.endpoint, timeout=PATIENCE) as memory:
        memory.conversation("c", user_id="u").append({"role": "user", "content": "hello"})

    code, said = doctor(capsys, served)

    assert (code, findings(said)) == (0, [])
    assert said["store"]["served"]
    assert said["store"].keys().isdisjoint({"database", "journal"}), "what was not looked at is not told"
    assert (said["server"]["writable"], said["server"]["revision"]) == (True, 1)
    assert "its files were not read" in said["notes"][-1]["what"]


def test_a_server_that_listens_elsewhere_is_to_be_named(
    capsys: pytest.CaptureFixture[str], served: Sidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remora_server.commands.doctor.ASKING_SECONDS", 0.5)

    code, said = doctor(capsys, served, at="unix:/tmp/none")

    assert code == 1
    assert findings(said) == ["a process serves it and does not answer at unix:/tmp/none"]
    assert "--listen" in said["findings"][0]["remedy"]


@pytest.mark.slow
def test_the_server_of_another_store_is_not_taken_for_it(capsys: pytest.CaptureFixture[str], served: Sidecar) -> None:
    with started() as other:
        code, said = doctor(capsys, served, at=other.endpoint)

    assert code == 1
    assert "another store is served" in findings(said)[0]
    assert "server" not in said


@pytest.mark.slow
def test_a_server_that_takes_no_writes_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    with started(REMORA_JOURNAL_FAILPOINTS="before_sync=error@2") as failing:
        with pytest.raises(grpc.RpcError):
            create_many(failing)

        code, said = doctor(capsys, failing)

    assert code == 1
    assert "takes no writes" in findings(said)[0]
    assert not said["server"]["writable"]
