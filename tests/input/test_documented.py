"""Who reads the comment of an RPC knows how it may fail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from google.protobuf.message import Message
from tests.input.callers import METHODS, DirectCaller, direct_caller
from tests.input.documented import documented_errors_by_rpc
from tests.input.table import MODEL, least

from remora.v1.memory_service_pb2 import (
    ConversationScope,
    DeleteWorkingMemoryRequest,
    EditWorkingMemoryRequest,
    GetWorkingMemoryRequest,
    SearchMessagesRequest,
    SetWorkingMemoryRequest,
)
from remora.v1.transfer_service_pb2 import ExportRecordsRequest
from remora.v1.working_memory_pb2 import WorkingMemoryScope

DOCUMENTED = documented_errors_by_rpc()
CONVERSATION = WorkingMemoryScope(conversation_id="c")


@pytest.fixture(scope="module")
def caller() -> Iterator[DirectCaller]:
    with direct_caller(MODEL) as caller:
        yield caller


def test_the_errors_of_every_rpc_are_read() -> None:
    assert DOCUMENTED.keys() == METHODS.keys()


@pytest.mark.parametrize("method", sorted(METHODS))
def test_the_comment_of_an_rpc_names_how_it_fails_where_there_is_nothing(caller: DirectCaller, method: str) -> None:
    tenant = DirectCaller(caller.methods, caller.store, (("remora-tenant", method),))
    request = least(METHODS[method].input_type.name)

    answer = tenant.call(method, request.SerializeToString())

    assert answer.code == "OK" or (answer.code, answer.reason) in DOCUMENTED[method]


@pytest.mark.parametrize(
    ("method", "request_of_conversation"),
    [
        ("SearchMessages", SearchMessagesRequest(conversation=ConversationScope(conversation_id="c"), text="t")),
        ("GetWorkingMemory", GetWorkingMemoryRequest(scope=CONVERSATION)),
        ("SetWorkingMemory", SetWorkingMemoryRequest(scope=CONVERSATION)),
        ("EditWorkingMemory", EditWorkingMemoryRequest(scope=CONVERSATION, content="t")),
        ("DeleteWorkingMemory", DeleteWorkingMemoryRequest(scope=CONVERSATION)),
        ("ExportRecords", ExportRecordsRequest(conversation_id="c")),
    ],
)
def test_a_missing_conversation_that_may_be_left_out_is_named_too(
    caller: DirectCaller, method: str, request_of_conversation: Message
) -> None:
    answer = caller.call(method, request_of_conversation.SerializeToString())

    assert (answer.code, answer.reason) == ("NOT_FOUND", "CONVERSATION_NOT_FOUND")
    assert ("NOT_FOUND", "CONVERSATION_NOT_FOUND") in DOCUMENTED[method]
