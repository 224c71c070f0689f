"""The RPCs of working memory: whose it is, and what comes back."""

from __future__ import annotations

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tests.rpc.running_server import RunningServer

from remora.v1 import memory_service_pb2 as pb
from remora.v1.working_memory_pb2 import WorkingMemoryScope
from remora_server.domain.calls import Outcome
from remora_server.domain.working_memory import ConversationMemory, UserMemory, WorkingMemory, WorkingMemoryOwner

OF_CONVERSATION = WorkingMemoryScope(conversation_id="c")
OF_USER = WorkingMemoryScope(user_id="u")
OWNERS = [
    (OF_CONVERSATION, "", ConversationMemory("c")),
    (OF_CONVERSATION, "v", ConversationMemory("c", "v")),
    (OF_USER, "", UserMemory("u")),
    (OF_USER, "v", UserMemory("u")),
]


@pytest.mark.parametrize(("scope", "user", "owner"), OWNERS)
def test_a_working_memory_is_found_by_its_owner(
    server: RunningServer, scope: WorkingMemoryScope, user: str, owner: WorkingMemoryOwner
) -> None:
    server.call("GetWorkingMemory", pb.GetWorkingMemoryRequest(scope=scope, user_id=user))
    server.call("SetWorkingMemory", pb.SetWorkingMemoryRequest(scope=scope, user_id=user, content=b"\x00"))
    server.call("DeleteWorkingMemory", pb.DeleteWorkingMemoryRequest(scope=scope, user_id=user))

    assert server.store.asked["get_working_memory"][1:] == (owner,)
    assert server.store.asked["set_working_memory"][1:] == (owner, b"\x00")
    assert server.store.asked["delete_working_memory"][1:] == (owner,)


@pytest.mark.parametrize("content", [b"", b"\x00\xff"])
def test_a_content_comes_back_byte_for_byte(server: RunningServer, content: bytes) -> None:
    server.store.memory = WorkingMemory(content, update_time=1_000_000, revision=5)

    reply = server.call("GetWorkingMemory", pb.GetWorkingMemoryRequest(scope=OF_USER))

    expected = pb.GetWorkingMemoryResponse(content=content, found=True, update_time=Timestamp(seconds=1), revision=5)
    assert reply == expected


def test_where_there_is_none_nothing_is_found(server: RunningServer) -> None:
    reply = server.call("GetWorkingMemory", pb.GetWorkingMemoryRequest(scope=OF_USER))

    assert reply == pb.GetWorkingMemoryResponse(revision=9)


def test_a_write_answers_its_revision(server: RunningServer) -> None:
    server.store.outcome = Outcome(revision=5, time=1_000_000, deleted=True)

    written = server.call("SetWorkingMemory", pb.SetWorkingMemoryRequest(scope=OF_USER))
    deleted = server.call("DeleteWorkingMemory", pb.DeleteWorkingMemoryRequest(scope=OF_USER))

    assert written == pb.SetWorkingMemoryResponse(update_time=Timestamp(seconds=1), revision=5)
    assert deleted == pb.DeleteWorkingMemoryResponse(deleted=True, revision=5)
