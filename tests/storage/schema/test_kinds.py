"""Declarations of kinds: what they make of a message, and what they refuse."""

from __future__ import annotations

import pytest
from tests.storage.declared import ITEMS, NOTES, PROFILES, Item

from remora.v1 import step_pb2, working_memory_pb2
from remora.v1.transfer_service_pb2 import Record
from remora.v1.vector_pb2 import Vector
from remora_server.rpc.handlers.exported import conversation_of
from remora_server.storage.schema import keys
from remora_server.storage.schema.keys import KeyType
from remora_server.storage.schema.kinds import (
    CONVERSATION_MEMORIES,
    KINDS,
    STEPS,
    USER_MEMORIES,
    VECTORS,
    Kind,
    Kinds,
    draft_vectors,
)


def test_a_message_becomes_a_record_by_its_declaration() -> None:
    item = Item(namespace=["a", "b"], id="i", number=-3, score=0.5, done=True, status="new", digest=b"\x00")
    item.expire_time.FromMicroseconds(1_000_001)

    draft = ITEMS.draft(item)

    assert keys.decode([KeyType.TEXTS], draft.partition) == (("a", "b"),)
    assert keys.decode([KeyType.TEXT], draft.key) == ("i",)
    assert draft.columns == (-3, 0.5, True, "new", b"\x00")
    assert (draft.expire_time, draft.user_id) == (1_000_001, "")
    assert Item.FromString(draft.body) == item


def test_a_vector_in_wire_form_becomes_the_record_that_its_message_becomes() -> None:
    given = [
        Vector(id="one", collection_id="c", user_id="sarah", values=b"\x00" * 8),
        Vector(id="\x00", collection_id="c"),
    ]

    for vector in given:
        [draft] = draft_vectors("c", vector.user_id, [(vector.id, vector.SerializeToString())])

        assert draft == VECTORS.draft(vector)


def test_an_exported_record_says_whose_it_is() -> None:
    body = working_memory_pb2.WorkingMemoryRecord(content=b"x").SerializeToString()

    of_conversation = CONVERSATION_MEMORIES.exported(body, "c", "", None)
    of_user = USER_MEMORIES.exported(body, "", "sarah", None)

    assert (of_conversation.scope.conversation_id, of_user.scope.user_id) == ("c", "sarah")  # type: ignore[attr-defined]


def test_one_message_of_two_kinds_is_of_the_one_whose_owner_it_names() -> None:
    scope = working_memory_pb2.WorkingMemoryScope(user_id="sarah")
    message = working_memory_pb2.WorkingMemoryRecord(scope=scope)

    assert [kind.is_of(message) for kind in (CONVERSATION_MEMORIES, USER_MEMORIES)] == [False, True]


def test_what_belongs_to_a_record_belongs_to_its_owners() -> None:
    assert (NOTES.of_user, NOTES.of_conversation) == (True, False)
    assert NOTES.encode_partition("sarah") == PROFILES.encode_partition("sarah") + PROFILES.encode_key()


def test_an_exported_record_is_of_the_conversation_that_its_kind_belongs_to() -> None:
    exported = KINDS.transferred()
    of_conversations = {kind.transfer for kind in exported if kind.of_conversation}

    assert of_conversations
    for kind in exported:
        record = naming_conversation(kind.transfer)
        assert conversation_of(record) == ("c" if kind.transfer in of_conversations else ""), kind.name


def naming_conversation(transfer: str) -> Record:
    """A record that names the conversation c wherever it can."""
    record = Record()
    own = getattr(record, transfer)
    own.SetInParent()
    for named in (own, getattr(own, "scope", own)):
        if "conversation_id" in named.DESCRIPTOR.fields_by_name:
            named.conversation_id = "c"
    return record


def test_every_kind_has_a_number_and_a_name_of_its_own() -> None:
    assert len(KINDS) > 1
    with pytest.raises(ValueError, match="one number"):
        Kinds(STEPS, Kind(number=STEPS.number, name="others", message=Item))
    with pytest.raises(ValueError, match="one name"):
        Kinds(STEPS, Kind(number=99, name=STEPS.name, message=Item))


def test_a_declaration_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="partition of others"):
        Kind(number=99, name="others", message=Item, partition=["number"], parent=ITEMS)
    with pytest.raises(ValueError, match="cannot be cleared"):
        Kind(number=99, name="others", message=step_pb2.Step, key=["id"], user="user_id", is_cleared=True)
    with pytest.raises(ValueError, match="a user of its own"):
        Kind(number=99, name="others", message=step_pb2.Step, partition=["user_id"], user="agent_id", parent=PROFILES)
    with pytest.raises(ValueError, match="is not"):
        Kind(
            number=99,
            name="others",
            message=step_pb2.Step,
            partition=["user_id"],
            conversation="conversation_id",
            parent=PROFILES,
        )
    with pytest.raises(ValueError, match="no field"):
        Kind(number=99, name="others", message=Item, transfer="item")
    with pytest.raises(KeyError):
        Kind(number=99, name="others", message=Item, key=["nothing"])
