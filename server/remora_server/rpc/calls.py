"""One call: who makes it, until when, and the read or write of the domain that it asks for."""

from __future__ import annotations

import hashlib
import re
from typing import Protocol

from msgspec import Struct

from remora.v1.calls_pb2 import Origin
from remora.v1.store_service_pb2 import ExecuteOperationsRequest
from remora_server.domain.calls import Read, Write
from remora_server.domain.errors import OperatorOnly

# https://www.w3.org/TR/trace-context/#traceparent-header-field-values
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")

NO_TIME = 0.0
"""The deadline of a call that must not wait for anything: a time in the past."""


class ReadRequest(Protocol):
    """A request of a read."""

    @property
    def min_revision(self) -> int: ...


class WriteRequest(Protocol):
    """A request of a write."""

    @property
    def request_id(self) -> str: ...

    @property
    def origin(self) -> Origin: ...

    def SerializeToString(self, *, deterministic: bool = ...) -> bytes: ...  # noqa: N802 - protobuf's name


class Call(Struct, frozen=True):
    """What a handler knows of its call. `deadline` is a time of the monotonic clock in seconds.

    A call that does not wait for the disk leaves it to its transport to acknowledge its writes once they are durable.
    """

    method: str
    tenant_id: str
    deadline: float
    traceparent: str = ""
    is_operator: bool = False
    waits_for_disk: bool = True

    def require_operator(self) -> None:
        """Raise OperatorOnly if the caller is not the operator."""
        if not self.is_operator:
            raise OperatorOnly

    def read(self, request: ReadRequest) -> Read:
        """What the domain is told of a read besides the request's fields."""
        return Read(self.tenant_id, request.min_revision, self.deadline)

    def write(self, request: WriteRequest) -> Write:
        """The same of a write. Ask for it before the request is used up, because it may hold the request's digest."""
        origin = request.origin
        return Write(
            tenant_id=self.tenant_id,
            method=self.method,
            deadline=self.deadline,
            request_id=request.request_id,
            fingerprint=self._fingerprint(request) if request.request_id else b"",
            agent_id=origin.agent_id,
            run_id=origin.run_id,
            traceparent=self.traceparent,
            waits_for_disk=self.waits_for_disk,
        )

    def _fingerprint(self, request: WriteRequest) -> bytes:
        digest = hashlib.blake2b(b"%b\0" % self.method.encode(), digest_size=16)
        digest.update(_payload(request))
        return digest.digest()


def _payload(request: WriteRequest) -> bytes:
    """What makes the request the same one: not the revision that it waits for, which clients raise with each write."""
    if not isinstance(request, ExecuteOperationsRequest):
        return request.SerializeToString(deterministic=True)
    revision, request.min_revision = request.min_revision, 0
    payload = request.SerializeToString(deterministic=True)
    request.min_revision = revision
    return payload


def traceparent(value: str | bytes) -> str:
    """The trace that a header names; empty if it names none, or breaks the standard."""
    return value if isinstance(value, str) and _TRACEPARENT.match(value) else ""
