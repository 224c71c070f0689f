"""What must hold between the rows of the database at any moment, whatever the journal has beyond them."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import duckdb
from tests.faults.kill_checks import Faults

from remora_server.storage.database.database import FILE_NAME
from remora_server.storage.schema.kinds import KINDS, Kind

_FAULTS = {
    "messages with another's place": """
        SELECT conversation_uid, sequence FROM messages GROUP BY ALL HAVING count(*) > 1""",
    "conversations whose head counts other messages than there are": """
        SELECT h.uid, h.message_count, count(m.sequence) AS there FROM heads h
        LEFT JOIN messages m ON m.conversation_uid = h.uid
        GROUP BY h.uid, h.message_count HAVING count(m.sequence) <> h.message_count""",
    "messages behind the last sequence, or newer than their conversation": """
        SELECT m.conversation_uid, m.sequence FROM messages m JOIN heads h ON h.uid = m.conversation_uid
        WHERE m.sequence > h.last_sequence OR m.revision > h.revision""",
    "rows of no conversation": """
        SELECT uid FROM (
            SELECT conversation_uid AS uid FROM messages UNION ALL SELECT conversation_uid FROM embeddings
            UNION ALL SELECT uid FROM heads)
        WHERE uid NOT IN (SELECT uid FROM conversations)""",
    "conversations with another's id": """
        SELECT tenant_id, id FROM conversations GROUP BY ALL HAVING count(*) > 1""",
    "conversations that have not one head": """
        SELECT c.uid FROM conversations c LEFT JOIN heads h ON h.uid = c.uid
        GROUP BY c.uid HAVING count(h.uid) <> 1""",
    "vectors of no message": """
        SELECT e.conversation_uid, e.sequence FROM embeddings e ANTI JOIN messages m
        ON m.conversation_uid = e.conversation_uid AND m.sequence = e.sequence AND m.revision = e.message_revision""",
    "vectors that are there twice": """
        SELECT conversation_uid, sequence, model FROM embeddings GROUP BY ALL HAVING count(*) > 1""",
    "requests that are there twice": """
        SELECT tenant_id, request_id FROM requests GROUP BY ALL HAVING count(*) > 1""",
    "rows of revisions that were not applied": """
        SELECT revision FROM (SELECT revision FROM heads UNION ALL SELECT revision FROM requests)
        WHERE revision > (SELECT CAST(value AS UBIGINT) FROM meta WHERE key = 'applied_revision')""",
}


def _faults_of(kind: Kind) -> dict[str, str]:
    """What must not be found among the records of a kind."""
    faults = {
        f"{kind.name} that are there twice": f"""
            SELECT tenant_id, conversation_uid, partition, key FROM {kind.name} GROUP BY ALL HAVING count(*) > 1""",
        f"{kind.name} of revisions that were not applied": f"""
            SELECT revision FROM {kind.name}
            WHERE revision > (SELECT CAST(value AS UBIGINT) FROM meta WHERE key = 'applied_revision')""",
    }
    if kind.of_conversation:
        faults[f"{kind.name} of no conversation"] = f"""
            SELECT conversation_uid FROM {kind.name} WHERE conversation_uid NOT IN (SELECT uid FROM conversations)"""
    return faults


FAULTS = _FAULTS | {what: query for kind in KINDS for what, query in _faults_of(kind).items()}


def applied_revision(data: Path) -> int:
    """How far the database of a dead server is. Raises Faults where its rows do not agree."""
    with tempfile.TemporaryDirectory() as directory:
        # A copy, because whoever opens a database writes what its write-ahead log holds into it.
        # The folder beside it, with what DuckDB had spilled, is no part of it.
        for file in filter(Path.is_file, data.glob(f"{FILE_NAME}*")):
            shutil.copy(file, directory)
        with duckdb.connect(str(Path(directory) / FILE_NAME)) as connection:
            found = {what: connection.execute(query).fetchall() for what, query in FAULTS.items()}
            rows = connection.execute("SELECT value FROM meta WHERE key = 'applied_revision'").fetchall()
    faults = [f"the database has {what}: {rows[:5]}" for what, rows in found.items() if rows]
    if faults:
        raise Faults(faults)
    return int(rows[0][0]) if rows else 0
