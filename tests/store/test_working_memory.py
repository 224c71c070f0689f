"""Working memory, in any store."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace
from tests.store.asking import Tenant

from remora_server.domain.errors import ConversationNotFound, InvalidField
from remora_server.domain.json_schemas import json_schema
from remora_server.domain.working_memory import (
    ConversationMemory,
    JsonEdit,
    MarkdownEdit,
    Mode,
    UserMemory,
    WorkingMemoryOwner,
)

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
        memories.edit(tenant.write, owner, MarkdownEdit("x", Mode.APPEND))
    with pytest.raises(ConversationNotFound):
        memories.delete(tenant.write, owner)


def test_a_content_leaves_its_conversation_as_it_was(tenant: Tenant) -> None:
    written = tenant.append("a").revision

    tenant.store.working_memories.set(tenant.write, ConversationMemory("c"), b"x")

    assert tenant.store.conversations.get(tenant.read, "c", "")[0].revision == written


@pytest.mark.parametrize("owner", OWNERS)
def test_an_update_builds_on_what_was_acknowledged(tenant: Tenant, owner: WorkingMemoryOwner) -> None:
    tenant.append("a")
    memories = tenant.store.working_memories

    for content in ("one", "two"):
        outcome = memories.edit(tenant.write, owner, MarkdownEdit(content, Mode.APPEND))
    found = memories.get(tenant.read, owner)

    assert (found.content, found.update_time) == (b"one\n\ntwo", outcome.time)


def test_an_update_that_does_not_match_its_schema_changes_nothing(tenant: Tenant) -> None:
    memories, owner = tenant.store.working_memories, UserMemory("sarah")
    memories.set(tenant.write, owner, b"[1]")

    with pytest.raises(InvalidField):
        memories.edit(tenant.write, owner, JsonEdit([2], Mode.APPEND, json_schema("s", '{"maxItems": 1}')))

    assert memories.get(tenant.read, owner).content == b"[1]"


def test_a_repeated_edit_is_made_once(tenant: Tenant) -> None:
    memories, owner = tenant.store.working_memories, UserMemory("sarah")
    write = replace(tenant.write, request_id="r", fingerprint=bytes(16))

    outcomes = [memories.edit(write, owner, MarkdownEdit("x", Mode.APPEND)) for _ in range(2)]

    assert outcomes[0].revision == outcomes[1].revision
    assert memories.get(tenant.read, owner).content == b"x"


def test_edits_at_once_are_all_kept(tenant: Tenant) -> None:
    memories, owner = tenant.store.working_memories, UserMemory("sarah")

    def append(number: int) -> None:
        memories.edit(tenant.write, owner, JsonEdit([number], Mode.APPEND))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(append, range(64)))
    content = memories.get(tenant.read, owner).content

    assert content is not None
    assert sorted(json.loads(content)) == list(range(64))
