"""Admission of grpcio's calls: callers without a tenant and calls beyond the capacity are refused at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import grpc

from remora_server.domain.errors import MethodUnknown, Overloaded
from remora_server.rpc.identity import Identity
from remora_server.rpc.transport.aborts import abort
from remora_server.rpc.transport.workers import Workers

Continuation: TypeAlias = "Callable[[grpc.HandlerCallDetails], grpc.RpcMethodHandler[Any, Any] | None]"


class Gate(grpc.ServerInterceptor):
    """Refuses calls before a worker takes them.

    Calls of services in `open_services` are not checked. Others need a tenant, room among the workers of their service
    (`workers` if `workers_of` names none), and a known method, checked in this order. grpcio asks for one call after
    the other, on the thread that then hands the call to the workers, so that there is no race for the last free worker.
    """

    def __init__(
        self,
        identity: Identity,
        workers: Workers,
        workers_of: Mapping[str, Workers],
        open_services: frozenset[str],
    ) -> None:
        self._identity = identity
        self._workers = workers
        self._workers_of = workers_of
        self._open_services = open_services
        self._refusing = ThreadPoolExecutor(1, thread_name_prefix="refusing")

    def intercept_service(
        self, continuation: Continuation, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        service = handler_call_details.method[1:].partition("/")[0]
        if service in self._open_services:
            return continuation(handler_call_details)
        try:
            self._identity.tenant(handler_call_details.invocation_metadata)
            self._require_room(service)
        except BaseException as refusal:  # noqa: BLE001 - it would end the thread that takes all calls
            return self._refuse(refusal, handler_call_details.method)
        path = handler_call_details.method
        return continuation(handler_call_details) or self._refuse(MethodUnknown(path), path)

    def _require_room(self, service: str) -> None:
        if self._workers_of.get(service, self._workers).is_full():
            raise Overloaded

    def _refuse(self, refusal: BaseException, method: str) -> grpc.RpcMethodHandler[Any, Any]:
        """A handler for calls of any shape, which answers before it reads a request."""
        return grpc.stream_stream_rpc_method_handler(_Refusal(refusal, method, self._refusing))

    def close(self) -> None:
        """Stop refusing. To be called when no more calls come."""
        self._refusing.shutdown()


class _Refusal:
    def __init__(self, error: BaseException, method: str, pool: ThreadPoolExecutor) -> None:
        self._error = error
        self._method = method
        self.experimental_thread_pool = pool  # run by grpcio itself, not after the calls that fill the workers

    def __call__(self, _requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        abort(context, self._error, self._method)
