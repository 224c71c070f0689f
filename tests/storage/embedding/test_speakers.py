"""What is embedded of a message: its text without the names of those who have spoken beside it by then."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.storage.opening import READ, WRITE, open_store, take
from tests.store.asking import draft

from remora_server import _native
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.errors import StoreFailed
from remora_server.domain.messages import MessageDraft, Replace
from remora_server.domain.search import InConversation, MessageVector, OfTenant, OfUser, Scope
from remora_server.storage.embedding.scopes import Part
from remora_server.storage.embedding.speakers import Names
from remora_server.storage.local_store import LocalStore

MODEL = "digests"
NEW = ConversationDraft(id="")
TEXTS = ("Ann asks Bob", "Bob's tea", "rain", "ann", "Cy and Ann")


def vector(text: str) -> bytes:
    """A vector that no other text has."""
    return struct.pack("<16f", *hashlib.blake2b(text.encode(), digest_size=16).digest())


@pytest.fixture
def store() -> Iterator[LocalStore]:
    made = open_store(None, model=MODEL)
    yield made
    made.close()


def append(store: LocalStore, name: str, text: str, message_id: str = "") -> None:
    put(store, draft(message_id, text, name=name))


def put(store: LocalStore, *drafts: MessageDraft, conversation: str = "c", user: str = "u") -> None:
    store.messages.append(WRITE, conversation, user, drafts, NEW)


def embed_all(store: LocalStore) -> list[str]:
    """Embed what waits; the texts that were embedded."""
    embedded = []
    while waiting := take(store.pending, 100):
        store.pending.put_embeddings([MessageVector(each, vector(each.text)) for each in waiting])
        embedded += [each.text for each in waiting]
    return embedded


def test_the_names_of_those_who_speak_are_not_embedded(store: LocalStore) -> None:
    put(store, draft(text="Bob, is that Ann's tea?", name="Ann"), draft(text="Yes, Ann. The user said so.", name="Bob"))
    put(store, draft(text="Ann thanks Cy", name="user"))

    assert embed_all(store) == ["thanks Cy", "Yes,. The user said so.", ", is that tea?"]


def test_a_name_that_comes_later_leaves_vectors_as_they_are(store: LocalStore) -> None:
    append(store, "Ann", "Bob's tea")
    assert embed_all(store) == ["Bob's tea"]

    append(store, "Bob", "sun")

    assert embed_all(store) == ["sun"]
    append(store, "Ann", "Bob's tea")
    assert embed_all(store) == ["tea"]


@pytest.mark.parametrize("written", ["append", "clear"])
def test_names_that_are_written_while_others_are_read_are_known_afterwards(store: LocalStore, written: str) -> None:
    append(store, "Ann", "sun")
    embed_all(store)
    store.pending._speakers._known.clear()
    append(store, "", "rain")
    read = store.pending._speakers._read

    def read_slowly(parts: set[Part]) -> dict[Part, Names]:
        found = read(parts)
        if written == "append":
            append(store, "Bob", "wind")
        else:
            store.users.clear(WRITE, "u")
        return found

    with patch.object(store.pending._speakers, "_read", read_slowly):
        take(store.pending, 1)
    append(store, "", "Ann and Bob's tea")
    assert ("and tea" if written == "append" else "Ann and Bob's tea") in embed_all(store)


def test_what_was_cleared_of_a_user_leaves_no_names_behind(store: LocalStore) -> None:
    append(store, "Ann", "sun")
    embed_all(store)

    store.users.clear(WRITE, "u")
    append(store, "", "Ann's tea")

    assert embed_all(store)[-1] == "Ann's tea"


@pytest.mark.parametrize("change", ["delete", "replace", "clear", "prune"])
def test_the_name_of_a_message_that_is_gone_is_not_known(store: LocalStore, change: str) -> None:
    limited = ConversationDraft(id="", storage_limit=2)
    first, second = draft("first", "sun", name="Ann"), draft("second", "sun", name="Bob")
    store.messages.append(WRITE, "c", "u", [first, second], limited)
    embed_all(store)

    match change:
        case "delete":
            store.messages.delete(WRITE, "c", "", ["first"])
        case "replace":
            store.messages.edit(WRITE, "c", "", [Replace(draft("first", "sun", name="Cy"))], allow_missing=False)
        case "clear":
            store.messages.clear(WRITE, "c", "u")
        case _:
            append(store, "Cy", "sun")

    assert not any("Ann" in names for names in store.pending._speakers._known.values())
    append(store, "", "Ann's tea")
    assert "Ann's tea" in embed_all(store)


def test_a_name_that_another_message_has_stays_known(store: LocalStore) -> None:
    put(store, draft("first", "sun", name="Ann"), draft("second", "sun", name="Ann"))
    embed_all(store)

    store.messages.delete(WRITE, "c", "", ["second"])
    append(store, "", "Ann's tea")

    assert embed_all(store) == ["tea"]


def test_names_in_a_conversation_that_is_deleted_are_forgotten(store: LocalStore) -> None:
    append(store, "Ann", "sun")
    put(store, draft(text="sun", name="Bob"), conversation="other")

    store.conversations.delete(WRITE, "c", "", allow_missing=False)

    assert [set(names) for names in store.pending._speakers._known.values()] == [{"Bob"}]


def test_names_of_other_conversations_and_users_stay_in(store: LocalStore) -> None:
    put(store, draft(text="sun", name="Ann"), conversation="other")
    put(store, draft(text="sun", name="Ann"), user="other")
    append(store, "Bob", "Ann's tea")

    assert embed_all(store)[-1] == "Ann's tea"


def test_a_store_that_is_opened_again_knows_the_names(tmp_path: Path) -> None:
    store = open_store(tmp_path, model=MODEL)
    append(store, "Ann", "sun")
    append(store, "Bob", "Ann's tea")
    store.close()

    store = open_store(tmp_path, model=MODEL)

    assert set(embed_all(store)) == {"sun", "tea"}
    append(store, "Cy", "Bob's coffee")
    assert embed_all(store) == ["coffee"]
    store.close()


def test_messages_whose_names_cannot_be_read_are_embedded_later(store: LocalStore) -> None:
    append(store, "Ann", "Ann's tea")
    store.pending._speakers._known.clear()
    with patch.object(store.commits, "settle", side_effect=StoreFailed), pytest.raises(StoreFailed):
        embed_all(store)

    assert embed_all(store) == ["tea"]


def test_a_question_is_without_the_names_of_its_scope(store: LocalStore) -> None:
    append(store, "Ann", "sun")
    put(store, draft(text="sun", name="Bob"), conversation="other")
    put(store, draft(text="sun", name="Cy"), conversation="third", user="v")
    question = "What did Ann, Bob and Cy see?"

    expected: dict[Scope, str] = {
        InConversation("c"): "What did, Bob and Cy see?",
        OfUser("u"): "What did, and Cy see?",
        OfTenant(): "What did, and see?",
    }
    for scope, text in expected.items():
        with store.index.open(READ, scope) as opened:
            assert opened.without_names(question) == text


MESSAGES = st.tuples(st.sampled_from(["", "Ann", "Bob", "Cy"]), st.sampled_from(TEXTS))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.sampled_from("cd"), st.sampled_from("uv"), MESSAGES),
        st.tuples(st.sampled_from(["clear", "forget"]), st.sampled_from("uv")),
        st.tuples(st.just("delete"), st.integers(0, 9)),
        st.tuples(st.just("rename"), st.integers(0, 9), MESSAGES),
        st.tuples(st.sampled_from(["embed", "reopen"])),
    ),
    max_size=14,
)


@pytest.mark.slow
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_what_is_embedded_is_without_the_names_that_are_there(steps: list[tuple[object, ...]]) -> None:
    with TemporaryDirectory() as directory:
        store = open_store(Path(directory), model=MODEL)
        for step in [*steps, ("embed",)]:
            store = take_step(store, Path(directory), *step)
        store.close()


def take_step(store: LocalStore, directory: Path, kind: object, *rest: object) -> LocalStore:
    match kind, *rest:
        case "append", str(conversation), str(user), (str(name), str(text)):
            put(store, draft("", text, name=name), conversation=conversation, user=user)
        case "embed", *_:
            expected = stripped_now(store)
            assert sorted(embed_all(store)) == expected
        case "reopen", *_:
            store.close()
            return open_store(directory, model=MODEL)
        case _:
            embed_all(store)
            remove(store, kind, *rest)
    return store


def remove(store: LocalStore, kind: object, *rest: object) -> None:
    """Have names go."""
    match kind, *rest:
        case "clear", str(user):
            store.users.clear(WRITE, user)
        case "forget", str(user):
            store.users.delete(WRITE, user)
        case "delete", int(number):
            for conversation, user, message in one_of(store, number):
                store.messages.delete(WRITE, conversation, user, [message])
        case "rename", int(number), (str(name), str(text)):
            for conversation, user, message in one_of(store, number):
                edit = Replace(draft(message, text, name=name))
                store.messages.edit(WRITE, conversation, user, [edit], allow_missing=False)


def one_of(store: LocalStore, number: int) -> list[tuple[str, str, str]]:
    """Conversation, user and id of one of the messages, where there are some."""
    store.applier.wait(store.core.published(), None)
    rows = store.database.rows(
        "SELECT c.id, m.user_id, m.id FROM messages m JOIN conversations c ON c.uid = m.conversation_uid ORDER BY ALL"
    )
    return [rows[number % len(rows)]] if rows else []


def stripped_now(store: LocalStore) -> list[str]:
    """What would be embedded of the messages without a vector by the names that are stored."""
    store.applier.wait(store.core.published(), None)
    rows = store.database.rows("""
        SELECT m.conversation_uid, m.user_id, m.name, m.text, e.sequence IS NULL FROM messages m
        LEFT JOIN embeddings e ON e.conversation_uid = m.conversation_uid AND e.sequence = m.sequence
    """)

    def stripped(uid: int, user: str, text: str) -> str:
        return _native.strip_names([text], [row[2] for row in rows if row[:2] == (uid, user)])[0]

    return sorted(stripped(uid, user, text) for uid, user, _, text, waits in rows if waits)
