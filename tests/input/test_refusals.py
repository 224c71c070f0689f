"""Bad input over the wire, to a server with something of everything in its store: it is refused by its documented code,
reason and path, and leaves the store as it was.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message_factory import GetMessageClass
from google.rpc.error_details_pb2 import BadRequest
from tests.input.callers import FOR_OPERATORS, METHODS, Answer, WireCaller, ask
from tests.input.contents import digest, journal_records, write_something_of_everything
from tests.input.malformed import NO_MESSAGE, with_no_text
from tests.input.table import LEAST, MODEL, REQUESTS, cases, least
from tests.patience import eventually

from remora import testing
from remora.v1 import admin_service_pb2 as admin
from remora.v1 import memory_service_pb2 as memory

OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
METHOD_OF = {method.input_type.name: method.name for method in METHODS.values()}
PAGED = sorted(name for name, request in REQUESTS.items() if "page_token" in request.fields_by_name)
READS = sorted(name for name, request in REQUESTS.items() if "min_revision" in request.fields_by_name)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def channel(data: Path) -> Iterator[grpc.Channel]:
    with testing.serve("--data", str(data)) as endpoint, grpc.insecure_channel(endpoint, options=OPTIONS) as channel:
        yield channel


def tenant_of(channel: grpc.Channel) -> WireCaller:
    """A tenant of its own with something of everything, all of it embedded."""
    caller = WireCaller(channel, (("remora-tenant", f"test-{uuid.uuid4().hex}"),))
    write_something_of_everything(caller)
    request = memory.SearchMessagesRequest(
        tenant=memory.TenantScope(), text="train", index_wait=Duration(seconds=60), without_receipt=True
    )

    def searched() -> Any:  # noqa: ANN401 - a SearchMessagesResponse
        return ask(caller, "SearchMessages", request)

    eventually(searched, until=lambda reply: reply.index.pending == 0)
    return caller


@pytest.fixture(scope="module")
def neighbour(channel: grpc.Channel) -> WireCaller:
    return tenant_of(channel)


@pytest.fixture(scope="module")
def caller(channel: grpc.Channel, data: Path, neighbour: WireCaller) -> Iterator[WireCaller]:
    """A tenant whose store shows in the end, in every way in which a call can, what it showed in the beginning."""
    token = (data / "operator.token").read_text()
    caller = replace(tenant_of(channel), operator=(("authorization", f"Bearer {token}"),))
    before = digest(caller)
    yield caller
    assert digest(caller) == before


@pytest.fixture(scope="module")
def elsewhere(caller: WireCaller) -> Iterator[WireCaller]:
    """The same tenant in another store."""
    with testing.serve("--model", "none") as endpoint, grpc.insecure_channel(endpoint) as channel:
        tenant = WireCaller(channel, caller.headers)
        write_something_of_everything(tenant)
        yield tenant


@pytest.fixture
def unwritten(caller: WireCaller) -> Iterator[None]:
    """The server writes nothing in the meantime."""
    before = journal_records(caller)
    assert before > 0
    yield
    assert journal_records(caller) == before


def is_refusal(answer: Answer, path: str, reason: str = "INVALID_FIELD") -> bool:
    return (
        (answer.code, answer.reason, answer.info.domain) == ("INVALID_ARGUMENT", reason, "remora.dev")
        and answer.paths == [path]
        and dict(answer.info.metadata) == {"field": path}
        and all(violation.description for violation in answer.detail(BadRequest).field_violations)
    )


def test_the_table_is_for_the_model_that_is_served(caller: WireCaller) -> None:
    status: Any = ask(caller, "GetStatus", admin.GetStatusRequest())

    assert (status.model.name, status.model.dimension) == (MODEL.name, MODEL.dimension)


@pytest.mark.usefixtures("unwritten")
@pytest.mark.parametrize("request_name", sorted(REQUESTS))
def test_what_a_field_may_not_be_is_refused_and_changes_nothing(caller: WireCaller, request_name: str) -> None:
    wrong = []
    for case in cases(request_name):
        if case.path is not None:
            answer = caller.call(METHOD_OF[request_name], case.request.SerializeToString())
            if not is_refusal(answer, case.path):
                wrong.append((case.what, answer))

    assert wrong == []


@pytest.mark.usefixtures("unwritten")
@pytest.mark.parametrize("request_name", sorted(REQUESTS))
def test_bytes_that_are_no_text_are_refused_and_change_nothing(caller: WireCaller, request_name: str) -> None:
    wrong = []
    for what, encoded in with_no_text(request_name):
        answer = caller.call(METHOD_OF[request_name], encoded)
        if not is_refusal(answer, "request"):
            wrong.append((what, answer))

    assert wrong == []


@pytest.mark.usefixtures("unwritten")
@pytest.mark.parametrize("request_name", sorted(REQUESTS))
def test_bytes_that_are_no_message_are_refused_and_change_nothing(caller: WireCaller, request_name: str) -> None:
    start = least(request_name).SerializeToString()
    wrong = []
    for what, encoded in NO_MESSAGE.items():
        for request in (encoded, start + encoded):
            answer = caller.call(METHOD_OF[request_name], request)
            if not is_refusal(answer, "request"):
                wrong.append((what, answer))

    assert wrong == []


@pytest.mark.parametrize("request_name", READS)
@pytest.mark.parametrize("revision", [1 << 40, (1 << 63) - 1, 1 << 63, (1 << 64) - 1])
def test_a_revision_that_was_never_given_out_is_out_of_range(
    caller: WireCaller, request_name: str, revision: int
) -> None:
    request = least(request_name)
    request.min_revision = revision  # type: ignore[attr-defined]

    answer = caller.call(METHOD_OF[request_name], request.SerializeToString())

    assert (answer.code, answer.reason) == ("OUT_OF_RANGE", "REVISION_UNKNOWN")
    assert answer.info.metadata["min_revision"] == str(revision)


PAGE_OF_ONE: dict[str, dict[str, Any]] = {
    "SearchMessagesRequest": {"text": "night train", "options": {"k": 1}},
    "ListChannelHistoryRequest": {"name": {"thread_id": "t", "checkpoint_id": "c2"}, "page_size": 1},
}
"""What asks for a page of one element, where that is no `page_size`."""


def page_of(caller: WireCaller, request_name: str, **fields: object) -> tuple[Any, str]:
    """A request for pages of one element, and the token of the second."""
    least_of = {**LEAST[request_name], **PAGE_OF_ONE.get(request_name, {"page_size": 1}), **fields}
    request: Any = GetMessageClass(REQUESTS[request_name])(**least_of)
    reply: Any = ask(caller, METHOD_OF[request_name], request)
    assert reply.next_page_token
    return request, reply.next_page_token


def ask_for_larger_pages(request: Any) -> None:  # noqa: ANN401 - of any list
    if isinstance(request, memory.SearchMessagesRequest):
        request.options.k += 1
    else:
        request.page_size += 1


def forged(token: str) -> Iterator[tuple[str, str]]:
    """Tokens that are nearly one."""
    yield "words", "made up"
    yield "no ASCII", "é" * 32
    yield "NUL", "\0" * 32
    yield "zeros", "A" * 32
    yield "a byte more", token + "A"
    yield "four bytes more", token + "AAAA"
    yield "a blank behind", token + " "
    yield "a line's end behind", token + "\n"
    yield "padding", token + "===="
    yield "twice", token * 2
    yield "very long", token * 1_000
    for length in range(1, len(token)):
        yield f"{length} characters of it", token[:length]
    for place, letter in enumerate(token):
        yield f"another letter at {place}", token[:place] + ("A" if letter != "A" else "B") + token[place + 1 :]


@pytest.mark.parametrize("method", sorted(FOR_OPERATORS))
def test_an_operators_call_tells_others_nothing_of_their_request(channel: grpc.Channel, method: str) -> None:
    other, name = WireCaller(channel), METHODS[method].input_type.name
    requests = [case.request.SerializeToString() for case in cases(name)] + list(NO_MESSAGE.values())

    assert {(answer.code, answer.reason) for answer in (other.call(method, request) for request in requests)} == {
        ("PERMISSION_DENIED", "OPERATOR_ONLY")
    }


@pytest.mark.usefixtures("unwritten")
@pytest.mark.parametrize("request_name", PAGED)
def test_a_page_token_that_was_edited_is_refused_and_changes_nothing(caller: WireCaller, request_name: str) -> None:
    request, token = page_of(caller, request_name)
    wrong = []
    for what, edited in forged(token):
        request.page_token = edited
        answer = caller.call(METHOD_OF[request_name], request.SerializeToString())
        if not is_refusal(answer, "page_token", "PAGE_TOKEN_INVALID"):
            wrong.append((what, answer))

    assert wrong == []


@pytest.mark.parametrize("request_name", PAGED)
def test_a_page_token_of_another_tenant_store_list_or_field_is_refused(
    caller: WireCaller, neighbour: WireCaller, elsewhere: WireCaller, request_name: str
) -> None:
    request, own = page_of(caller, request_name)
    foreign = {
        "another tenant": page_of(neighbour, request_name)[1],
        "another store": page_of(elsewhere, request_name)[1],
    }
    for other in set(PAGED) - {request_name}:
        foreign[other] = page_of(caller, other)[1]

    for what, token in foreign.items():
        request.page_token = token
        answer = caller.call(METHOD_OF[request_name], request.SerializeToString())
        assert is_refusal(answer, "page_token", "PAGE_TOKEN_INVALID"), what
    request.page_token = own
    assert caller.call(METHOD_OF[request_name], request.SerializeToString()).code == "OK"
    ask_for_larger_pages(request)
    answer = caller.call(METHOD_OF[request_name], request.SerializeToString())
    if isinstance(request, memory.SearchMessagesRequest):
        assert is_refusal(answer, "page_token", "PAGE_TOKEN_INVALID")
    else:
        assert answer.code == "OK"


@pytest.mark.parametrize("request_name", PAGED)
def test_a_page_may_wait_for_a_later_revision_than_the_one_before(caller: WireCaller, request_name: str) -> None:
    request, token = page_of(caller, request_name, min_revision=1)
    request.page_token, request.min_revision = token, 2

    assert caller.call(METHOD_OF[request_name], request.SerializeToString()).code == "OK"


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_tenant_that_is_too_long_is_refused(channel: grpc.Channel, method: str) -> None:
    request = least(METHODS[method].input_type.name).SerializeToString()

    answer = WireCaller(channel, (("remora-tenant", "t" * 513),)).call(method, request)

    assert is_refusal(answer, "remora-tenant")


def test_a_trace_that_is_none_is_passed_over(caller: WireCaller) -> None:
    for trace in ("", "00", "0" * 55, "00-" + "é".encode().hex() * 10, "x" * 4_096):
        answer = caller.call(
            "GetConversation", least("GetConversationRequest").SerializeToString(), [("traceparent", trace)]
        )
        assert answer.code == "OK", trace


def test_a_field_that_is_given_twice_counts_as_it_was_given_last(caller: WireCaller) -> None:
    first, last = (least("CountConversationsRequest") for _ in range(2))
    first.user_id, last.user_id = "u", "nobody"  # type: ignore[attr-defined]

    answer = caller.call("CountConversations", first.SerializeToString() + last.SerializeToString())

    reply: Any = GetMessageClass(METHODS["CountConversations"].output_type).FromString(answer.reply)
    assert reply.count == 0
