"""Working memory, in any store."""

from __future__ import annotations

import pytest
from tests.store.asking import Tenant

from remora_server.domain.errors import ConversationNotFound
from remora_server.domain.working_memory import ConversationMemory, UserMemory, WorkingMemoryOwner

OWNERS = [ConversationMemory("c"), ConversationMemory("c", "sarah"), UserMemory("sarah")]


@pytest.mark.parametrize("owner", OWNERS)
def test_a_content_is_set_read_replaced_and_deleted(tenant: Tenant, owner: WorkingMemoryOwner) -> None:
    tenant.append("a")
    memories = tenant.store.working_memories
    assert memories.get(tenant.read, owner).content is None

    for content in (b"first", b"\x00\xff", b""):
        outcome = memories.set(tenant.write, owner, content)
        found = memories.get(tenant.read, owner)
        assert (found.content, found.update_time) == (content, outcome.time)
        assert found.revision >= outcome.revision
    gone = memories.delete(tenant.write, owner)
    again = memories.delete(tenant.write, owner)

    assert (gone.deleted, again.deleted) == (True, False)
    assert again.revision >= gone.revision > outcome.revision
    assert memories.get(tenant.read, owner).content is None


def test_owners_are_apart(tenant: Tenant) -> None:
    tenant.append("a")
    tenant.append("a", conversation="sarah")
    memories = tenant.store.working_memories
    owners: list[WorkingMemoryOwner] = [
        ConversationMemory("c"), ConversationMemory("sarah"), UserMemory("sarah"), UserMemory("c"),
    ]  # fmt: skip
    for number, owner in enumerate(owners):
        memories.set(tenant.write, owner, bytes([number]))

    assert [memories.get(tenant.read, owner).content for owner in owners] == [b"\0", b"\1", b"\2", b"\3"]


@pytest.mark.parametrize("owner", [ConversationMemory("nowhere"), ConversationMemory("c", "tom")])
def test_a_conversation_that_is_not_there_or_anothers_has_none(tenant: Tenant, owner: ConversationMemory) -> None:
    tenant.append("a")
    memories = tenant.store.working_memories

    with pytest.raises(ConversationNotFound):
        memories.get(tenant.read, owner)
    with pytest.raises(ConversationNotFound):
        memories.set(tenant.write, owner, b"x")
    with pytest.raises(ConversationNotFound):
        memories.delete(tenant.write, owner)


def test_a_content_leaves_its_conversation_as_it_was(tenant: Tenant) -> None:
    written = tenant.append("a").revision

    tenant.store.working_memories.set(tenant.write, ConversationMemory("c"), b"x")

    assert tenant.store.conversations.get(tenant.read, "c", "")[0].revision == written
