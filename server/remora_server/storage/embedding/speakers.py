"""The names of those who speak in each part of a conversation.

What is known of a part covers every accepted message. It may also hold names whose messages have gone since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from msgspec import Struct, field

from remora_server.domain.messages import Plan
from remora_server.locking import Level, new_lock
from remora_server.storage.commit.commits import Commits
from remora_server.storage.database.database import Database
from remora_server.storage.embedding.scopes import Part

KEPT_PARTS = 4096

_NAMES = """
SELECT DISTINCT tenant_id, user_id, conversation_uid, name FROM messages
WHERE name <> '' AND conversation_uid IN (SELECT unnest(?))
"""


class _Load(Struct, eq=False):
    """Names that are being read. What was written to meanwhile is not kept: the names may be others by then."""

    parts: set[Part]
    written: set[Part] = field(default_factory=set)


class Speakers:
    """Follows the names of the parts that were used last. Safe to share between threads of the process."""

    def __init__(self, database: Database, commits: Commits) -> None:
        self._database = database
        self._commits = commits
        self._lock = new_lock(Level.SPEAKERS)
        self._known: dict[Part, set[str]] = {}
        self._loads: list[_Load] = []

    def follow(self, tenant_id: str, uid: int, plan: Plan) -> None:
        """Take in the names of an accepted plan."""
        brought: dict[str, set[str]] = {}
        for put in plan.puts:
            brought.setdefault(put.user_id, set()).update({put.draft.name} - {""})
        with self._lock:
            for user_id, names in brought.items():
                part = (tenant_id, user_id, uid)
                if plan.head.uid == 0:
                    self._keep(part, names)
                elif part in self._known:
                    self._known[part] |= names
                else:
                    self._note_written(part)

    def erased(self, user_id: str) -> None:
        """Messages of a user may have gone from any conversation."""
        with self._lock:
            for part in [part for part in self._known if part[1] == user_id]:
                del self._known[part]
            for load in self._loads:
                load.written.update(part for part in load.parts if part[1] == user_id)

    def _note_written(self, part: Part) -> None:
        for load in self._loads:
            load.written.add(part)

    def _keep(self, part: Part, names: set[str]) -> None:
        self._known.pop(part, None)
        self._known[part] = names
        if len(self._known) > KEPT_PARTS:
            del self._known[next(iter(self._known))]

    def names(self, parts: Iterable[Part]) -> dict[Part, list[str]]:
        """The names of each of the parts. Those that are not known are read once everything accepted is applied."""
        wanted = set(parts)
        with self._lock:
            found = {part: self._known[part] for part in wanted & self._known.keys()}
            for part, names in found.items():
                self._keep(part, names)
            named = {part: sorted(names) for part, names in found.items()}
        return named | self._loaded(wanted - named.keys())

    def _loaded(self, parts: set[Part]) -> dict[Part, list[str]]:
        if not parts:
            return {}
        with self._loading(parts) as load:
            found = self._read(parts)
            with self._lock:
                for part in parts - load.written - self._known.keys():
                    self._keep(part, found[part])
                return {part: sorted(names) for part, names in found.items()}

    @contextmanager
    def _loading(self, parts: set[Part]) -> Iterator[_Load]:
        load = _Load(parts)
        with self._lock:
            self._loads.append(load)
        try:
            yield load
        finally:
            with self._lock:
                self._loads.remove(load)

    def _read(self, parts: set[Part]) -> dict[Part, set[str]]:
        self._commits.settle()
        found: dict[Part, set[str]] = {part: set() for part in parts}
        for tenant_id, user_id, uid, name in self._database.rows(_NAMES, [list({uid for _, _, uid in parts})]):
            if (tenant_id, user_id, uid) in found:
                found[tenant_id, user_id, uid].add(name)
        return found
