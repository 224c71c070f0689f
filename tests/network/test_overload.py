"""Ten times the calls that find room: refusals say so and when to come back, and whoever comes back is served."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from tests.faults.changed_server import WAITING
from tests.network.honest import OPTIONS, honest, is_refused_by_grpc, reason, retry_seconds
from tests.network.target import TRANSPORTS, WAITS, Target, has_room_for, serving
from tests.patience import eventually

from remora.v1 import conversation_service_pb2 as pb
from remora.v1 import conversation_service_pb2_grpc

THREADS, WAITING_CALLS = 4, 12
ROOM = THREADS + WAITING_CALLS
CALLERS, BURST = 10, ROOM
"""Each caller has a connection, and as many calls at a time as there is room for all."""

CALL_SECONDS = 0.05
OF_GRPC = "refused by gRPC"


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def target(transport: str) -> Iterator[Target]:
    arguments = ("--threads", str(THREADS), "--waiting-calls", str(WAITING_CALLS), "--transport", transport)
    with serving(*arguments, changes=WAITS) as target:
        yield target


def burst_again_and_again(endpoint: str, stopping: threading.Event, outcomes: Counter[str]) -> None:
    """Calls that take a thread for all the time that they have; how they ended. A refusal says when to come back."""
    with grpc.insecure_channel(endpoint, options=OPTIONS) as channel:
        stub = conversation_service_pb2_grpc.ConversationServiceStub(channel)
        request = pb.CountConversationsRequest(user_id=WAITING)
        while not stopping.is_set():
            calls = [stub.CountConversations.future(request, timeout=CALL_SECONDS) for _ in range(BURST)]
            for call in calls:
                error = call.exception()
                assert isinstance(error, grpc.RpcError)
                outcome = reason(error) or (OF_GRPC if is_refused_by_grpc(error) else call.code().name)
                if outcome == "OVERLOADED":
                    assert call.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
                    assert retry_seconds(error) > 0
                outcomes[outcome] += 1


@pytest.mark.slow
def test_overload_is_refused_and_callers_that_retry_are_served(target: Target, transport: str) -> None:
    stopping, before = threading.Event(), target.sockets()
    served = honest(target.endpoint)
    with target.grows_at_most(64), ThreadPoolExecutor(CALLERS) as pool, served as clients:
        of_callers = [Counter[str]() for _ in range(CALLERS)]
        bursts = [pool.submit(burst_again_and_again, target.tcp, stopping, outcomes) for outcomes in of_callers]
        try:
            clients.go_on(3)
            eventually(lambda: sum(outcomes["OVERLOADED"] for outcomes in of_callers) > ROOM)
            eventually(lambda: sum(outcomes["DEADLINE_EXCEEDED"] for outcomes in of_callers))
            eventually(lambda: clients.refusals)  # the honest ones meet it, too
        finally:
            stopping.set()
        for burst in bursts:
            burst.result()

    known = {"OVERLOADED", "DEADLINE_EXCEEDED"} | ({OF_GRPC} if transport == "grpcio" else set())
    assert set().union(*of_callers) <= known
    eventually(lambda: has_room_for(target, ROOM))
    eventually(lambda: target.sockets() <= before + ROOM)
