"""Makes methods from plain functions: every RPC of a service finds its own by name."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from typing import Any, TypeAlias, TypeVar

from google.protobuf.descriptor import MethodDescriptor, ServiceDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass
from msgspec import Struct

from remora_server import failpoints
from remora_server.domain.errors import InvalidField
from remora_server.rpc.calls import NO_TIME, Call
from remora_server.rpc.checks.limits import Limits
from remora_server.rpc.checks.rules import Rule
from remora_server.rpc.errors import answer_to
from remora_server.rpc.streams import Subscription

Handler: TypeAlias = Callable[[Call, Any], Any]
"""Returns a message, or the same encoded; of an RPC that streams a `Stream`."""
Stream: TypeAlias = "Generator[Message | bytes, None, None] | Subscription"
"""The messages of a stream. A generator is asked for one message at a time, in any thread, when the reader has room for
it, and is closed at the end. It holds nothing of the database between two messages. A stream that waits for events is a
Subscription.
"""
F = TypeVar("F", bound=Callable[..., Any])

logger = logging.getLogger(__name__)


def quick(handler: F) -> F:
    """Marks a brief handler that respects a deadline in the past: instead of waiting, or of asking the database, it
    fails with DeadlineExceeded before it has any effect. A transport may run it between other work.
    """
    handler.is_quick = True  # type: ignore[attr-defined]
    return handler


def batched(handler: F) -> F:
    """Marks a handler of requests that are written all or none, and that may be longer than others for that."""
    handler.takes_batches = True  # type: ignore[attr-defined]
    return handler


def for_operators(handler: F) -> F:
    """Marks a handler of calls that only the operator may make. Others are refused before the request is decoded."""
    handler.is_for_operators = True  # type: ignore[attr-defined]
    return handler


class Method(Struct, frozen=True):
    """One RPC with one request and one reply, or a stream of them, all encoded: checks the request, asks the handler.

    Fields that the contract does not know are dropped, so that nothing is stored that was not checked.
    """

    path: str
    name: str
    request_type: type[Message]
    check: Rule
    handler: Handler
    writes: bool
    streams: bool = False
    is_for_operators: bool = False

    @property
    def is_quick(self) -> bool:
        """Whether the handler is marked `quick`."""
        return getattr(self.handler, "is_quick", False)

    @property
    def takes_batches(self) -> bool:
        """Whether the handler is marked `batched`."""
        return getattr(self.handler, "takes_batches", False)

    def answer(self, call: Call, encoded: bytes) -> tuple[bytes, int]:
        """The reply, and the revision that must be published before it is sent, or 0."""
        reply = self._ask(call, encoded)
        if isinstance(reply, bytes):
            return reply, 0
        return reply.SerializeToString(), getattr(reply, "revision", 0) if self.writes else 0

    def open(self, call: Call, encoded: bytes) -> Generator[bytes, None, None] | Subscription:
        """The messages of a streaming RPC. A generator's error is answered like one that a handler raises."""
        stream = self._ask(call, encoded)
        return stream if isinstance(stream, Subscription) else _encoded(stream)

    def _ask(self, call: Call, encoded: bytes) -> Any:  # noqa: ANN401 - see Handler
        if logger.isEnabledFor(logging.DEBUG):
            return self._handled_and_logged(call, encoded)
        return self._handled(call, encoded)

    def _handled(self, call: Call, encoded: bytes) -> Any:  # noqa: ANN401 - see Handler
        failpoints.hit("call_answered")
        if self.is_for_operators:
            call.require_operator()
        return self.handler(call, self._decode(encoded))

    def _handled_and_logged(self, call: Call, encoded: bytes) -> Any:  # noqa: ANN401 - see Handler
        began = time.perf_counter()
        try:
            answer = self._handled(call, encoded)
        except BaseException as error:
            if call.deadline != NO_TIME:
                self._log(answer_to(error).reason, began)
            raise
        self._log("OK", began)
        return answer

    def _decode(self, encoded: bytes) -> Message:
        try:
            request = self.request_type.FromString(encoded)
        except DecodeError:
            raise InvalidField("request", f"cannot be decoded as a {self.request_type.DESCRIPTOR.full_name}") from None
        request.DiscardUnknownFields()
        self.check(request)
        return request

    def _log(self, result: str, began: float) -> None:
        micros = round((time.perf_counter() - began) * 1e6)
        logger.debug("call", extra={"method": self.name, "result": result, "micros": micros})


def _encoded(messages: Generator[Message | bytes, None, None]) -> Generator[bytes, None, None]:
    with closing(messages):
        for message in messages:
            yield message if isinstance(message, bytes) else message.SerializeToString()


def methods_of(service: ServiceDescriptor, implementations: Iterable[object], limits: Limits) -> list[Method]:
    """The methods of a service. The handler of an RPC is the method of that name in one of the implementations.

    Raises LookupError for an RPC without a handler.
    """
    candidates = list(implementations)
    return [_method(method, candidates, limits) for method in service.methods]


def _method(method: MethodDescriptor, implementations: list[object], limits: Limits) -> Method:
    if method.client_streaming:
        raise LookupError(f"{method.full_name} takes a stream: only calls with one request can be handled")
    name = snake_case(method.name)
    handler = next((getattr(one, name) for one in implementations if hasattr(one, name)), None)
    if handler is None:
        raise LookupError(f"{method.full_name} has no handler {name}")
    return Method(
        path=f"/{method.containing_service.full_name}/{method.name}",
        name=method.name,
        request_type=(request_type := GetMessageClass(method.input_type)),
        check=limits.rules(request_type),
        handler=handler,
        writes="request_id" in method.input_type.fields_by_name,
        streams=method.server_streaming,
        is_for_operators=getattr(handler, "is_for_operators", False),
    )


def snake_case(name: str) -> str:
    """`CreateConversation` as `create_conversation`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
