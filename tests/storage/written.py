"""Which kinds of records there are for callers to write, and which a store has seen written."""

from __future__ import annotations

from pathlib import Path

from remora_server import _native
from remora_server.storage.schema.kinds import KINDS
from remora_server.storage.v1 import record_pb2

OF_CALLERS = [kind for kind in KINDS if not kind.by_server]
"""The kinds whose records callers write by the RPCs of a service."""


def written_kinds(data: Path) -> set[tuple[str, str]]:
    """The tenants and the names of the kinds that the journal of a store which nobody serves has puts of."""
    found: set[tuple[str, str]] = set()
    names = {kind.number: kind.name for kind in KINDS}

    def keep(_revision: int, payload: bytes) -> None:
        record = record_pb2.Record.FromString(payload)
        found.update(
            (record.tenant_id, names[change.put_record.kind])
            for change in record.changes
            if change.HasField("put_record")
        )

    _native.salvage_journal(data / "journal", keep, store_id=None, applied_revision=0)
    return found
