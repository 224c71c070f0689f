"""Conversations, in any store."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.store.asking import Tenant, step_draft

from remora_server.domain.conversations import (
    ConversationDraft,
    ConversationOrder,
    ConversationQuery,
    ConversationUpdate,
    position_of,
)
from remora_server.domain.errors import ConversationExists, ConversationNotFound
from remora_server.domain.working_memory import ConversationMemory

FULL = ConversationDraft(
    id="c",
    user_id="sarah",
    resource_id="room",
    title="Trip",
    metadata=b"\x00\xff",
    attributes={"a": 1, "b": 1.5, "c": "x", "d": None, "e": True},
    storage_limit=9,
)


def ids(tenant: Tenant, query: ConversationQuery) -> list[str]:
    return [found.draft.id for found in tenant.store.conversations.list(tenant.read, query)[0]]


def test_a_conversation_is_read_back_as_it_was_created(tenant: Tenant) -> None:
    outcome = tenant.store.conversations.create(tenant.write, FULL)

    found, revision = tenant.store.conversations.get(tenant.read, "c", "")
    assert (outcome.conversation_id, outcome.created) == ("c", True)
    assert revision >= found.revision == outcome.revision
    assert found.uid == outcome.revision
    assert (found.draft, found.create_time, found.update_time) == (FULL, outcome.time, outcome.time)
    assert (found.last_sequence, found.message_count) == (0, 0)


def test_what_is_not_given_is_chosen(tenant: Tenant) -> None:
    made = [tenant.store.conversations.create(tenant.write, ConversationDraft("")).conversation_id for _ in range(2)]

    assert len(set(made)) == 2
    assert all(tenant.store.conversations.get(tenant.read, name, "")[0].draft.user_id == "default" for name in made)


def test_an_id_is_taken_once(tenant: Tenant) -> None:
    tenant.store.conversations.create(tenant.write, FULL)

    with pytest.raises(ConversationExists):
        tenant.store.conversations.create(tenant.write, replace(FULL, title="Another"))
    assert tenant.store.conversations.get(tenant.read, "c", "")[0].draft == FULL


def test_another_user_finds_no_conversation(tenant: Tenant) -> None:
    tenant.store.conversations.create(tenant.write, FULL)
    update = ConversationUpdate(FULL, frozenset({"title"}))

    with pytest.raises(ConversationNotFound):
        tenant.store.conversations.get(tenant.read, "c", "tom")
    with pytest.raises(ConversationNotFound):
        tenant.store.conversations.update(tenant.write, "c", "tom", update)
    with pytest.raises(ConversationNotFound):
        tenant.store.conversations.delete(tenant.write, "c", "tom", allow_missing=False)
    assert not tenant.store.conversations.delete(tenant.write, "c", "tom", allow_missing=True).deleted
    assert tenant.store.conversations.get(tenant.read, "c", "sarah")[0].draft == FULL


def test_an_update_replaces_what_its_mask_names(tenant: Tenant) -> None:
    created = tenant.store.conversations.create(tenant.write, FULL)
    given = ConversationDraft("c", title="New", metadata=b"", storage_limit=None)

    outcome = tenant.store.conversations.update(
        tenant.write, "c", "sarah", ConversationUpdate(given, frozenset({"title", "metadata", "storage_limit"}))
    )

    found, _ = tenant.store.conversations.get(tenant.read, "c", "")
    assert found.draft == replace(FULL, title="New", metadata=b"", storage_limit=None)
    assert found.revision == outcome.revision > created.revision
    assert found.update_time == outcome.time >= found.create_time == created.time
    assert found.uid == created.revision


def test_an_update_without_a_mask_touches_the_conversation(tenant: Tenant) -> None:
    tenant.store.conversations.create(tenant.write, FULL)

    outcome = tenant.store.conversations.update(tenant.write, "c", "", ConversationUpdate(FULL, frozenset()))

    found, _ = tenant.store.conversations.get(tenant.read, "c", "")
    assert (found.draft, found.revision, found.update_time) == (FULL, outcome.revision, outcome.time)


def test_a_conversation_that_is_not_there_is_not_updated(tenant: Tenant) -> None:
    with pytest.raises(ConversationNotFound):
        tenant.store.conversations.update(tenant.write, "c", "", ConversationUpdate(FULL, frozenset()))


def test_a_deleted_conversation_takes_all_it_held(tenant: Tenant) -> None:
    first = tenant.append("a", "b")
    tenant.append("c", user="tom")
    tenant.store.steps.save(tenant.write, [step_draft("s")])
    tenant.store.working_memories.set(tenant.write, ConversationMemory("c"), b"x")

    outcome = tenant.store.conversations.delete(tenant.write, "c", "", allow_missing=False)

    assert (outcome.deleted, outcome.deleted_messages, outcome.conversation_id) == (True, 3, "c")
    with pytest.raises(ConversationNotFound):
        tenant.store.conversations.get(tenant.read, "c", "")
    again = tenant.append("d")
    assert again.created
    assert (again.messages[0].sequence, tenant.texts(), tenant.texts(user="tom")) == (1, ["d"], [])
    assert tenant.store.conversations.get(tenant.read, "c", "")[0].uid > first.revision
    assert tenant.store.working_memories.get(tenant.read, ConversationMemory("c")).content is None
    assert tenant.exported()[2:] == []


def test_nothing_is_deleted_twice(tenant: Tenant) -> None:
    tenant.append("a")
    gone = tenant.store.conversations.delete(tenant.write, "c", "", allow_missing=True)

    again = tenant.store.conversations.delete(tenant.write, "c", "", allow_missing=True)

    assert (again.deleted, again.deleted_messages) == (False, 0)
    assert again.revision >= gone.revision
    with pytest.raises(ConversationNotFound):
        tenant.store.conversations.delete(tenant.write, "c", "", allow_missing=False)


def test_lists_are_filtered_ordered_and_cut(tenant: Tenant) -> None:
    for name, user, room, title in [("1", "a", "x", "beta"), ("2", "b", "x", "Alpha"), ("3", "a", "y", "gamma")]:
        tenant.store.conversations.create(tenant.write, ConversationDraft(name, user, room, title))
    tenant.append("late", conversation="1", user="a")

    by_title = ConversationQuery(order_by=ConversationOrder.TITLE, descending=False)
    assert ids(tenant, by_title) == ["2", "1", "3"]
    assert ids(tenant, replace(by_title, descending=True)) == ["3", "1", "2"]
    assert ids(tenant, replace(by_title, skip=1, limit=1)) == ["1"]
    assert ids(tenant, ConversationQuery()) == ["1", "3", "2"]
    assert ids(tenant, ConversationQuery(order_by=ConversationOrder.CREATE_TIME, descending=False)) == ["1", "2", "3"]
    assert ids(tenant, ConversationQuery(user_id="a")) == ["1", "3"]
    assert ids(tenant, ConversationQuery(user_id="a", resource_id="x")) == ["1"]
    assert ids(tenant, ConversationQuery(user_id="nobody")) == []


def test_equal_titles_are_listed_in_the_order_of_creation(tenant: Tenant) -> None:
    for name in "zyx":
        tenant.store.conversations.create(tenant.write, ConversationDraft(name, title="same"))

    query = ConversationQuery(order_by=ConversationOrder.TITLE, descending=False)
    assert ids(tenant, query) == ["z", "y", "x"]
    assert ids(tenant, replace(query, descending=True)) == ["x", "y", "z"]


@pytest.mark.parametrize("order", ConversationOrder)
@pytest.mark.parametrize("descending", [False, True])
def test_pages_go_on_behind_a_position_whatever_comes_and_goes(
    tenant: Tenant, order: ConversationOrder, descending: bool
) -> None:
    titles = ["b", "A", "a", "B", "b", "c"]
    for number, title in enumerate(titles):
        tenant.store.conversations.create(tenant.write, ConversationDraft(str(number), title=title))
    query = ConversationQuery(order_by=order, descending=descending)
    everything = ids(tenant, query)

    first, _ = tenant.store.conversations.list(tenant.read, replace(query, limit=3))
    rest = replace(query, after=position_of(first[-1], order))
    tenant.store.conversations.delete(tenant.write, everything[0], "", allow_missing=False)
    tenant.store.conversations.delete(tenant.write, everything[2], "", allow_missing=False)

    assert [found.draft.id for found in first] == everything[:3]
    assert ids(tenant, rest) == everything[3:]
    assert ids(tenant, replace(rest, skip=1, limit=1)) == everything[4:5]


def test_conversations_are_counted(tenant: Tenant) -> None:
    for name, user, room in [("1", "a", "x"), ("2", "b", "x"), ("3", "a", "y")]:
        written = tenant.store.conversations.create(tenant.write, ConversationDraft(name, user, room)).revision

    counts = [tenant.store.conversations.count(tenant.read, *where) for where in [("", ""), ("a", ""), ("a", "x")]]
    assert [count for count, _ in counts] == [3, 2, 1]
    assert all(revision >= written for _, revision in counts)


def test_a_list_shows_messages_that_were_written_before(tenant: Tenant) -> None:
    outcome = tenant.append("a", "b")

    [found], revision = tenant.store.conversations.list(tenant.read, ConversationQuery())
    assert revision >= outcome.revision == found.revision
    assert (found.message_count, found.last_sequence, found.uid) == (2, 2, outcome.revision)
