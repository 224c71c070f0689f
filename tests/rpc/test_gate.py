"""Who gets in: tokens for every RPC of every service, and no more calls than there is room for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeAlias

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_health.v1 import health_pb2
from tests.patience import PATIENCE
from tests.rpc.fake_store import FakeStore, conversation
from tests.rpc.running_server import RunningServer, detail, status_of

from remora.v1 import conversation_service_pb2 as pb
from remora_server.domain.calls import Read
from remora_server.rpc.identity import Identity, Tokens
from remora_server.rpc.reflection import REFLECTION_PATHS
from remora_server.rpc.server import SERVICES
from remora_server.rpc.transport.transports import ServerOptions

Streams: TypeAlias = "grpc.StreamStreamMultiCallable[bytes, bytes]"
Asked: TypeAlias = "dict[str, tuple[object, ...]]"

GET = pb.GetConversationRequest(conversation_id="c")
METHODS = [f"/{service.full_name}/{method.name}" for service in SERVICES for method in service.methods]
PATHS = [*METHODS, *REFLECTION_PATHS]
WRONG = [
    {},
    {"authorization": ""},
    {"authorization": "Bearer"},
    {"authorization": "Bearer wrong"},
    {"authorization": "alpha"},
    {"authorization": "Basic alpha"},
    {"remora-tenant": "a"},
]


@pytest.fixture(scope="module")
def guarded() -> Iterator[RunningServer]:
    tokens = Tokens.parse(["alpha a", "beta b"])
    with RunningServer(identity=Identity(tokens), store=FakeStore(conversations=[conversation()])) as running:
        yield running


@pytest.fixture
def asked(guarded: RunningServer) -> Asked:
    """What the store is asked in this test."""
    guarded.store.asked.clear()
    return guarded.store.asked


@pytest.mark.parametrize("path", [*PATHS, "/remora.v1.ConversationService/Unknown", "/unknown/Method"])
@pytest.mark.parametrize("metadata", WRONG, ids=str)
def test_nothing_answers_without_a_known_token(
    guarded: RunningServer, asked: Asked, path: str, metadata: dict[str, str]
) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        guarded.raw(path, b"", metadata=list(metadata.items()))

    assert status_of(raised.value).code == grpc.StatusCode.UNAUTHENTICATED.value[0]
    info = detail(raised.value, ErrorInfo)
    assert info is not None
    assert info.reason == "UNAUTHENTICATED"
    assert asked == {}


@pytest.mark.parametrize("path", PATHS)
def test_nothing_answers_to_a_token_beside_another_tenants_name(
    guarded: RunningServer, asked: Asked, path: str
) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        guarded.raw(path, b"", metadata=[("authorization", "Bearer alpha"), ("remora-tenant", "b")])

    info = detail(raised.value, ErrorInfo)
    assert info is not None
    assert info.reason == "TENANT_MISMATCH"
    assert asked == {}


@pytest.mark.parametrize(("token", "tenant"), [("alpha", "a"), ("beta", "b")])
@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
@pytest.mark.parametrize("named", [True, False])
def test_a_token_names_its_tenant(
    guarded: RunningServer, asked: Asked, scheme: str, token: str, tenant: str, *, named: bool
) -> None:
    beside = [("remora-tenant", tenant)] if named else []
    guarded.call("GetConversation", GET, metadata=[("authorization", f"{scheme} {token}"), *beside])

    read = asked["get_conversation"][0]
    assert isinstance(read, Read)
    assert read.tenant_id == tenant


def test_health_answers_without_a_token(guarded: RunningServer) -> None:
    reply = guarded.raw("/grpc.health.v1.Health/Check", b"")

    assert health_pb2.HealthCheckResponse.FromString(reply).status == health_pb2.HealthCheckResponse.SERVING


def test_a_refused_stream_has_the_same_details(guarded: RunningServer) -> None:
    ask: Streams = guarded.channel.stream_stream(REFLECTION_PATHS[0])

    with pytest.raises(grpc.RpcError) as raised:
        next(ask(iter([b""])))

    info = detail(raised.value, ErrorInfo)
    assert info is not None
    assert info.reason == "UNAUTHENTICATED"


def test_a_call_beyond_threads_and_queue_is_refused_at_once_and_the_others_are_answered() -> None:
    released = threading.Event()
    store = FakeStore(conversations=[conversation()], waiting_for=released)
    with (
        RunningServer(store=store, options=ServerOptions(threads=1, waiting=1)) as server,
        ThreadPoolExecutor(3) as pool,
    ):
        calls = [pool.submit(server.call, "GetConversation", GET) for _ in range(3)]
        refusal = next(as_completed(calls, timeout=PATIENCE)).exception()
        released.set()
        answered = [call for call in calls if call.exception(PATIENCE) is None]

    assert isinstance(refusal, grpc.RpcError)
    info = detail(refusal, ErrorInfo)
    assert info is not None
    assert info.reason == "OVERLOADED"
    assert len(answered) == 2


def test_room_is_free_again_after_a_refusal() -> None:
    store = FakeStore(conversations=[conversation()])
    with RunningServer(store=store, options=ServerOptions(threads=1, waiting=1)) as server:
        for _ in range(20):
            server.call("GetConversation", GET)


def test_health_answers_while_every_worker_is_busy() -> None:
    released = threading.Event()
    store = FakeStore(conversations=[conversation()], waiting_for=released)
    with (
        RunningServer(store=store, options=ServerOptions(threads=1, waiting=0)) as server,
        ThreadPoolExecutor(1) as pool,
    ):
        busy = pool.submit(server.call, "GetConversation", GET)
        reply = server.raw("/grpc.health.v1.Health/Check", b"")
        released.set()
        busy.result(PATIENCE)

    assert health_pb2.HealthCheckResponse.FromString(reply).status == health_pb2.HealthCheckResponse.SERVING
