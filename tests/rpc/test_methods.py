"""RPCs and their handlers."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from grpc_health.v1 import health_pb2
from tests.rpc.running_server import METHODS, RunningServer, detail

from remora.v1 import conversation_service_pb2 as pb
from remora.v1.message_pb2 import Message
from remora_server.domain.messages import MessageDraft
from remora_server.rpc.checks.limits import Limits
from remora_server.rpc.identity import Identity, OperatorToken
from remora_server.rpc.methods import methods_of, snake_case
from remora_server.rpc.server import SERVICES

LIMITS = Limits(lambda _name: 0)


class Handlers:
    """A handler for each RPC but those that are left out."""

    def __init__(self, *left_out: str) -> None:
        for name in METHODS.keys() - set(left_out):
            setattr(self, snake_case(name), lambda call, request: b"")


@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_a_service_whose_rpcs_have_handlers_can_be_served(service: object) -> None:
    assert methods_of(service, [Handlers()], LIMITS)  # type: ignore[arg-type]


@pytest.mark.parametrize("missing", METHODS)
def test_an_rpc_without_a_handler_fails_at_start(missing: str) -> None:
    service = METHODS[missing].containing_service

    with pytest.raises(LookupError, match=rf"{missing} has no handler {snake_case(missing)}"):
        methods_of(service, [Handlers(missing)], LIMITS)


def test_a_stream_cannot_be_handled() -> None:
    service = health_pb2.DESCRIPTOR.services_by_name["Health"]

    with pytest.raises((LookupError, KeyError)):
        methods_of(service, [Handlers()], LIMITS)  # type: ignore[arg-type]


def test_names_are_split_at_capitals() -> None:
    assert snake_case("CreateConversation") == "create_conversation"


@pytest.fixture(scope="module")
def of_the_operator() -> Iterator[RunningServer]:
    """A server whose operator has the token `operator`."""
    with RunningServer(identity=Identity(operator=OperatorToken.of("operator"))) as running:
        yield running


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("request_bytes", [b"\xff", b"\x0a\x05abc"], ids=["tag", "cut"])
def test_a_malformed_request_is_an_invalid_argument(
    of_the_operator: RunningServer, method: str, request_bytes: bytes
) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        of_the_operator.call(method, request_bytes, metadata=[("authorization", "Bearer operator")])

    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    info = detail(raised.value, ErrorInfo)
    assert info is not None
    assert (info.reason, info.metadata["field"]) == ("INVALID_FIELD", "request")


def test_text_that_is_not_unicode_is_an_invalid_argument(server: RunningServer) -> None:
    with pytest.raises(grpc.RpcError) as raised:
        server.call("GetConversation", b"\x0a\x02\xc3\x28")

    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_unknown_fields_are_not_stored(server: RunningServer) -> None:
    unknown = b"\xfa\x7f\x03abc"  # field 2047, three bytes
    message = Message(role="user", text="t").SerializeToString()
    entry = message + unknown
    request = pb.AppendMessagesRequest(conversation_id="c").SerializeToString() + b"\x1a" + bytes([len(entry)]) + entry

    server.call("AppendMessages", request + unknown)

    drafts = server.store.asked["append_messages"][3]
    assert drafts == [MessageDraft("", "user", "t", message)]
