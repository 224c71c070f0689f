"""Clearing and forgetting users, in any store."""

from __future__ import annotations

import pytest
from tests.store.asking import Tenant, step_draft

from remora_server.domain.conversations import ConversationQuery
from remora_server.domain.errors import ConversationNotFound
from remora_server.domain.steps import StepQuery
from remora_server.domain.working_memory import ConversationMemory, UserMemory


@pytest.fixture
def shared(tenant: Tenant) -> Tenant:
    """Sarah owns one conversation, Tom another; both speak and act in both and have working memories."""
    for conversation, owner, guest in [("hers", "sarah", "tom"), ("his", "tom", "sarah")]:
        tenant.append(f"{conversation}-own", conversation=conversation, user=owner)
        tenant.append(f"{conversation}-guest", conversation=conversation, user=guest)
        steps = [step_draft("s", conversation, user) for user in ("sarah", "tom")]
        tenant.store.steps.save(tenant.write, steps)
        tenant.store.working_memories.set(tenant.write, ConversationMemory(conversation), b"c")
        tenant.store.working_memories.set(tenant.write, UserMemory(owner), b"u")
    return tenant


def test_a_user_is_cleared_everywhere(shared: Tenant) -> None:
    outcome = shared.store.users.clear(shared.write, "sarah")

    assert (outcome.deleted_messages, outcome.deleted_conversations) == (2, 0)
    for conversation in ("hers", "his"):
        assert shared.texts(conversation, "sarah") == []
        assert len(shared.texts(conversation, "tom")) == 1
        assert shared.steps(StepQuery(conversation, "sarah")) == []
        assert len(shared.steps(StepQuery(conversation, "tom"))) == 1
    assert shared.store.working_memories.get(shared.read, UserMemory("sarah")).content == b"u"


def test_nothing_is_left_of_a_deleted_user(shared: Tenant) -> None:
    outcome = shared.store.users.delete(shared.write, "sarah")

    assert (outcome.deleted_messages, outcome.deleted_conversations) == (3, 1)
    with pytest.raises(ConversationNotFound):
        shared.store.conversations.get(shared.read, "hers", "")
    assert shared.texts("his", "sarah") == []
    assert shared.texts("his", "tom") == ["his-own"]
    assert shared.steps(StepQuery("his", "sarah")) == []
    assert shared.store.working_memories.get(shared.read, UserMemory("sarah")).content is None
    assert shared.store.working_memories.get(shared.read, UserMemory("tom")).content == b"u"
    assert b"sarah" not in b"".join(record.SerializeToString() for record in shared.exported())


def test_a_user_who_only_acted_is_cleared_too(tenant: Tenant) -> None:
    tenant.append("a")
    tenant.store.steps.save(tenant.write, [step_draft("s", user="tom")])

    tenant.store.users.clear(tenant.write, "tom")

    assert tenant.steps(StepQuery("c", "tom")) == []
    assert tenant.texts() == ["a"]


def test_an_unknown_user_has_nothing_to_lose(shared: Tenant) -> None:
    before = shared.store.conversations.list(shared.read, ConversationQuery())[0]

    cleared, deleted = (
        forget(shared.write, "nobody") for forget in (shared.store.users.clear, shared.store.users.delete)
    )

    assert (cleared.deleted_messages, deleted.deleted_messages, deleted.deleted_conversations) == (0, 0, 0)
    assert shared.store.conversations.list(shared.read, ConversationQuery())[0] == before


def test_a_user_may_come_back(shared: Tenant) -> None:
    shared.store.users.delete(shared.write, "sarah")

    outcome = shared.append("again", conversation="hers")

    assert outcome.created
    assert (shared.texts("hers"), outcome.messages[0].sequence) == (["again"], 1)
