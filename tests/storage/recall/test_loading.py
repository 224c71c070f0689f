"""Loading what is searched: in chunks that stay when the deadline passes, and no more than one search may load."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.patience import PATIENCE
from tests.storage.opening import READ, TENANT, WRITE
from tests.storage.recall.opened import HERE, NEW, Opened, embed, opened
from tests.store.asking import draft

from remora_server.domain.errors import DeadlineExceeded, MemoryExhausted, SearchTooLarge
from remora_server.domain.messages import Replace
from remora_server.domain.models import ServedModel
from remora_server.domain.search import InConversation, OfTenant, OfUser, Scope
from remora_server.domain.vectors import FLOAT_BYTES
from remora_server.storage.embedding.scopes import ResolvedScope
from remora_server.storage.recall import stored
from remora_server.storage.recall.loading import Turn
from remora_server.storage.recall.stored import LEAST_MESSAGE_BYTES, Chunk, Documents, StoredMessages

CHUNK, MESSAGES = 10, 60
LATE = replace(READ, deadline=0.0)
"""A deadline that has passed: such a load gets further by one chunk."""
MEBIBYTE = 1 << 20

Read = Callable[[StoredMessages, str, str, Chunk, ServedModel], dict[int, Documents]]


def watched(monkeypatch: pytest.MonkeyPatch, watch: Callable[[Chunk, dict[int, Documents]], object]) -> None:
    """Has every chunk shown that is read."""
    read: Read = StoredMessages.read

    def shown(self: StoredMessages, tenant: str, user: str, chunk: Chunk, model: ServedModel) -> dict[int, Documents]:
        found = read(self, tenant, user, chunk, model)
        watch(chunk, found)
        return found

    monkeypatch.setattr(StoredMessages, "read", shown)


@pytest.fixture
def read_counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many messages each chunk had that was read."""
    counts: list[int] = []
    monkeypatch.setattr(stored, "CHUNK_MESSAGES", CHUNK)
    watched(monkeypatch, lambda _, found: counts.append(sum(len(messages) for messages, _ in found.values())))
    return counts


@pytest.fixture
def one_conversation(tmp_path: Path) -> Iterator[Opened]:
    """A store of one conversation that no search has loaded."""
    with opened(tmp_path / "data") as before:
        before.append(*(f"tea {number}" for number in range(MESSAGES)))
        before.embed_all()
    with opened(tmp_path / "data") as after:
        after.store.conversations.get(READ, "c", "")
        yield after


@pytest.fixture
def many_conversations(tmp_path: Path) -> Iterator[Opened]:
    """The same messages in conversations of three."""
    with opened(tmp_path / "data") as before:
        for first in range(0, MESSAGES, 3):
            before.append(*(f"tea {first + more}" for more in range(3)), conversation=f"c{first}")
        before.embed_all()
    with opened(tmp_path / "data") as after:
        yield after


def in_tries(here: Opened, scope: Scope, most: int, between: Callable[[int], object] = lambda _: None) -> list[str]:
    """What a search finds that is repeated because its deadline passes, at most so often."""
    for number in range(most):
        here.store.applier.wait(here.store.core.accepted(), None)
        try:
            return here.texts("tea", scope, read=LATE)
        except DeadlineExceeded:
            between(number)
    pytest.fail(f"nothing was found in {most} tries")


@pytest.mark.parametrize("scope", [HERE, OfUser("sarah"), OfTenant()], ids=lambda scope: type(scope).__name__)
def test_each_load_of_one_conversation_goes_on_where_the_last_one_ended(
    one_conversation: Opened, read_counts: list[int], scope: Scope
) -> None:
    found = in_tries(one_conversation, scope, MESSAGES // CHUNK)

    assert read_counts == [CHUNK] * (MESSAGES // CHUNK), "every message was read once"
    assert sorted(found) == sorted(f"tea {number}" for number in range(MESSAGES))


@pytest.mark.parametrize("scope", [OfUser("sarah"), OfTenant()], ids=lambda scope: type(scope).__name__)
def test_each_load_of_many_conversations_goes_on_where_the_last_one_ended(
    many_conversations: Opened, read_counts: list[int], scope: Scope
) -> None:
    found = in_tries(many_conversations, scope, MESSAGES)

    assert all(0 < count <= CHUNK for count in read_counts)
    assert sum(read_counts) == MESSAGES, "every message was read once"
    assert sorted(found) == sorted(f"tea {number}" for number in range(MESSAGES))


@pytest.mark.slow
@pytest.mark.parametrize("store", ["one_conversation", "many_conversations"])
@pytest.mark.parametrize("most", [0, 1, 20])
def test_chunks_that_take_too_much_memory_are_read_in_smaller_ones_or_alone(
    store: str, most: int, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    here: Opened = request.getfixturevalue(store)
    refused: list[int] = []

    def count(_: Chunk, found: dict[int, Documents]) -> None:
        messages = sum(len(messages) for messages, _ in found.values())
        if messages > most:
            refused.append(messages)
            raise MemoryExhausted

    watched(monkeypatch, count)
    found = in_tries(here, OfUser("sarah"), MESSAGES)

    assert refused
    assert sorted(found) == sorted(f"tea {number}" for number in range(MESSAGES))


@pytest.mark.usefixtures("read_counts")
@pytest.mark.parametrize("scope", [HERE, OfUser("sarah"), OfTenant()], ids=lambda scope: type(scope).__name__)
def test_what_changes_between_two_loads_is_found_as_it_is_then(one_conversation: Opened, scope: Scope) -> None:
    messages = one_conversation.store.messages
    expected = {f"tea {number}": f"tea {number}" for number in range(MESSAGES)}

    def change(number: int) -> None:
        """Deletes, edits and adds messages, before and behind what is loaded."""
        for at in (number, MESSAGES - 1 - number):
            messages.delete(WRITE, "c", "", [f"tea {at}"])
            del expected[f"tea {at}"]
        for at in (20 + number, 30 + number):
            edit = Replace(draft(f"tea {at}", f"green tea {at} of {number}"))
            messages.edit(WRITE, "c", "", [edit], allow_missing=False)
            expected[f"tea {at}"] = f"green tea {at} of {number}"
        messages.append(WRITE, "c", "sarah", [draft(f"new {number}", f"new tea {number}")], NEW)
        expected[f"new {number}"] = f"new tea {number}"

    found = in_tries(one_conversation, scope, MESSAGES, change)

    assert sorted(found) == sorted(expected.values())


@pytest.mark.usefixtures("read_counts")
def test_a_conversation_that_is_cleared_between_two_loads_is_empty(one_conversation: Opened) -> None:
    def clear(number: int) -> None:
        if number == 1:
            one_conversation.store.messages.clear(WRITE, "c", "sarah")

    assert in_tries(one_conversation, OfUser("sarah"), MESSAGES, clear) == []


def test_a_search_does_not_wait_for_the_load_of_another_scope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(tmp_path / "data") as before:
        before.append("tea", "tea too")
        before.append("coffee and tea", conversation="d")
    is_read, goes_on = threading.Event(), threading.Event()

    def hold(chunk: Chunk, _: object) -> None:
        if len(chunk.conversations) > 1:
            is_read.set()
            assert goes_on.wait(PATIENCE)

    watched(monkeypatch, hold)
    with opened(tmp_path / "data") as here, ThreadPoolExecutor(1) as other:
        of_user = other.submit(here.texts, "tea", OfUser("sarah"))
        assert is_read.wait(PATIENCE)
        of_conversation = here.texts("tea", InConversation("d"))
        goes_on.set()

        assert of_conversation == ["coffee and tea"]
        assert len(of_user.result(PATIENCE)) == 3


def test_what_is_loaded_at_the_same_time_is_read_once(one_conversation: Opened, read_counts: list[int]) -> None:
    with ThreadPoolExecutor(4) as workers:
        searches = [workers.submit(one_conversation.texts, "tea", OfUser("sarah")) for _ in range(4)]

    assert [len(search.result()) for search in searches] == [MESSAGES] * 4
    assert sum(read_counts) == MESSAGES


@pytest.mark.slow
def test_a_user_with_more_than_a_search_may_load_is_refused_and_others_are_not(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as before:
        for number in range(20):
            before.append(f"tea {number} " + "word " * 20_000)
        before.append("tea", conversation="d", user="tom")
    with opened(tmp_path / "data", search_bytes=MEBIBYTE) as here:
        for scope in (HERE, OfUser("sarah"), OfTenant()):
            with pytest.raises(SearchTooLarge, match="the setting search_bytes allows 1 MiB") as refused:
                here.texts("tea", scope)
            assert int(refused.value.metadata["needed_bytes"]) > MEBIBYTE
        assert here.texts("tea", OfUser("tom")) == ["tea"]


def test_a_tenant_with_too_many_messages_is_refused_before_any_is_loaded(
    tmp_path: Path, read_counts: list[int]
) -> None:
    with opened(tmp_path / "data", search_bytes=MEBIBYTE) as here:
        for first in range(0, MEBIBYTE // LEAST_MESSAGE_BYTES, 500):
            drafts = [draft(f"m{first + number}", "tea") for number in range(500)]
            here.put(*drafts, conversation=f"c{first}", user=f"user {first}")

        with pytest.raises(SearchTooLarge):
            here.texts("tea", OfTenant())

        assert read_counts == []


def test_a_tenant_that_a_search_may_load_is_never_refused(tmp_path: Path) -> None:
    """Its memory is never less than what is expected of it before it is loaded."""
    count = 300
    with opened(tmp_path / "data") as before:
        before.put(*(draft(f"{number}", "a") for number in range(count)))
        before.embed_all()
    with opened(tmp_path / "data") as here:
        here.texts("a", OfTenant())
        taken = here.store.core.recall.bytes_of(TENANT, user_id=None, uid=None)
    with opened(tmp_path / "data", search_bytes=taken) as here:
        assert len(here.texts("a", OfTenant())) == 100

    assert taken >= count * (LEAST_MESSAGE_BYTES + len(embed("a")))
    assert len(embed("a")) % FLOAT_BYTES == 0


@pytest.mark.usefixtures("read_counts")
@pytest.mark.parametrize("scope", [InConversation("b"), OfUser("b")], ids=lambda scope: type(scope).__name__)
def test_loads_that_take_more_than_their_share_go_on_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: Scope
) -> None:
    with opened(tmp_path / "data") as before:
        texts = [f"tea {number} " + "word " * 500 for number in range(4 * CHUNK)]
        for user in ("a", "b"):
            before.append(*texts, conversation=user, user=user)
        before.append("tea", conversation="small", user="small")
    take, waits = Turn.take, threading.Event()

    def shown(turn: Turn) -> None:
        waits.set()
        take(turn)

    def taken(here: Opened, user: str) -> int:
        return here.store.core.recall.bytes_of(TENANT, user_id=user, uid=None)

    with opened(tmp_path / "data", recall_bytes=1 << 16) as here, ThreadPoolExecutor(1) as other:
        with here.store.index._loader.loading(READ, ResolvedScope(TENANT, "a")) as load:
            load.load()
            monkeypatch.setattr(Turn, "take", shown)
            found = other.submit(here.texts, "tea", scope)
            assert waits.wait(PATIENCE)

            assert 0 < taken(here, "b") < taken(here, "a") / 2, "it waits with what it has"
            assert here.texts("tea", OfUser("small")) == ["tea"], "a small one does not wait"

        assert len(found.result(PATIENCE)) == 4 * CHUNK
        assert taken(here, "b") > (1 << 16)


def test_tenants_that_are_larger_than_what_stays_in_memory_are_searched_one_at_a_time(tmp_path: Path) -> None:
    with opened(tmp_path / "data", recall_bytes=1) as here:
        for tenant in ("a", "b"):
            here.append("tea", tenant=tenant)
        loader = here.store.index._loader
        a, b = replace(READ, tenant_id="a"), replace(READ, tenant_id="b")
        with loader.loading(a, ResolvedScope("a")) as load:
            load.load()
            with ThreadPoolExecutor(1) as other, pytest.raises(DeadlineExceeded):
                other.submit(here.texts, "tea", OfTenant(), read=replace(b, deadline=0.0)).result(PATIENCE)
            load.load()

        assert here.texts("tea", OfTenant(), read=b) == ["tea"]
