"""The transport of grpcio's synchronous server, with threads that answer every call."""

from __future__ import annotations

import errno
import math
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, TypeAlias

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health, health_pb2
from msgspec import Struct

from remora_server.domain.errors import Overloaded, ServerStopping, StreamUnsupported
from remora_server.domain.publication import Publication
from remora_server.rpc.calls import Call, traceparent
from remora_server.rpc.health import HEALTH
from remora_server.rpc.identity import Identity, Metadata
from remora_server.rpc.methods import Method
from remora_server.rpc.reflection import REFLECTION_NAMES, REFLECTION_PATHS, Reflection
from remora_server.rpc.streams import Subscription
from remora_server.rpc.transport.aborts import abort
from remora_server.rpc.transport.gate import Gate
from remora_server.rpc.transport.listeners import UNIX
from remora_server.rpc.transport.transports import MethodCalls, ServerOptions
from remora_server.rpc.transport.workers import Workers

Handlers: TypeAlias = "dict[str, grpc.RpcMethodHandler[Any, Any]]"

# For a call without a deadline, grpcio gives a time centuries away.
_FAR_AWAY = 86_400 * 365

FAREWELL_SECONDS = 0.5
"""The time before the end of the grace in which streams are ended with a reason."""


class Calls(Struct, frozen=True):
    """Makes the Call of a call of grpcio. One without a deadline gets `default_timeout`, in seconds."""

    identity: Identity
    default_timeout: float

    def open(self, context: grpc.ServicerContext, method: str) -> Call:
        """The call of a method, by its short name. Raises Unauthenticated."""
        metadata: Metadata = context.invocation_metadata()
        remaining = context.time_remaining()
        timeout = self.default_timeout if remaining > _FAR_AWAY else remaining
        trace = next((value for key, value in metadata if key == "traceparent"), "")
        caller = self.identity.caller(metadata)
        return Call(
            method, caller.tenant_id, time.monotonic() + timeout, traceparent(trace), is_operator=caller.is_operator
        )

    def answer(self, method: Method, encoded: bytes, context: grpc.ServicerContext) -> bytes:
        """The reply of a method, or the end of the call with a status."""
        try:
            return method.answer(self.open(context, method.name), encoded)[0]
        except BaseException as error:  # noqa: BLE001 - here any failure becomes a status
            abort(context, error, method.name)


class Streams:
    """Streams. Each holds a thread until its reader has read all, so that at most half of the threads serve streams.

    Subscriptions would hold a thread while they wait, and are refused.
    """

    def __init__(self, calls: Calls, threads: int) -> None:
        self._calls = calls
        self._room = threading.BoundedSemaphore(max(1, threads // 2))
        self._until = math.inf

    def end(self, grace: float) -> None:
        """End the remaining streams shortly before the grace is over."""
        self._until = time.monotonic() + max(0.0, grace - FAREWELL_SECONDS)

    def carry(self, method: Method, encoded: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        """The messages of a method, or the end of the call with a status."""
        try:
            with self._slot():
                yield from self._messages(method, encoded, context)
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - see Calls.answer
            abort(context, error, method.name)

    @contextmanager
    def _slot(self) -> Iterator[None]:
        """The use of a thread by a stream. Raises Overloaded."""
        if not self._room.acquire(blocking=False):
            raise Overloaded
        try:
            yield
        finally:
            self._room.release()

    def _messages(self, method: Method, encoded: bytes, context: grpc.ServicerContext) -> Iterator[bytes]:
        stream = method.open(self._calls.open(context, method.name), encoded)
        if isinstance(stream, Subscription):
            stream.ended()
            raise StreamUnsupported
        with closing(stream):
            for message in stream:
                if time.monotonic() > self._until:
                    raise ServerStopping
                yield message


class GrpcioTransport:
    """Answers through grpcio."""

    def __init__(self, options: ServerOptions, identity: Identity) -> None:
        self._calls = Calls(identity, options.default_timeout)
        self._streams = Streams(self._calls, options.threads)
        self._workers = Workers(options.threads, options.waiting, "worker")
        self._health_workers = Workers(2, 64, "health")
        self._reflection_workers = Workers(2, 2, "reflection")
        self._pools = (self._workers, self._health_workers, self._reflection_workers)
        self._gate = Gate(
            identity,
            self._workers,
            dict.fromkeys(REFLECTION_NAMES, self._reflection_workers),
            open_services=frozenset({HEALTH.full_name}),
        )
        self._health = health.HealthServicer()
        self._grpc = grpc.server(
            self._workers,
            interceptors=[self._gate],
            options=_channel_arguments(options),
            # Above the gate's own bounds, because a refused call counts until its answer is written.
            maximum_concurrent_rpcs=2 * sum(pool.capacity for pool in self._pools),
        )
        self._is_started = False

    def bind_unix(self, path: str) -> None:
        self._add_port(f"{UNIX}{path}")

    def bind_tcp(self, host: str, port: int) -> int:
        _require_free(host, port)
        return self._add_port(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")

    def _add_port(self, endpoint: str) -> int:
        try:
            port = self._grpc.add_insecure_port(endpoint)
        except RuntimeError as error:
            raise OSError(errno.EADDRNOTAVAIL, str(error)) from error
        if port == 0:
            raise OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
        return port

    def start(self, methods: Sequence[Method], reflection: Reflection, publication: Publication | None) -> None:  # noqa: ARG002
        handlers = {method.path: self._handled(method) for method in methods}
        handlers |= dict.fromkeys(REFLECTION_PATHS, _reflecting(reflection, self._reflection_workers))
        health = _standard(HEALTH, self._health, self._health_workers)
        self._grpc.add_generic_rpc_handlers((_ByPath(handlers), health))
        self._grpc.start()
        self._is_started = True

    def _handled(self, method: Method) -> grpc.RpcMethodHandler[bytes, bytes]:
        if method.streams:
            return grpc.unary_stream_rpc_method_handler(partial(self._streams.carry, method))
        return grpc.unary_unary_rpc_method_handler(partial(self._calls.answer, method))

    def say(self, service: str, serving: bool) -> None:
        states = health_pb2.HealthCheckResponse
        self._health.set(service, states.SERVING if serving else states.NOT_SERVING)

    def calls(self) -> list[MethodCalls]:
        return []  # grpcio counts none

    def failure(self) -> str:
        return ""  # its threads are grpcio's, which outlive what they run

    def forget_callers(self) -> None:
        """None is remembered."""

    def stop(self, grace: float) -> None:
        if not self._is_started:
            self._grpc.start()  # one that never was keeps its sockets
        self._streams.end(grace)
        stopped: threading.Event = self._grpc.stop(grace)
        stopped.wait()
        for pool in self._pools:
            pool.shutdown()
        self._gate.close()


class _ByPath(grpc.GenericRpcHandler):
    """Handlers by their paths."""

    def __init__(self, handlers: Handlers) -> None:
        self._handlers = handlers

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        return self._handlers.get(handler_call_details.method)


class _Reflected:
    """Reflection, message by message."""

    def __init__(self, reflection: Reflection, pool: ThreadPoolExecutor) -> None:
        self._reflection = reflection
        self.experimental_thread_pool = pool

    def __call__(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        try:
            yield from map(self._reflection.answer, requests)
        except GeneratorExit:
            raise
        except BaseException as error:  # noqa: BLE001 - see Calls.answer
            abort(context, error, "reflect")


def _reflecting(reflection: Reflection, pool: ThreadPoolExecutor) -> grpc.RpcMethodHandler[bytes, bytes]:
    return grpc.stream_stream_rpc_method_handler(_Reflected(reflection, pool))


def _require_free(host: str, port: int) -> None:
    """Take the port for a moment to learn why it cannot be bound. grpcio only logs the reason."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)


def _standard(service: ServiceDescriptor, servicer: object, pool: ThreadPoolExecutor) -> grpc.GenericRpcHandler:
    handlers = {method.name: _handler(method, getattr(servicer, method.name), pool) for method in service.methods}
    return grpc.method_handlers_generic_handler(service.full_name, handlers)


def _handler(
    method: MethodDescriptor, behavior: Callable[..., Any], pool: ThreadPoolExecutor
) -> grpc.RpcMethodHandler[Message, Message]:
    on_pool: Any = partial(behavior)
    on_pool.experimental_thread_pool = pool
    on_pool.experimental_non_blocking = getattr(behavior, "experimental_non_blocking", False)
    make = grpc.unary_stream_rpc_method_handler if method.server_streaming else grpc.unary_unary_rpc_method_handler
    return make(
        on_pool, GetMessageClass(method.input_type).FromString, GetMessageClass(method.output_type).SerializeToString
    )


def _channel_arguments(options: ServerOptions) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", options.receive_limit_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_concurrent_streams", 100),
        ("grpc.server_handshake_timeout_ms", 5_000),
        ("grpc.so_reuseport", 0),
        # Connections to a peer that is gone are closed, and their calls end.
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
    ]
