"""Loads conversations into memory, and shows their accepted state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

import duckdb

from remora_server import _native
from remora_server._native import Core
from remora_server.domain.calls import Access
from remora_server.domain.conversations import ConversationDraft, Head
from remora_server.domain.errors import StoreFailed
from remora_server.domain.replies import REPLY_BYTES
from remora_server.storage.commit.applier import Applier
from remora_server.storage.commit.deadlines import require_time
from remora_server.storage.commit.locks import Locked, Locks
from remora_server.storage.database.database import Database
from remora_server.storage.database.parsed import execute
from remora_server.storage.schema.encoding import STORED_COLUMNS, conversation_draft, stored_message

WINDOW_MESSAGES = 256
WINDOW_TOKENS = 64 << 10
"""Of the bodies that are loaded, about: four bytes each are all that a window keeps."""
WINDOW_BYTES = 256 << 10
"""Bodies that reach this are all that a window keeps, however few tokens they have."""

RELOAD_SECONDS = 0.1

T = TypeVar("T")
_MessageRow: TypeAlias = tuple[int, int, str, str, str, int, int, int]
Stored: TypeAlias = tuple[int, bytes]
"""A message's sequence, and the message as it is served."""
_Loaded: TypeAlias = tuple[int, _native.Head | None, list[_MessageRow], list[bytes]]

_HEAD_FIELDS = (
    "uid", "user_id", "body", "create_time", "last_sequence", "message_count", "last_time", "update_time", "revision",
)  # fmt: skip
_HEAD = """
SELECT c.uid, c.user_id, c.body, c.create_time, h.last_sequence, h.message_count, h.last_time, h.update_time, h.revision
FROM conversations c JOIN heads h ON h.uid = c.uid
WHERE c.tenant_id = ? AND c.id = ?
"""
_MESSAGES = """
SELECT sequence, revision, user_id, id, role, create_time, coalesce(sent_time, create_time), token_count
FROM messages WHERE conversation_uid = ? ORDER BY sequence
"""
_BODIES = f"""
SELECT {STORED_COLUMNS} FROM messages WHERE conversation_uid = ? AND sequence BETWEEN ? AND ? ORDER BY sequence
"""  # noqa: S608 - a constant


class AcceptedConversation:
    """What has been accepted of a conversation (`domain.messages.ConversationView`), under the conversation's lock.

    A write that concerns many conversations may evict one while it looks at the next: then that is loaded again.
    """

    def __init__(self, core: Core, loader: Loader, access: Access, conversation_id: str, row: _native.Head) -> None:
        self._core = core
        self._loader = loader
        self._access = access
        self._id = conversation_id
        self.row = row
        self.head = Head(
            uid=row.uid,
            user_id=row.user_id,
            last_sequence=row.last_sequence,
            message_count=row.message_count,
            last_time=row.last_time,
            update_time=row.update_time,
            storage_limit=row.storage_limit,
            has_short_term=row.has_short_term,
        )

    @property
    def draft(self) -> ConversationDraft:
        """The fields that a caller sets."""
        return conversation_draft(self.row.body)

    def find(self, user_id: str, ids: Sequence[str]) -> list[tuple[int, int] | None]:
        return self._while_resident(lambda: self._core.find_messages(self._access.tenant_id, self._id, user_id, ids))

    def live(self, user_id: str | None) -> list[int]:
        return self._while_resident(lambda: self._core.live_sequences(self._access.tenant_id, self._id, user_id))

    def oldest(self, count: int) -> list[tuple[int, str]]:
        return self._while_resident(lambda: self._core.oldest_messages(self._access.tenant_id, self._id, count))

    def _while_resident(self, look: Callable[[], T]) -> T:
        return self._loader.while_resident(self._access, self._id, look)


class NewConversation:
    """A conversation that the current write creates. Nothing of it has been accepted."""

    def __init__(self, draft: ConversationDraft) -> None:
        self.head = Head(
            uid=0,
            user_id=draft.user_id,
            last_sequence=0,
            message_count=0,
            last_time=0,
            update_time=0,
            storage_limit=draft.storage_limit,
            has_short_term=draft.short_term is not None,
        )

    def find(self, _user_id: str, ids: Sequence[str]) -> list[tuple[int, int] | None]:
        return [None] * len(ids)

    def live(self, _user_id: str | None) -> list[int]:
        return []

    def oldest(self, _count: int) -> list[tuple[int, str]]:
        return []


class Loader:
    """Makes conversations resident. What is not in memory has nothing unapplied, so that DuckDB holds all of it; only
    after a start that found no room there, the journal holds the rest.

    If the deadline has passed, methods that would query DuckDB raise DeadlineExceeded instead.
    """

    def __init__(self, core: Core, database: Database, applier: Applier, locks: Locks) -> None:
        self._core = core
        self._database = database
        self._applier = applier
        self._locks = locks

    def locked(self, access: Access, conversation_id: str) -> Locked[AcceptedConversation | None]:
        """The conversation as accepted, under its lock."""
        return Locked(self._locks.of(access, conversation_id), lambda: self.accepted(access, conversation_id))

    def accepted(self, access: Access, conversation_id: str) -> AcceptedConversation | None:
        """The conversation as accepted, None if there is none. Call it under the conversation's lock."""
        row = self.while_resident(
            access, conversation_id, lambda: self._core.head(access.tenant_id, conversation_id, accepted=True)
        )
        return None if row is None else AcceptedConversation(self._core, self, access, conversation_id, row)

    def while_resident(self, access: Access, conversation_id: str, look: Callable[[], T]) -> T:
        """Look at a conversation, loading it where it is not in memory. Call it under the conversation's lock."""
        while True:
            try:
                return look()
            except KeyError:
                self.ensure(access, conversation_id)

    def published(self, access: Access, conversation_id: str) -> _native.Head | None:
        """The head as readers see it."""
        tenant_id = access.tenant_id
        while True:
            try:
                return self._core.head(tenant_id, conversation_id, accepted=False)
            except KeyError:
                with self._locks.of(access, conversation_id):
                    self.ensure(access, conversation_id)

    def ensure(self, access: Access, conversation_id: str) -> None:
        """Load the conversation where it is not in memory. Call it under the conversation's lock."""
        if self._core.conversation_state(access.tenant_id, conversation_id) == "cold":
            self._load(access, conversation_id)

    def _load(self, access: Access, conversation_id: str) -> None:
        """Read it from DuckDB, again where it changed meanwhile; what is not applied for want of something, from the
        journal. Raises StoreFailed if that is never applied.
        """
        require_time(access.deadline)
        while not self._read(access.tenant_id, conversation_id, with_journal=self._applier.stuck is not None):
            if self._core.failure() is not None:
                raise StoreFailed
            require_time(access.deadline)
            self._applier.wait(self._core.published(), RELOAD_SECONDS)

    def _read(self, tenant_id: str, conversation_id: str, *, with_journal: bool) -> bool:
        applied = self._applier.applied

        def read(cursor: duckdb.DuckDBPyConnection, rows: int) -> _Loaded:
            as_of = self._database.applied_revision() if with_journal else applied
            return as_of, *_stored(cursor, tenant_id, conversation_id, rows)

        # What is not in memory may still change in the database: a write that evicts what it looked at changes it, too.
        as_of, head, messages, bodies = self._database.in_pages(WINDOW_MESSAGES, read)
        return self._core.load_conversation(
            tenant_id, conversation_id, head, messages, bodies, as_of=as_of, with_journal=with_journal
        )

    def missing(self, access: Access, uid: int, sequences: Sequence[int], *, newest: bool) -> tuple[list[Stored], bool]:
        """Stored messages, ascending, from DuckDB; those deleted since are left out. Also whether these are all: once
        they exceed a reply, the last ones (of the newest, the first ones) are not read.
        """
        require_time(access.deadline)
        read = partial(_some, uid=uid, sequences=sequences, room=REPLY_BYTES, newest=newest)
        return self._database.in_pages(len(sequences), read)


def _some(
    cursor: duckdb.DuckDBPyConnection, rows: int, *, uid: int, sequences: Sequence[int], room: int, newest: bool
) -> tuple[list[Stored], bool]:
    """Messages of ascending sequences, so many rows at a time, until they exceed the room; and whether these are all.

    The first page is that of the oldest messages or of the newest.
    """
    pages: list[list[Stored]] = []
    left = list(sequences)
    while left and room >= 0:
        page, left = (left[-rows:], left[:-rows]) if newest else (left[:rows], left[rows:])
        wanted = set(page)
        found = execute(cursor, _BODIES, [uid, page[0], page[-1]]).fetchall()
        pages.append([(row[0], stored_message(*row)) for row in found if row[0] in wanted])
        room -= sum(len(encoded) for _, encoded in pages[-1])
    return [entry for page in (reversed(pages) if newest else pages) for entry in page], not left


def _stored(
    cursor: duckdb.DuckDBPyConnection, tenant_id: str, conversation_id: str, rows: int
) -> tuple[_native.Head | None, list[_MessageRow], list[bytes]]:
    """A conversation's head, if it exists, what stands about all of its messages, and the bodies of the newest."""
    found = execute(cursor, _HEAD, [tenant_id, conversation_id]).fetchone()
    if found is None:
        return None, [], []
    head = _native.Head(**dict(zip(_HEAD_FIELDS, found, strict=True)))
    messages = execute(cursor, _MESSAGES, [head.uid]).fetchall()
    start = _window_start(messages)
    window = [sequence for sequence, *_ in messages[-WINDOW_MESSAGES:] if sequence >= start]
    bodies, _ = _some(cursor, rows, uid=head.uid, sequences=window, room=WINDOW_BYTES, newest=True)
    return head, messages, [encoded for _, encoded in bodies]


def _window_start(messages: Sequence[_MessageRow]) -> int:
    """The sequence of the first message whose body is loaded; the last one's is in any case."""
    start, tokens = 0, 0
    for sequence, *_, token_count in reversed(messages[-WINDOW_MESSAGES:]):
        tokens += token_count
        if start and tokens > WINDOW_TOKENS:
            break
        start = sequence
    return start
