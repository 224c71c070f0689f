"""Deadlines, repeats, request ids, revisions and the channel."""

import asyncio
import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.client.scripted_server import Failure, ScriptedServer
from tests.patience import PATIENCE, eventually, with_more_and_more_time

from remora import AsyncRemora, Embedding, Fact, MemoryItem, Remora, Tls, _retry, errors
from remora._retry import GREATEST_PAUSE, MODEL_PATIENCE, pause_before_retry
from remora._sync.calls import Calls
from remora.v1 import conversation_service_pb2 as wire
from remora.v1 import memory_service_pb2, text_service_pb2
from remora.v1.calls_pb2 import Origin
from remora.v1.short_term_pb2 import SummaryCover

UNAVAILABLE = Failure(grpc.StatusCode.UNAVAILABLE, "STORE_FAILED")
OVERLOADED = Failure(grpc.StatusCode.RESOURCE_EXHAUSTED, "OVERLOADED", retry_delay=0.01)
HELLO = {"role": "user", "content": "hello"}


def test_a_handle_calls_nothing(connect: Callable[..., Remora], socket: Path) -> None:
    client = connect(f"unix:{socket}")

    chat = client.conversation("c", user_id="u")

    assert chat.working_memory is not None
    assert client.user("u").working_memory is not None
    client.close()


def test_a_client_made_before_the_server_connects_when_it_calls(connect: Callable[..., Remora], socket: Path) -> None:
    client = connect(f"unix:{socket}", timeout=PATIENCE)

    with ScriptedServer(f"unix:{socket}") as server:
        server.answer("CountConversations", wire.CountConversationsResponse(count=3))
        assert client.count_conversations() == 3
    client.close()


def test_a_call_waits_for_a_server_that_starts_within_its_deadline(
    connect: Callable[..., Remora], socket: Path
) -> None:
    client = connect(f"unix:{socket}", timeout=PATIENCE)

    def start_later() -> ScriptedServer:
        time.sleep(0.2)
        return ScriptedServer(f"unix:{socket}").__enter__()

    with ThreadPoolExecutor(1) as pool:
        starting = pool.submit(start_later)
        assert client.count_conversations() == 0
        starting.result().__exit__(None, None, None)
    client.close()


def test_a_closed_client_does_not_call(connect: Callable[..., Remora], server: ScriptedServer) -> None:
    client = connect(server.endpoint)
    client.close()

    with pytest.raises(RuntimeError, match="closed"):
        client.count_conversations()


def test_a_call_under_way_is_told_that_its_client_was_closed(server: ScriptedServer) -> None:
    called, released = threading.Event(), threading.Event()

    def wait(_: wire.AppendMessagesRequest) -> wire.AppendMessagesResponse:
        called.set()
        released.wait(PATIENCE)
        return wire.AppendMessagesResponse()

    server.answer("AppendMessages", wait)
    client = Remora(server.endpoint, timeout=PATIENCE)
    with ThreadPoolExecutor(1) as pool:
        appending = pool.submit(client.conversation("c").append, HELLO)
        called.wait(PATIENCE)
        client.close()
        with pytest.raises(errors.ClientClosedError, match="closed while this was under way; a write may") as refused:
            appending.result()
        released.set()

    assert refused.value.request_id == server.request(wire.AppendMessagesRequest).request_id


def test_a_task_whose_client_is_closed_is_not_cancelled(server: ScriptedServer) -> None:
    called, released = threading.Event(), threading.Event()

    def wait(_: wire.AppendMessagesRequest) -> wire.AppendMessagesResponse:
        called.set()
        released.wait(PATIENCE)
        return wire.AppendMessagesResponse()

    server.answer("AppendMessages", wait)

    async def closed() -> None:
        client = AsyncRemora(server.endpoint, timeout=PATIENCE)
        appending = asyncio.create_task(client.conversation("c").append(HELLO))
        await asyncio.to_thread(called.wait, PATIENCE)
        await client.close()
        with pytest.raises(errors.ClientClosedError, match="closed while this was under way; a write may"):
            await appending

    asyncio.run(closed())
    released.set()


def test_a_client_says_that_it_cannot_be_pickled(client: Remora) -> None:
    for held in (client, client.conversation("c"), client.user("u").facts):
        with pytest.raises(TypeError, match="a client can be neither pickled nor copied: make another"):
            pickle.dumps(held)


def test_a_client_closes_twice(connect: Callable[..., Remora], server: ScriptedServer) -> None:
    client = connect(server.endpoint, timeout=PATIENCE)
    client.count_conversations()

    client.close()
    client.close()


def test_the_default_deadline_is_two_seconds(connect: Callable[..., Remora], server: ScriptedServer) -> None:
    client = connect(server.endpoint)

    def remaining() -> float:
        with suppress(errors.DeadlineExceededError):
            client.count_conversations()
        return server.calls[-1].remaining if server.calls else 0.0

    assert eventually(remaining, until=lambda seconds: seconds > 1) < 3
    client.close()


def test_a_client_has_its_own_deadline_and_a_call_another(
    connect: Callable[..., Remora], server: ScriptedServer
) -> None:
    client = connect(server.endpoint, timeout=1000)

    client.count_conversations()
    client.count_conversations(timeout=10_000)

    assert 1000 - PATIENCE < server.calls[0].remaining < 1100
    assert 10_000 - PATIENCE < server.calls[1].remaining < 11_000
    client.close()


def test_what_the_server_embeds_has_more_time(connect: Callable[..., Remora], server: ScriptedServer) -> None:
    client = connect(server.endpoint, timeout=100)
    user = client.user("u")
    items, facts = [MemoryItem("tea")] * 1000, [Fact("user", "likes", "tea")] * 1000

    user.memory_items.add(items)
    user.facts.add(facts)
    user.memory_items.add("tea")
    user.memory_items.add(items, timeout=50)

    several, same, one, given = [call.remaining for call in server.calls]
    assert 100 < several < 131
    assert 100 < same < 131
    assert 50 < one < 101
    assert given < 51
    client.close()


def test_a_call_that_takes_too_long_exceeds_its_deadline(client: Remora, server: ScriptedServer) -> None:
    released = threading.Event()
    server.answer("CountConversations", lambda _: wire.CountConversationsResponse(count=int(released.wait(PATIENCE))))

    with pytest.raises(errors.DeadlineExceededError):
        client.count_conversations(timeout=0.1)
    released.set()


@pytest.mark.parametrize("failure", [UNAVAILABLE, OVERLOADED])
def test_a_read_is_repeated_while_the_failure_passes(client: Remora, server: ScriptedServer, failure: Failure) -> None:
    server.answer("CountConversations", failure, failure, wire.CountConversationsResponse(count=5))

    assert client.count_conversations(timeout=PATIENCE) == 5
    assert len(server.calls) == 3


@pytest.mark.parametrize("failure", [UNAVAILABLE, OVERLOADED])
def test_a_write_is_repeated_with_the_same_request_id(client: Remora, server: ScriptedServer, failure: Failure) -> None:
    server.answer("AppendMessages", failure, failure, wire.AppendMessagesResponse(revision=9))

    client.conversation("c").append(HELLO, timeout=PATIENCE)

    first, *others = server.requests(wire.AppendMessagesRequest)
    assert first.request_id
    assert others == [first, first]


def test_a_call_of_several_writes_advises_no_request_id_because_it_takes_none(
    client: Remora, server: ScriptedServer
) -> None:
    failure = Failure(grpc.StatusCode.INTERNAL, "INTERNAL")
    for method in ("AddMemoryItems", "DeleteMemoryItems", "ExtractFacts"):
        server.answer(method, failure, failure)
    blocks = client.user("ana").blocks
    calls: list[Callable[[], object]] = [
        lambda: blocks.update("c", "I like tea."),
        lambda: blocks.delete("c"),
        lambda: client.user("ana").facts.extract_from("c"),
    ]

    for call in calls:
        with pytest.raises(errors.InternalError) as refused:
            call()
        assert refused.value.request_id == ""
        assert "request_id" not in str(refused.value)

    with pytest.raises(errors.InternalError, match="the same call with request_id='mine' takes effect once"):
        blocks.vector.update("c", "I like tea.", request_id="mine")
    with pytest.raises(errors.InternalError, match="the same call with request_id='mine' takes effect once"):
        blocks.extractive.update("c", "I like tea.", request_id="mine")


def test_a_summary_that_fails_advises_no_request_id_because_it_takes_none(server: ScriptedServer) -> None:
    cover = SummaryCover(through_sequence=2)
    server.answer("PlanSummary", wire.PlanSummaryResponse(cover=cover, text="user: hello"))
    server.answer("CommitSummary", Failure(grpc.StatusCode.INTERNAL, "INTERNAL"))

    with Remora(server.endpoint) as client, pytest.raises(errors.InternalError) as refused:
        client.conversation("c").summarize(lambda _instruction, _text: "They met.")

    assert refused.value.request_id == ""
    assert "request_id" not in str(refused.value)


def test_every_write_has_a_request_id_of_its_own(client: Remora, server: ScriptedServer) -> None:
    for _ in range(3):
        client.conversation("c").append(HELLO)

    assert len({request.request_id for request in server.requests(wire.AppendMessagesRequest)}) == 3


@pytest.mark.parametrize(
    "failure",
    [
        Failure(grpc.StatusCode.INVALID_ARGUMENT, "INVALID_FIELD"),
        Failure(grpc.StatusCode.NOT_FOUND, "CONVERSATION_NOT_FOUND"),
        Failure(grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED"),
        Failure(grpc.StatusCode.INTERNAL, "INTERNAL"),
        Failure(grpc.StatusCode.RESOURCE_EXHAUSTED),
    ],
)
def test_a_failure_that_stays_is_not_repeated(client: Remora, server: ScriptedServer, failure: Failure) -> None:
    server.answer("AppendMessages", failure)

    with pytest.raises(errors.RemoraError):
        client.conversation("c").append(HELLO)

    assert len(server.calls) == 1


class Unreached(grpc.RpcError):
    """A call for which there was no connection, as gRPC raises it."""

    def __init__(self, last: str) -> None:
        super().__init__()
        self._last = last

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE

    def details(self) -> str:
        return f"failed to connect to all addresses; last error: {self._last}"

    def trailing_metadata(self) -> tuple[()]:
        return ()


def test_what_fails_of_tls_at_one_address_of_a_name_is_told_where_another_refuses() -> None:
    lasts = ["UNAVAILABLE: ipv4:127.0.0.1:7411: Unwrap failed (TSI_DATA_CORRUPTED)"]
    refused = "UNKNOWN: ipv6:%5B::1%5D:7411: Failed to connect to remote host: Connection refused"
    calls = Calls("localhost:7411", tls=Tls(), metadata=(), origin=Origin(), default_timeout=0.2)

    def fail(_request: object, *, timeout: float) -> None:
        raise Unreached(lasts.pop() if lasts else refused)

    with pytest.raises(errors.ConnectionFailedError, match="ended the TLS connection") as told:
        calls.call(cast("Any", fail), wire.CountConversationsRequest())

    assert told.value.tls_fault is errors.TlsFault.ENDED


def test_a_pause_longer_than_the_deadline_is_not_waited_for(client: Remora, server: ScriptedServer) -> None:
    server.answer("CountConversations", Failure(grpc.StatusCode.RESOURCE_EXHAUSTED, "STORE_FULL", retry_delay=3600))

    with pytest.raises(errors.StoreFullError):
        client.count_conversations(timeout=1000)

    assert len(server.calls) == 1


def model_unreachable(retry_delay: float) -> Failure:
    return Failure(grpc.StatusCode.UNAVAILABLE, "MODEL_UNREACHABLE", retry_delay=retry_delay)


def test_a_model_that_stays_out_of_reach_is_told_long_before_the_deadline(
    client: Remora, server: ScriptedServer
) -> None:
    server.answer("Embed", model_unreachable(0.1))

    with pytest.raises(errors.ModelUnreachableError):
        client.embed("tea", timeout=1000)

    assert len(server.calls) <= MODEL_PATIENCE / 0.1


def test_a_model_that_is_asked_again_until_the_deadline_is_told(
    client: Remora, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_retry, "MODEL_PATIENCE", 60.0)
    ended = threading.Event()

    def hang(request: text_service_pb2.EmbedRequest) -> text_service_pb2.EmbedResponse:
        ended.wait(PATIENCE)
        return text_service_pb2.EmbedResponse()

    def fail(seconds: float) -> None:
        server.answer("Embed", model_unreachable(0.01), hang)
        with pytest.raises(errors.ModelUnreachableError):
            client.embed("tea", timeout=seconds)

    with_more_and_more_time(fail, errors.DeadlineExceededError)
    ended.set()


def test_a_model_that_rests_is_not_waited_for(client: Remora, server: ScriptedServer) -> None:
    server.answer("Embed", model_unreachable(30))

    with pytest.raises(errors.ModelUnreachableError):
        client.embed("tea", timeout=1000)

    assert len(server.calls) == 1


def test_a_model_that_is_soon_in_reach_is_waited_for(
    client: Remora, server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_retry, "MODEL_PATIENCE", 60.0)
    found = text_service_pb2.EmbedResponse(embeddings=[Embedding("m", b"").to_proto()])
    server.answer("Embed", model_unreachable(0.1), model_unreachable(0.1), found)

    assert [embedding.model for embedding in client.embed("tea", timeout=1000)] == ["m"]
    assert len(server.calls) == 3


def test_repeats_end_with_the_deadline_and_the_failure_itself(client: Remora, server: ScriptedServer) -> None:
    server.answer("CountConversations", UNAVAILABLE)

    def fail(seconds: float) -> None:
        server.calls.clear()
        with pytest.raises((errors.StoreFailedError, errors.DeadlineExceededError)):
            client.count_conversations(timeout=seconds)
        assert len(server.calls) > 1
        # gRPC rounds up what it sends of a deadline: long ones to milliseconds, longer ones to seconds.
        assert all(call.remaining <= seconds + 1 for call in server.calls)

    with_more_and_more_time(fail, AssertionError)


@given(st.integers(0, 10_000), st.floats(0, 10))
def test_pauses_are_bounded_and_within_the_deadline(attempt: int, remaining: float) -> None:
    pause = pause_before_retry(errors.UnavailableError("down"), attempt, 500, remaining)

    assert pause is None or 0 <= pause <= min(GREATEST_PAUSE, remaining)


@given(st.integers(0, 100), st.floats(0, 10))
def test_a_pause_is_at_least_what_the_server_asks_for(attempt: int, delay: float) -> None:
    pause = pause_before_retry(errors.OverloadedError("busy", retry_delay=delay), attempt, 500, 1000)

    assert pause is not None
    assert pause >= delay


@given(st.integers(0, 100), st.floats(0, 10), st.floats(0, 10))
def test_repeats_because_of_the_model_end_with_the_patience_for_it(attempt: int, delay: float, elapsed: float) -> None:
    pause = pause_before_retry(errors.ModelUnreachableError("down", retry_delay=delay), attempt, elapsed, 1000)

    assert pause is None or delay <= pause < MODEL_PATIENCE - elapsed


def test_reads_see_the_greatest_revision_written_through_any_handle(client: Remora, server: ScriptedServer) -> None:
    server.answer("AppendMessages", wire.AppendMessagesResponse(revision=9), wire.AppendMessagesResponse(revision=7))

    client.conversation("a").append(HELLO)
    client.conversation("b").append(HELLO)
    client.conversation("c").messages()
    client.user("u").search("hello")

    assert client.revision == 9
    assert server.request(wire.ListMessagesRequest).min_revision == 9
    assert server.request(memory_service_pb2.SearchMessagesRequest).min_revision == 9


def test_reads_before_any_write_wait_for_nothing(client: Remora, server: ScriptedServer) -> None:
    client.conversation("c").messages()

    assert server.request(wire.ListMessagesRequest).min_revision == 0


def test_reads_see_a_revision_that_the_client_is_told_of(client: Remora, server: ScriptedServer) -> None:
    client.advance_to(12)
    client.advance_to(5)

    client.conversation("c").get()

    assert server.request(wire.GetConversationRequest).min_revision == 12


def test_a_revision_that_the_store_has_lost_is_told_once(client: Remora, server: ScriptedServer) -> None:
    client.advance_to(12)
    server.answer("CountConversations", Failure(grpc.StatusCode.OUT_OF_RANGE, "REVISION_UNKNOWN"))

    with pytest.raises(errors.RevisionUnknownError):
        client.count_conversations()

    server.answer("CountConversations", wire.CountConversationsResponse(count=0))
    assert client.count_conversations() == 0
    assert client.revision == 0


def test_threads_share_a_client(server: ScriptedServer) -> None:
    server.answer("AppendMessages", lambda _: wire.AppendMessagesResponse(revision=len(server.calls)))
    with Remora(server.endpoint, timeout=PATIENCE) as client, ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: client.conversation("c").append(HELLO), range(200)))

        assert client.revision == 200
        assert len({request.request_id for request in server.requests(wire.AppendMessagesRequest)}) == 200


def test_an_async_client_serves_one_event_loop_after_another(server: ScriptedServer) -> None:
    client = AsyncRemora(server.endpoint, timeout=PATIENCE)

    async def count() -> int:
        return await client.count_conversations()

    assert asyncio.run(count()) == 0
    assert asyncio.run(count()) == 0


def test_cancelling_a_call_ends_its_repeats(server: ScriptedServer) -> None:
    called = threading.Event()

    def fail(request: wire.CountConversationsRequest) -> Failure:
        called.set()
        return UNAVAILABLE

    server.answer("CountConversations", fail)

    async def cancel() -> None:
        async with AsyncRemora(server.endpoint) as client:
            task = asyncio.create_task(client.count_conversations(timeout=1000))
            await asyncio.to_thread(called.wait)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(cancel())


def test_token_tenant_agent_and_run_travel_with_a_write(connect: Callable[..., Remora], server: ScriptedServer) -> None:
    identity = {"token": "secret", "tenant": "acme", "agent_id": "planner", "run_id": "r1"}
    client = connect(server.endpoint, timeout=PATIENCE, **identity)

    client.conversation("c").append(HELLO)

    call = server.calls[0]
    assert call.metadata["authorization"] == "Bearer secret"
    assert call.metadata["remora-tenant"] == "acme"
    origin = server.request(wire.AppendMessagesRequest).origin
    assert (origin.agent_id, origin.run_id) == ("planner", "r1")
    client.close()


IDENTITY = {"authorization": "Bearer secret", "remora-tenant": "acme"}
OF_A_CALL = (("x-own", "1"),)


def sent_metadata(server: ScriptedServer) -> list[dict[str, str | bytes]]:
    """Of the calls so far, what identifies the caller and what a call added."""
    return [{key: call.metadata[key] for key in (*IDENTITY, "x-own") if key in call.metadata} for call in server.calls]


def test_stubs_send_token_and_tenant_before_what_a_call_adds(server: ScriptedServer) -> None:
    with Remora(server.endpoint, token="secret", tenant="acme") as client:
        method, request = client.stubs.conversations.CountConversations, wire.CountConversationsRequest()
        method(request, timeout=PATIENCE)
        method(request, timeout=PATIENCE, metadata=OF_A_CALL)
        method.with_call(request, timeout=PATIENCE, metadata=OF_A_CALL)
        method.future(request, timeout=PATIENCE).result()

    both = IDENTITY | dict(OF_A_CALL)
    assert sent_metadata(server) == [IDENTITY, both, both, IDENTITY]


def test_async_stubs_send_token_and_tenant_before_what_a_call_adds(server: ScriptedServer) -> None:
    async def ask() -> None:
        async with AsyncRemora(server.endpoint, token="secret", tenant="acme") as client:
            method, request = client.stubs.conversations.CountConversations, wire.CountConversationsRequest()
            await method(request, timeout=PATIENCE)
            await method(request, timeout=PATIENCE, metadata=OF_A_CALL)

    asyncio.run(ask())
    assert sent_metadata(server) == [IDENTITY, IDENTITY | dict(OF_A_CALL)]


@pytest.mark.parametrize("field", ["token", "tenant"])
@pytest.mark.parametrize("value", ["\xfc", "line\n", "\x7f"])
def test_what_metadata_cannot_carry_is_refused_before_any_call(field: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"^{field} must be printable ASCII") as refusal:
        Remora("unix:/nowhere", **{field: value})  # type: ignore[arg-type]

    assert value not in str(refusal.value)


def test_without_token_and_tenant_none_is_sent(client: Remora, server: ScriptedServer) -> None:
    client.count_conversations()

    assert not {"authorization", "remora-tenant"} & server.calls[0].metadata.keys()


def test_over_a_unix_socket_the_authority_is_localhost(client: Remora, server: ScriptedServer) -> None:
    client.count_conversations()

    assert server.calls[0].authority == "localhost"


def test_a_reply_beyond_grpcs_default_limit_is_taken(client: Remora, server: ScriptedServer) -> None:
    text = "x" * (6 << 20)
    server.answer("AssembleContext", memory_service_pb2.AssembleContextResponse(text=text))

    assert client.conversation("c").context(timeout=PATIENCE).text == text


def test_many_texts_are_embedded_in_several_calls(client: Remora, server: ScriptedServer) -> None:
    server.answer(
        "Embed",
        lambda request: text_service_pb2.EmbedResponse(
            embeddings=[Embedding(text, b"").to_proto() for text in request.texts]
        ),
    )
    texts = [str(number) for number in range(600)]

    assert [embedding.model for embedding in client.embed(texts)] == texts
    assert [len(request.texts) for request in server.requests(text_service_pb2.EmbedRequest)] == [256, 256, 88]
    assert [embedding.model for embedding in client.embed(dict.fromkeys(texts).keys())] == texts
