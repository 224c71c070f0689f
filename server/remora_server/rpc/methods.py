"""Makes gRPC's handlers from plain functions: every RPC of a service finds its own by name."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import grpc
from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from remora_server.domain.errors import InvalidField
from remora_server.rpc.calls import Call, Calls
from remora_server.rpc.errors import abort, answer_to
from remora_server.rpc.limits import Limits
from remora_server.rpc.rules import Rule

Handler: TypeAlias = Callable[[Call, Any], Message | bytes]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Method:
    """One RPC with one request and one reply, both encoded: opens the call, checks the request, asks the handler.

    Fields that the contract does not know are dropped, so that nothing is stored that was not checked.
    """

    name: str
    request_type: type[Message]
    check: Rule
    handler: Handler
    calls: Calls

    def __call__(self, encoded: bytes, context: grpc.ServicerContext) -> bytes:
        began = time.perf_counter()
        try:
            reply = self._answer(encoded, context)
        except Exception as error:  # noqa: BLE001 - the one place where any failure becomes a status
            self._log(answer_to(error).reason, began)
            abort(context, error, self.name)
        self._log("OK", began)
        return reply

    def _answer(self, encoded: bytes, context: grpc.ServicerContext) -> bytes:
        call = self.calls.open(context, self.name)
        request = self._decode(encoded)
        self.check(request)
        reply = self.handler(call, request)
        return reply if isinstance(reply, bytes) else reply.SerializeToString()

    def _decode(self, encoded: bytes) -> Message:
        try:
            request = self.request_type.FromString(encoded)
        except DecodeError:
            raise InvalidField("request", f"cannot be decoded as a {self.request_type.DESCRIPTOR.full_name}") from None
        request.DiscardUnknownFields()
        return request

    def _log(self, result: str, began: float) -> None:
        if logger.isEnabledFor(logging.DEBUG):
            micros = round((time.perf_counter() - began) * 1e6)
            logger.debug("call", extra={"method": self.name, "result": result, "micros": micros})


def generic_handler(
    service: ServiceDescriptor, implementations: Iterable[object], limits: Limits, calls: Calls
) -> grpc.GenericRpcHandler:
    """The handlers of a service: each RPC's is the method of that name of one of the implementations.

    Raises LookupError for an RPC without a handler.
    """
    candidates = list(implementations)
    handlers: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
        method.name: grpc.unary_unary_rpc_method_handler(_method(method, candidates, limits, calls))
        for method in service.methods
    }
    return grpc.method_handlers_generic_handler(service.full_name, handlers)


def _method(method: MethodDescriptor, implementations: list[object], limits: Limits, calls: Calls) -> Method:
    if method.client_streaming or method.server_streaming:
        raise LookupError(f"{method.full_name} streams: only calls with one request and one reply can be handled")
    name = snake_case(method.name)
    handler = next((getattr(one, name) for one in implementations if hasattr(one, name)), None)
    if handler is None:
        raise LookupError(f"{method.full_name} has no handler {name}")
    request_type = GetMessageClass(method.input_type)
    return Method(method.name, request_type, limits.rules(request_type), handler, calls)


def snake_case(name: str) -> str:
    """`CreateConversation` as `create_conversation`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
