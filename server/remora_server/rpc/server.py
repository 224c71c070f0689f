"""The gRPC server: its services, on one of its transports."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from google.protobuf.descriptor import ServiceDescriptor

from remora.v1 import (
    admin_service_pb2,
    checkpoint_service_pb2,
    conversation_service_pb2,
    history_service_pb2,
    memory_service_pb2,
    store_service_pb2,
    text_service_pb2,
    transfer_service_pb2,
    user_service_pb2,
    vector_service_pb2,
    workflow_service_pb2,
)
from remora_server.domain.publication import Publication
from remora_server.rpc.checks.limits import DimensionOf, Limits
from remora_server.rpc.health import HEALTH, Condition, Health, Say
from remora_server.rpc.identity import Identity
from remora_server.rpc.methods import methods_of
from remora_server.rpc.reflection import Reflection
from remora_server.rpc.transport.listeners import Listener, ListenError
from remora_server.rpc.transport.native_transport import NativeTransport
from remora_server.rpc.transport.tls import Tls
from remora_server.rpc.transport.transports import MethodCalls, ServerOptions, Transport

SERVICES: tuple[ServiceDescriptor, ...] = tuple(
    service
    for module in (
        conversation_service_pb2,
        history_service_pb2,
        memory_service_pb2,
        checkpoint_service_pb2,
        workflow_service_pb2,
        store_service_pb2,
        vector_service_pb2,
        user_service_pb2,
        text_service_pb2,
        transfer_service_pb2,
        admin_service_pb2,
    )
    for service in module.DESCRIPTOR.services_by_name.values()
)
SERVICE_NAMES = tuple(service.full_name for service in SERVICES)

HEALTH_INTERVAL = 0.5


def _grpcio_transport(options: ServerOptions, identity: Identity, tls: Tls | None) -> Transport:
    """Each transport is imported only when it serves, because importing grpcio takes a while."""
    if tls is not None:
        raise ListenError("the transport grpcio has no TLS: choose the native one (--transport)")
    from remora_server.rpc.transport.grpcio_transport import GrpcioTransport  # noqa: PLC0415

    return GrpcioTransport(options, identity)


TRANSPORTS: Mapping[str, Callable[[ServerOptions, Identity, Tls | None], Transport]] = {
    "native": NativeTransport,
    "grpcio": _grpcio_transport,
}


class Server:
    """Answers the RPCs of remora.v1, health and reflection."""

    def __init__(self, options: ServerOptions, identity: Identity, *told: Say, tls: Tls | None = None) -> None:
        """`told` are also told of its health. With `tls`, TCP ports use TLS. Raises ListenError."""
        self._transport = TRANSPORTS[options.transport](options, identity, tls)
        self._told = told
        self._health = Health(SERVICE_NAMES, self._say)

    def _say(self, service: str, why_not: str) -> None:
        self._transport.say(service, not why_not)
        for say in self._told:
            say(service, why_not)

    def bind(self, listeners: Sequence[Listener]) -> list[str]:
        """Take the addresses, which answer from `start` on, and return the endpoints. Raises ListenError."""
        return [listener.bind(self._transport) for listener in listeners]

    def start(
        self,
        handlers: Sequence[object],
        dimension_of: DimensionOf,
        look: Callable[[], Condition],
        publication: Publication | None = None,
    ) -> None:
        """Serve: the handler with the name of an RPC answers it. `look` tells how the server fares.

        `dimension_of` tells the dimension of a model's vectors, 0 if it is unknown. With the store's publication,
        the transport waits for the disk instead of the writes. Raises LookupError if an RPC has no handler.
        """
        limits = Limits(dimension_of)
        methods = [method for service in SERVICES for method in methods_of(service, handlers, limits)]
        self._transport.start(methods, Reflection((*SERVICE_NAMES, HEALTH.full_name)), publication)
        self._health.follow(look, interval=HEALTH_INTERVAL)

    def calls(self) -> list[MethodCalls]:
        """The calls of each method that was called, without health checks; empty if they are not counted."""
        return self._transport.calls()

    def failure(self) -> str:
        """Why calls are not carried as they should be, or nobody looks how the server is; empty where all is well."""
        return self._transport.failure() or self._health.failure()

    def forget_callers(self) -> None:
        """Identify every caller again, because tokens or tenants have changed."""
        self._transport.forget_callers()

    def stop(self, grace: float) -> None:
        """Become not ready, take no new calls, give the current ones `grace` seconds, and end."""
        self._health.drain()
        self._transport.stop(grace)
