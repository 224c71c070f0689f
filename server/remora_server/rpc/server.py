"""The gRPC server: its options, its services and its end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import grpc
from google.protobuf.descriptor import ServiceDescriptor

from remora.v1 import (
    admin_service_pb2,
    conversation_service_pb2,
    memory_service_pb2,
    text_service_pb2,
    transfer_service_pb2,
)
from remora_server.domain.status import ModelStatus
from remora_server.rpc.calls import Calls
from remora_server.rpc.gate import Gate
from remora_server.rpc.health import HEALTH, REFLECTION, Health, reflection_handler
from remora_server.rpc.identity import Identity
from remora_server.rpc.limits import Limits
from remora_server.rpc.listeners import Listener
from remora_server.rpc.methods import generic_handler
from remora_server.rpc.workers import Workers

SERVICES: tuple[ServiceDescriptor, ...] = tuple(
    service
    for module in (
        conversation_service_pb2,
        memory_service_pb2,
        text_service_pb2,
        transfer_service_pb2,
        admin_service_pb2,
    )
    for service in module.DESCRIPTOR.services_by_name.values()
)
SERVICE_NAMES = tuple(service.full_name for service in SERVICES)

HEALTH_INTERVAL = 0.5


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """How much the server takes on: threads that answer, calls that may wait for one, bytes of a request.

    A call without a deadline of its own gets `default_timeout`, in seconds.
    """

    threads: int = 16
    waiting: int = 256
    receive_limit_bytes: int = 4 * 1024 * 1024
    default_timeout: float = 30.0


class Server:
    """Answers the RPCs of remora.v1, health and reflection."""

    def __init__(self, options: ServerOptions, identity: Identity) -> None:
        self._calls = Calls(identity, options.default_timeout)
        self._workers = Workers(options.threads, options.waiting, "worker")
        self._health_workers = Workers(2, 64, "health")
        self._reflection_workers = Workers(2, 2, "reflection")
        pools = (self._workers, self._health_workers, self._reflection_workers)
        self._gate = Gate(
            identity,
            self._workers,
            {REFLECTION.full_name: self._reflection_workers},
            open_services=frozenset({HEALTH.full_name}),
        )
        self._health = Health(SERVICE_NAMES)
        self._grpc = grpc.server(
            self._workers,
            interceptors=[self._gate],
            options=_channel_arguments(options),
            # Behind the gate's own bounds: what is refused counts until its answer is written.
            maximum_concurrent_rpcs=2 * sum(pool.capacity for pool in pools),
        )

    def bind(self, listeners: Sequence[Listener]) -> list[str]:
        """Take the addresses, which answer from `start` on, and return the endpoints. Raises ListenError."""
        return [listener.bind(self._grpc) for listener in listeners]

    def start(self, handlers: Sequence[object], model: ModelStatus, works: Callable[[], bool]) -> None:
        """Serve: each RPC is answered by the handler that bears its name. Ready while `works` says so.

        Raises LookupError where an RPC has no handler.
        """
        limits = Limits(model)
        services = [generic_handler(service, handlers, limits, self._calls) for service in SERVICES]
        health = self._health.generic_handler(self._health_workers)
        reflection = reflection_handler(SERVICE_NAMES, self._reflection_workers)
        self._grpc.add_generic_rpc_handlers((*services, health, reflection))
        self._grpc.start()
        self._health.follow(works, interval=HEALTH_INTERVAL)

    def stop(self, grace: float) -> None:
        """Be not ready, take no new calls, give those under way so many seconds, and end."""
        self._health.drain()
        stopped: threading.Event = self._grpc.stop(grace)
        stopped.wait()
        for pool in (self._workers, self._health_workers, self._reflection_workers):
            pool.shutdown()
        self._gate.close()


def _channel_arguments(options: ServerOptions) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", options.receive_limit_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_concurrent_streams", 100),
        ("grpc.server_handshake_timeout_ms", 5_000),
        ("grpc.so_reuseport", 0),
        # Connections whose other end is gone are closed, and their calls with them.
        ("grpc.keepalive_time_ms", 60_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ("grpc.keepalive_permit_without_calls", 1),
    ]
