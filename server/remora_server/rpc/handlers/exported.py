"""Which conversation an exported record belongs to."""

from __future__ import annotations

from remora.v1.transfer_service_pb2 import Record

OF_NONE = frozenset(
    {
        "workflow_run",
        "workflow_step",
        "timeline_event",
        "history_entry",
        "entry_step",
        "vector_collection",
        "vector",
        "span",
        "log_record",
        "store_item",
        "memory_item",
        "fact",
        "static_facts",
    }
)
"""Records that belong to no conversation, though they may name one."""


def conversation_of(record: Record) -> str:
    """The conversation of a record, from its own field or its scope; empty if it belongs to none."""
    kind = str(record.WhichOneof("kind"))
    if kind in OF_NONE:
        return ""
    if kind == "conversation":
        return record.conversation.conversation.id
    own = getattr(record, kind)
    said: str = getattr(getattr(own, "scope", own), "conversation_id", "")
    return said
