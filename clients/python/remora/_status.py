"""Reads the status of a failed call: google.rpc's details in, an exception of `remora.errors` out."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import cast

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

from remora._tls_failures import tls_failure
from remora.credentials import TOKEN_VARIABLE
from remora.errors import ClientClosedError, ConnectionFailedError, FailedCall, FieldViolation, RemoraError, class_of

DOMAIN = "remora.dev"
DETAILS_KEY = "grpc-status-details-bin"


_WRITTEN = tuple(
    (re.compile(path), written)
    for path, written in (
        (r"^(options|create_if_missing|conversation)\.", ""),
        (r"^checkpoints\[\d+\]\.checkpoint\.id$", "checkpoint['id']"),
        (r"^(checkpoints\[\d+\]\.checkpoint|names\[\d+\]|writes\[\d+\](\.name)?)\.", ""),
        (r"^before_id$", "before"),
        (r"^search\.", "recall."),
        (r"^filter(?=$|\.(condition|all_of|any_of|negated)\b)", "where"),
        (r"^(recall\.)?filter\.", r"\1"),
        (r"^recall\.(\w+)", r"recall['\1']"),
        (r"^page_size$", "limit"),
        (r"^(text|query_embedding|embedding)$", "query"),
        (r"^encoding\.name$", "encoding"),
        (r"^encoding\.model$", "model"),
    )
)
"""Paths in requests, with the names of the client's arguments, applied one after the other."""

_UNSENT = re.compile(
    r"failed to connect to all addresses|DNS resolution failed|Name resolution failed|errors resolving "
)
"""What gRPC says of a call for which there was no connection."""


def was_sent(error: grpc.RpcError) -> bool:
    """Whether the request may have reached a server."""
    return _UNSENT.match(cast("FailedCall", error).details() or "") is None


def closed_meanwhile() -> ClientClosedError:
    """The exception for a call that was in progress when its connection was closed."""
    return ClientClosedError(
        "closed while this was under way; a write may have been done",
        code=grpc.StatusCode.FAILED_PRECONDITION,
        reason="CLIENT_CLOSED",
    )


@contextmanager
def without_request_id() -> Iterator[None]:
    """Around the writes of a call that makes several and takes no request id: none is advised where one fails."""
    try:
        yield
    except RemoraError as failure:
        failure.request_id = ""
        raise


def to_exception(error: grpc.RpcError, endpoint: str, allowed: float, *, tls: bool = False) -> RemoraError:
    """The exception for a call to `endpoint` that failed, over TLS or not; `allowed` is how many seconds it had."""
    call = cast("FailedCall", error)
    status = _status(call)
    info = _info(status)
    if call.code() is grpc.StatusCode.UNAVAILABLE and not info.reason:
        return _connection_failed(call, endpoint, tls=tls)
    if call.code() is grpc.StatusCode.UNAUTHENTICATED:
        return _unauthenticated(call, info)
    violations = _violations(status)
    return class_of(call.code(), info.reason)(
        _text(call, violations, allowed),
        code=call.code(),
        reason=info.reason,
        metadata=info.metadata,
        field_violations=violations,
        retry_delay=_retry_delay(status),
    )


def _text(call: FailedCall, violations: Sequence[FieldViolation], allowed: float) -> str:
    if call.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return f"no answer within {allowed:g} s, the call's timeout"
    return "; ".join(map(str, violations)) or call.details() or call.code().name


def _connection_failed(call: FailedCall, endpoint: str, *, tls: bool) -> ConnectionFailedError:
    details = call.details() or ""
    found = tls_failure(details, endpoint, tls=tls)
    of_tls = {"tls_fault": found.fault.name, "finding": found.finding} if found else {}
    return ConnectionFailedError(
        "; ".join(filter(None, (found.finding, found.remedy))) if found else _nobody_answers(details, endpoint),
        code=call.code(),
        reason="CONNECTION_FAILED",
        metadata={"endpoint": endpoint, **of_tls},
    )


def _unauthenticated(call: FailedCall, info: ErrorInfo) -> RemoraError:
    finding = call.details() or call.code().name
    return class_of(call.code(), info.reason)(
        f"{finding}; `token=` or ${TOKEN_VARIABLE} gives one",
        code=call.code(),
        reason=info.reason,
        metadata={**info.metadata, "finding": finding},
    )


def _nobody_answers(details: str, endpoint: str) -> str:
    why = details.rpartition(": ")[2].removesuffix("]")
    return (
        f"no Remora server answers at {endpoint} ({why}); `remora serve` or Remora.start() starts one, and "
        "`endpoint`, the client's first argument, or $REMORA_ENDPOINT says where it listens"
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
            return [FieldViolation(_as_written(item.field), item.description) for item in request.field_violations]
    return []


def _as_written(field: str) -> str:
    """The name that a caller knows of a field that the server names by its path in the request."""
    for path, written in _WRITTEN:
        field = path.sub(written, field)
    return field


def _retry_delay(status: Status) -> float | None:
    retry = RetryInfo()
    for detail in status.details:
        if detail.Unpack(retry):
            return retry.retry_delay.ToNanoseconds() / 1e9
    return None
