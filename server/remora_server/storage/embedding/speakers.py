"""The names of those who speak in each part of a conversation.

What is known of a part is what its accepted messages say, and nothing of those that are deleted or replaced.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from msgspec import Struct, field

from remora_server.domain.messages import Plan
from remora_server.locking import Level, new_lock
from remora_server.storage.commit.commits import Commits
from remora_server.storage.database.database import Database
from remora_server.storage.embedding.scopes import Part

KEPT_PARTS = 4096

Names: TypeAlias = dict[str, int]
"""Names, each with the sequence of the last message that has it."""

_NAMES = """
SELECT tenant_id, user_id, conversation_uid, name, max(sequence) FROM messages
WHERE name <> '' AND conversation_uid IN (SELECT unnest(?)) GROUP BY ALL
"""


class _Load(Struct, eq=False):
    """Names that are being read. Those of parts that were written to meanwhile are not kept, because they may have
    changed.
    """

    parts: set[Part]
    written: set[Part] = field(default_factory=set)


class Speakers:
    """Follows the names of the parts that were used last. Safe to share between threads of the process."""

    def __init__(self, database: Database, commits: Commits) -> None:
        self._database = database
        self._commits = commits
        self._lock = new_lock(Level.SPEAKERS)
        self._known: dict[Part, Names] = {}
        self._loads: list[_Load] = []

    def follow(self, tenant_id: str, uid: int, plan: Plan) -> None:
        """Take in the names of an accepted plan, and let go those of messages that it removes or replaces."""
        written: dict[str, dict[int, str]] = defaultdict(dict)
        for removal in plan.removals:
            written[removal.user_id].update(dict.fromkeys(removal.sequences or (), ""))
        for put in plan.puts:
            written[put.user_id][put.sequence] = put.draft.name
        cleared = {removal.user_id for removal in plan.removals if removal.sequences is None}
        with self._lock:
            for user_id, names in written.items():
                part = (tenant_id, user_id, uid)
                if plan.head.uid == 0:
                    self._keep(part, _last(names))
                elif user_id in cleared:
                    self._forget(part)
                else:
                    self._update(part, names)

    def _update(self, part: Part, written: Mapping[int, str]) -> None:
        """Note the present names of messages. A name that its last message no longer has may still belong to others."""
        known = self._known.get(part)
        if known is None or any(written.get(last, name) != name for name, last in known.items()):
            self._forget(part)
        else:
            known |= {name: max(last, known.get(name, 0)) for name, last in _last(written).items()}

    def erased(self, user_id: str) -> None:
        """Messages of a user may have gone from any conversation."""
        self._forget_where(lambda part: part[1] == user_id)

    def deleted(self, uid: int) -> None:
        """A conversation is gone."""
        self._forget_where(lambda part: part[2] == uid)

    def _forget_where(self, is_gone: Callable[[Part], bool]) -> None:
        with self._lock:
            loading = (part for load in self._loads for part in load.parts)
            for part in list(filter(is_gone, [*self._known, *loading])):
                self._forget(part)

    def _forget(self, part: Part) -> None:
        """Have the names read again, also those that are being read, because they may have changed."""
        self._known.pop(part, None)
        for load in self._loads:
            load.written.add(part)

    def _keep(self, part: Part, names: Names) -> None:
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

    def _read(self, parts: set[Part]) -> dict[Part, Names]:
        self._commits.settle()
        found: dict[Part, Names] = {part: {} for part in parts}
        for tenant_id, user_id, uid, name, last in self._database.rows(_NAMES, [list({uid for _, _, uid in parts})]):
            if (tenant_id, user_id, uid) in found:
                found[tenant_id, user_id, uid][name] = last
        return found


def _last(names: Mapping[int, str]) -> Names:
    """The last sequence of each name, from names by sequence."""
    return {name: sequence for sequence, name in sorted(names.items()) if name}
