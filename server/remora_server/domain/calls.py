"""What every request has besides its own fields: the caller and the deadline."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

DEFAULT_TENANT = "default"
DEFAULT_USER = "default"


class Read(Struct, frozen=True):
    """The context of a read.

    `deadline` is a time of the monotonic clock in seconds, None for no limit. The reply shows `min_revision` or later.
    """

    tenant_id: str
    min_revision: int = 0
    deadline: float | None = None


class Write(Struct, frozen=True):
    """The context of a write. `fingerprint` is a digest of method and payload, 16 bytes, set with `request_id`.

    A write that `waits_for_disk` returns once it is durable and visible. Any other write returns once it is accepted.
    Its caller must not acknowledge it before the revision of its outcome is published.
    """

    tenant_id: str
    method: str
    deadline: float | None = None
    request_id: str = ""
    fingerprint: bytes = b""
    agent_id: str = ""
    run_id: str = ""
    traceparent: str = ""
    waits_for_disk: bool = True


Access: TypeAlias = Read | Write
"""What locks and loads need to know: the tenant of the data, and the deadline."""


class Placed(Struct, frozen=True):
    """The place of a stored message. `create_time` is in microseconds since 1970, UTC, like all times of the domain."""

    id: str
    sequence: int
    create_time: int
    replaced: bool


class Outcome(Struct, frozen=True):
    """The outcome of a write. A repeat of the request gets the same. Fields that a method does not set are empty."""

    revision: int
    conversation_id: str = ""
    time: int = 0
    messages: tuple[Placed, ...] = ()
    created: bool = False
    deleted: bool = False
    pruned_messages: int = 0
    deleted_messages: int = 0
    deleted_conversations: int = 0
    imported_records: int = 0
    deleted_records: int = 0
    ended: tuple[str, ...] = ()
