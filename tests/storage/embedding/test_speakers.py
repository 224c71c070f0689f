"""What is embedded of a message: its text without the names of those who speak beside it, whenever they came."""

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
from remora_server.domain.messages import MessageDraft, MessageEmbedding
from remora_server.domain.search import InConversation, MessageVector, OfTenant, OfUser, Scope
from remora_server.storage.embedding import review_schedule
from remora_server.storage.embedding.order import EmbeddingOrder
from remora_server.storage.local_store import LocalStore

MODEL = "digests"
NEW = ConversationDraft(id="")
TEXTS = ("Ann asks Bob", "Bob's tea", "rain", "ann", "Cy and Ann")


def vector(text: str) -> bytes:
    """A vector that no other text has."""
    return struct.pack("<16f", *hashlib.blake2b(text.encode(), digest_size=16).digest())


@pytest.fixture(autouse=True)
def _reviews_at_once() -> Iterator[None]:
    with patch.object(review_schedule, "GONE_SECONDS", 0.0):
        yield


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


def test_a_new_speaker_has_those_messages_embedded_again_that_hold_the_name(store: LocalStore) -> None:
    append(store, "Ann", "Bob's tea")
    append(store, "Ann", "rain")
    assert embed_all(store) == ["rain", "Bob's tea"]

    append(store, "Bob", "sun")

    assert embed_all(store) == ["sun", "tea"]
    assert embed_all(store) == []


def test_a_name_that_has_gone_is_put_back(store: LocalStore) -> None:
    append(store, "Ann", "Bob's tea")
    append(store, "Bob", "sun", "m")
    assert embed_all(store) == ["sun", "tea"]

    store.messages.delete(WRITE, "c", "u", ["m"])
    assert embed_all(store) == ["Bob's tea"]

    append(store, "Bob", "wind", "m")
    embed_all(store)
    append(store, "Ann", "wind", "m")
    assert "Bob's tea" in embed_all(store)


def test_what_was_cleared_of_a_user_leaves_no_names_behind(store: LocalStore) -> None:
    append(store, "Ann", "sun")
    embed_all(store)

    store.users.clear(WRITE, "u")
    append(store, "", "Ann's tea")

    assert embed_all(store)[-1] == "Ann's tea"


def test_names_of_other_conversations_and_users_stay_in(store: LocalStore) -> None:
    put(store, draft(text="sun", name="Ann"), conversation="other")
    put(store, draft(text="sun", name="Ann"), user="other")
    append(store, "Bob", "Ann's tea")

    assert embed_all(store)[-1] == "Ann's tea"


def test_a_vector_of_the_callers_is_left_alone(store: LocalStore) -> None:
    put(store, draft(text="Bob's tea", embedding=MessageEmbedding(MODEL, vector("own"))))
    append(store, "Bob", "sun")

    assert embed_all(store) == ["sun"]


@pytest.mark.parametrize("embedded", [True, False])
def test_a_store_that_is_opened_again_finds_what_is_to_be_embedded_again(tmp_path: Path, embedded: bool) -> None:
    store = open_store(tmp_path, model=MODEL)
    append(store, "Ann", "Bob's tea")
    assert embed_all(store) == ["Bob's tea"]
    append(store, "Bob", "sun")
    if embedded:
        store.pending.put_embeddings([MessageVector(each, vector(each.text)) for each in take(store.pending, 1)])
    store.close()

    store = open_store(tmp_path, model=MODEL)

    assert embed_all(store) == (["tea"] if embedded else ["sun", "tea"])
    store.close()


def test_what_cannot_be_reviewed_is_reviewed_later(store: LocalStore) -> None:
    append(store, "Ann", "Bob's tea")
    embed_all(store)
    append(store, "Bob", "sun")
    with patch.object(store.commits, "settle", side_effect=StoreFailed), pytest.raises(StoreFailed):
        embed_all(store)

    assert set(embed_all(store)) | {"sun"} == {"sun", "tea"}


def test_what_finds_no_room_in_the_queue_is_reviewed_later(store: LocalStore) -> None:
    append(store, "Ann", "Bob's tea")
    embed_all(store)
    append(store, "Bob", "sun")
    with patch.object(EmbeddingOrder, "add_left", return_value=False):
        assert embed_all(store) == ["sun"]

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


MESSAGES = st.tuples(st.sampled_from(["", "Ann", "Bob", "Cy"]), st.sampled_from(TEXTS), st.sampled_from("1234"))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.sampled_from("cd"), st.sampled_from("uv"), MESSAGES),
        st.tuples(st.just("delete"), st.sampled_from("cd"), st.sampled_from("uv"), st.sampled_from("1234")),
        st.tuples(st.sampled_from(["clear", "forget"]), st.sampled_from("uv")),
        st.tuples(st.sampled_from(["embed", "take", "reopen"])),
    ),
    max_size=14,
)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS)
def test_in_the_end_every_vector_is_of_the_text_without_the_names_that_are_left(
    steps: list[tuple[object, ...]],
) -> None:
    with TemporaryDirectory() as directory:
        store = open_store(Path(directory), model=MODEL)
        for step in steps:
            store = take_step(store, Path(directory), *step)
        embed_all(store)
        store.applier.wait(store.core.published(), None)
        found = store.database.rows('SELECT conversation_uid, sequence, "values" FROM embeddings ORDER BY 1, 2')
        assert [(*row[:2], struct.pack("<16f", *row[2])) for row in found] == fresh(store)
        store.close()


def take_step(store: LocalStore, directory: Path, kind: object, *rest: object) -> LocalStore:
    match kind, *rest:
        case "append", str(conversation), str(user), (str(name), str(text), str(message_id)):
            put(store, draft(message_id, text, name=name), conversation=conversation, user=user)
        case "delete", str(conversation), str(user), str(message_id) if known(store, conversation):
            store.messages.delete(WRITE, conversation, user, [message_id])
        case "clear", str(user):
            store.users.clear(WRITE, user)
        case "forget", str(user):
            store.users.delete(WRITE, user)
        case "embed", *_:
            embed_all(store)
        case "take", *_:
            taken = take(store.pending, 1)
            store.pending.put_embeddings([MessageVector(each, vector(each.text)) for each in taken])
        case "reopen", *_:
            store.close()
            return open_store(directory, model=MODEL)
    return store


def known(store: LocalStore, conversation: str) -> bool:
    store.applier.wait(store.core.published(), None)
    return bool(store.database.rows("SELECT 1 FROM conversations WHERE id = ?", [conversation]))


def fresh(store: LocalStore) -> list[tuple[int, int, bytes]]:
    """What a build from nothing would embed."""
    rows = store.database.rows("SELECT conversation_uid, user_id, sequence, name, text FROM messages ORDER BY 1, 3")

    def stripped(uid: int, user: str, text: str) -> str:
        names = [row[3] for row in rows if row[:2] == (uid, user)]
        return _native.strip_names([text], names)[0]

    return [(uid, sequence, vector(stripped(uid, user, text))) for uid, user, sequence, _, text in rows]
