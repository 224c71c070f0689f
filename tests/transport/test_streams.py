"""Calls that are answered by streams of messages, on whichever transport."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice
from typing import TypeAlias, cast

import grpc
import pytest
from google.protobuf import wrappers_pb2
from google.rpc.error_details_pb2 import RetryInfo
from tests.network import frames
from tests.network.frames import Peer
from tests.network.honest import reason
from tests.network.statuses import Ended, status_of
from tests.network.statuses import ended as how_it_ended
from tests.patience import PATIENCE, eventually, with_more_and_more_time
from tests.rpc.running_server import detail
from tests.transport.streaming import ASK, COUNT, MESSAGE_BYTES, THREADS, WATCH, StreamServer, streaming

from remora_server import failpoints
from remora_server.domain.errors import ConversationNotFound
from remora_server.rpc.server import TRANSPORTS
from remora_server.rpc.transport import native_transport

Call: TypeAlias = "grpc._CallIterator[bytes]"

FOREVER = -1
ALL_STREAMS, STREAMS_OF_CONNECTION = 1024, 50
RESOURCE_EXHAUSTED = 8
OPTIONS = [("grpc.use_local_subchannel_pool", 1)]


@pytest.fixture(params=TRANSPORTS)
def server(request: pytest.FixtureRequest) -> Iterator[StreamServer]:
    with streaming(request.param) as serving:
        yield serving


@pytest.fixture
def native() -> Iterator[StreamServer]:
    with streaming("native") as serving:
        yield serving


@pytest.fixture
def channel(request: pytest.FixtureRequest) -> Iterator[grpc.Channel]:
    name = "server" if "server" in request.fixturenames else "native"
    serving: StreamServer = request.getfixturevalue(name)
    with grpc.insecure_channel(serving.endpoint, options=OPTIONS) as opened:
        yield opened


def encoded(number: int) -> bytes:
    return wrappers_pb2.Int64Value(value=number).SerializeToString()


def stream(channel: grpc.Channel, path: str, number: int = FOREVER, timeout: float | None = PATIENCE) -> Call:
    """The call, which is its messages."""
    ask: grpc.UnaryStreamMultiCallable[bytes, bytes] = channel.unary_stream(path)
    return ask(encoded(number), timeout=timeout)


def ask(channel: grpc.Channel) -> bytes:
    unary: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(ASK)
    return wrappers_pb2.BytesValue.FromString(unary(encoded(7), timeout=PATIENCE)).value


def content(message: bytes) -> str:
    return wrappers_pb2.BytesValue.FromString(message).value.decode().strip()


def ended(call: Call) -> grpc.RpcError:
    """How a stream ends that fails."""
    with pytest.raises(grpc.RpcError) as raised:
        for _ in call:
            pass
    return raised.value


def made_more_than(server: StreamServer, messages: int) -> bool:
    return server.streams.made > messages


def code_and_reason(error: grpc.RpcError) -> tuple[str, str]:
    return cast("grpc.Call", error).code().name, reason(error)


def test_all_messages_come_in_order_and_the_source_is_closed(server: StreamServer, channel: grpc.Channel) -> None:
    assert [content(message) for message in stream(channel, COUNT, 50)] == [str(number) for number in range(50)]
    eventually(lambda: server.streams.closed == 1)
    assert all(name.startswith("worker") for name in server.streams.threads)


def test_an_error_before_the_first_message_has_its_details(server: StreamServer, channel: grpc.Channel) -> None:
    error = ended(stream(channel, COUNT, 0))

    assert code_and_reason(error) == ("NOT_FOUND", "CONVERSATION_NOT_FOUND")


def test_an_error_between_messages_has_its_details(server: StreamServer, channel: grpc.Channel) -> None:
    server.streams.fails_after = 3
    call = stream(channel, COUNT, 10)

    assert [content(message) for message in islice(call, 3)] == ["0", "1", "2"]
    assert code_and_reason(ended(call)) == ("NOT_FOUND", "CONVERSATION_NOT_FOUND")
    eventually(lambda: server.streams.closed == 1)


@pytest.mark.parametrize("failure", [ValueError("secret"), SystemExit("secret")], ids=["exception", "exit"])
def test_whatever_a_source_raises_is_told_as_internal(
    server: StreamServer, channel: grpc.Channel, failure: BaseException
) -> None:
    server.streams.fails_after, server.streams.failure = 2, failure
    for _ in range(2 * THREADS):
        error = ended(stream(channel, COUNT))
        assert code_and_reason(error) == ("INTERNAL", "INTERNAL")
        assert "secret" not in str(error)
    server.streams.fails_after = -1

    assert len(list(stream(channel, COUNT, 10))) == 10


@pytest.mark.parametrize("action", ["raise", "exit"])
def test_whatever_is_raised_between_messages_ends_the_stream_and_no_thread(
    native: StreamServer, channel: grpc.Channel, action: str
) -> None:
    for _ in range(2 * THREADS):
        failpoints.arm(f"stream_pulled={action}@2")

        assert code_and_reason(ended(stream(channel, COUNT))) == ("INTERNAL", "INTERNAL")
    assert len(list(stream(channel, COUNT, 10))) == 10
    assert native.transport.failure() == ""


def test_a_panic_between_messages_ends_the_stream_and_no_thread() -> None:
    planted = served_apart(REMORA_ENGINE_FAILPOINTS="pulling=panic@2,pulling=panic@5,pulling=panic@8")
    with planted as endpoint, grpc.insecure_channel(endpoint, options=OPTIONS) as channel:
        for _ in range(3):
            assert code_and_reason(ended(stream(channel, COUNT))) == ("INTERNAL", "INTERNAL")
        assert len(list(stream(channel, COUNT, 10))) == 10
        assert ask(channel) == b"7"


@contextmanager
def served_apart(**environment: str) -> Iterator[str]:
    """The service in a process of its own, and where it listens."""
    command = [sys.executable, "-m", "tests.transport.streaming"]
    variables = os.environ | environment
    with subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.stdin.close()  # it ends


def test_no_more_is_made_than_the_reader_has_room_for(server: StreamServer) -> None:
    with Peer(server.endpoint) as peer:
        peer.open(initial_window=0)
        peer.send(frames.call(1, COUNT, encoded(FOREVER)))
        for taken in range(3):
            eventually(partial(made_more_than, server, taken))
            assert peer.answers()
            assert server.streams.made <= taken + 2, "one on its way, and one that may be made meanwhile"
            room = frames.window_update(1, MESSAGE_BYTES + 100) + frames.window_update(0, MESSAGE_BYTES + 100)
            peer.send(room)


def test_a_reader_that_goes_closes_the_source(server: StreamServer, channel: grpc.Channel) -> None:
    call = stream(channel, COUNT)
    next(call)
    call.cancel()

    eventually(lambda: server.streams.closed == 1)
    assert ask(channel) == b"7"


def test_a_deadline_ends_a_stream_and_closes_its_source(server: StreamServer, channel: grpc.Channel) -> None:
    def begun(seconds: float) -> Call:
        call = stream(channel, COUNT, timeout=seconds)
        next(call)
        return call

    error = ended(with_more_and_more_time(begun, grpc.RpcError))

    assert cast("grpc.Call", error).code() == grpc.StatusCode.DEADLINE_EXCEEDED
    eventually(lambda: server.streams.closed >= 1)


def test_streams_that_nobody_reads_hold_up_no_other_call(native: StreamServer, channel: grpc.Channel) -> None:
    unread = [stream(channel, COUNT) for _ in range(20)]
    for call in unread:
        next(call)

    assert [ask(channel) for _ in range(20)] == [b"7"] * 20
    with grpc.insecure_channel(native.endpoint, options=OPTIONS) as other:
        assert len(list(stream(other, COUNT, 100))) == 100
    for call in unread:
        call.cancel()
    eventually(lambda: native.streams.closed == 21)


def test_a_connection_has_streams_up_to_a_bound_and_room_beside_them(
    native: StreamServer, channel: grpc.Channel
) -> None:
    open_streams = [stream(channel, WATCH) for _ in range(50)]
    for call in open_streams:
        next(call)

    error = ended(stream(channel, WATCH))

    assert code_and_reason(error) == ("RESOURCE_EXHAUSTED", "PEER_OVERLOADED")
    assert detail(error, RetryInfo) is not None
    assert ask(channel) == b"7"
    open_streams.pop().cancel()
    eventually(lambda: native.streams.ended == 1)
    assert content(next(stream(channel, WATCH))) == "welcome"


def test_a_peer_leaves_half_of_the_streams_to_others(native: StreamServer) -> None:
    with opened_from(native, 2, ALL_STREAMS // 2):
        with Peer(native.tcp, source="127.0.0.2") as same:
            assert ended_at_once(same) == Ended(RESOURCE_EXHAUSTED, "PEER_OVERLOADED")
        with opened_from(native, 3, 1):
            pass


@pytest.mark.slow
def test_all_streams_together_have_a_bound(native: StreamServer) -> None:
    with ExitStack() as opened:
        for number, count in enumerate((512, 256, 128, 64, 32, 16, 8, 4, 2, 1, 1), start=2):
            opened.enter_context(opened_from(native, number, count))
        assert len(native.streams.subscriptions) == ALL_STREAMS

        with Peer(native.tcp, source="127.0.0.50") as late:
            assert ended_at_once(late) == Ended(RESOURCE_EXHAUSTED, "OVERLOADED")
        assert len(native.streams.subscriptions) == ALL_STREAMS
    eventually(lambda: native.streams.ended == ALL_STREAMS)


@contextmanager
def opened_from(server: StreamServer, address: int, count: int) -> Iterator[None]:
    """Streams of a peer, which asks for more than the `count` that it may have.

    Its connections ask one after the other: all at once would be more calls than may wait for a thread.
    """
    before = len(server.streams.subscriptions)
    with frames.peers(server.tcp, count // STREAMS_OF_CONNECTION + 1, f"127.0.0.{address}") as asking:
        for number, peer in enumerate(asking, start=1):
            expected = before + min(count, number * STREAMS_OF_CONNECTION)
            peer.open()
            peer.send(b"".join(frames.call(2 * nth + 1, WATCH, encoded(1)) for nth in range(STREAMS_OF_CONNECTION)))
            eventually(partial(has_opened, server, expected))
        assert all(peer.answers() for peer in asking)
        yield


def has_opened(server: StreamServer, count: int) -> bool:
    return len(server.streams.subscriptions) >= count


def ended_at_once(peer: Peer) -> Ended:
    """How a stream ends that finds no room."""
    peer.open()
    peer.send(frames.call(1, WATCH, encoded(1)))
    return how_it_ended(peer)


def test_unread_streams_take_bounded_memory_and_leave_room(native: StreamServer) -> None:
    with frames.peers(native.endpoint, 8) as unread:
        for peer in unread:
            peer.open(initial_window=0)
            before = native.streams.made
            peer.send(b"".join(frames.call(number, COUNT, encoded(FOREVER)) for number in range(1, 2 * 50, 2)))
            eventually(partial(made_more_than, native, before + 49))
        for peer in unread:
            assert peer.answers()

        assert native.streams.made == 8 * 50, "one message each"
        with grpc.insecure_channel(native.endpoint, options=OPTIONS) as other:
            assert ask(other) == b"7"
    eventually(lambda: native.streams.closed == 8 * 50)


def test_a_stream_that_waits_holds_no_thread(native: StreamServer, channel: grpc.Channel) -> None:
    watching = [stream(channel, WATCH, timeout=None) for _ in range(20)]
    for call in watching:
        assert content(next(call)) == "welcome"

    assert [ask(channel) for _ in range(20)] == [b"7"] * 20
    for subscription in native.streams.subscriptions:
        assert subscription.push(wrappers_pb2.BytesValue(value=b"news"))
        subscription.close()
    assert [[content(message) for message in call] for call in watching] == [["news"]] * 20
    eventually(lambda: native.streams.ended == 20)


def test_a_stream_that_waits_is_closed_with_an_error(native: StreamServer, channel: grpc.Channel) -> None:
    call = stream(channel, WATCH)
    next(call)
    native.streams.subscriptions[0].close(ConversationNotFound("gone"))

    assert code_and_reason(ended(call)) == ("NOT_FOUND", "CONVERSATION_NOT_FOUND")
    assert not native.streams.subscriptions[0].push(b"")


def test_messages_of_many_threads_all_come(native: StreamServer, channel: grpc.Channel) -> None:
    call = stream(channel, WATCH)
    next(call)
    [subscription] = native.streams.subscriptions

    def push(thread: int) -> None:
        for number in range(25):
            assert subscription.push(wrappers_pb2.BytesValue(value=f"{thread} {number}".encode()))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(push, range(8)))
    subscription.close()

    came = [content(message) for message in call]
    assert len(came) == 200
    for thread in range(8):
        assert [one for one in came if one.startswith(f"{thread} ")] == [f"{thread} {number}" for number in range(25)]


@pytest.mark.slow
def test_a_reader_that_has_no_room_is_told_that_it_is_too_slow_once_it_has(native: StreamServer) -> None:
    with Peer(native.endpoint) as peer:
        peer.open(initial_window=0)
        peer.send(frames.call(1, WATCH, encoded(1)))
        eventually(lambda: bool(native.streams.subscriptions))
        [subscription] = native.streams.subscriptions
        eventually(lambda: not subscription.push(bytes(100)))
        peer.send(frames.window_update(1, 1 << 20))

        assert status_of(peer) == grpc.StatusCode.RESOURCE_EXHAUSTED.value[0]
    eventually(lambda: native.streams.ended == 1)


def test_a_slow_reader_learns_the_reason(native: StreamServer, channel: grpc.Channel) -> None:
    call = stream(channel, WATCH)
    next(call)
    [subscription] = native.streams.subscriptions
    while subscription.push(wrappers_pb2.BytesValue(value=bytes(100_000))):
        pass

    error = ended(call)

    assert code_and_reason(error) == ("RESOURCE_EXHAUSTED", "SLOW_READER")
    assert detail(error, RetryInfo) is not None
    eventually(lambda: native.streams.ended == 1)


def test_a_reader_that_goes_ends_a_stream_that_waits(native: StreamServer, channel: grpc.Channel) -> None:
    call = stream(channel, WATCH)
    next(call)
    call.cancel()

    eventually(lambda: native.streams.ended == 1)
    assert not native.streams.subscriptions[0].push(b"")


def test_a_subscription_that_the_transport_cannot_take_on_is_told_of_its_end(
    native: StreamServer, channel: grpc.Channel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(native_transport, "_Sink", None)

    assert code_and_reason(ended(stream(channel, WATCH))) == ("INTERNAL", "INTERNAL")
    assert native.streams.ended == 1


def test_a_transport_that_carries_no_streams_that_wait_says_so() -> None:
    with streaming("grpcio") as server, grpc.insecure_channel(server.endpoint) as channel:
        error = ended(stream(channel, WATCH))

        assert code_and_reason(error) == ("UNIMPLEMENTED", "STREAM_UNSUPPORTED")
        eventually(lambda: server.streams.ended == 1)


def test_a_stop_ends_streams_that_wait_at_once(native: StreamServer, channel: grpc.Channel) -> None:
    call = stream(channel, WATCH)
    next(call)
    stopping = threading.Thread(target=native.transport.stop, args=[PATIENCE])
    stopping.start()

    error = ended(call)

    assert code_and_reason(error) == ("UNAVAILABLE", "SERVER_STOPPING")
    assert detail(error, RetryInfo) is not None
    stopping.join(PATIENCE)
    assert native.streams.ended == 1


def test_a_stop_lets_a_stream_come_to_its_end(server: StreamServer, channel: grpc.Channel) -> None:
    server.streams.held = threading.Event()
    call = stream(channel, COUNT, 50)
    eventually(lambda: server.streams.opened == 1)
    stopping = threading.Thread(target=server.transport.stop, args=[PATIENCE])
    with Peer(server.endpoint) as peer:
        peer.open()
        assert peer.answers()
        stopping.start()
        assert any(came.kind == frames.GOAWAY for came in peer.frames()), "it stops"
    server.streams.held.set()

    assert len(list(call)) == 50
    stopping.join(PATIENCE)
    assert server.streams.closed == 1


@pytest.mark.slow
def test_a_stream_without_end_is_told_of_the_stop_when_the_grace_is_nearly_over(
    server: StreamServer, channel: grpc.Channel
) -> None:
    call = stream(channel, COUNT)
    next(call)
    stopping = threading.Thread(target=server.transport.stop, args=[2.0])
    stopping.start()

    assert code_and_reason(ended(call)) == ("UNAVAILABLE", "SERVER_STOPPING")
    stopping.join(PATIENCE)
    eventually(lambda: server.streams.closed == 1)
