"""What was kept up to date ranks as a store that never held anything but the messages that are left."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.storage.opening import READ, SMALL, WRITE, one_model, take

from remora.v1 import message_pb2
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.errors import ConversationNotFound
from remora_server.domain.messages import Append, Edit, Keep, MessageDraft, MessageEmbedding, Remove, Replace
from remora_server.domain.search import (
    WEIGHTS,
    InConversation,
    MessageVector,
    OfTenant,
    OfUser,
    Profile,
    QueryVector,
    Scope,
    SearchOptions,
    SearchQuery,
)
from remora_server.storage.local_store import LocalStore, StoreOptions
from remora_server.storage.recall import stored as stored_parts
from remora_server.storage.schema.encoding import stored_message

MODEL = "letters"
CODE = 128
CONVERSATIONS, USERS, IDS = "cd", ("ann", "bob"), "12345"
LIMIT = 4
"""Messages that the conversation `d` keeps of a user."""
TEXTS = (
    "Where is Ann's tea?",
    "Bob drinks tea at home",
    "the sea, yesterday",
    "I went to the sea in May 2024",
    "coffee",
    "",
    "茶 tea",
)
QUERIES = (
    "Where does Bob drink tea?",
    "When did I go to the sea?",
    "coffee",
    "What did Ann say about tea on 5 May 2024?",
    "Who was at the sea in June 2024?",
)
HOUR = 3_600_000_000
MAY = 1_714_903_200_000_000
"""Noon of the 5th of May 2024."""
SENT = (None, *(MAY + hours * HOUR for hours in (-9000, -30, 0, 1, 3, 6, 50, 24 * 12, 24 * 30)))
"""When messages are sent: by the server's clock, and times of which some are within one sitting, others days apart."""
SCOPES: tuple[Scope, ...] = (
    *(InConversation(conversation, user) for conversation in CONVERSATIONS for user in USERS),
    *map(OfUser, USERS),
    OfTenant(),
)


def values(text: str) -> bytes:
    """The letters of a text, counted."""
    return struct.pack("<27f", 1.0, *(float(text.lower().count(chr(97 + letter))) for letter in range(26)))


def pieces(text: str) -> bytes:
    """One piece for each word: its length is its id and the direction of its code."""
    lengths = [len(word) for word in text.split()]
    ids = b"".join(struct.pack("<H", length) for length in lengths)
    return ids + b"".join(bytes(127 if place == length else 0 for place in range(CODE)) for length in lengths)


def message(
    message_id: str, text: str, name: str = "", session: str = "", *, sent: int | None = None, own: bool = False
) -> MessageDraft:
    """`sent` in microseconds, `own`: with a vector of the caller's."""
    role = "assistant" if name == "Bob" else "user"
    body = message_pb2.Message(role=role, text=text, name=name, session_id=session)
    if sent is not None:
        body.sent_time.FromMicroseconds(sent)
    embedding = MessageEmbedding(MODEL, values(text[::-1] + "x")) if own else None
    return MessageDraft(message_id, role, text, body.SerializeToString(), embedding, name)


class Searched:
    """A store with its index."""

    def __init__(self, directory: Path | None, recall_bytes: int) -> None:
        options = StoreOptions(directory, segment_bytes=SMALL, queue_bytes=1 << 20, recall_bytes=recall_bytes)
        self.store = LocalStore(
            options, count_tokens=lambda texts: [int(bool(text)) for text in texts], models=one_model(MODEL, late=True)
        )

    def embed(self, count: int) -> bool:
        """Embed some of what waits; whether there was something."""
        waiting = take(self.store.pending, count)
        self.store.pending.put_embeddings(
            [MessageVector(each, values(nameless(each.text)), pieces(nameless(each.text))) for each in waiting]
        )
        return bool(waiting)

    def embed_all(self) -> None:
        while self.embed(100):
            pass

    def found(self, scope: Scope, query: str, profile: Profile) -> tuple[object, ...]:
        """Ids, scores and their components, best first; the number of messages that wait for a vector."""
        options = SearchOptions(k=100, profile=profile, weights=WEIGHTS[profile])
        with self.store.index.open(READ, scope) as opened:
            text = opened.without_names(query)
            vector = None if profile is Profile.LEXICAL else QueryVector(MODEL, values(text), pieces(text))
            result = opened.search(SearchQuery(scope, query, vector, options, index_wait=0.0))
        hits = [(identity(hit.encoded), hit.score, hit.components) for hit in result.hits]
        return hits, result.index.pending

    def all_found(self) -> dict[tuple[str, str, str], object]:
        """What is found in every scope, by every profile, for every query."""
        found: dict[tuple[str, str, str], object] = {}
        for scope in SCOPES:
            for profile in Profile:
                for query in QUERIES:
                    try:
                        found[str(scope), profile.value, query] = self.found(scope, query, profile)
                    except ConversationNotFound:
                        found[str(scope), profile.value, query] = ([], 0)
        return found

    def copy_to(self, other: Searched) -> None:
        """Append the messages that are left to a store that has none, as sent when they were."""
        self.store.commits.settle()
        rows = self.store.database.rows("""
            SELECT c.id, m.user_id, coalesce(m.sent_time, m.create_time), m.id, m.text, m.name,
                (SELECT by_caller FROM embeddings e
                 WHERE e.conversation_uid = c.uid AND e.sequence = m.sequence AND e.by_caller)
            FROM messages m JOIN conversations c ON c.uid = m.conversation_uid ORDER BY c.uid, m.sequence
        """)
        for conversation, user, sent, message_id, text, name, own in rows:
            again = message(message_id, text, name, session_of(text), sent=sent, own=bool(own))
            other.store.messages.append(WRITE, conversation, user, [again], ConversationDraft(id=""))


def nameless(text: str) -> str:
    """The words of a text that are no names: which of these are left out depends on when a text is embedded."""
    return " ".join(word for word in re.findall(r"\w+", text) if word.lower() not in {"ann", "bob", "s"})


def session_of(text: str) -> str:
    """Texts about tea are of one session, others have none: so what is left of a message says its session."""
    return "tea" if "tea" in text else ""


def identity(encoded: bytes) -> tuple[str, str, str]:
    found = message_pb2.Message.FromString(encoded)
    return found.user_id, found.id, found.text


@contextmanager
def searched(directory: Path | None, recall_bytes: int = SMALL) -> Iterator[Searched]:
    made = Searched(directory, recall_bytes)
    try:
        yield made
    finally:
        made.store.close()


class Story:
    """Takes steps in a store."""

    def __init__(self, directory: Path, recall_bytes: int) -> None:
        self._directory, self._recall_bytes = directory, recall_bytes
        self.now = Searched(directory, recall_bytes)

    def take(self, kind: str, *given: object) -> None:
        getattr(self, kind)(*given)

    def append(self, conversation: str, user: str, given: MessageDraft, _number: int) -> None:
        limit = LIMIT if conversation == "d" else None
        self.now.store.messages.append(
            WRITE, conversation, user, [given], ConversationDraft(id="", storage_limit=limit)
        )

    def edit(self, conversation: str, user: str, given: MessageDraft, number: int) -> None:
        known = known_ids(self.now.store, conversation, user)
        if known:
            kinds: list[list[Edit]] = [
                [Append(given)],
                [Remove(known[0])],
                [Keep(0, 2)],
                [Keep(1, None), Append(given)],
            ]
            if given.id in known:
                kinds.append([Replace(given)])
            self.now.store.messages.edit(WRITE, conversation, user, kinds[number % len(kinds)], allow_missing=False)

    def delete(self, conversation: str, user: str, _given: MessageDraft, number: int) -> None:
        known = known_ids(self.now.store, conversation, user)
        if known:
            self.now.store.messages.delete(WRITE, conversation, user, [known[number % len(known)]])

    def clear(self, conversation: str, user: str, _given: MessageDraft, number: int) -> None:
        if number % 2:
            self.now.store.users.clear(WRITE, user)
        elif known_ids(self.now.store, conversation, user):
            self.now.store.messages.clear(WRITE, conversation, user)

    def end(self, conversation: str, _user: str, _given: MessageDraft, _number: int) -> None:
        self.now.store.conversations.delete(WRITE, conversation, "", allow_missing=True)

    def forget(self, _conversation: str, user: str, _given: MessageDraft, _number: int) -> None:
        self.now.store.users.delete(WRITE, user)

    def embed(self, _conversation: str, _user: str, _given: MessageDraft, number: int) -> None:
        self.now.embed(number + 1)

    def search(self, _conversation: str, user: str, _given: MessageDraft, number: int) -> None:
        self.now.found(OfUser(user) if number % 2 else OfTenant(), QUERIES[0], Profile.HYBRID)

    def reopen(self, _conversation: str, _user: str, _given: MessageDraft, _number: int) -> None:
        self.now.store.close()
        self.now = Searched(self._directory, self._recall_bytes)


def known_ids(store: LocalStore, conversation: str, user: str) -> list[str]:
    store.commits.settle()
    rows = store.database.rows(
        """SELECT m.id FROM messages m JOIN conversations c ON c.uid = m.conversation_uid
           WHERE c.id = ? AND m.user_id = ? ORDER BY m.sequence""",
        [conversation, user],
    )
    return [row[0] for row in rows]


KINDS = ["append"] * 6 + ["edit", "delete", "embed", "embed", "search", "search", "clear", "end", "forget", "reopen"]
DRAFTS = st.builds(
    lambda message_id, text, name, sent, own: message(message_id, text, name, session_of(text), sent=sent, own=own),
    st.sampled_from(IDS),
    st.sampled_from(TEXTS),
    st.sampled_from(["", "Ann", "Bob"]),
    st.sampled_from(SENT),
    st.sampled_from([False, False, False, True]),
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(KINDS), st.sampled_from(CONVERSATIONS), st.sampled_from(USERS), DRAFTS, st.integers(0, 9)
    ),
    max_size=25,
)
Step = tuple[str, str, str, MessageDraft, int]


def compare_with_rebuilt(steps: Sequence[Step], recall_bytes: int) -> None:
    """Take the steps; what is found then is what a store finds that has the messages that are left."""
    with TemporaryDirectory() as directory, searched(None) as rebuilt:
        story = Story(Path(directory), recall_bytes)
        try:
            for step in steps:
                story.take(*step)
            story.now.embed_all()
            story.now.copy_to(rebuilt)
            rebuilt.embed_all()
            assert story.now.all_found() == rebuilt.all_found()
        finally:
            story.now.store.close()


@pytest.mark.slow
@settings(
    max_examples=examples(25), deadline=None, report_multiple_bugs=False, suppress_health_check=[HealthCheck.too_slow]
)
@given(steps=STEPS, recall_bytes=st.sampled_from([1, 20_000, SMALL]))
def test_what_was_kept_up_to_date_ranks_as_what_is_built_from_the_messages_that_are_left(
    steps: list[Step], recall_bytes: int
) -> None:
    compare_with_rebuilt(steps, recall_bytes)


@pytest.mark.faults
@settings(max_examples=200, report_multiple_bugs=False, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS, recall_bytes=st.sampled_from([1, 20_000, SMALL]))
def test_it_does_so_in_many_more_stories(steps: list[Step], recall_bytes: int) -> None:
    compare_with_rebuilt(steps, recall_bytes)


ANOTHERS_WAIT: list[Step] = [
    ("append", "c", "bob", message("1", TEXTS[0]), 0),
    ("reopen", "c", "ann", message("1", ""), 0),
    ("append", "c", "ann", message("1", TEXTS[0]), 0),
    ("search", "c", "ann", message("1", ""), 1),
]
"""A search of a user who has nothing left behind, while another one has."""


def test_what_was_left_behind_is_embedded_though_a_search_wants_others_first() -> None:
    compare_with_rebuilt(ANOTHERS_WAIT, 1)


NAMES_COME_AND_GO: list[Step] = [
    ("append", "c", "ann", message("1", "Bob drinks tea at home", session="tea"), 0),
    ("search", "c", "ann", message("", ""), 0),
    ("embed", "c", "ann", message("", ""), 9),
    ("append", "c", "ann", message("2", "coffee", "Bob"), 0),
    ("embed", "c", "ann", message("", ""), 9),
    ("append", "c", "ann", message("1", "the sea, yesterday"), 0),
]


def test_a_story_is_told_the_same_in_the_end() -> None:
    compare_with_rebuilt(NAMES_COME_AND_GO, SMALL)


TIMES_MOVE: list[Step] = [
    ("append", "c", "ann", message("1", "the sea, yesterday", sent=MAY + 24 * 30 * HOUR), 0),
    ("append", "c", "ann", message("2", "coffee", sent=MAY + 24 * 30 * HOUR + HOUR), 0),
    ("append", "c", "ann", message("3", "Bob drinks tea at home", session="tea", sent=MAY + 50 * HOUR), 0),
    ("embed", "c", "ann", message("", ""), 9),
    ("search", "c", "ann", message("", ""), 1),
    ("append", "c", "ann", message("3", "Bob drinks tea at home", session="tea", sent=MAY), 0),
    ("edit", "c", "ann", message("2", "coffee", sent=MAY - 30 * HOUR), 4),
]


@pytest.mark.slow
def test_a_time_that_moved_counts_as_if_it_had_always_been_so() -> None:
    compare_with_rebuilt(TIMES_MOVE, SMALL)


def stored_without_time(*row: Any) -> bytes:  # noqa: ANN401 - a row of a table
    """A message as it is stored, but that its sent time is lost."""
    stored = message_pb2.Message.FromString(stored_message(*row))
    stored.ClearField("sent_time")
    return stored.SerializeToString()


@pytest.mark.slow
def test_times_that_get_lost_are_found() -> None:
    """Times that moved reach what was searched before by themselves; what is built anew reads them."""
    with patch.object(stored_parts, "stored_message", stored_without_time), pytest.raises(AssertionError):
        compare_with_rebuilt(TIMES_MOVE, SMALL)
