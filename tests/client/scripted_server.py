"""A gRPC server that speaks the contract and answers what it is told to."""

import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeVar

import grpc
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from remora.v1 import (
    admin_service_pb2,
    checkpoint_service_pb2,
    conversation_service_pb2,
    history_service_pb2,
    memory_service_pb2,
    text_service_pb2,
    transfer_service_pb2,
    user_service_pb2,
    vector_service_pb2,
    workflow_service_pb2,
)

FILES = (
    admin_service_pb2,
    checkpoint_service_pb2,
    conversation_service_pb2,
    history_service_pb2,
    memory_service_pb2,
    text_service_pb2,
    transfer_service_pb2,
    user_service_pb2,
    vector_service_pb2,
    workflow_service_pb2,
)
SERVICES: tuple[ServiceDescriptor, ...] = tuple(
    service for file in FILES for service in file.DESCRIPTOR.services_by_name.values()
)


@dataclass(frozen=True)
class Failure:
    """A status with google.rpc's details."""

    code: grpc.StatusCode
    reason: str = ""
    metadata: tuple[tuple[str, str], ...] = ()
    violations: tuple[tuple[str, str], ...] = ()
    retry_delay: float | None = None
    domain: str = "remora.dev"

    def details(self) -> Status:
        status = Status(code=self.code.value[0], message="it failed")
        if self.reason:
            status.details.add().Pack(
                ErrorInfo(reason=self.reason, domain=self.domain, metadata=dict(self.metadata)),
            )
        if self.violations:
            fields = [BadRequest.FieldViolation(field=field, description=text) for field, text in self.violations]
            status.details.add().Pack(BadRequest(field_violations=fields))
        if self.retry_delay is not None:
            retry = RetryInfo()
            retry.retry_delay.FromNanoseconds(round(self.retry_delay * 1e9))
            status.details.add().Pack(retry)
        return status


@dataclass(frozen=True)
class Call:
    """One call that arrived."""

    method: str
    request: Message
    metadata: dict[str, str | bytes]
    remaining: float
    authority: str


Request = TypeVar("Request", bound=Message)
Answer = Message | Failure
Outcome = Answer | Callable[[Any], Answer]


class ScriptedServer:
    """Answers a method with the outcomes it was given, in turn, the last again and again; else with an empty reply."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.calls: list[Call] = []
        self._outcomes: dict[str, list[Outcome]] = defaultdict(list)
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(8)
        self._server = grpc.server(self._pool)
        self._server.add_generic_rpc_handlers([self._handler(service) for service in SERVICES])
        self._server.add_insecure_port(endpoint)

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop(None).wait()
        self._pool.shutdown()

    def answer(self, method: str, *outcomes: Outcome) -> None:
        """Sets what the next calls of the method come to."""
        self._outcomes[method] = list(outcomes)

    def requests(self, kind: type[Request]) -> list[Request]:
        """The requests of this kind, in the order in which they came."""
        return [call.request for call in self.calls if isinstance(call.request, kind)]

    def request(self, kind: type[Request]) -> Request:
        """The one request of this kind."""
        (request,) = self.requests(kind)
        return request

    def _handler(self, service: ServiceDescriptor) -> grpc.GenericRpcHandler:
        handlers = {method.name: self._method_handler(method) for method in service.methods}
        return grpc.method_handlers_generic_handler(service.full_name, handlers)

    def _method_handler(self, method: MethodDescriptor) -> "grpc.RpcMethodHandler[Any, Any]":
        request = message_factory.GetMessageClass(method.input_type)
        reply = message_factory.GetMessageClass(method.output_type)

        def behaviour(incoming: Message, context: grpc.ServicerContext) -> Message:
            return self._answer(method.name, incoming, context) or reply()

        return grpc.unary_unary_rpc_method_handler(
            behaviour, request_deserializer=request.FromString, response_serializer=reply.SerializeToString
        )

    def _answer(self, method: str, request: Message, context: grpc.ServicerContext) -> Message | None:
        metadata = dict(context.invocation_metadata())
        authority = context._rpc_event.call_details.host.decode()  # type: ignore[attr-defined] # has no public name
        call = Call(method, request, metadata, context.time_remaining() or 0.0, authority)
        outcome = self._next(call)
        if callable(outcome):
            outcome = outcome(request)
        if isinstance(outcome, Failure):
            details = outcome.details().SerializeToString()
            context.set_trailing_metadata((("grpc-status-details-bin", details),))
            context.abort(outcome.code, "it failed")
        return outcome

    def _next(self, call: Call) -> Outcome | None:
        with self._lock:
            self.calls.append(call)
            outcomes = self._outcomes[call.method]
            return outcomes.pop(0) if len(outcomes) > 1 else next(iter(outcomes), None)
