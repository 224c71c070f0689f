"""What every read and write keeps, in any store: what a repeat gets, what a revision says, who sees what."""

from __future__ import annotations

import itertools
import threading
import time
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace
from tests.patience import PATIENCE
from tests.store.asking import NEW, Tenant, draft, step_draft
from tests.store.every_call import ITS_OWN, READS, WRITES, ReadCall, calls_of, everything, filled, methods, nouns

from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.conversations import ConversationDraft, ConversationQuery
from remora_server.domain.errors import ConversationNotFound, MessageNotFound, RequestIdReused, RevisionUnknown
from remora_server.domain.messages import MessageQuery, Remove
from remora_server.domain.store import Store
from remora_server.domain.working_memory import ConversationMemory, UserMemory

WRITERS = 4


@pytest.mark.parametrize(("first", "calls"), [(Write, WRITES), (Read, READS)], ids=["writes", "reads"])
def test_every_method_of_the_interface_is_tried(first: type, calls: Iterable[str]) -> None:
    declared = set(methods(first))

    assert len(declared) > 40
    assert declared == {name.partition(" ")[0] for name in calls} | (declared & ITS_OWN)


@pytest.mark.parametrize("noun", nouns(WRITES))
def test_a_repeat_gets_the_first_outcome_and_changes_nothing(tenant: Tenant, noun: str) -> None:
    filled(tenant)
    calls = calls_of(noun, WRITES)
    first = {name: ask(tenant.store, tenant.request(name)) for name, ask in calls.items()}
    tenant.append("since")
    tenant.append("since", conversation="x", user="nobody")
    tenant.store.working_memories.set(tenant.write, UserMemory("nobody"), b"since")
    before = everything(tenant)

    again = {name: ask(tenant.store, tenant.request(name)) for name, ask in calls.items()}

    assert again == first
    assert everything(tenant) == before


def test_a_request_id_with_another_payload_is_refused(tenant: Tenant) -> None:
    filled(tenant)
    tenant.store.conversations.create(tenant.request("r"), ConversationDraft("another"))
    before = everything(tenant)

    for ask in WRITES.values():
        with pytest.raises(RequestIdReused):
            ask(tenant.store, tenant.request("r", b"x" * 16))
    assert everything(tenant) == before


def test_a_request_id_is_its_tenants(tenant: Tenant, other: Tenant) -> None:
    tenant.store.messages.append(tenant.request("r"), "c", "sarah", [draft("a")], NEW)

    assert other.store.messages.append(other.request("r"), "c", "sarah", [draft("a")], NEW).created
    assert len(other.messages()) == 1


@pytest.mark.slow
def test_requests_that_overlap_their_repeats_all_get_the_first_outcome(tenant: Tenant) -> None:
    together = threading.Barrier(WRITERS)

    def create(number: int) -> Outcome:
        together.wait(PATIENCE)
        return tenant.store.conversations.create(tenant.request(f"r{number}"), ConversationDraft(f"c{number}"))

    with ThreadPoolExecutor(WRITERS) as threads:
        for number in range(100):
            first, *others = threads.map(create, [number] * WRITERS)
            assert others == [first] * (WRITERS - 1)


def test_a_failure_is_not_remembered(tenant: Tenant) -> None:
    with pytest.raises(ConversationNotFound):
        tenant.store.messages.append(tenant.request("r"), "c", "sarah", [draft("a", "a")], None)

    tenant.append()
    tenant.store.messages.append(tenant.request("r"), "c", "sarah", [draft("a", "a")], None)
    assert tenant.texts() == ["a"]


def test_one_request_from_many_threads_writes_once(tenant: Tenant) -> None:
    outcomes: list[Outcome] = []

    def ask() -> None:
        outcomes.append(tenant.store.messages.append(tenant.request("r"), "c", "sarah", [draft(text="once")], NEW))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(outcomes) == 8
    assert len(set(outcomes)) == 1
    assert tenant.texts() == ["once"]


def test_writers_of_one_conversation_get_sequences_of_their_own(tenant: Tenant) -> None:
    tenant.append()

    def ask(writer: int) -> None:
        for number in range(10):
            tenant.append(f"{writer}-{number}")

    threads = [threading.Thread(target=ask, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    found = tenant.messages()
    assert [message.sequence for message in found] == list(range(1, 41))
    for writer in range(4):
        own = [message.text for message in found if message.text.startswith(f"{writer}-")]
        assert own == [f"{writer}-{number}" for number in range(10)]
    revisions = [message.revision for message in found]
    assert revisions == sorted(set(revisions))


@pytest.mark.slow
def test_writers_of_many_conversations_do_not_hold_up_each_other(tenant: Tenant) -> None:
    write = replace(tenant.write, deadline=time.monotonic() + PATIENCE)
    store, rounds = tenant.store, 10

    def ask(writer: int) -> bool:
        name, user = f"c{writer}", f"u{writer}"
        for _ in range(rounds):
            store.messages.append(write, name, user, [draft(text="t")], NEW)
            store.steps.save(write, [step_draft("s", f"c{each}", user) for each in range(writer + 1)])
            store.working_memories.set(write, ConversationMemory(name), b"m")
            assert store.working_memories.delete(write, ConversationMemory(name)).deleted
            store.users.clear(write, user)
        return True

    for writer in range(4):
        tenant.append(conversation=f"c{writer}", user=f"u{writer}")
    with ThreadPoolExecutor(4) as writers:
        assert all(writers.map(ask, range(4)))

    found, _ = tenant.store.conversations.list(tenant.read, ConversationQuery())
    assert [(each.message_count, each.last_sequence) for each in found] == [(0, rounds)] * 4


def test_revisions_only_grow(tenant: Tenant) -> None:
    filled(tenant)
    revisions = [ask(tenant.store, tenant.write).revision for ask in WRITES.values()]

    assert all(before <= after for before, after in itertools.pairwise(revisions))
    assert len(set(revisions)) > len(WRITES) / 2
    assert tenant.store.publication.published() >= revisions[-1]
    assert not tenant.store.publication.has_ended()


@pytest.fixture(scope="module")
def full(store: Store) -> Tenant:
    """A tenant with something for each read to find."""
    return filled(Tenant(store, uuid.uuid4().hex))


@pytest.mark.parametrize("ask", READS.values(), ids=READS)
def test_a_read_shows_the_revision_that_it_asks_for(full: Tenant, ask: ReadCall) -> None:
    for number in range(5):
        written = full.append(f"later {number}").revision

        assert ask(full.store, replace(full.read, min_revision=written)) >= written


@pytest.mark.parametrize("ask", READS.values(), ids=READS)
def test_a_revision_that_was_never_given_is_refused(full: Tenant, ask: ReadCall) -> None:
    with pytest.raises(RevisionUnknown):
        ask(full.store, replace(full.read, min_revision=1 << 60))


def test_a_write_that_does_not_wait_is_published_later(tenant: Tenant) -> None:
    write = replace(tenant.write, waits_for_disk=False)
    revision = tenant.store.messages.append(write, "c", "sarah", [draft("a", "a")], NEW).revision

    read = Read(tenant.id, min_revision=revision, deadline=time.monotonic() + 600)
    assert tenant.store.messages.list(read, MessageQuery("c")).count == 1
    assert tenant.store.publication.published() >= revision


@pytest.mark.slow
def test_tenants_are_apart(tenant: Tenant, other: Tenant) -> None:
    for each in (tenant, other):
        each.append(f"of {each.id}")
        filled(each).store.steps.save(each.write, [step_draft("s", content=each.id)])
        each.store.working_memories.set(each.write, UserMemory("sarah"), each.id.encode())
    before = everything(other)

    for ask in WRITES.values():
        ask(tenant.store, tenant.write)

    assert everything(other) == before
    assert other.id.encode() not in repr(everything(tenant)).encode()


def test_of_another_tenants_conversation_nothing_is_found(tenant: Tenant, other: Tenant) -> None:
    tenant.append("secret")

    with pytest.raises(ConversationNotFound):
        other.messages()
    with pytest.raises(ConversationNotFound):
        other.append("a", create=None)
    with pytest.raises((ConversationNotFound, MessageNotFound)):
        other.store.messages.edit(other.write, "c", "sarah", [Remove("secret")], allow_missing=False)
    assert other.store.conversations.count(other.read, "", "")[0] == 0
    assert tenant.texts() == ["secret"]
