"""Which conversation an exported record belongs to."""

from __future__ import annotations

from remora.v1.transfer_service_pb2 import Record

NAMING_ANOTHERS = frozenset({"workflow_run", "history_entry"})
"""Records that name a conversation to which they do not belong."""


def conversation_of(record: Record) -> str:
    """The conversation of a record, from its own field or its scope; empty if it belongs to none."""
    kind = str(record.WhichOneof("kind"))
    if kind in NAMING_ANOTHERS:
        return ""
    if kind == "conversation":
        return record.conversation.conversation.id
    own = getattr(record, kind)
    said: str = getattr(getattr(own, "scope", own), "conversation_id", "")
    return said
