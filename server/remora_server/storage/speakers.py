"""The names of those who speak in each thread, and which conversations must be reviewed because these have changed.

A thread is one user's part of one conversation. What is known of one covers every accepted message; it may also hold
names that have gone since, until the conversation's review.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from remora_server.domain.messages import Plan
from remora_server.storage.commits import Commits
from remora_server.storage.database import Database

Thread: TypeAlias = tuple[int, str]
"""A conversation's uid and a user."""

KEPT_THREADS = 4096
GONE_SECONDS = 1.0
"""Names go with every message that a storage limit prunes: how long to gather such changes before a review."""

_NAMES = """
SELECT DISTINCT conversation_uid, user_id, name FROM messages
WHERE name <> '' AND conversation_uid IN (SELECT unnest(?))
"""
_NAMED = """
SELECT conversation_uid FROM messages WHERE name <> ''
UNION SELECT conversation_uid FROM embeddings WHERE text_digest <> 0
"""


class Speakers:
    """Follows the names of the threads that are written to. Safe to share between threads of the process."""

    def __init__(self, database: Database, commits: Commits) -> None:
        self._database = database
        self._commits = commits
        self._lock = threading.Lock()
        self._known: dict[Thread, dict[str, int]] = {}
        """Names with the revision that last brought them, of the threads that were used last."""
        self._reviews: dict[int, float] = {}
        """When conversations are to be reviewed, by uid."""
        self._under_review: set[int] = set()
        self._past_is_unknown = True

    def follow(self, uid: int, plan: Plan, revision: int) -> None:
        """Take in the names of an accepted plan."""
        brought: dict[str, set[str]] = {removal.user_id: set() for removal in plan.removals}
        shrunk = set(brought)
        for put in plan.puts:
            brought.setdefault(put.user_id, set()).update({put.draft.name} - {""})
            if put.replaces:
                shrunk.add(put.user_id)
        with self._lock:
            for user_id, names in brought.items():
                self._bring((uid, user_id), names, revision, created=plan.head.uid == 0)
                self._lose((uid, user_id), shrunk)

    def _bring(self, thread: Thread, names: set[str], revision: int, *, created: bool) -> None:
        if created:
            self._keep(thread, {})
        known = self._known.get(thread)
        if names and not created and (known is None or not names <= known.keys()):
            self._reviews[thread[0]] = time.monotonic()
        if known is not None:
            known.update(dict.fromkeys(names, revision))

    def _lose(self, thread: Thread, shrunk: set[str]) -> None:
        """Names may have gone with the messages of these users; not where there were none."""
        if thread[1] in shrunk and self._known.get(thread) != {}:
            self._reviews.setdefault(thread[0], time.monotonic() + GONE_SECONDS)

    def erased(self, user_id: str) -> None:
        """Messages of a user may have gone from any conversation."""
        with self._lock:
            for thread in self._known:
                self._lose(thread, {user_id})

    def _keep(self, thread: Thread, names: dict[str, int]) -> None:
        self._known.pop(thread, None)
        self._known[thread] = names
        if len(self._known) > KEPT_THREADS:
            del self._known[next(iter(self._known))]

    def names(self, threads: Iterable[Thread]) -> dict[Thread, list[str]]:
        """The names of each of the threads. Those that are not known are read once everything accepted is applied."""
        wanted = set(threads)
        with self._lock:
            unknown = wanted - self._known.keys()
        loaded = self._load(unknown) if unknown else {}
        with self._lock:
            found = {thread: self._known.get(thread, loaded.get(thread, {})) for thread in wanted}
            for thread, names in found.items():
                self._keep(thread, names)
            return {thread: sorted(names) for thread, names in found.items()}

    def _load(self, threads: Iterable[Thread]) -> dict[Thread, dict[str, int]]:
        self._commits.settle()
        uids = list({uid for uid, _ in threads})
        loaded: dict[Thread, dict[str, int]] = {}
        for uid, user_id, name in self._database.rows(_NAMES, [uids]):
            loaded.setdefault((uid, user_id), {})[name] = 0
        return loaded

    def take_reviews(self, limit: int, overdue: float) -> list[int]:
        """Take at most `limit` conversations whose review has been due for `overdue` seconds.

        At first, those are all that have names, or had them: what happened to them before is unknown.
        """
        if self._past_is_unknown:
            found = [uid for (uid,) in self._database.rows(_NAMED)]
            with self._lock:
                self._reviews = dict.fromkeys(found, 0.0) | self._reviews
            self._past_is_unknown = False
        latest = time.monotonic() - overdue
        with self._lock:
            due = [uid for uid, at in self._reviews.items() if at <= latest][:limit]
            for uid in due:
                del self._reviews[uid]
            self._under_review.update(due)
        return due

    def hurry(self, uid: int) -> None:
        """Have a conversation's review made before all others, if there is one to be made."""
        with self._lock:
            if self._reviews.pop(uid, None) is not None:
                self._reviews = {uid: 0.0, **self._reviews}

    def is_due(self, uid: int) -> bool:
        """Whether a conversation's review is to be made, or is under way."""
        with self._lock:
            return uid in self._reviews or uid in self._under_review

    def is_overdue(self, uid: int) -> bool:
        """Whether a conversation's review can be taken now."""
        with self._lock:
            return self._reviews.get(uid, math.inf) <= time.monotonic()

    def put_off(self, uids: Iterable[int]) -> None:
        """Have conversations reviewed again in a while."""
        uids = list(uids)
        with self._lock:
            self._under_review.difference_update(uids)
            for uid in uids:
                self._reviews.setdefault(uid, time.monotonic() + GONE_SECONDS)

    def reviewed(self, uids: Iterable[int], present: Mapping[Thread, set[str]], revision: int) -> None:
        """Take in the names that all threads of some conversations had at a revision."""
        held = set(uids)
        with self._lock:
            for thread in [thread for thread in self._known if thread[0] in held]:
                later = {name: at for name, at in self._known[thread].items() if at > revision}
                self._known[thread] = dict.fromkeys(present.get(thread, ()), 0) | later

    def end_review(self, uids: Iterable[int]) -> None:
        """What the reviews of some conversations have found is waiting to be embedded."""
        with self._lock:
            self._under_review.difference_update(uids)
