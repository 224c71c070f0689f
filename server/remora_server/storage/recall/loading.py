"""Brings messages and their vectors from DuckDB into the engine, where searches find them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

import duckdb

from remora_server._native import Core, Unapplied
from remora_server.domain.errors import MemoryExhausted, StoreFailed, StoreFull
from remora_server.domain.models import ServedModels
from remora_server.storage.commit.commits import Commits
from remora_server.storage.database import arrow
from remora_server.storage.database.database import Database
from remora_server.storage.schema.encoding import STORED_COLUMNS, stored_message

Vectors: TypeAlias = list[tuple[str, bytes, bool, bytes]]
"""Of one message: model, little-endian f32, whether the caller made it, word pieces."""
Version: TypeAlias = tuple[int, int, int]
"""A message's conversation uid, its sequence and the revision that last wrote it."""

GROUP_MESSAGES = 2_000
"""Messages that are read together, unless one part has more: a load needs memory for these besides what it fills."""

_PARTS = """
SELECT m.conversation_uid, any_value(c.id), count(*) FROM messages m JOIN conversations c ON c.uid = m.conversation_uid
WHERE m.tenant_id = ? AND m.user_id = ? GROUP BY m.conversation_uid ORDER BY m.conversation_uid
"""
_USERS = "SELECT DISTINCT user_id FROM messages WHERE tenant_id = ? ORDER BY user_id"
# Uids have the columns' own type: where they are compared as another, every row group is read.
_MESSAGES = f"""
SELECT conversation_uid, {STORED_COLUMNS} FROM messages
WHERE tenant_id = $tenant AND user_id = $user AND conversation_uid IN (SELECT unnest($uids::UBIGINT[]))
ORDER BY conversation_uid, sequence
"""  # noqa: S608 - a constant
_EMBEDDINGS = """
SELECT rowid, conversation_uid, sequence, message_revision, model, by_caller FROM embeddings
WHERE tenant_id = $tenant AND conversation_uid IN (SELECT unnest($uids::UBIGINT[])) AND (by_caller OR model = $model)
ORDER BY conversation_uid, sequence, model
"""
# By rowid: a scan that finds rows by anything else reads this column, by far the largest, of all that there are.
_VALUES = "SELECT values FROM embeddings WHERE rowid IN (SELECT unnest($rowids)) ORDER BY rowid"
_PIECES = "SELECT rowid, pieces FROM embeddings WHERE rowid IN (SELECT unnest($rowids))"


class RecallLoader:
    """Loads parts of conversations (one user's of each), users and tenants that are not in memory.

    A load begins by having changes gather; then it waits until DuckDB holds what was delivered before, and reads it.
    What DuckDB has no room for is added from the journal. Several may load the same at once: the first counts. Vectors
    of models that are neither the tenant's nor a caller's stay on disk, and word pieces unless the tenant's model makes
    some.
    """

    def __init__(self, core: Core, database: Database, commits: Commits, models: ServedModels) -> None:
        self._core = core
        self._recall = core.recall
        self._database = database
        self._commits = commits
        self._models = models
        self._last_unapplied: tuple[tuple[str, int, int], Unapplied] | None = None
        """Of a tenant, after a revision that is applied, as of one that was delivered."""

    def part(self, tenant_id: str, user_id: str, uid: int, conversation_id: str, deadline: float | None) -> None:
        """Have one user's part of a conversation in memory."""
        if self._recall.begin_part(tenant_id, user_id, uid):
            with self._loading(tenant_id, user_id, [uid]):
                unapplied = self._settle(tenant_id, deadline)
                self._fill(tenant_id, user_id, {uid: conversation_id}, unapplied)

    @contextmanager
    def user(self, tenant_id: str, user_id: str, deadline: float | None) -> Iterator[None]:
        """Have all of a user's messages in memory, for as long as the context lasts."""
        with self._users(tenant_id, [user_id], deadline):
            yield

    @contextmanager
    def tenant(self, tenant_id: str, deadline: float | None) -> Iterator[None]:
        """Have all of a tenant's messages in memory, for as long as the context lasts."""
        unapplied = self._settle(tenant_id, deadline)
        users = {user_id for (user_id,) in self._database.rows(_USERS, [tenant_id])}
        with self._users(tenant_id, sorted(users.union(unapplied.users() if unapplied else [])), deadline):
            yield

    @contextmanager
    def _users(self, tenant_id: str, user_ids: Iterable[str], deadline: float | None) -> Iterator[None]:
        held = []
        try:
            for user_id in user_ids:
                while not self._recall.hold_user(tenant_id, user_id):
                    self._load_user(tenant_id, user_id, deadline)
                held.append(user_id)
            yield
        finally:
            for user_id in held:
                self._recall.release_user(tenant_id, user_id)

    def _load_user(self, tenant_id: str, user_id: str, deadline: float | None) -> None:
        if self._recall.begin_user(tenant_id, user_id):
            with self._loading(tenant_id, user_id, [None]):
                unapplied = self._settle(tenant_id, deadline)
                changed = unapplied.parts(user_id) if unapplied else []
                stored = {uid: (uid, conversation_id, 0) for uid, conversation_id in changed}
                stored |= {row[0]: row for row in self._database.rows(_PARTS, [tenant_id, user_id])}
                absent = self._recall.declare_parts(tenant_id, user_id, list(stored))
                with self._loading(tenant_id, user_id, absent):
                    for group in _groups([stored[uid] for uid in absent]):
                        self._fill(tenant_id, user_id, group, unapplied)
                        del absent[: len(group)]
                self._recall.finish_user(tenant_id, user_id)

    @contextmanager
    def _loading(self, tenant_id: str, user_id: str, uids: Sequence[int | None]) -> Iterator[None]:
        try:
            yield
        except BaseException:
            for uid in uids:
                self._recall.abandon(tenant_id, user_id, uid)
            raise

    def _settle(self, tenant_id: str, deadline: float | None) -> Unapplied | None:
        """Wait until DuckDB holds every change that was delivered, except those that never become durable.

        Returns those that it lacks, where something is lacking to apply them.
        """
        revision = self._recall.revision()
        try:
            self._commits.wait_published(revision, deadline)
        except StoreFailed:
            revision = min(revision, self._core.published())
        while True:
            try:
                self._commits.wait_applied(revision, deadline)
            except (StoreFull, MemoryExhausted):
                unapplied = self._unapplied(tenant_id, self._commits.applied(), revision)
                if unapplied is not None:
                    return unapplied
            else:
                self._last_unapplied = None
                return None

    def _unapplied(self, tenant_id: str, applied: int, revision: int) -> Unapplied | None:
        """What DuckDB lacks of a tenant, read once for all users; None where it has some of it by now."""
        key, last = (tenant_id, applied, revision), self._last_unapplied
        if last is None or last[0] != key:
            found = self._core.unapplied(tenant_id, applied)
            last = self._last_unapplied = None if found is None else (key, found)
        return None if last is None else last[1]

    def _fill(self, tenant_id: str, user_id: str, parts: dict[int, str], unapplied: Unapplied | None) -> None:
        """Fill all parts, given as uids with ids of conversations: one that holds nothing is filled with nothing."""
        scope, model = {"tenant": tenant_id, "uids": list(parts)}, self._models.of(tenant_id)
        rows, vectors = self._database.snapshot(
            lambda cursor: (
                cursor.execute(_MESSAGES, {**scope, "user": user_id}).fetchall(),
                _vectors(cursor, {**scope, "model": model.name}, late=model.late),
            )
        )
        messages = {uid: list(own) for uid, own in groupby(rows, itemgetter(0))}
        for uid, conversation_id in parts.items():
            own = messages.get(uid, [])
            encoded = [stored_message(*row[1:]) for row in own]
            made = [vectors.get(row[:3], []) for row in own]
            self._recall.fill_part(tenant_id, user_id, uid, conversation_id, encoded, made, unapplied)


def _groups(parts: Sequence[tuple[int, str, int]]) -> Iterator[dict[int, str]]:
    """Parts (uid, conversation's id, how many messages) that are read together, as uids with ids."""
    group: dict[int, str] = {}
    size = 0
    for uid, conversation_id, count in parts:
        if group and size + count > GROUP_MESSAGES:
            yield group
            group, size = {}, 0
        group[uid] = conversation_id
        size += count
    if group:
        yield group


def _vectors(cursor: duckdb.DuckDBPyConnection, parameters: dict[str, object], *, late: bool) -> dict[Version, Vectors]:
    """Read until rowids stay the same meanwhile: a checkpoint moves rows, also those that a transaction sees."""
    keys = cursor.execute(_EMBEDDINGS, parameters).fetchall()
    while keys:
        rowids = sorted(key[0] for key in keys)
        values = list(arrow.vectors(cursor.sql(_VALUES, params={"rowids": rowids})))
        own = [rowid for rowid, *_, by_caller in keys if late and not by_caller]
        pieces = dict(cursor.execute(_PIECES, {"rowids": own}).fetchall()) if own else {}
        before, keys = keys, cursor.execute(_EMBEDDINGS, parameters).fetchall()
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
