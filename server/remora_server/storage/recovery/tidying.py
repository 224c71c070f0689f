"""Makes the rows of a repaired database agree with each other again. What can be read stays, or is counted.

A conversation whose row is lost gets a new one, so that what belongs to it stays: under its id where the journal names
that, else under one that is made from its uid. What goes is what a lost record had deleted or replaced, and what names
something that is lost and is of no use without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import duckdb

from remora.v1 import conversation_pb2, vector_pb2
from remora_server import _native
from remora_server.storage.database import arrow
from remora_server.storage.database.tables import Columns, incomplete, without_collection, without_parent
from remora_server.storage.database.taking_over import insert
from remora_server.storage.recovery.repair_report import RepairReport, Touched
from remora_server.storage.schema.kinds import (
    CONVERSATION_WINDOWS,
    RECEIPT_CONTENTS,
    RECEIPTS,
    VECTOR_COLLECTIONS,
    VECTORS,
    Kind,
    Kinds,
    all_tables,
)

ADOPTED = "recovered-"
"""What the id of a conversation begins with whose own id is lost; its uid follows."""

DIMENSION_BYTES = 4
"""The bytes of a vector for each of its dimensions."""

NAMING_ROWS = 256
"""Records that are read at once for the sequences that they name."""

Names = Mapping[int, tuple[str, str]]
"""The tenant and the id of conversations by their uids."""


class Tidying:
    """One database, in one transaction. By the uids of conversations, `names` and `sequences`: what the journal calls
    them, and the greatest sequence that it says was given in them.
    """

    def __init__(self, report: RepairReport, kinds: Kinds, names: Names, sequences: Mapping[int, int]) -> None:
        self._report = report
        self._kinds = kinds
        self._names = names
        self._sequences = sequences

    def run(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Do all of it."""
        named = self._name_conversations(cursor)
        self._remove_replaced_conversations(cursor)
        self._note_named(cursor, named)
        self._adopt(cursor)
        cursor.execute(_ADD_HEADS)
        self._raise_sequences(cursor)
        for what, statement in _TIDY:
            self._remove(cursor, what, statement)
        for kind in self._kinds:
            self._tidy_kind(cursor, kind)
        if {VECTORS, VECTOR_COLLECTIONS} <= set(self._kinds):
            self._rebuild_collections(cursor)
        self._note_lost_messages(cursor)
        for statement in _COUNT:
            cursor.execute(statement)

    def _remove(self, cursor: duckdb.DuckDBPyConnection, what: str, statement: str) -> None:
        [(count,)] = cursor.execute(statement).fetchall()
        if count:
            self._report.removed[what] = self._report.removed.get(what, 0) + count

    def _name_conversations(self, cursor: duckdb.DuckDBPyConnection) -> list[int]:
        """Give conversations whose row is lost a new one, if their id is known; their uids."""
        named = []
        for uid, _, owner, created in cursor.execute(self._orphans()).fetchall():
            if uid in self._names:
                tenant_id, conversation_id = self._names[uid]
                _add_conversation(cursor, tenant_id, conversation_id, uid, owner, created)
                named.append(uid)
        return named

    def _remove_replaced_conversations(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Of two conversations of one id the older was deleted by a record that is lost."""
        cursor.execute(f"CREATE TEMP TABLE gone AS {_REPLACED_CONVERSATIONS}")
        for table in all_tables(self._kinds):
            if table.uid:
                what = f"{table.name} of a conversation whose id a newer one has"
                self._remove(cursor, what, f"DELETE FROM {table.name} WHERE {table.uid} IN (FROM gone)")  # noqa: S608
        cursor.execute("DROP TABLE gone")

    def _note_named(self, cursor: duckdb.DuckDBPyConnection, named: list[int]) -> None:
        kept = "SELECT tenant_id, id FROM conversations WHERE list_contains(?, uid) ORDER BY ALL"
        note = "its title, metadata and owner are lost; the owner is taken from its messages"
        for tenant_id, conversation_id in cursor.execute(kept, [named]).fetchall():
            self._report.conversations.append(Touched(tenant_id, conversation_id, 0, note))

    def _adopt(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Keep what belongs to conversations of which not even the id is known."""
        for uid, tenant_id, owner, created in cursor.execute(self._orphans()).fetchall():
            conversation_id = _free_id(cursor, tenant_id, f"{ADOPTED}{uid}")
            _add_conversation(cursor, tenant_id, conversation_id, uid, owner, created)
            note = "its own id, title and metadata are lost: what is left of it is kept under this id"
            whose = f"the owner, {owner}, is taken from what it holds" if owner else "it has no owner now"
            self._report.conversations.append(Touched(tenant_id, conversation_id, 0, f"{note}; {whose}"))

    def _orphans(self) -> str:
        """The query of conversations without a row, of which something is left that callers see: the uid, the tenant,
        the user if there is one only, and a time.
        """
        kinds = [kind for kind in self._kinds if kind.of_conversation and kind.transfer]
        records = "".join(
            f" UNION ALL SELECT tenant_id, conversation_uid, nullif(user_id, ''), NULL, NULL FROM {kind.name}"  # noqa: S608
            for kind in kinds
        )
        return _ORPHANS.format(records=records)

    def _raise_sequences(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """A sequence is not given twice, also where the message that had it is deleted and its head is lost."""
        greatest = dict(self._sequences)
        for uid, sequence in self._named_sequences(cursor):
            greatest[uid] = max(sequence, greatest.get(uid, 0))
        if greatest:
            cursor.register("named", arrow.table_of(_NAMED, list(greatest.items())))
            cursor.execute(_RAISE_SEQUENCES)
            cursor.unregister("named")

    def _named_sequences(self, cursor: duckdb.DuckDBPyConnection) -> Iterator[tuple[int, int]]:
        """The uid of a conversation and a sequence of it that anything else than its messages names."""
        yield from cursor.execute("SELECT conversation_uid, max(sequence) FROM embeddings GROUP BY ALL").fetchall()
        for kind, sequences_of in _NAMING.items():
            if kind not in set(self._kinds):
                continue
            cursor.execute(f"SELECT conversation_uid, body FROM {kind.name} WHERE upload_id = ''")  # noqa: S608 - ours
            while rows := cursor.fetchmany(NAMING_ROWS):
                for uid, body in rows:
                    yield from sequences_of(uid, kind.message.FromString(body))

    def _tidy_kind(self, cursor: duckdb.DuckDBPyConnection, kind: Kind) -> None:
        """Remove records whose owner is gone; those whose bodies are not whole are lost."""
        for what, statement in _tidy_statements(kind):
            self._remove(cursor, what, statement)
        [(lost,)] = cursor.execute(f"DELETE FROM {kind.name} WHERE {incomplete(kind)}").fetchall()  # noqa: S608 - ours
        if lost:
            self._report.lost_rows[kind.name] = self._report.lost_rows.get(kind.name, 0) + lost

    def _rebuild_collections(self, cursor: duckdb.DuckDBPyConnection) -> None:
        """Give collections whose row is lost a new one: the dimension is that of the vector that was written last."""
        rows = []
        for tenant_id, collection_id, revision, body in cursor.execute(_LOST_COLLECTIONS).fetchall():
            dimension = len(vector_pb2.Vector.FromString(body).values) // DIMENSION_BYTES
            made = vector_pb2.VectorCollection(id=collection_id, current_dimension=dimension)
            drafted = VECTOR_COLLECTIONS.draft(made)
            place = _native.place(tenant_id, 0, drafted.partition)
            head = (tenant_id, 0, place, drafted.partition, drafted.key, "", revision, 0, None, "")
            rows.append((VECTOR_COLLECTIONS, (*head, *drafted.columns, drafted.body)))
            what = f"the collection {collection_id} of tenant {tenant_id or '(none)'}"
            lost = "its create time, and the dimension that it was declared with, are lost"
            self._report.rebuilt.append(f"{what}: its dimension, {dimension}, is taken from its vectors; {lost}")
        insert(cursor, rows)

    def _note_lost_messages(self, cursor: duckdb.DuckDBPyConnection) -> None:
        for tenant_id, conversation_id, lost in cursor.execute(_LOST_MESSAGES).fetchall():
            self._report.conversations.append(Touched(tenant_id, conversation_id, lost))


def _add_conversation(  # noqa: PLR0917 - a row
    cursor: duckdb.DuckDBPyConnection, tenant_id: str, conversation_id: str, uid: int, owner: str, created: int
) -> None:
    body = conversation_pb2.Conversation(id=conversation_id, user_id=owner).SerializeToString()
    cursor.execute(
        "INSERT INTO conversations VALUES (?, ?, ?, ?, '', '', NULL, ?, ?)",
        [tenant_id, conversation_id, uid, owner, body, created],
    )


def _free_id(cursor: duckdb.DuckDBPyConnection, tenant_id: str, wanted: str) -> str:
    """An id that no conversation of the tenant has: the wanted one, if possible."""
    found, number = wanted, 1
    while cursor.execute("SELECT 1 FROM conversations WHERE tenant_id = ? AND id = ?", [tenant_id, found]).fetchall():
        number += 1
        found = f"{wanted}-{number}"
    return found


_ORPHANS = """
    SELECT uid, min(tenant_id), CASE WHEN count(DISTINCT user_id) = 1 THEN min(user_id) ELSE '' END,
        coalesce(min(created), min(updated), 0)
    FROM (SELECT tenant_id, conversation_uid AS uid, user_id, create_time AS created, NULL AS updated FROM messages
          UNION ALL SELECT tenant_id, uid, NULL, NULL, update_time FROM heads{records})
    ANTI JOIN conversations USING (uid) GROUP BY uid ORDER BY uid"""

_REPLACED_CONVERSATIONS = """SELECT older.uid FROM conversations AS older SEMI JOIN conversations AS newer
    ON newer.tenant_id = older.tenant_id AND newer.id = older.id AND newer.uid > older.uid"""

_TIDY = (
    (
        "messages whose sequence a newer message has",
        """DELETE FROM messages USING messages AS newer WHERE newer.conversation_uid = messages.conversation_uid
           AND newer.sequence = messages.sequence
           AND (newer.revision, newer.rowid) > (messages.revision, messages.rowid)""",
    ),
    (
        "messages whose id a newer message has",
        """DELETE FROM messages USING messages AS newer WHERE newer.conversation_uid = messages.conversation_uid
           AND newer.user_id = messages.user_id AND newer.id = messages.id AND newer.sequence > messages.sequence""",
    ),
    (
        "embeddings of messages that are lost or have changed",
        """DELETE FROM embeddings WHERE NOT EXISTS (SELECT 1 FROM messages AS m
           WHERE m.conversation_uid = embeddings.conversation_uid AND m.sequence = embeddings.sequence
           AND m.revision = embeddings.message_revision)""",
    ),
)

_ADD_HEADS = """INSERT INTO heads SELECT c.tenant_id, c.uid, 0, 0, 0, c.create_time, c.uid FROM conversations AS c
    ANTI JOIN heads USING (uid)"""


def _tidy_statements(kind: Kind) -> Iterator[tuple[str, str]]:
    name = kind.name
    yield (
        f"{name} whose key a newer record has",
        f"""DELETE FROM {name} USING {name} AS newer WHERE newer.tenant_id = {name}.tenant_id
            AND newer.conversation_uid = {name}.conversation_uid AND newer.partition = {name}.partition
            AND newer.key = {name}.key
            AND (newer.revision, newer.ordinal, newer.rowid) > ({name}.revision, {name}.ordinal, {name}.rowid)""",  # noqa: S608
    )
    if kind.of_conversation:
        yield (
            f"{name} of a conversation of which nothing else is left",
            f"DELETE FROM {name} WHERE conversation_uid NOT IN (SELECT uid FROM conversations)",  # noqa: S608 - ours
        )
    if kind.parent:
        yield (
            f"{name} whose record of {kind.parent.name} is lost",
            f"DELETE FROM {name} WHERE {without_parent(kind, kind.parent)}",  # noqa: S608 - ours
        )


_NAMED: Columns = (("uid", arrow.UINT64), ("sequence", arrow.UINT64))


def _of_receipt(_: int, receipt: Any) -> Iterator[tuple[int, int]]:  # noqa: ANN401 - a StoredReceipt
    for scope, sequence in zip(receipt.item_scopes, receipt.item_sequences, strict=True):
        yield receipt.scopes[scope].conversation_uid, sequence


_NAMING: Mapping[Kind, Callable[[int, Any], Iterable[tuple[int, int]]]] = {
    CONVERSATION_WINDOWS: lambda uid, window: [(uid, window.first_sequence), (uid, window.system_sequence)],
    RECEIPT_CONTENTS: lambda uid, content: [(uid, content.sequence)],
    RECEIPTS: _of_receipt,
}
"""What names messages: of a record in a conversation, or in none, the conversations' uids and the sequences."""

_RAISE_SEQUENCES = """UPDATE heads SET last_sequence = greatest(last_sequence, sequence) FROM named
    WHERE named.uid = heads.uid"""

_LOST_COLLECTIONS = f"""
    SELECT tenant_id, collection_id, max(revision), arg_max(body, (revision, ordinal)) FROM {VECTORS.name}
    WHERE {without_collection()} GROUP BY ALL ORDER BY ALL"""  # noqa: S608 - tables of ours

_LOST_MESSAGES = """
    SELECT c.tenant_id, c.id, h.message_count - coalesce(m.held, 0) AS lost
    FROM heads AS h JOIN conversations AS c USING (uid)
    LEFT JOIN (SELECT conversation_uid AS uid, count(*) AS held FROM messages GROUP BY ALL) AS m USING (uid)
    WHERE h.message_count > coalesce(m.held, 0) ORDER BY c.tenant_id, c.id"""

_COUNT = (
    """UPDATE heads SET message_count = (SELECT count(*) FROM messages WHERE conversation_uid = heads.uid)""",
    """UPDATE heads SET last_sequence = held.last, last_time = greatest(last_time, held.time)
       FROM (SELECT conversation_uid, max(sequence) AS last, max(create_time) AS time FROM messages GROUP BY ALL)
       AS held
       WHERE held.conversation_uid = heads.uid AND held.last > last_sequence""",
)
