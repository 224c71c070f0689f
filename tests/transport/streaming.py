"""A service of the tests that streams, on one of the transports."""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from google.protobuf import descriptor_pb2, descriptor_pool, wrappers_pb2
from google.protobuf.descriptor import ServiceDescriptor
from google.protobuf.message import Message

from remora_server.domain.errors import ConversationNotFound
from remora_server.rpc.calls import Call
from remora_server.rpc.checks.limits import Limits
from remora_server.rpc.checks.rules import Rule
from remora_server.rpc.health import Condition, Health
from remora_server.rpc.identity import Identity
from remora_server.rpc.methods import methods_of
from remora_server.rpc.reflection import Reflection
from remora_server.rpc.server import TRANSPORTS
from remora_server.rpc.streams import Subscription
from remora_server.rpc.transport.transports import ServerOptions, Transport

COUNT, WATCH, ASK = (f"/tests.Streams/{name}" for name in ("Count", "Watch", "Ask"))
MESSAGE_BYTES = 40_000
THREADS = 2


def _service() -> ServiceDescriptor:
    file = descriptor_pb2.FileDescriptorProto(
        name="tests/streams.proto",
        package="tests",
        syntax="proto3",
        dependency=[wrappers_pb2.DESCRIPTOR.name],
    )
    service = file.service.add(name="Streams")
    for name, streams in (("Count", True), ("Watch", True), ("Ask", False)):
        service.method.add(
            name=name,
            input_type=".google.protobuf.Int64Value",
            output_type=".google.protobuf.BytesValue",
            server_streaming=streams,
        )
    descriptor_pool.Default().Add(file)
    return descriptor_pool.Default().FindServiceByName("tests.Streams")


SERVICE = _service()


@dataclass
class Streams:
    """Counts up to what is asked for, forever where that is negative; fails behind `fails_after` messages."""

    fails_after: int = -1
    failure: BaseException | None = None
    """What it fails with, if not because something is not found."""
    opened: int = 0
    made: int = 0
    closed: int = 0
    held: threading.Event | None = None
    """What a message waits for before it is made."""
    subscriptions: list[Subscription] = field(default_factory=list)
    ended: int = 0
    threads: set[str] = field(default_factory=set)

    def count(self, _call: Call, request: wrappers_pb2.Int64Value) -> Generator[wrappers_pb2.BytesValue, None, None]:
        self.opened += 1
        if request.value == 0:
            raise ConversationNotFound("zero")
        return self._counted(request.value)

    def _counted(self, through: int) -> Generator[wrappers_pb2.BytesValue, None, None]:
        try:
            number = 0
            while number != through:
                if number == self.fails_after:
                    raise self.failure or ConversationNotFound(str(number))
                if self.held is not None:
                    self.held.wait()
                self.made += 1
                self.threads.add(threading.current_thread().name)
                yield wrappers_pb2.BytesValue(value=str(number).encode().ljust(MESSAGE_BYTES))
                number += 1
        finally:
            self.closed += 1

    def watch(self, _call: Call, _request: wrappers_pb2.Int64Value) -> Subscription:
        subscription = Subscription(self._ended)
        subscription.push(wrappers_pb2.BytesValue(value=b"welcome"))
        self.subscriptions.append(subscription)
        return subscription

    def _ended(self) -> None:
        self.ended += 1

    def ask(self, _call: Call, request: wrappers_pb2.Int64Value) -> wrappers_pb2.BytesValue:
        return wrappers_pb2.BytesValue(value=str(request.value).encode())


class NoLimits:
    """Everything is acceptable."""

    def rules(self, _request_type: type[Message]) -> Rule:
        return lambda _request: None


@dataclass
class StreamServer:
    """A transport that carries the service, and where it listens."""

    streams: Streams
    transport: Transport
    endpoint: str
    tcp: str


@contextmanager
def streaming(transport: str) -> Iterator[StreamServer]:
    """Serve the tests' service."""
    streams = Streams()
    with tempfile.TemporaryDirectory(prefix="remora-") as directory:
        options = ServerOptions(transport=transport, threads=THREADS, waiting=256)
        served = TRANSPORTS[transport](options, Identity(), None)
        path = str(Path(directory) / "s")
        served.bind_unix(path)
        tcp = f"127.0.0.1:{served.bind_tcp('127.0.0.1', 0)}"
        Health([SERVICE.full_name], lambda name, why_not: served.say(name, not why_not)).tell(Condition())
        served.start(methods_of(SERVICE, [streams], cast("Limits", NoLimits())), Reflection([]), None)
        server = StreamServer(streams, served, f"unix:{path}", tcp)
        try:
            yield server
        finally:
            if streams.held is not None:
                streams.held.set()
            served.stop(0.0)


if __name__ == "__main__":
    with streaming("native") as serving:
        print(serving.endpoint, flush=True)  # noqa: T201 - whoever started it reads it
        sys.stdin.read()
