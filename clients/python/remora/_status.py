"""Reads the status of a failed call: google.rpc's details in, an exception of `remora.errors` out."""

from collections.abc import Iterable
from typing import Protocol, cast

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from remora.errors import ConnectionFailedError, FieldViolation, RemoraError, class_of

DOMAIN = "remora.dev"
DETAILS_KEY = "grpc-status-details-bin"


class FailedCall(Protocol):
    """What the errors of grpc and grpc.aio have in common."""

    def code(self) -> grpc.StatusCode:
        """The canonical code."""

    def details(self) -> str | None:
        """The status's text."""

    def trailing_metadata(self) -> Iterable[tuple[str, str | bytes]] | None:
        """The metadata after the reply; nothing if the server sent none."""


def to_exception(error: grpc.RpcError, endpoint: str) -> RemoraError:
    """The exception for a call to `endpoint` that failed."""
    call = cast("FailedCall", error)
    status = _status(call)
    info = _info(status)
    if call.code() is grpc.StatusCode.UNAVAILABLE and not info.reason:
        return _connection_failed(call, endpoint)
    return class_of(call.code(), info.reason)(
        call.details() or call.code().name,
        code=call.code(),
        reason=info.reason,
        metadata=info.metadata,
        field_violations=_violations(status),
        retry_delay=_retry_delay(status),
    )


def _connection_failed(call: FailedCall, endpoint: str) -> ConnectionFailedError:
    return ConnectionFailedError(
        f"no connection to a Remora server at {endpoint} ({call.details()}); `remora serve` starts one, "
        "and $REMORA_ENDPOINT or the client's first argument says where it listens",
        code=call.code(),
        reason="CONNECTION_FAILED",
        metadata={"endpoint": endpoint},
    )


def _status(call: FailedCall) -> Status:
    for key, value in call.trailing_metadata() or ():
        if key == DETAILS_KEY and isinstance(value, bytes):
            return _decoded(value)
    return Status()


def _decoded(value: bytes) -> Status:
    try:
        return Status.FromString(value)
    except DecodeError:
        return Status()


def _info(status: Status) -> ErrorInfo:
    info = ErrorInfo()
    for detail in status.details:
        if detail.Unpack(info) and info.domain == DOMAIN:
            return info
    return ErrorInfo()


def _violations(status: Status) -> list[FieldViolation]:
    request = BadRequest()
    for detail in status.details:
        if detail.Unpack(request):
            return [FieldViolation(item.field, item.description) for item in request.field_violations]
    return []


def _retry_delay(status: Status) -> float | None:
    retry = RetryInfo()
    for detail in status.details:
        if detail.Unpack(retry):
            return retry.retry_delay.ToNanoseconds() / 1e9
    return None
