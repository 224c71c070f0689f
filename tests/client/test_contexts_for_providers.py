"""Contexts of generated conversations, as every provider gets them: from messages in any format, by the server's code,
with the real counts of both encodings.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import anthropic.types
import openai.types.chat
import openai.types.responses
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.client.provider_rules import check_anthropic, check_langchain, check_openai, check_responses
from tests.client.test_formats import typed
from tests.domain.conversing import CONVERSATION, Conversations, KnownFacts, KnownMemories
from tests.examples import examples
from tests.rpc.fake_memory import FakeReceipts

from remora import Context, Message, formats
from remora.chat_format import ChatFields, ToolCall
from remora.formats.pieces import Said
from remora.v1 import fact_pb2, message_pb2, text_service_pb2
from remora.v1 import memory_service_pb2 as pb
from remora_server import wire
from remora_server.domain.assembler import ContextAssembler
from remora_server.domain.calls import Read
from remora_server.domain.costs import REPLY_PRIMING, Counting
from remora_server.domain.errors import BudgetTooSmall
from remora_server.domain.facts import FactQuery, FactTimes
from remora_server.domain.memory_items import FoundItems, ItemHit
from remora_server.domain.reading import ConversationReader
from remora_server.domain.tokens import encoding_named
from remora_server.engine.tokens import NativeTokenCounter
from remora_server.rpc.calls import Call
from remora_server.rpc.handlers import decode
from remora_server.rpc.handlers.memory import MemoryHandlers
from remora_server.rpc.handlers.page_tokens import PageTokens
from remora_server.storage.schema.message_reader import StoredMessageReader

COUNTER = NativeTokenCounter()
WORDS = st.text(alphabet="ab c?.\n/é漢", max_size=30).filter(str.strip)
RESULTS = WORDS | WORDS.map(lambda words: 40 * words)
FORMATS = (formats.CHAT, formats.RESPONSES, formats.ANTHROPIC)


@st.composite
def talks(draw: st.DrawFn) -> list[Message]:
    """A conversation in one format: users, answers, several calls at once, calls that nobody has answered yet."""
    said: list[ChatFields] = []
    for number in range(draw(st.integers(1, 6))):
        if draw(st.integers(0, 3)) == 0:
            said.append(ChatFields("system", draw(WORDS), "", (), ()))
        said.append(ChatFields("user", draw(WORDS), "", (), ()))
        for step in range(draw(st.integers(0, 2))):
            calls = [f"{number}.{step}.{call}" for call in range(draw(st.integers(1, 3)))]
            tools = tuple(ToolCall(call, "look_up", json.dumps({"q": draw(WORDS)}).encode()) for call in calls)
            said.append(ChatFields("assistant", draw(st.just("") | WORDS), "", tools, ()))
            answered = calls if draw(st.integers(0, 5)) else calls[1:]
            said += [ChatFields("tool", draw(RESULTS), "", (), (call,)) for call in answered]
        if draw(st.booleans()):
            said.append(ChatFields("assistant", draw(WORDS), "", (), ()))
    written = [form for fields in said for form in _written(draw(st.sampled_from(FORMATS)), fields)]
    return [Message.of(form) for form in written]


def _written(form: formats.Format, fields: ChatFields) -> Iterator[dict[str, Any]]:
    if fields.role == "system":
        yield {"role": "system", "content": fields.text}
    else:
        if form is formats.RESPONSES and fields.tool_calls:
            yield {"type": "reasoning", "id": f"rs_{fields.tool_calls[0].id}", "summary": []}
        yield from form.write(Said.of_fields(fields))


class Stored(Conversations):
    """A conversation as a store holds it."""

    def joined(self, page: Sequence[bytes]) -> bytes:
        return wire.elements(wire.LIST_FIELD, page)


def stored(talk: list[Message], ranking: Sequence[int]) -> Stored:
    reader = StoredMessageReader()
    messages = []
    for sequence, message in enumerate(talk, 1):
        body = message.to_proto()
        body.id, body.sequence = str(sequence), sequence
        body.create_time.FromSeconds(86_000 * sequence)
        body.token_count = COUNTER.count(encoding_named(""), [body.text])[0]
        messages.append(reader.message(CONVERSATION, body.SerializeToString()))
    return Stored(messages, [(CONVERSATION, number) for number in ranking])


@st.composite
def requests(draw: st.DrawFn) -> pb.AssembleContextRequest:
    recent = draw(st.none() | st.integers(1, 10))
    return pb.AssembleContextRequest(
        conversation_id=CONVERSATION,
        max_tokens=draw(st.integers(40, 700)),
        encoding=text_service_pb2.Encoding(name=draw(st.sampled_from(["o200k_base", "cl100k_base"]))),
        recent_messages=recent,
        search=pb.SearchOptions(k=draw(st.integers(1, 8))) if draw(st.booleans()) else None,
        system=draw(st.sampled_from(["", "Be brief."])),
        allow_partial=draw(st.booleans()),
        facts=pb.ContextFacts(k=draw(st.integers(1, 4))) if draw(st.booleans()) else None,
        static_facts=draw(st.booleans()),
        working_memory=draw(st.booleans()),
        rendering=draw(st.sampled_from([pb.RENDERING_MESSAGES, pb.RENDERING_SYSTEM_PROMPT])),
        shares=[pb.SectionShare(section=pb.SECTION_FACTS, share=draw(st.sampled_from([0.0, 0.2, 1.0])))],
    )


def known(texts: Sequence[str]) -> KnownFacts:
    """Facts as a store holds them; the first of all users is the last of the user."""
    return StoredFacts(texts, texts[::-1])


class StoredFacts(KnownFacts):
    """Facts as a store holds them."""

    def search(self, read: Read, user_id: str, query: FactQuery) -> FoundItems:
        found = super().search(read, user_id, query)
        return replace(found, hits=tuple([ItemHit(hit.score, _fact(hit.encoded.decode())) for hit in found.hits]))

    def newest(self, read: Read, user_id: str, times: FactTimes, limit: int) -> Sequence[bytes]:
        return [_fact(text) for text in self.texts[:limit]]


def _fact(text: str) -> bytes:
    return fact_pb2.Fact(id=f"f-{text}", user_id="sarah", text=text).SerializeToString()


def assembled(store: Stored, request: pb.AssembleContextRequest, facts: Sequence[str] = ()) -> Context:
    """The context as a client gets it, with the least budget where the request's is too small."""
    assembler = ContextAssembler(
        store,
        store,
        store,
        COUNTER,
        StoredMessageReader(),
        windows=store,
        facts=known(facts),
        memories=KnownMemories(b"# Likes\n\n- tea", b"{}"),
    )
    reader = ConversationReader(store, store, store, wire.listed)
    handlers = MemoryHandlers(store, assembler, reader, COUNTER, PageTokens(b"key"), FakeReceipts())
    call = Call("AssembleContext", "acme", deadline=math.inf)
    try:
        reply = handlers.assemble_context(call, request)
    except BudgetTooSmall as error:
        request.max_tokens = int(error.metadata["least_max_tokens"])
        reply = handlers.assemble_context(call, request)
    return Context.from_proto(pb.AssembleContextResponse.FromString(reply), request.max_tokens)


def recount(messages: list[dict[str, Any]], encoding: str) -> int:
    """What chat messages cost."""
    sent = [message_pb2.Message.FromString(Message.of(each).to_proto().SerializeToString()) for each in messages]
    counting = Counting(COUNTER, encoding_named(encoding))
    return sum(counting.messages(list(map(decode.chat_message, sent)))) + REPLY_PRIMING


@pytest.mark.slow
@given(talk=talks(), request=requests(), data=st.data(), facts=st.lists(RESULTS, max_size=5, unique=True))
def test_every_provider_accepts_a_context_of_any_conversation(
    talk: list[Message], request: pb.AssembleContextRequest, data: st.DataObject, facts: list[str]
) -> None:
    ranking = data.draw(st.permutations(range(1, len(talk) + 1)))

    context = assembled(stored(talk, ranking), request, facts)

    assert context.tokens_used <= request.max_tokens
    chat, items = context.to_openai(), context.to_responses()
    asked, objects = context.to_anthropic(), context.to_langchain()
    note(chat)
    check_openai(chat)
    check_responses(items)
    check_anthropic(asked["messages"])
    check_langchain(objects)
    typed(openai.types.chat.ChatCompletionMessageParam, chat)
    typed(openai.types.responses.ResponseInputItemParam, items)
    typed(anthropic.types.MessageParam, asked["messages"])


@given(talk=talks(), request=requests(), data=st.data(), facts=st.lists(RESULTS, max_size=5, unique=True))
def test_chat_messages_cost_what_the_context_says(
    talk: list[Message], request: pb.AssembleContextRequest, data: st.DataObject, facts: list[str]
) -> None:
    chat = [Message.of(form) for message in talk for form in formats.to_openai([message])]
    ranking = data.draw(st.permutations(range(1, len(chat) + 1)))

    context = assembled(stored(chat, ranking), request, facts)

    assert recount(context.messages, request.encoding.name) == context.tokens_used
    assert context.exact == (request.encoding.name != "approximate")


def require_within_budget(
    talk: list[Message], request: pb.AssembleContextRequest, data: st.DataObject, facts: list[str]
) -> None:
    chat = [Message.of(form) for message in talk for form in formats.to_openai([message])]
    ranking = data.draw(st.permutations(range(1, len(chat) + 1)))

    context = assembled(stored(chat, ranking), request, facts)

    assert recount(context.messages, request.encoding.name) == context.tokens_used <= request.max_tokens


FACTS = st.lists(RESULTS, max_size=5, unique=True)


@pytest.mark.slow
@settings(max_examples=examples(1_000), suppress_health_check=[HealthCheck.too_slow])
@given(talk=talks(), request=requests(), data=st.data(), facts=FACTS)
def test_no_budget_is_exceeded_by_a_token(
    talk: list[Message], request: pb.AssembleContextRequest, data: st.DataObject, facts: list[str]
) -> None:
    require_within_budget(talk, request, data, facts)


@pytest.mark.faults
@settings(max_examples=10_000, suppress_health_check=[HealthCheck.too_slow])
@given(talk=talks(), request=requests(), data=st.data(), facts=FACTS)
def test_no_budget_is_exceeded_by_a_token_in_any_of_ten_thousand_contexts(
    talk: list[Message], request: pb.AssembleContextRequest, data: st.DataObject, facts: list[str]
) -> None:
    require_within_budget(talk, request, data, facts)


@given(talk=talks(), request=requests())
def test_what_the_user_said_last_is_the_last_that_a_user_says(
    talk: list[Message], request: pb.AssembleContextRequest
) -> None:
    context = assembled(stored(talk, range(1, len(talk) + 1)), request)
    said = max(number for number, each in enumerate(talk, 1) if each.role == "user" and not each.tool_result_ids)
    [newest] = [item for item in context.items if item.message.sequence == said]
    assert newest.section == "recent"
    assert newest.partial or newest.message.text == talk[said - 1].text
