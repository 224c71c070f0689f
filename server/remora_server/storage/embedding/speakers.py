"""The names of those who speak in each part of a conversation.

What is known of a part covers every accepted message; it may also hold names that have gone since, until the part's
review.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from remora_server.domain.messages import Plan
from remora_server.locking import Level, new_lock
from remora_server.storage.commit.commits import Commits
from remora_server.storage.database.database import Database
from remora_server.storage.embedding.review_schedule import ReviewSchedule
from remora_server.storage.embedding.scopes import Part

KEPT_PARTS = 4096

_NAMES = """
SELECT DISTINCT tenant_id, user_id, conversation_uid, name FROM messages
WHERE name <> '' AND conversation_uid IN (SELECT unnest(?))
"""


class Speakers:
    """Follows the names of the parts that are written to, and schedules reviews where they change. Safe to share
    between threads of the process.
    """

    def __init__(self, database: Database, commits: Commits, schedule: ReviewSchedule) -> None:
        self._database = database
        self._commits = commits
        self._schedule = schedule
        self._lock = new_lock(Level.SPEAKERS)
        self._known: dict[Part, dict[str, int]] = {}
        """Names with the revision that last brought them, of the parts that were used last."""

    def follow(self, tenant_id: str, uid: int, plan: Plan, revision: int) -> None:
        """Take in the names of an accepted plan."""
        brought: dict[str, set[str]] = {removal.user_id: set() for removal in plan.removals}
        shrunk = set(brought)
        for put in plan.puts:
            brought.setdefault(put.user_id, set()).update({put.draft.name} - {""})
            if put.replaces:
                shrunk.add(put.user_id)
        with self._lock:
            for user_id, names in brought.items():
                self._bring((tenant_id, user_id, uid), names, revision, created=plan.head.uid == 0)
                if user_id in shrunk:
                    self._lose((tenant_id, user_id, uid))

    def _bring(self, part: Part, names: set[str], revision: int, *, created: bool) -> None:
        if created:
            self._keep(part, {})
        known = self._known.get(part)
        if names and not created and (known is None or not names <= known.keys()):
            self._schedule.now(part)
        if known is not None:
            known.update(dict.fromkeys(names, revision))

    def _lose(self, part: Part) -> None:
        """Names may have gone with messages of a part; not where there were none."""
        if self._known.get(part) != {}:
            self._schedule.soon([part])

    def erased(self, user_id: str) -> None:
        """Messages of a user may have gone from any conversation."""
        with self._lock:
            for part in self._known:
                if part[1] == user_id:
                    self._lose(part)

    def _keep(self, part: Part, names: dict[str, int]) -> None:
        self._known.pop(part, None)
        self._known[part] = names
        if len(self._known) > KEPT_PARTS:
            del self._known[next(iter(self._known))]

    def names(self, parts: Iterable[Part]) -> dict[Part, list[str]]:
        """The names of each of the parts. Those that are not known are read once everything accepted is applied."""
        wanted = set(parts)
        with self._lock:
            unknown = wanted - self._known.keys()
        loaded = self._load(unknown) if unknown else {}
        with self._lock:
            found = {part: self._known.get(part, loaded.get(part, {})) for part in wanted}
            for part, names in found.items():
                self._keep(part, names)
            return {part: sorted(names) for part, names in found.items()}

    def _load(self, parts: Iterable[Part]) -> dict[Part, dict[str, int]]:
        self._commits.settle()
        uids = list({uid for _, _, uid in parts})
        loaded: dict[Part, dict[str, int]] = {}
        for *part, name in self._database.rows(_NAMES, [uids]):
            loaded.setdefault((part[0], part[1], part[2]), {})[name] = 0
        return loaded

    def reviewed(self, present: Mapping[Part, set[str]], revision: int) -> dict[Part, list[str]]:
        """Take in the names that parts had at a revision, and give those that they have."""
        with self._lock:
            return {part: sorted(self._take_in(part, names, revision)) for part, names in present.items()}

    def _take_in(self, part: Part, present: set[str], revision: int) -> dict[str, int]:
        known = self._known.get(part, {})
        names = dict.fromkeys(present, 0) | {name: at for name, at in known.items() if at > revision}
        if part in self._known or len(self._known) < KEPT_PARTS:
            self._known[part] = names
        return names
