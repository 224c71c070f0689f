"""Replies with large messages stay below what gRPC's clients take, and say what they leave out."""

from typing import Literal

import grpc
import pytest

from remora import Remora, testing
from remora.v1 import memory_service_pb2 as pb
from remora.v1 import memory_service_pb2_grpc

memory, remora_server, remora_tenant = testing.memory, testing.remora_server, testing.remora_tenant

MEGABYTE = "whale " + "~" * 1_000_000
COUNT = 6


@pytest.fixture
def tenant_of_whales(memory: Remora, remora_tenant: str) -> str:
    for number in range(COUNT):
        memory.conversation("sea").append({"role": "user", "content": f"{number} {MEGABYTE}"})
    return remora_tenant


def test_hits_end_before_the_reply_is_too_large(remora_server: str, tenant_of_whales: str) -> None:
    request = pb.SearchMessagesRequest(
        conversation=pb.ConversationScope(conversation_id="sea"),
        text="whale",
        options=pb.SearchOptions(k=1_000, profile=pb.PROFILE_LEXICAL),
    )
    metadata = (("remora-tenant", tenant_of_whales),)
    with grpc.insecure_channel(remora_server) as channel:
        stub = memory_service_pb2_grpc.MemoryServiceStub(channel)
        reply = stub.SearchMessages(request, metadata=metadata)
        request.options.k = 2
        few = stub.SearchMessages(request, metadata=metadata)

    assert (len(reply.hits), reply.truncated) == (3, True)
    assert (len(few.hits), few.truncated) == (2, False)


@pytest.mark.parametrize(("rendering", "held"), [("messages", 3), ("transcript", 1)])
def test_a_context_leaves_out_what_the_reply_has_no_room_for(
    memory: Remora, tenant_of_whales: str, rendering: Literal["messages", "transcript"], held: int
) -> None:
    context = memory.conversation("sea").context(
        max_tokens=10_000_000, recall={"profile": "lexical"}, query="whale", rendering=rendering
    )

    assert tenant_of_whales
    assert (len(context.items), context.left_out) == (held, COUNT - held)


def test_the_client_says_that_hits_were_left_out(memory: Remora, tenant_of_whales: str) -> None:
    found = memory.conversation("sea").search("whale", profile="lexical")

    assert tenant_of_whales
    assert (len(found), found.truncated) == (3, True)
