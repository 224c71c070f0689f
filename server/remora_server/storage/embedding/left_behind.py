"""Stored messages that an earlier process, an import or another model left without a vector of their tenant's model."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from remora_server.domain.models import ServedModel, Tenants
from remora_server.domain.search import Unembedded
from remora_server.storage.commit.commits import Commits
from remora_server.storage.database.chosen import CHOSEN_MESSAGES, UIDS
from remora_server.storage.database.database import Database
from remora_server.storage.embedding.scopes import ResolvedScope

SCAN_ROWS = 2048
PLACE_ROWS = 64
"""How many messages of a scope are read while it is searched: as many as are embedded soon."""

# The number of tokens tells whether a text is empty. To look at the texts, a scan would read all of them.
_SERVED = "(m.tenant_id IN (SELECT unnest($tenants::TEXT[]))) <> $others"
_MISSING = f"""
FROM messages m JOIN conversations c ON c.uid = m.conversation_uid
WHERE m.token_count > 0 AND {_SERVED} AND NOT EXISTS (
    SELECT 1 FROM embeddings e
    WHERE e.conversation_uid = m.conversation_uid AND e.sequence = m.sequence
    AND (e.by_caller OR e.model = $model AND (e.pieces IS NOT NULL OR NOT $late)))
"""  # noqa: S608 - constants
_MESSAGE = "SELECT m.tenant_id, m.conversation_uid, c.id, m.user_id, m.sequence, m.revision, m.text"
# Keys first, texts after: a join may have to keep what it passes on.
_KEY = "SELECT m.conversation_uid, m.sequence"
_NEXT = f"{_KEY} {_MISSING} LIMIT $rows"
_NEWEST_OF_PLACE = f"""
{_KEY} {_MISSING} AND m.tenant_id = $tenant
AND ($user IS NULL OR m.user_id = $user) AND ($uid IS NULL OR m.conversation_uid = $uid)
ORDER BY m.revision DESC, m.sequence DESC LIMIT $rows
"""
_TEXTS = f"""
SELECT tenant_id, conversation_uid, user_id, sequence, revision, text FROM messages WHERE {CHOSEN_MESSAGES}
"""  # noqa: S608 - a constant
_IDS = f"SELECT uid, id FROM conversations WHERE uid IN {UIDS}"  # noqa: S608 - a constant
_COUNT = f"SELECT count(*) {_MISSING}"
_REFUSED = f"""
SELECT count(*) FROM embeddings m WHERE {_SERVED} AND m.model = $model AND m.dimension = 0
"""  # noqa: S608 - constants

_DIMENSION = "SELECT dimension FROM embeddings WHERE model = $model AND NOT by_caller AND dimension > 0 LIMIT 1"


class LeftBehind:
    """Asks DuckDB, when it has everything that was accepted, about the messages of a model's tenants. For a late model,
    vectors without word pieces do not count.
    """

    def __init__(self, database: Database, commits: Commits, model: ServedModel, tenants: Tenants) -> None:
        self._database = database
        self._commits = commits
        self._of_model = {"model": model.name}
        self._of_tenants = {**self._of_model, "tenants": sorted(tenants.names), "others": tenants.others}
        self._wanted = {**self._of_tenants, "late": model.late}

    def count(self) -> int:
        """How many there are, among the applied messages."""
        return self._number(_COUNT, self._wanted)

    def refused(self) -> int:
        """How many messages the model makes no vector of."""
        return self._number(_REFUSED, self._of_tenants)

    def dimension(self) -> int:
        """The dimension of the vectors that the model has made so far; 0 if there are none."""
        return self._number(_DIMENSION, self._of_model)

    def _number(self, sql: str, parameters: object) -> int:
        rows = self._database.rows(sql, parameters)
        return int(rows[0][0]) if rows else 0

    def some(self) -> tuple[list[Unembedded], bool]:
        """Some of them, and whether there are more."""
        self._commits.settle()
        return self._found(_NEXT, self._wanted, SCAN_ROWS)

    def newest_of(self, scope: ResolvedScope) -> tuple[list[Unembedded], bool]:
        """The newest ones of a scope, the oldest of these first, and whether there are more."""
        self._commits.settle()
        where = {"tenant": scope.tenant_id, "user": scope.user_id, "uid": scope.uid}
        found, are_more = self._found(_NEWEST_OF_PLACE, {**self._wanted, **where}, PLACE_ROWS)
        return found[::-1], are_more

    def _found(self, sql: str, parameters: dict[str, object], most: int) -> tuple[list[Unembedded], bool]:
        """The first messages whose keys a query finds, in its order, and whether there are more."""

        def ask(cursor: duckdb.DuckDBPyConnection, rows: int) -> tuple[list[Unembedded], bool]:
            keys = cursor.execute(sql, {**parameters, "rows": rows}).fetchall()
            return _messages(cursor, keys), len(keys) == rows

        return self._database.in_pages(most, ask)


def _messages(cursor: duckdb.DuckDBPyConnection, keys: Sequence[tuple[int, int]]) -> list[Unembedded]:
    parameters = {"uids": [uid for uid, _ in keys], "sequences": [sequence for _, sequence in keys]}
    ids = dict(cursor.execute(_IDS, {"uids": parameters["uids"]}).fetchall())
    found = {
        (uid, sequence): Unembedded(tenant_id, uid, ids[uid], user_id, sequence, revision, text)
        for tenant_id, uid, user_id, sequence, revision, text in cursor.execute(_TEXTS, parameters).fetchall()
    }
    return [found[key] for key in keys]
