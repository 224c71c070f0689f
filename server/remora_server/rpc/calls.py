"""One call: who makes it, until when, and the terms that this means for the domain."""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass
from typing import Protocol

import grpc

from remora.v1.message_pb2 import Origin
from remora_server.domain.calls import Read, Write
from remora_server.domain.errors import OperatorOnly
from remora_server.rpc.identity import Identity, Metadata

# What grpcio says of a call without a deadline is centuries away.
_FAR_AWAY = 86_400 * 365

# https://www.w3.org/TR/trace-context/#traceparent-header-field-values
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


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


@dataclass(frozen=True, slots=True)
class Call:
    """What a handler knows of its call. `deadline` is a time of the monotonic clock in seconds."""

    method: str
    tenant_id: str
    deadline: float
    traceparent: str = ""
    is_operator: bool = False

    def require_operator(self) -> None:
        """Raise OperatorOnly where the caller is not the operator."""
        if not self.is_operator:
            raise OperatorOnly

    def read(self, request: ReadRequest) -> Read:
        """The terms of a read."""
        return Read(self.tenant_id, request.min_revision, self.deadline)

    def write(self, request: WriteRequest) -> Write:
        """The terms of a write. To be asked for before the request is used up: they may hold its digest."""
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
        )

    def _fingerprint(self, request: WriteRequest) -> bytes:
        payload = request.SerializeToString(deterministic=True)
        return hashlib.blake2b(b"%b\0%b" % (self.method.encode(), payload), digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Calls:
    """Makes the Call of a gRPC call. One without a deadline gets `default_timeout`, in seconds."""

    identity: Identity
    default_timeout: float

    def open(self, context: grpc.ServicerContext, method: str) -> Call:
        """The call of a method, by its short name. Raises Unauthenticated."""
        metadata: Metadata = context.invocation_metadata()
        remaining = context.time_remaining()
        timeout = self.default_timeout if remaining > _FAR_AWAY else remaining
        return Call(
            method,
            self.identity.tenant(metadata),
            time.monotonic() + timeout,
            traceparent(metadata),
            is_operator=self.identity.is_operator(metadata),
        )


def traceparent(metadata: Metadata) -> str:
    """The trace that the call belongs to; empty where it names none, or not as the standard says."""
    found = next((value for key, value in metadata if key == "traceparent"), "")
    return found if isinstance(found, str) and _TRACEPARENT.match(found) else ""
