"""Backups: snapshots of the whole store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from remora_server.domain.errors import InvalidField


class Backup(Struct, frozen=True):
    """A verified snapshot. `create_time` in microseconds, `size` in bytes, `rows` of each table, `sha256` 32 bytes."""

    id: str
    revision: int
    store_id: str
    format_version: int
    schema_version: int
    duckdb_version: str
    create_time: int
    size: int
    sha256: bytes
    rows: Mapping[str, int]


class BackupStore(Protocol):
    """Makes and keeps snapshots, at most one at a time."""

    def create(self, deadline: float) -> Backup:
        """A snapshot of at least everything acknowledged. Raises BackupUnavailable, StoreFull, DeadlineExceeded."""

    def read(self, backup_id: str, offset: int) -> bytes:
        """Bytes of a snapshot, empty at its end. Raises BackupNotFound, InvalidField for an offset beyond the end."""

    def delete(self, backup_id: str) -> bool:
        """Delete a snapshot; whether it was there."""


def require_within(offset: int, size: int) -> None:
    """Raise InvalidField if an offset lies beyond the end of a snapshot of this size in bytes."""
    if offset > size:
        raise InvalidField("offset", f"must be at most {size}, the bytes of the backup")
