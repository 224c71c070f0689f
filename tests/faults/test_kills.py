"""SIGKILL under load: what was acknowledged is there, once and in order; what was not is there whole or not at all."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.contract import WRITES
from tests.faults.kills import KillRun
from tests.faults.sidecar import Sidecar
from tests.faults.user_model import COMPARED, UserModel
from tests.faults.user_requests import WEIGHTS, UserRequests
from tests.patience import PATIENCE
from tests.storage.written import OF_CALLERS

from remora import Remora
from remora.v1 import conversation_pb2, conversation_service_pb2, message_pb2

KILLS, ANSWERS, LOAD_SECONDS = 6, 15, 0.1


@pytest.fixture
def sidecar(tmp_path: Path) -> Iterator[Sidecar]:
    server = Sidecar(tmp_path, "--model", "none")
    server.start()
    yield server
    server.kill()


def test_the_writers_use_every_write_of_the_contract() -> None:
    assert "AppendMessages" in WRITES
    assert set(WEIGHTS) == set(WRITES)
    assert {method for method, _ in drawn(UserRequests("u", "s", 1), 5000)} == set(WRITES)
    assert set(UserModel("u", "s")._methods) == set(WRITES)


def test_the_model_foretells_the_records_of_every_kind() -> None:
    assert set(COMPARED) == {kind.name for kind in OF_CALLERS}


def drawn(requests: UserRequests, count: int) -> list[tuple[str, bytes]]:
    pairs = (requests.draw() for _ in range(count))
    return [(method, request.SerializeToString(deterministic=True)) for method, request in pairs]


def test_a_seed_gives_the_same_requests_again() -> None:
    assert drawn(UserRequests("u", "s", 7), 500) == drawn(UserRequests("u", "s", 7), 500)
    assert drawn(UserRequests("u", "s", 7), 5) != drawn(UserRequests("u", "s", 8), 5)


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_doubled_or_reordered_by_kills(tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    again = f"python -m tests.faults.kills --kills {KILLS} --answers {ANSWERS} --seconds {LOAD_SECONDS} --seed {seed}"
    print(f"seed {seed}: {again}")  # noqa: T201 - shown on failure
    run = KillRun(tmp_path, seed, answers=ANSWERS, load_seconds=LOAD_SECONDS)

    assert list(run.kills(KILLS)) == list(range(1, KILLS + 1))
    assert run.acknowledged > KILLS, "the writers got something through"
    assert {kind.name for kind in OF_CALLERS} <= run.written_kinds


@pytest.mark.slow
def test_sigterm_drains_and_ends_with_success(sidecar: Sidecar) -> None:
    with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
        memory.conversation("c", user_id="sarah").append({"role": "user", "content": "kept"})

    assert sidecar.stop() == 0

    sidecar.start()
    with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
        [message] = memory.conversation("c", user_id="sarah").messages()
        assert message.text == "kept"


@pytest.mark.slow
def test_a_repeated_request_is_answered_alike_after_a_kill(sidecar: Sidecar) -> None:
    request = conversation_service_pb2.AppendMessagesRequest(
        conversation_id="c",
        user_id="sarah",
        messages=[message_pb2.Message(role="user", text="once")],
        create_if_missing=conversation_pb2.Conversation(),
        request_id="the-same",
    )
    with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
        first = memory.stubs.conversations.AppendMessages(request, timeout=PATIENCE)
    sidecar.kill()
    sidecar.start()

    with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
        again = memory.stubs.conversations.AppendMessages(request, timeout=PATIENCE)
        assert again == first
        assert len(memory.conversation("c", user_id="sarah").messages()) == 1
