"""What callers may rely on, whichever transport carries their calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from grpc_health.v1 import health_pb2
from tests.network import frames
from tests.network.frames import Peer
from tests.network.statuses import status_of
from tests.patience import PATIENCE
from tests.rpc.fake_store import FakeStore, conversation
from tests.rpc.running_server import RunningServer, detail

from remora.v1 import conversation_service_pb2 as pb
from remora_server.domain.errors import ConversationNotFound
from remora_server.rpc.identity import Identity, Tokens
from remora_server.rpc.server import TRANSPORTS
from remora_server.rpc.transport.transports import ServerOptions

GET = pb.GetConversationRequest(conversation_id="c")
LIMIT = 100_000
OK = 0


@pytest.fixture(params=TRANSPORTS)
def options(request: pytest.FixtureRequest) -> ServerOptions:
    return ServerOptions(
        transport=request.param, threads=1, waiting=1, receive_limit_bytes=LIMIT, batch_bytes=2 * LIMIT
    )


@pytest.fixture
def store() -> FakeStore:
    return FakeStore(conversations=[conversation()])


@pytest.fixture
def server(options: ServerOptions, store: FakeStore) -> Iterator[RunningServer]:
    tokens = Tokens.parse(["alpha a"])
    with RunningServer(options=options, store=store, identity=Identity(tokens)) as running:
        yield running


ALPHA = [("authorization", "Bearer alpha")]


def get(server: RunningServer, timeout: float = PATIENCE) -> object:
    return server.call("GetConversation", GET, metadata=ALPHA, timeout=timeout)


def eventually(ask: Callable[[], object]) -> None:
    """Ask again while there is no room."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            ask()
        except grpc.RpcError as error:
            if error.code() != grpc.StatusCode.RESOURCE_EXHAUSTED or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return


def reason(error: grpc.RpcError) -> str:
    info = detail(error, ErrorInfo)
    return "" if info is None else info.reason


def test_a_call_is_answered(server: RunningServer) -> None:
    assert isinstance(get(server), pb.GetConversationResponse)


def test_a_tenants_name_that_is_no_text_is_refused_and_not_taken_for_none(
    options: ServerOptions, store: FakeStore
) -> None:
    path = "/remora.v1.ConversationService/GetConversation"
    with RunningServer(options=options, store=store) as server, Peer(server.endpoint) as peer:
        peer.open()
        peer.send(frames.head(1, path, remora_tenant="t\xe9n"))
        peer.send(frames.frame(frames.DATA, frames.END_STREAM, 1, frames.message(GET.SerializeToString())))

        assert status_of(peer) != OK

    assert store.asked == {}


def test_a_stranger_is_refused_whatever_it_asks(server: RunningServer) -> None:
    for path in ("/remora.v1.ConversationService/GetConversation", "/unknown/Method"):
        with pytest.raises(grpc.RpcError) as raised:
            server.raw(path, b"")

        assert raised.value.code() == grpc.StatusCode.UNAUTHENTICATED
        assert reason(raised.value) == "UNAUTHENTICATED"


def test_an_unknown_method_is_unimplemented(server: RunningServer) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        server.raw("/remora.v1.ConversationService/Unknown", b"", metadata=ALPHA)

    assert (raised.value.code(), reason(raised.value)) == (grpc.StatusCode.UNIMPLEMENTED, "METHOD_UNKNOWN")
    assert raised.value.details() == "there is no method /remora.v1.ConversationService/Unknown"


def test_a_failure_has_its_details(server: RunningServer, store: FakeStore) -> None:
    store.error = ConversationNotFound("ü\n%")

    with pytest.raises(grpc.RpcError) as raised:
        get(server)

    assert raised.value.code() == grpc.StatusCode.NOT_FOUND
    info = detail(raised.value, ErrorInfo)
    assert info is not None
    assert info.metadata["conversation_id"] == "ü\n%"


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_a_compressed_request_is_answered_as_any_other(server: RunningServer, compression: grpc.Compression) -> None:
    ask: grpc.UnaryUnaryMultiCallable[bytes, bytes] = server.channel.unary_unary(
        "/remora.v1.ConversationService/GetConversation"
    )
    request = pb.GetConversationRequest(conversation_id="c", user_id="u" * 500)

    ask(request.SerializeToString(), metadata=tuple(ALPHA), timeout=PATIENCE, compression=compression)

    assert server.store.asked["get_conversation"][2] == "u" * 500


def test_a_bomb_is_refused(server: RunningServer) -> None:
    ask: grpc.UnaryUnaryMultiCallable[bytes, bytes] = server.channel.unary_unary(
        "/remora.v1.ConversationService/GetConversation"
    )

    with pytest.raises(grpc.RpcError) as raised:
        ask(bytes(50 * LIMIT), metadata=tuple(ALPHA), timeout=PATIENCE, compression=grpc.Compression.Gzip)

    assert raised.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    get(server)


def test_a_request_beyond_the_limit_is_refused(server: RunningServer) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        server.call("GetConversation", bytes(LIMIT + 1), metadata=ALPHA)

    assert raised.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_batch_may_be_longer_than_other_requests_unless_grpcio_receives_it(
    server: RunningServer, options: ServerOptions
) -> None:
    def refusal(length: int) -> grpc.StatusCode:
        with pytest.raises(grpc.RpcError) as raised:
            server.raw("/remora.v1.VectorService/UpsertVectors", bytes(length), metadata=ALPHA)
        return raised.value.code()

    received = grpc.StatusCode.INVALID_ARGUMENT  # zeros are no request
    longest = 2 * LIMIT if options.transport == "native" else LIMIT
    assert refusal(longest) == received
    assert refusal(longest + 1) == grpc.StatusCode.RESOURCE_EXHAUSTED


def test_a_call_beyond_the_room_is_told_to_come_back(server: RunningServer, store: FakeStore) -> None:
    released = store.waiting_for = threading.Event()
    with ThreadPoolExecutor(3) as pool:
        calls = [pool.submit(get, server) for _ in range(3)]
        refusal = next(as_completed(calls, timeout=PATIENCE)).exception()
        healthy = server.raw("/grpc.health.v1.Health/Check", b"")
        released.set()
        answered = [call for call in calls if call.exception(PATIENCE) is None]

    assert isinstance(refusal, grpc.RpcError)
    assert (refusal.code(), reason(refusal)) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED")
    assert detail(refusal, RetryInfo) is not None
    assert len(answered) == 2
    assert health_pb2.HealthCheckResponse.FromString(healthy).status == health_pb2.HealthCheckResponse.SERVING


def test_a_deadline_passes_and_the_room_is_free_again(server: RunningServer, store: FakeStore) -> None:
    store.waiting_for = threading.Event()

    with pytest.raises(grpc.RpcError) as raised:
        get(server, timeout=0.05)

    assert raised.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    store.waiting_for.set()
    get(server)


def test_a_call_that_was_cancelled_frees_its_room(server: RunningServer, store: FakeStore) -> None:
    store.waiting_for = threading.Event()
    ask: grpc.UnaryUnaryMultiCallable[bytes, bytes] = server.channel.unary_unary(
        "/remora.v1.ConversationService/GetConversation"
    )

    for _ in range(2):
        call = ask.future(GET.SerializeToString(), metadata=tuple(ALPHA), timeout=PATIENCE)
        call.cancel()
    store.waiting_for.set()

    eventually(lambda: get(server))
