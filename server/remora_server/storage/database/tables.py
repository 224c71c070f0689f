"""The columns of every table as DuckDB and Arrow have them; those of the kinds are made from the declarations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from remora_server.storage.database import arrow
from remora_server.storage.schema.kinds import VECTOR_COLLECTIONS, VECTORS, ColumnType, Kind, parts_of

Columns: TypeAlias = tuple[tuple[str, arrow.ArrowType], ...]

CONVERSATIONS: Columns = (
    ("tenant_id", arrow.TEXT),
    ("id", arrow.TEXT),
    ("uid", arrow.UINT64),
    ("user_id", arrow.TEXT),
    ("resource_id", arrow.TEXT),
    ("title", arrow.TEXT),
    ("storage_limit", arrow.INT32),
    ("body", arrow.BLOB),
    ("create_time", arrow.INT64),
)
HEADS: Columns = (
    ("tenant_id", arrow.TEXT),
    ("uid", arrow.UINT64),
    ("last_sequence", arrow.UINT64),
    ("message_count", arrow.INT64),
    ("last_time", arrow.INT64),
    ("update_time", arrow.INT64),
    ("revision", arrow.UINT64),
)
MESSAGES: Columns = (
    ("tenant_id", arrow.TEXT),
    ("conversation_uid", arrow.UINT64),
    ("sequence", arrow.UINT64),
    ("revision", arrow.UINT64),
    ("user_id", arrow.TEXT),
    ("id", arrow.TEXT),
    ("role", arrow.TEXT),
    ("name", arrow.TEXT),
    ("text", arrow.TEXT),
    ("body", arrow.BLOB),
    ("sent_time", arrow.INT64),
    ("session_id", arrow.TEXT),
    ("create_time", arrow.INT64),
    ("update_time", arrow.INT64),
    ("token_count", arrow.INT32),
)
EMBEDDINGS: Columns = (
    ("tenant_id", arrow.TEXT),
    ("conversation_uid", arrow.UINT64),
    ("sequence", arrow.UINT64),
    ("message_revision", arrow.UINT64),
    ("model", arrow.TEXT),
    ("by_caller", arrow.BOOL),
    ("dimension", arrow.INT32),
    ("values", arrow.VECTOR),
    ("pieces", arrow.BLOB),
)
REQUESTS: Columns = (
    ("tenant_id", arrow.TEXT),
    ("request_id", arrow.TEXT),
    ("fingerprint", arrow.BLOB),
    ("revision", arrow.UINT64),
    ("time", arrow.INT64),
    ("outcome", arrow.BLOB),
)

OWNER: Columns = (("tenant_id", arrow.TEXT), ("conversation_uid", arrow.UINT64))
PARTITION: Columns = (("place", arrow.UINT64), *OWNER, ("partition", arrow.BLOB))
"""The columns by which a partition is found. `place` is a hash of the others, so that a search reads 8 bytes of a row.
"""
RECORD: Columns = (*PARTITION, ("key", arrow.BLOB))
EXPIRY: Columns = (*RECORD, ("revision", arrow.UINT64), ("expire_time", arrow.INT64))
"""A record's expire time, if the record still has this revision."""

_ARROW: dict[ColumnType, arrow.ArrowType] = {
    "bool": arrow.BOOL,
    "int64": arrow.INT64,
    "double": arrow.DOUBLE,
    "text": arrow.TEXT,
    "bytes": arrow.BLOB,
}
_SQL = {"bool": "BOOLEAN", "int64": "BIGINT", "double": "DOUBLE", "text": "TEXT", "bytes": "BLOB"}


def columns_of(kind: Kind) -> Columns:
    """The columns of a kind's table."""
    own = ((field.name, _ARROW[field.column_type]) for field in kind.columns)
    return (
        *OWNER,
        ("place", arrow.UINT64),
        ("partition", arrow.BLOB),
        ("key", arrow.BLOB),
        ("user_id", arrow.TEXT),
        ("revision", arrow.UINT64),
        ("ordinal", arrow.INT32),
        ("expire_time", arrow.INT64),
        ("upload_id", arrow.TEXT),
        *own,
        ("body", arrow.BLOB),
    )


def creation(kind: Kind) -> str:
    """The statement that makes a kind's table."""
    own = "".join(f"{field.name} {_SQL[field.column_type]}, " for field in kind.columns)
    # A compressed body is read together with those of the 2,047 rows beside it.
    compression = " USING COMPRESSION uncompressed" if kind.has_long_bodies else ""
    return f"""CREATE TABLE {kind.name} (
        tenant_id TEXT NOT NULL, conversation_uid UBIGINT NOT NULL, place UBIGINT NOT NULL,
        partition BLOB NOT NULL, key BLOB NOT NULL, user_id TEXT NOT NULL,
        revision UBIGINT NOT NULL, ordinal INTEGER NOT NULL, expire_time BIGINT, upload_id TEXT NOT NULL,
        {own}body BLOB{compression} NOT NULL)"""


def shape(kind: Kind) -> str:
    """The parts of a kind that must not change: its name and its columns."""
    own = ", ".join(f"{field.name} {field.column_type}" for field in kind.columns)
    return f"{kind.name}({own})"


def without_parent(kind: Kind, parent: Kind) -> str:
    """The condition of records without their parent's record."""
    return f"""NOT EXISTS (SELECT 1 FROM {parent.name} AS parent WHERE parent.tenant_id = {kind.name}.tenant_id
        AND parent.conversation_uid = {kind.name}.conversation_uid
        AND parent.partition || parent.key = {kind.name}.partition)"""  # noqa: S608 - tables of ours


def incomplete(kind: Kind) -> str:
    """The condition of records of whose bodies a part is not there."""
    parts = parts_of(kind).name
    return f"""upload_id <> '' AND split_part(upload_id, '/', 2)::BIGINT <> (SELECT count(*) FROM {parts} AS parts
        WHERE {_is_named("parts", kind.name)})"""  # noqa: S608 - tables of ours


def unnamed(parts: Kind, kinds: Iterable[Kind]) -> str:
    """The condition of parts of bodies that no record names. `kinds` are those whose parts they may be."""
    named = " UNION ALL ".join(
        f"SELECT tenant_id, conversation_uid, upload_id FROM {kind.name} WHERE upload_id <> ''"  # noqa: S608 - ours
        for kind in kinds
        if parts_of(kind) is parts
    )
    return f"NOT EXISTS (SELECT 1 FROM ({named}) AS named WHERE {_is_named(parts.name, 'named')})"  # noqa: S608 - ours


def _is_named(part: str, record: str) -> str:
    """The condition that a part is one of those that a record's `upload_id` names: an id, a slash, and their number.

    A part's partition is the id as a text of a key, its key the index as an unsigned integer: see `keys.py`.
    """
    upload_id, count = (f"split_part({record}.upload_id, '/', {place})" for place in (1, 2))
    return f"""{part}.tenant_id = {record}.tenant_id AND {part}.conversation_uid = {record}.conversation_uid
        AND {part}.partition = encode({upload_id}) || '\\x00\\x01'::BLOB
        AND {part}.key < unhex(printf('%016x', {count}::BIGINT))"""


def without_collection() -> str:
    """The condition of vectors without their collection's record."""
    return f"""NOT EXISTS (SELECT 1 FROM {VECTOR_COLLECTIONS.name} AS collection
        WHERE collection.tenant_id = {VECTORS.name}.tenant_id AND collection.id = {VECTORS.name}.collection_id)"""  # noqa: S608
