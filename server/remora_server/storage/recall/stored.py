"""What DuckDB holds of messages and their vectors, read in chunks of bounded size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import filterfalse, groupby, pairwise
from math import ceil
from operator import itemgetter
from typing import Any, TypeAlias, TypeVar

import duckdb
from msgspec import Struct
from msgspec.structs import replace

from remora_server.domain.models import ServedModel
from remora_server.domain.vectors import FLOAT_BYTES
from remora_server.storage.database import arrow
from remora_server.storage.database.database import FEWER, ROWS_ALONE, Database
from remora_server.storage.database.parsed import execute
from remora_server.storage.schema.encoding import STORED_COLUMNS, stored_message

T = TypeVar("T")
Vectors: TypeAlias = list[tuple[str, bytes, bool, bytes]]
"""Of one message: model, little-endian f32, whether the caller made it, word pieces."""
Version: TypeAlias = tuple[int, int, int]
"""A message's conversation uid, its sequence and the revision that last wrote it."""
Documents: TypeAlias = tuple[list[bytes], list[Vectors]]
"""Messages as they are served, and the vectors of each."""

CHUNK_MESSAGES = 2_000
"""How many messages are read together: a load needs memory for these besides what it fills."""
LEAST_MESSAGE_BYTES = 256
"""What a message takes in memory at least, besides its vectors."""
_LAST_SEQUENCE = 2**64 - 1

_USERS = "SELECT user_id, count(*) FROM messages WHERE tenant_id = ? GROUP BY user_id ORDER BY user_id"
_DIMENSIONS = "SELECT sum(dimension) FROM embeddings WHERE tenant_id = ? AND (by_caller OR model = ?)"
_PARTS = """
SELECT m.conversation_uid, any_value(c.id), count(*) FROM messages m JOIN conversations c ON c.uid = m.conversation_uid
WHERE m.tenant_id = ? AND m.user_id = ? GROUP BY m.conversation_uid ORDER BY m.conversation_uid
"""
# Uids and sequences have the columns' own type: where they are compared as another, every row group is read.
_ENDS = """
SELECT max(sequence) FROM (
    SELECT sequence, (row_number() OVER (ORDER BY sequence) - 1) // $size AS chunk FROM messages
    WHERE tenant_id = $tenant AND user_id = $user AND conversation_uid = $uid::UBIGINT AND sequence > $after::UBIGINT
) GROUP BY chunk ORDER BY chunk
"""
_IN_CHUNK = """
tenant_id = $tenant AND conversation_uid IN (SELECT unnest($uids::UBIGINT[]))
AND sequence > $after::UBIGINT AND sequence <= $through::UBIGINT
"""
_MESSAGES = f"""
SELECT conversation_uid, {STORED_COLUMNS} FROM messages WHERE user_id = $user AND {_IN_CHUNK}
ORDER BY conversation_uid, sequence
"""  # noqa: S608 - a constant
_SEQUENCES = f"SELECT sequence FROM messages WHERE user_id = $user AND {_IN_CHUNK} ORDER BY sequence"  # noqa: S608
_EMBEDDINGS = f"""
SELECT rowid, conversation_uid, sequence, message_revision, model, by_caller FROM embeddings
WHERE (by_caller OR model = $model) AND {_IN_CHUNK} ORDER BY conversation_uid, sequence, model
"""  # noqa: S608 - a constant
# By rowid: a scan that finds rows by anything else reads this column, by far the largest, of all that there are.
_VALUES = "SELECT values FROM embeddings WHERE rowid IN (SELECT unnest($rowids)) ORDER BY rowid"
_PIECES = "SELECT rowid, pieces FROM embeddings WHERE rowid IN (SELECT unnest($rowids))"


class StoredPart(Struct, frozen=True):
    """One user's part of a conversation: how many messages it has, and the sequence through which they are loaded."""

    uid: int
    conversation_id: str
    messages: int = 0
    loaded: int = 0


class Chunk(Struct, frozen=True):
    """Messages that are read together: all of some parts (conversations' ids by uids), or those of one part behind
    `after`. `through` is the last of them; None where none follow.
    """

    conversations: dict[int, str]
    after: int = 0
    through: int | None = None


class StoredMessages:
    """The messages of a store, and their vectors, as DuckDB has them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def users(self, tenant_id: str) -> dict[str, int]:
        """The users of a tenant, and how many messages each has."""
        return dict(self._database.rows(_USERS, [tenant_id]))

    def vector_bytes(self, tenant_id: str, model: ServedModel) -> int:
        """What the vectors of a tenant take that are searched with its model."""
        [(dimensions,)] = self._database.rows(_DIMENSIONS, [tenant_id, model.name])
        return FLOAT_BYTES * int(dimensions or 0)

    def parts(self, tenant_id: str, user_id: str) -> list[StoredPart]:
        """A user's parts of conversations."""
        return [StoredPart(*row) for row in self._database.rows(_PARTS, [tenant_id, user_id])]

    def chunks(self, tenant_id: str, user_id: str, parts: Iterable[StoredPart]) -> Iterator[Chunk]:
        """What is to be loaded of a user's parts: several small ones at a time, others in several chunks."""
        listed = list(parts)
        yield from _small_chunks(filter(_is_small, listed))
        for part in filterfalse(_is_small, listed):
            yield from self.chunks_of(tenant_id, user_id, part)

    def chunks_of(self, tenant_id: str, user_id: str, part: StoredPart) -> Iterator[Chunk]:
        """What is to be loaded of one part, in the order of sequences; the last chunk is there even if it is empty."""
        scope = {"tenant": tenant_id, "user": user_id, "uid": part.uid, "after": part.loaded, "size": CHUNK_MESSAGES}
        ends = [end for (end,) in self._database.rows(_ENDS, scope)]
        for after, through in pairwise([part.loaded, *ends[:-1], None]):
            yield Chunk({part.uid: part.conversation_id}, after or 0, through)

    def read(self, tenant_id: str, user_id: str, chunk: Chunk, model: ServedModel) -> dict[int, Documents]:
        """A user's messages in a chunk, by uid, with their vectors of a model or of callers."""
        return self._database.snapshot(partial(_read, tenant_id=tenant_id, user_id=user_id, chunk=chunk, model=model))

    def read_alone(self, tenant_id: str, user_id: str, chunk: Chunk, model: ServedModel) -> dict[int, Documents]:
        """The same of a chunk that is not parted, where there is no memory for it."""
        return self._database.alone(partial(_read, tenant_id=tenant_id, user_id=user_id, chunk=chunk, model=model))

    def parted(self, tenant_id: str, user_id: str, chunk: Chunk) -> list[Chunk]:
        """A chunk that takes too much memory as smaller ones, in order; none where it has few messages."""
        found = self._database.rows(_SEQUENCES, {**_scope(tenant_id, chunk), "user": user_id})
        if len(found) <= ROWS_ALONE:
            return []
        if len(chunk.conversations) > 1:
            return [Chunk(dict(each)) for each in _in_pieces(list(chunk.conversations.items()))]
        ends = [piece[-1][0] for piece in _in_pieces(found)]
        places = pairwise([chunk.after, *ends[:-1], chunk.through])
        return [replace(chunk, after=after or 0, through=through) for after, through in places]


def _read(
    cursor: duckdb.DuckDBPyConnection, *, tenant_id: str, user_id: str, chunk: Chunk, model: ServedModel
) -> dict[int, Documents]:
    scope = _scope(tenant_id, chunk)
    rows = execute(cursor, _MESSAGES, {**scope, "user": user_id}).fetchall()
    vectors = _vectors(cursor, {**scope, "model": model.name}, late=model.late)
    messages = {uid: list(own) for uid, own in groupby(rows, itemgetter(0))}
    return {uid: _documents(messages.get(uid, []), vectors) for uid in chunk.conversations}


def _scope(tenant_id: str, chunk: Chunk) -> dict[str, object]:
    """A chunk as the parameters of _IN_CHUNK."""
    through = _LAST_SEQUENCE if chunk.through is None else chunk.through
    return {"tenant": tenant_id, "uids": list(chunk.conversations), "after": chunk.after, "through": through}


def _in_pieces(items: Sequence[T]) -> list[Sequence[T]]:
    """As many as one chunk is read in, where it is too large."""
    size = ceil(len(items) / FEWER)
    return [items[begin : begin + size] for begin in range(0, len(items), size)]


def _is_small(part: StoredPart) -> bool:
    return not part.loaded and part.messages <= CHUNK_MESSAGES


def _small_chunks(parts: Iterable[StoredPart]) -> Iterator[Chunk]:
    conversations: dict[int, str] = {}
    size = 0
    for part in parts:
        if conversations and size + part.messages > CHUNK_MESSAGES:
            yield Chunk(conversations)
            conversations, size = {}, 0
        conversations[part.uid] = part.conversation_id
        size += part.messages
    if conversations:
        yield Chunk(conversations)


def _documents(rows: Sequence[tuple[Any, ...]], vectors: dict[Version, Vectors]) -> Documents:
    return [stored_message(*row[1:]) for row in rows], [vectors.get(row[:3], []) for row in rows]


def _vectors(cursor: duckdb.DuckDBPyConnection, parameters: dict[str, object], *, late: bool) -> dict[Version, Vectors]:
    """Read until rowids stay the same meanwhile: a checkpoint moves rows, also those that a transaction sees."""
    keys = execute(cursor, _EMBEDDINGS, parameters).fetchall()
    while keys:
        rowids = sorted(key[0] for key in keys)
        values = list(arrow.vectors(cursor.sql(_VALUES, params={"rowids": rowids})))
        own = [rowid for rowid, *_, by_caller in keys if late and not by_caller]
        pieces = dict(execute(cursor, _PIECES, {"rowids": own}).fetchall()) if own else {}
        before, keys = keys, execute(cursor, _EMBEDDINGS, parameters).fetchall()
        if keys == before:
            return _by_message(keys, dict(zip(rowids, values, strict=True)), pieces)
    return {}


def _by_message(
    keys: Sequence[tuple[int, int, int, int, str, bool]], values: dict[int, bytes], pieces: dict[int, bytes | None]
) -> dict[Version, Vectors]:
    vectors: dict[Version, Vectors] = defaultdict(list)
    for rowid, uid, sequence, revision, model, by_caller in keys:
        vectors[uid, sequence, revision].append((model, values[rowid], by_caller, pieces.get(rowid) or b""))
    return vectors
