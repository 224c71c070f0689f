"""Two ways to call every RPC by its encoded request: over the wire, and in this process without any transport."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias, TypeVar, cast

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status
from tests.input.documented import documented_errors
from tests.patience import PATIENCE

from remora_server import application
from remora_server.domain.models import ServedModels
from remora_server.domain.status import ModelStatus
from remora_server.domain.store import Store
from remora_server.embedding_models import NO_EMBEDDERS
from remora_server.engine.receipt_book import ReceiptBook
from remora_server.engine.tokens import NativeTokenCounter
from remora_server.rpc.calls import Call
from remora_server.rpc.checks.limits import Limits
from remora_server.rpc.errors import to_status
from remora_server.rpc.handlers.admin import AdminHandlers
from remora_server.rpc.identity import Identity
from remora_server.rpc.methods import Method, methods_of, snake_case
from remora_server.rpc.server import SERVICES
from remora_server.storage.local_store import StoreOptions, open_store

M = TypeVar("M", bound=Message)
Headers: TypeAlias = Sequence[tuple[str, str]]

METHODS: dict[str, MethodDescriptor] = {method.name: method for service in SERVICES for method in service.methods}
DOCUMENTED = {("OK", "")} | documented_errors() - {("INTERNAL", "INTERNAL")}
FOR_OPERATORS = {
    name for name in METHODS if hasattr(getattr(AdminHandlers, snake_case(name), None), "is_for_operators")
}
CODES = {code.value[0]: code.name for code in grpc.StatusCode}


@dataclass(frozen=True)
class Answer:
    """How a call ended: `reply` is encoded, `status` holds the error's details."""

    code: str
    reply: bytes = b""
    status: Status | None = None

    @property
    def reason(self) -> str:
        return self.info.reason

    @property
    def info(self) -> ErrorInfo:
        return self.detail(ErrorInfo)

    @property
    def paths(self) -> list[str]:
        """The fields that a refusal names."""
        return [violation.field for violation in self.detail(BadRequest).field_violations]

    def detail(self, kind: type[M]) -> M:
        """The detail of a kind; an empty one where there is none."""
        found = kind()
        if self.status is not None:
            any(packed.Unpack(found) for packed in self.status.details)
        return found


class Caller(Protocol):
    """Makes calls as a tenant."""

    def call(self, method: str, request: bytes, headers: Headers = ()) -> Answer: ...


def ask(caller: Caller, method: str, request: Message, headers: Headers = ()) -> Message:
    """The reply of a call that must succeed."""
    answer = caller.call(method, request.SerializeToString(), headers)
    assert answer.code == "OK", f"{method}: {answer.status}"
    return GetMessageClass(METHODS[method].output_type).FromString(answer.reply)


def refused(status: Status) -> Answer:
    return Answer(CODES[status.code], status=status)


@dataclass(frozen=True)
class WireCaller:
    """Calls over a channel, with these headers besides those of a call, and `operator` in an operator's calls."""

    channel: grpc.Channel
    headers: Headers = ()
    timeout: float = PATIENCE
    operator: Headers = ()

    def call(self, method: str, request: bytes, headers: Headers = ()) -> Answer:
        path = f"/{METHODS[method].containing_service.full_name}/{method}"
        unary: grpc.UnaryUnaryMultiCallable[bytes, bytes] = self.channel.unary_unary(path)
        shown = self.operator if method in FOR_OPERATORS else ()
        try:
            return Answer("OK", unary(request, metadata=(*self.headers, *shown, *headers), timeout=self.timeout))
        except grpc.RpcError as error:
            status: Status | None = rpc_status.from_call(cast("grpc.Call", error))
            if status is None:
                call = cast("grpc.Call", error)
                return Answer(call.code().name, status=Status(message=call.details() or ""))
            return refused(status)


@dataclass(frozen=True)
class DirectCaller:
    """Calls handlers over a store of their own, as a tenant and, unless it is not to be one, as the operator."""

    methods: dict[str, Method]
    store: Store
    headers: Headers = ()
    is_operator: bool = True

    def call(self, method: str, request: bytes, headers: Headers = ()) -> Answer:
        try:
            tenant_id = Identity().tenant((*self.headers, *headers))
            call = Call(method, tenant_id, time.monotonic() + PATIENCE, is_operator=self.is_operator)
            return Answer("OK", self.methods[method].answer(call, request)[0])
        except Exception as error:  # noqa: BLE001 - as a transport does
            return refused(to_status(error))


@contextmanager
def direct_caller(
    model: ModelStatus,
    tenant: str = "acme",
    directory: Path | None = None,
    *,
    receipt_days: int = 30,
    opened: Store | None = None,
) -> Iterator[DirectCaller]:
    """Handlers over a store in a directory, or in memory, or over one that is open, which is closed with them. `model`
    only says what embeddings must be like.
    """
    tokens = NativeTokenCounter()
    count = partial(application._count_tokens, tokens)
    store = opened or open_store(StoreOptions(directory=directory), count_tokens=count, models=ServedModels())
    receipts = ReceiptBook(store.receipts, receipt_days)
    receipts.start()
    handlers = application._handlers(store, NO_EMBEDDERS, tokens, receipts)
    limits = Limits(lambda name: model.dimension if name == model.name else 0)
    try:
        methods = {method.name: method for service in SERVICES for method in methods_of(service, handlers, limits)}
        yield DirectCaller(methods, store, (("remora-tenant", tenant),))
    finally:
        receipts.close()
        store.close()
