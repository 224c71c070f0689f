"""Requests that are repeated after kills, to servers that have not loaded which requests there were."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from tests.faults.sidecar import Sidecar
from tests.network.honest import OPTIONS, append
from tests.patience import PATIENCE

from remora.v1 import conversation_service_pb2 as pb
from remora.v1 import conversation_service_pb2_grpc
from remora_server import failpoints

CALLERS, EACH, KILLS = 4, 30, 3
KILLED = -9


@pytest.fixture
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sidecar]:
    server = Sidecar(tmp_path_factory.mktemp("r"), "--model", "none")
    yield server
    server.kill()


def requests(generation: int) -> list[pb.AppendMessagesRequest]:
    """Appends to a conversation of each caller."""
    return [
        append(f"c{caller}", [f"{generation}/{number}"], request_id=f"{generation}/{caller}/{number}")
        for number in range(EACH)
        for caller in range(CALLERS)
    ]


def answers(sidecar: Sidecar, asked: list[pb.AppendMessagesRequest]) -> list[pb.AppendMessagesResponse]:
    with grpc.insecure_channel(sidecar.endpoint, options=OPTIONS) as channel, ThreadPoolExecutor(CALLERS) as pool:
        ask = conversation_service_pb2_grpc.ConversationServiceStub(channel).AppendMessages
        return list(pool.map(lambda request: ask(request, timeout=PATIENCE), asked))


def texts(sidecar: Sidecar, conversation: str) -> list[str]:
    request = pb.ListMessagesRequest(conversation_id=conversation, page_size=1000)
    with grpc.insecure_channel(sidecar.endpoint, options=OPTIONS) as channel:
        listed = conversation_service_pb2_grpc.ConversationServiceStub(channel).ListMessages(request, timeout=PATIENCE)
    return sorted(message.text for message in listed.messages)


@pytest.mark.slow
def test_repeats_get_their_first_replies_whatever_was_loaded_when_they_came(sidecar: Sidecar) -> None:
    sidecar.start()
    asked, told = requests(0), answers(sidecar, requests(0))
    for generation in range(1, KILLS + 1):
        sidecar.kill()
        sidecar.changes = ("load_no_requests",) if generation % 2 else ()
        sidecar.start()
        assert answers(sidecar, asked) == told
        told += answers(sidecar, requests(generation))
        asked += requests(generation)
        assert answers(sidecar, asked) == told

    written = sorted(f"{generation}/{number}" for generation in range(KILLS + 1) for number in range(EACH))
    assert [texts(sidecar, f"c{caller}") for caller in range(CALLERS)] == [written] * CALLERS


@pytest.mark.slow
def test_a_kill_while_requests_are_loaded_loses_none_of_them(sidecar: Sidecar) -> None:
    sidecar.start()
    told = answers(sidecar, requests(0))
    sidecar.kill()
    sidecar.failpoints = {failpoints.VARIABLE: "requests_loading=abort"}
    sidecar.launch()
    assert sidecar.wait() == KILLED

    sidecar.failpoints = {}
    sidecar.start()

    assert answers(sidecar, requests(0)) == told
