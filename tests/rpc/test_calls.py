"""What a call means for the domain: its tenant, its deadline, and what makes a request the same one."""

from __future__ import annotations

import threading
import time
from typing import cast

import grpc
import pytest
from tests.faults.contract import WRITES
from tests.patience import PATIENCE
from tests.rpc.fake_store import FakeStore, conversation
from tests.rpc.running_server import RunningServer

from remora.v1 import conversation_service_pb2 as pb
from remora.v1 import user_service_pb2 as users
from remora.v1.calls_pb2 import Origin
from remora.v1.message_pb2 import Message
from remora.v1.scalar_pb2 import Scalar
from remora.v1.store_item_pb2 import ItemKey
from remora.v1.store_service_pb2 import ExecuteOperationsRequest, Operation
from remora_server.domain.calls import Read, Write
from remora_server.rpc.calls import Call, traceparent

CALL = Call("AppendMessages", "t", 0.0)
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def append(keys: str = "ab", **fields: object) -> pb.AppendMessagesRequest:
    message = Message(role="user", attributes={key: Scalar(text=key) for key in keys})
    return pb.AppendMessagesRequest(**{"conversation_id": "c", "messages": [message], "request_id": "r", **fields})  # type: ignore[arg-type]


def test_the_order_of_a_map_does_not_make_another_request() -> None:
    forth, back = append("abcdefgh"), append("hgfedcba")

    assert CALL.write(forth).fingerprint == CALL.write(back).fingerprint


@pytest.mark.parametrize("changed", [append(user_id="u"), append("abc"), append(conversation_id="d")])
def test_another_payload_is_another_request(changed: pb.AppendMessagesRequest) -> None:
    assert CALL.write(append()).fingerprint != CALL.write(changed).fingerprint


def test_the_revision_that_a_request_waits_for_does_not_make_another_request() -> None:
    call = Call("ExecuteOperations", "t", 0.0)
    operations = [Operation(delete=ItemKey(namespace=["n"], key="k"))]
    first = ExecuteOperationsRequest(operations=operations, request_id="r", min_revision=7)
    later = ExecuteOperationsRequest(operations=operations, request_id="r", min_revision=9)

    assert call.write(first).fingerprint == call.write(later).fingerprint
    assert first.min_revision == 7


def test_one_write_may_wait_for_a_revision() -> None:
    assert len(WRITES) > 1
    assert [name for name, write in WRITES.items() if "min_revision" in write.input_type.fields_by_name] == [
        "ExecuteOperations"
    ]


def test_another_method_is_another_request() -> None:
    other = Call("EditMessages", "t", 0.0)

    assert CALL.write(append()).fingerprint != other.write(append()).fingerprint


def test_a_fingerprint_has_16_bytes_and_is_made_only_where_there_is_a_request_id() -> None:
    assert len(CALL.write(append()).fingerprint) == 16
    assert CALL.write(append(request_id="")).fingerprint == b""


def test_a_write_says_what_made_it() -> None:
    call = Call("AppendMessages", "t", 5.0, TRACE)

    write = call.write(append(origin=Origin(agent_id="a", run_id="r")))

    assert (write.tenant_id, write.method, write.deadline) == ("t", "AppendMessages", 5.0)
    assert (write.request_id, write.agent_id, write.run_id, write.traceparent) == ("r", "a", "r", TRACE)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "00",
        TRACE.upper(),
        TRACE.replace("00-", "ff-", 1),
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01",
        b"00",
    ],
)
def test_a_malformed_traceparent_is_ignored(value: str | bytes) -> None:
    assert traceparent(value) == ""


def test_a_traceparent_is_kept() -> None:
    assert traceparent(TRACE) == TRACE


@pytest.fixture
def server_of_one() -> RunningServer:
    """Its store waits for what has happened: a call that has no time is made again with its own."""
    happened = threading.Event()
    happened.set()
    return RunningServer(store=FakeStore(conversations=[conversation()], waiting_for=happened))


def read_of(server: RunningServer, **arguments: object) -> Read:
    with server:
        server.call("GetConversation", pb.GetConversationRequest(conversation_id="c", min_revision=3), **arguments)  # type: ignore[arg-type]
    return cast("Read", server.store.asked["get_conversation"][0])


def test_a_read_has_its_revision_and_the_default_tenant(server_of_one: RunningServer) -> None:
    read = read_of(server_of_one)

    assert (read.tenant_id, read.min_revision) == ("default", 3)


def test_a_caller_names_its_tenant_where_there_are_no_tokens(server_of_one: RunningServer) -> None:
    assert read_of(server_of_one, metadata=[("remora-tenant", "acme")]).tenant_id == "acme"


def test_a_tenant_of_more_than_512_bytes_is_refused(server_of_one: RunningServer) -> None:
    with pytest.raises(grpc.RpcError, match="remora-tenant"):
        read_of(server_of_one, metadata=[("remora-tenant", "t" * 513)])


def test_the_deadline_is_the_callers(server_of_one: RunningServer) -> None:
    began = time.monotonic()

    deadline = read_of(server_of_one, timeout=1_000.0).deadline

    assert deadline is not None
    assert 900 < deadline - began < 1_000 + PATIENCE


def test_a_call_without_a_deadline_gets_the_servers(server_of_one: RunningServer) -> None:
    began = time.monotonic()

    deadline = read_of(server_of_one, timeout=None).deadline

    assert deadline is not None
    assert 25 < deadline - began < 30 + PATIENCE


def test_a_write_carries_the_trace(server_of_one: RunningServer) -> None:
    with server_of_one as server:
        server.call("DeleteUser", users.DeleteUserRequest(user_id="u"), metadata=[("traceparent", TRACE)])

    write = cast("Write", server.store.asked["delete_user"][0])
    assert write.traceparent == TRACE
