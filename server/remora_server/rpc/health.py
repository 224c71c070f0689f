"""The standard services beside Remora's own, health and reflection, each on threads of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, cast

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection, reflection_pb2

HEALTH = cast("ServiceDescriptor", health_pb2.DESCRIPTOR.services_by_name["Health"])
REFLECTION = cast("ServiceDescriptor", reflection_pb2.DESCRIPTOR.services_by_name["ServerReflection"])

LIVENESS, READINESS, OVERALL = "liveness", "readiness", ""
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class Health:
    """The state of the process: alive while it runs, ready while it can answer.

    `OVERALL` and the services' own names say the same as `READINESS`.
    """

    def __init__(self, services: Iterable[str]) -> None:
        self._servicer = health.HealthServicer()
        self._servicer.set(LIVENESS, SERVING)
        self._ready_names = (OVERALL, READINESS, *services)
        self._stopped = threading.Event()
        self.set_ready(ready=False)

    def generic_handler(self, pool: ThreadPoolExecutor) -> grpc.GenericRpcHandler:
        """The handlers of the health service."""
        return _on_own_threads(HEALTH, self._servicer, pool)

    def set_ready(self, *, ready: bool) -> None:
        """Say whether calls are welcome."""
        for name in self._ready_names:
            self._servicer.set(name, SERVING if ready else NOT_SERVING)

    def follow(self, works: Callable[[], bool], *, interval: float) -> None:
        """Ask every so many seconds whether the server works, and be ready while it does. Returns at once."""
        self.set_ready(ready=works())
        threading.Thread(target=self._follow, args=(works, interval), name="health", daemon=True).start()

    def _follow(self, works: Callable[[], bool], interval: float) -> None:
        was_ready = True
        while not self._stopped.wait(interval):
            ready = works()
            if ready != was_ready:
                self.set_ready(ready=ready)
            was_ready = ready

    def drain(self) -> None:
        """Be not ready from now on."""
        self._stopped.set()
        self._servicer.enter_graceful_shutdown()


def reflection_handler(services: Iterable[str], pool: ThreadPoolExecutor) -> grpc.GenericRpcHandler:
    """The handlers of the reflection service, which describes these services, health and itself."""
    names = (*services, HEALTH.full_name, REFLECTION.full_name)
    return _on_own_threads(REFLECTION, reflection.ReflectionServicer(names), pool)


def _on_own_threads(service: ServiceDescriptor, servicer: object, pool: ThreadPoolExecutor) -> grpc.GenericRpcHandler:
    handlers = {method.name: _handler(method, getattr(servicer, method.name), pool) for method in service.methods}
    return grpc.method_handlers_generic_handler(service.full_name, handlers)


def _handler(
    method: MethodDescriptor, behavior: Callable[..., Any], pool: ThreadPoolExecutor
) -> grpc.RpcMethodHandler[Message, Message]:
    on_pool: Any = partial(behavior)
    on_pool.experimental_thread_pool = pool
    on_pool.experimental_non_blocking = getattr(behavior, "experimental_non_blocking", False)
    make = {
        (False, False): grpc.unary_unary_rpc_method_handler,
        (False, True): grpc.unary_stream_rpc_method_handler,
        (True, True): grpc.stream_stream_rpc_method_handler,
    }[method.client_streaming, method.server_streaming]
    return make(
        on_pool, GetMessageClass(method.input_type).FromString, GetMessageClass(method.output_type).SerializeToString
    )
