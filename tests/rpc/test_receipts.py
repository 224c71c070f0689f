"""Receipts of contexts and searches: what they say, the same reply again, and what is gone with what was erased."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from functools import partial

import pytest
from tests.input.callers import DirectCaller, ask, direct_caller
from tests.patience import PATIENCE

from remora.v1 import conversation_service_pb2 as conversations
from remora.v1 import memory_service_pb2 as pb
from remora.v1 import user_service_pb2 as users
from remora.v1.conversation_pb2 import Conversation
from remora.v1.fact_pb2 import Fact, FactIds, FactSource, StaticFact
from remora.v1.message_pb2 import Embedding, Message
from remora.v1.working_memory_pb2 import WorkingMemoryScope
from remora_server.domain.replies import REPLY_BYTES
from remora_server.domain.status import ModelStatus
from remora_server.domain.tokens import O200K_BASE
from remora_server.engine import receipt_book
from remora_server.engine.tokens import NativeTokenCounter
from remora_server.storage.local_store import LocalStore, StoreOptions

TEXTS = [
    ("user", "The meeting with the tax office is on Tuesday."),
    ("assistant", "Noted: the tax office, Tuesday."),
    ("user", "My sister lives in Lisbon with two cats."),
    ("assistant", "How nice. What are the cats called?"),
    ("user", "Fado and Pastel."),
    ("assistant", "Lovely names."),
]
QUERY = "When is the meeting with the tax office?"
SECRET = "tax office"
RECEIPTS = 500
RENDERINGS = [pb.RENDERING_MESSAGES, pb.RENDERING_TRANSCRIPT, pb.RENDERING_SYSTEM_PROMPT]
WORDS = "tax office meeting Tuesday Lisbon cats sister Fado Pastel lovely train boat ticket passport beach".split()


@pytest.fixture
def store() -> LocalStore:
    count = partial(NativeTokenCounter().count, O200K_BASE)
    return LocalStore(StoreOptions(directory=None), count_tokens=count)


@pytest.fixture
def caller(store: LocalStore) -> Iterator[DirectCaller]:
    with direct_caller(ModelStatus("m", 3), opened=store.bundle()) as made:
        _create(made)
        yield made


def _create(caller: DirectCaller) -> None:
    ask(
        caller,
        "CreateConversation",
        conversations.CreateConversationRequest(conversation=Conversation(id="c", user_id="u")),
    )
    messages = [Message(id=str(number), role=role, text=text) for number, (role, text) in enumerate(TEXTS)]
    ask(caller, "AppendMessages", conversations.AppendMessagesRequest(conversation_id="c", messages=messages))


def assemble(caller: DirectCaller, **fields: object) -> pb.AssembleContextResponse:
    given = {"conversation_id": "c", "max_tokens": 60, "query": QUERY, "search": pb.SearchOptions(k=3), **fields}
    reply = ask(caller, "AssembleContext", pb.AssembleContextRequest(**given))  # type: ignore[arg-type]
    assert isinstance(reply, pb.AssembleContextResponse)
    return reply


def search(caller: DirectCaller, **fields: object) -> pb.SearchMessagesResponse:
    given = {"conversation": pb.ConversationScope(conversation_id="c"), "text": "cats", **fields}
    reply = ask(caller, "SearchMessages", pb.SearchMessagesRequest(**given))  # type: ignore[arg-type]
    assert isinstance(reply, pb.SearchMessagesResponse)
    return reply


def receipt(caller: DirectCaller, receipt_id: str) -> pb.Receipt:
    reply = ask(caller, "GetReceipt", pb.GetReceiptRequest(receipt_id=receipt_id))
    assert isinstance(reply, pb.GetReceiptResponse)
    return reply.receipt


def replay(caller: DirectCaller, receipt_id: str) -> pb.ReplayContextResponse:
    reply = ask(caller, "ReplayContext", pb.ReplayContextRequest(receipt_id=receipt_id))
    assert isinstance(reply, pb.ReplayContextResponse)
    return reply


def listed(caller: DirectCaller, **fields: object) -> pb.ListReceiptsResponse:
    reply = ask(caller, "ListReceipts", pb.ListReceiptsRequest(**fields))  # type: ignore[arg-type]
    assert isinstance(reply, pb.ListReceiptsResponse)
    return reply


def diff(caller: DirectCaller, before: str, after: str) -> pb.DiffContextsResponse:
    request = pb.DiffContextsRequest(before_receipt_id=before, after_receipt_id=after)
    reply = ask(caller, "DiffContexts", request)
    assert isinstance(reply, pb.DiffContextsResponse)
    return reply


def delete_messages(caller: DirectCaller, *ids: str) -> None:
    ask(caller, "DeleteMessages", conversations.DeleteMessagesRequest(conversation_id="c", message_ids=ids))


def append(caller: DirectCaller, *messages: Message, **fields: object) -> None:
    given = {"conversation_id": "c", "messages": messages, **fields}
    ask(caller, "AppendMessages", conversations.AppendMessagesRequest(**given))  # type: ignore[arg-type]


@pytest.mark.parametrize("system", ["", "Be brief."])
def test_a_receipt_says_what_a_context_was_made_of(caller: DirectCaller, system: str) -> None:
    context = assemble(caller, system=system)

    found = receipt(caller, context.receipt_id)

    assert (found.user_id, found.conversation_id, found.revision) == ("u", "c", context.revision)
    assert (found.tokens_used, found.overhead_tokens) == (context.tokens_used, context.overhead_tokens)
    assert (found.context.query, found.context.max_tokens) == (QUERY, 60)
    assert [(item.conversation_id, item.message_id, item.sequence, item.message_revision) for item in found.items] == [
        (item.conversation_id, item.message.id, item.message.sequence, item.message.revision) for item in context.items
    ]
    assert [(item.section, item.score, item.tokens, item.reason) for item in found.items] == [
        (item.section, item.score, item.tokens, item.reason) for item in context.items
    ]


def test_a_receipt_says_what_a_search_found(caller: DirectCaller) -> None:
    reply = search(caller, explain=True)

    found = receipt(caller, reply.receipt_id)

    assert (found.user_id, found.conversation_id, found.search.text) == ("u", "c", "cats")
    assert [(item.message_id, item.score) for item in found.items] == [
        (hit.message.id, hit.score) for hit in reply.hits
    ]
    assert found.items[0].components == reply.hits[0].components


@pytest.mark.parametrize("rendering", RENDERINGS)
@pytest.mark.parametrize("system", ["", "Be brief."])
def test_a_context_is_replayed_to_the_byte(
    caller: DirectCaller, rendering: pb.Rendering.ValueType, system: str
) -> None:
    context = assemble(caller, rendering=rendering, system=system)
    append(caller, Message(id="0", role="user", text="The meeting is off."), Message(role="user", text="And now?"))

    again = replay(caller, context.receipt_id)

    assert again.identical
    assert again.context.SerializeToString() == context.SerializeToString()


def test_a_replay_is_the_reply_on_the_wire(caller: DirectCaller) -> None:
    request = pb.AssembleContextRequest(conversation_id="c", max_tokens=60, query=QUERY, search=pb.SearchOptions(k=3))
    encoded = caller.call("AssembleContext", request.SerializeToString()).reply
    receipt_id = pb.AssembleContextResponse.FromString(encoded).receipt_id

    again = caller.call("ReplayContext", pb.ReplayContextRequest(receipt_id=receipt_id).SerializeToString()).reply

    assert encoded in again


def test_a_search_is_replayed_to_the_byte(caller: DirectCaller) -> None:
    reply = search(caller, options=pb.SearchOptions(k=1), explain=True)
    delete_messages(caller, "5")

    again = replay(caller, reply.receipt_id)

    assert again.identical
    assert again.search.SerializeToString() == reply.SerializeToString()


def test_a_truncated_context_is_replayed_to_the_byte(caller: DirectCaller) -> None:
    append(caller, Message(role="user", text="word " * 200))
    context = assemble(caller, max_tokens=40, allow_partial=True)
    assert any(item.partial for item in context.items)

    assert replay(caller, context.receipt_id).context.SerializeToString() == context.SerializeToString()


FACTS = [
    Fact(subject="user", predicate="lives in", object="Lisbon", text="The user lives in <Lisbon> & likes it."),
    Fact(subject="user", predicate="has", object="two cats", text="The user has two cats."),
    Fact(subject="user", predicate="drinks", object="tea", text="The user drinks tea."),
]


def add_facts(caller: DirectCaller) -> list[str]:
    reply = ask(caller, "AddFacts", pb.AddFactsRequest(user_id="u", facts=FACTS))
    assert isinstance(reply, pb.AddFactsResponse)
    return list(reply.ids)


def with_facts(caller: DirectCaller, **fields: object) -> pb.AssembleContextResponse:
    ask(caller, "SetStaticFacts", pb.SetStaticFactsRequest(facts=[StaticFact(id="s", content="Offices close at 6.")]))
    return assemble(caller, max_tokens=300, facts=pb.ContextFacts(k=2), static_facts=True, **fields)


def of_section(context: pb.AssembleContextResponse, section: pb.Section.ValueType) -> list[pb.Item]:
    return [item for item in context.items if item.section == section]


def test_facts_stand_in_one_message_behind_the_system_text(caller: DirectCaller) -> None:
    ids = add_facts(caller)

    context = with_facts(caller, query="cats in Lisbon", system="Be brief.")

    facts = of_section(context, pb.SECTION_FACTS)
    assert {item.message.id for item in facts} == {ids[0], ids[1]}
    assert [item.section for item in context.items][:4] == [
        pb.SECTION_SYSTEM,
        pb.SECTION_STATIC_FACTS,
        pb.SECTION_FACTS,
        pb.SECTION_FACTS,
    ]
    assert [item.reason for item in facts] == [
        "number 1 of the facts that the query found",
        "number 2 of the facts that the query found",
    ]
    assert facts[0].score >= facts[1].score > 0
    lines = context.memory.text.splitlines()
    assert lines[1:5] == ["<memory>", "<static_memory>", "- Offices close at 6.", "</static_memory>"]
    assert {"- The user lives in &lt;Lisbon&gt; &amp; likes it.", "- The user has two cats."} < set(lines)
    assert (context.memory.role, lines[-1]) == ("user", "</memory>")


def test_an_item_has_the_fact_that_its_message_is_made_of(caller: DirectCaller) -> None:
    add_facts(caller)
    found = ask(caller, "SearchFacts", pb.SearchFactsRequest(user_id="u", query="cats in Lisbon", k=2))
    assert isinstance(found, pb.SearchFactsResponse)

    context = with_facts(caller, query="cats in Lisbon", system="Be brief.")

    assert [item.fact for item in of_section(context, pb.SECTION_FACTS)] == [hit.fact for hit in found.hits]
    assert all(item.fact.record_time == item.message.create_time for item in of_section(context, pb.SECTION_FACTS))
    assert not any(item.HasField("fact") for item in context.items if item.section != pb.SECTION_FACTS)


def test_facts_that_have_no_room_in_the_reply_are_left_out(caller: DirectCaller) -> None:
    longest = [Fact(subject="user", predicate=f"says {n}", object=f"{n} " * 800, text=f"Fact {n}") for n in range(1000)]
    ask(caller, "AddFacts", pb.AddFactsRequest(user_id="u", facts=longest))

    context = assemble(caller, max_tokens=100_000, facts=pb.ContextFacts(k=1000), query="fact")

    facts = of_section(context, pb.SECTION_FACTS)
    assert 500 < len(facts) < 1000
    assert context.left_out >= 1000 - len(facts)
    assert context.ByteSize() <= REPLY_BYTES
    assert replay(caller, context.receipt_id).context == context


def test_without_a_query_the_facts_recorded_last_are_in(caller: DirectCaller) -> None:
    ask(
        caller,
        "CreateConversation",
        conversations.CreateConversationRequest(conversation=Conversation(id="empty", user_id="u")),
    )
    ids = add_facts(caller)

    context = with_facts(caller, conversation_id="empty", query="")

    assert [item.message.id for item in of_section(context, pb.SECTION_FACTS)] == [ids[2], ids[1]]
    assert not any(item.HasField("score") for item in context.items)


def test_where_no_fact_can_be_compared_with_the_vector_the_facts_recorded_last_are_in(caller: DirectCaller) -> None:
    ids = add_facts(caller)
    of_another_model = Embedding(model="other", values=struct.pack("<2f", 1, 0))

    context = with_facts(caller, query="", query_embedding=of_another_model)
    none = assemble(
        caller, max_tokens=300, query="", query_embedding=of_another_model, facts=pb.ContextFacts(threshold=0.1)
    )

    assert [item.message.id for item in of_section(context, pb.SECTION_FACTS)] == [ids[2], ids[1]]
    assert not any(item.HasField("score") for item in of_section(context, pb.SECTION_FACTS))
    assert not of_section(none, pb.SECTION_FACTS)


def test_facts_are_those_that_hold_at_the_time_that_is_asked_for(caller: DirectCaller) -> None:
    past = Fact(subject="user", predicate="lives in", object="Porto", exclusive=True)
    past.valid_from.seconds, past.valid_to.seconds = 1_000, 2_000
    ask(caller, "AddFacts", pb.AddFactsRequest(user_id="u", facts=[past]))
    then = pb.ContextFacts()
    then.times.valid_at.seconds = 1_500

    assert not of_section(assemble(caller, max_tokens=300, query="Porto", facts=pb.ContextFacts()), pb.SECTION_FACTS)
    assert [
        item.message.text
        for item in of_section(assemble(caller, max_tokens=300, query="Porto", facts=then), pb.SECTION_FACTS)
    ] == ["user lives in Porto"]


def test_a_user_never_sees_the_facts_of_another_one(caller: DirectCaller) -> None:
    add_facts(caller)

    context = with_facts(caller, user_id="v", query="cats")

    assert not of_section(context, pb.SECTION_FACTS)
    assert "cats" not in context.memory.text


@pytest.mark.parametrize("rendering", RENDERINGS)
def test_a_context_with_facts_is_replayed_to_the_byte(caller: DirectCaller, rendering: pb.Rendering.ValueType) -> None:
    ids = add_facts(caller)
    context = with_facts(caller, rendering=rendering, query="cats")
    ask(caller, "RetractFacts", pb.RetractFactsRequest(user_id="u", facts=FactIds(ids=ids)))
    ask(caller, "SetStaticFacts", pb.SetStaticFactsRequest())
    append(caller, Message(role="user", text="And now?"))

    again = replay(caller, context.receipt_id)

    assert of_section(context, pb.SECTION_FACTS)
    assert again.identical
    assert again.context.SerializeToString() == context.SerializeToString()


def test_a_forgotten_fact_is_named_and_left_out(caller: DirectCaller) -> None:
    ids = add_facts(caller)
    context = with_facts(caller, query="cats in Lisbon")
    ask(caller, "ForgetFacts", pb.ForgetFactsRequest(user_id="u", ids=FactIds(ids=[ids[1]])))

    again = replay(caller, context.receipt_id)

    assert not again.identical
    assert [(item.message_id, item.section) for item in again.erased] == [(ids[1], pb.SECTION_FACTS)]
    assert "The user has two cats" not in again.context.SerializeToString().decode("utf-8", "replace")
    assert "Lisbon" in again.context.memory.text
    assert "the fact was forgotten" in [change.why for change in diff(caller, *_after(caller, context)).went_out]


def _after(caller: DirectCaller, context: pb.AssembleContextResponse) -> tuple[str, str]:
    return context.receipt_id, with_facts(caller, query="cats in Lisbon").receipt_id


def test_a_conversation_that_is_forgotten_is_in_no_receipt_of_a_fact(caller: DirectCaller) -> None:
    for conversation in ("kept", "secret"):
        source = FactSource(conversation_id=conversation, message_id="m")
        ask(caller, "AddFacts", pb.AddFactsRequest(user_id="u", facts=FACTS[:1], source=source))
    context = with_facts(caller, query="Lisbon")
    ask(caller, "ForgetFacts", pb.ForgetFactsRequest(user_id="u", conversation_id="secret"))

    again = replay(caller, context.receipt_id)

    assert of_section(again.context, pb.SECTION_FACTS)
    assert again.identical
    assert b"secret" not in again.SerializeToString()
    later = with_facts(caller, query="Lisbon")
    assert diff(caller, context.receipt_id, later.receipt_id).unchanged


def test_a_fact_that_was_forgotten_and_is_added_again_is_another_one(caller: DirectCaller) -> None:
    ids = add_facts(caller)
    first = with_facts(caller, query="cats in Lisbon")
    replay(caller, first.receipt_id)
    ask(caller, "ForgetFacts", pb.ForgetFactsRequest(user_id="u", ids=FactIds(ids=ids)))
    add_facts(caller)

    second = with_facts(caller, query="cats in Lisbon")

    assert not replay(caller, first.receipt_id).identical
    assert replay(caller, second.receipt_id).identical


OF_USER, OF_CONVERSATION = WorkingMemoryScope(user_id="u"), WorkingMemoryScope(conversation_id="c")


def name_at_most(named: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many facts that are forgotten at once are told by their ids."""
    monkeypatch.setattr("remora_server.storage.nouns.facts.MOST_NAMED", named)
    monkeypatch.setattr("remora_server.storage.nouns.receipts.MOST_NAMED", named)


def set_memories(caller: DirectCaller, of_user: str = "Likes tea.", of_conversation: str = "Owes us €3.") -> None:
    for scope, content in ((OF_USER, of_user), (OF_CONVERSATION, of_conversation)):
        ask(caller, "SetWorkingMemory", pb.SetWorkingMemoryRequest(scope=scope, content=content.encode()))


def remembering(caller: DirectCaller, **fields: object) -> pb.AssembleContextResponse:
    return assemble(caller, max_tokens=300, working_memory=True, **fields)


@pytest.mark.parametrize("rendering", RENDERINGS)
def test_a_context_with_working_memories_is_replayed_to_the_byte(
    caller: DirectCaller, rendering: pb.Rendering.ValueType
) -> None:
    set_memories(caller)
    context = remembering(caller, rendering=rendering, system="Be brief.")
    set_memories(caller, "Likes coffee.", "Owes us nothing.")

    again = replay(caller, context.receipt_id)

    texts = [item.message.text for item in of_section(context, pb.SECTION_WORKING_MEMORY)]
    assert texts == ["WORKING MEMORY: Likes tea.", "WORKING MEMORY: Owes us €3."]
    assert again.identical
    assert again.context.SerializeToString() == context.SerializeToString()
    changes = diff(caller, context.receipt_id, remembering(caller, rendering=rendering, system="Be brief.").receipt_id)
    told = [each.why for each in changes.changed if each.after.section == pb.SECTION_WORKING_MEMORY]
    assert len(told) == 2
    assert all(why.startswith("the working memory was changed") for why in told)


@pytest.mark.parametrize("scope", [OF_USER, OF_CONVERSATION])
@pytest.mark.parametrize("is_written", [True, False])
def test_a_deleted_working_memory_is_named_and_left_out(
    caller: DirectCaller, scope: WorkingMemoryScope, *, is_written: bool
) -> None:
    set_memories(caller)
    context = remembering(caller)
    if is_written:
        receipt(caller, context.receipt_id)
    ask(caller, "DeleteWorkingMemory", pb.DeleteWorkingMemoryRequest(scope=scope))

    again = replay(caller, context.receipt_id)

    assert not again.identical
    assert [item.section for item in again.erased] == [pb.SECTION_WORKING_MEMORY]
    assert len(of_section(again.context, pb.SECTION_WORKING_MEMORY)) == 1
    later = remembering(caller)
    assert "the working memory was deleted" in [
        change.why for change in diff(caller, context.receipt_id, later.receipt_id).went_out
    ]
    set_memories(caller)
    assert not replay(caller, context.receipt_id).identical
    assert replay(caller, remembering(caller).receipt_id).identical


@pytest.mark.parametrize("is_written", [True, False])
@pytest.mark.parametrize("named", [1_000, 0])
def test_the_working_memory_of_a_user_stays_when_all_facts_are_forgotten(
    caller: DirectCaller, monkeypatch: pytest.MonkeyPatch, named: int, *, is_written: bool
) -> None:
    name_at_most(named, monkeypatch)
    set_memories(caller)
    add_facts(caller)
    context = remembering(caller)
    if is_written:
        receipt(caller, context.receipt_id)

    ask(caller, "ForgetFacts", pb.ForgetFactsRequest(user_id="u", all=pb.AllFacts()))

    assert replay(caller, context.receipt_id).identical
    assert replay(caller, remembering(caller).receipt_id).identical


def test_a_system_prompt_holds_all_that_is_remembered(caller: DirectCaller) -> None:
    add_facts(caller)

    context = with_facts(
        caller,
        query="cats in Lisbon",
        system="Be brief.",
        rendering=pb.RENDERING_SYSTEM_PROMPT,
        recent_messages=1,
    )

    assert context.memory.role == "system"
    assert not context.HasField("earlier")
    before, *lines = context.memory.text.split("\n\n")
    assert before == "Be brief."
    static = "<static_memory>\n- Offices close at 6.\n</static_memory>"
    assert lines[0].startswith(f"<memory>\n{static}\n<extractive_memory>\n- ")
    assert lines[0].endswith("</vector_memory>\n</memory>")
    for item in of_section(context, pb.SECTION_RECALLED):
        assert f"{item.message.role}: {item.message.text}" in lines[0]


def test_what_was_deleted_is_named_and_left_out(caller: DirectCaller) -> None:
    context = assemble(caller)
    assert SECRET in context.earlier.text
    delete_messages(caller, "0", "1")

    again = replay(caller, context.receipt_id)

    assert not again.identical
    assert {item.message_id for item in again.erased} == {"0", "1"} & {item.message.id for item in context.items}
    assert SECRET not in again.context.SerializeToString().decode("utf-8", "replace")


def test_a_deleted_conversation_takes_its_messages_and_requests_along(caller: DirectCaller) -> None:
    context = assemble(caller)
    receipt(caller, context.receipt_id)
    ask(caller, "DeleteConversation", conversations.DeleteConversationRequest(conversation_id="c"))

    found = receipt(caller, context.receipt_id)
    again = replay(caller, context.receipt_id)

    assert found.WhichOneof("request") is None
    assert len(again.erased) == len(found.items) == len(context.items)
    assert not again.context.items


def test_a_deleted_user_takes_its_receipts_along(caller: DirectCaller) -> None:
    context = assemble(caller)
    ask(caller, "DeleteUser", users.DeleteUserRequest(user_id="u"))

    answer = caller.call("GetReceipt", pb.GetReceiptRequest(receipt_id=context.receipt_id).SerializeToString())

    assert answer.reason == "RECEIPT_NOT_FOUND"


def test_nothing_of_what_was_erased_is_kept(store: LocalStore, caller: DirectCaller) -> None:
    context = assemble(caller)
    receipt(caller, context.receipt_id)
    ask(caller, "DeleteConversation", conversations.DeleteConversationRequest(conversation_id="c"))

    store.commits.settle()
    tables = ("receipts", "receipt_contents")
    bodies = [body for table in tables for (body,) in store.database.rows(f"SELECT body FROM {table}")]

    assert bodies
    assert not [body for body in bodies if SECRET.encode() in body]


def test_nothing_of_a_forgotten_fact_is_kept(store: LocalStore, caller: DirectCaller) -> None:
    ids = add_facts(caller)
    receipt(caller, with_facts(caller, query="cats in Lisbon").receipt_id)
    ask(caller, "ForgetFacts", pb.ForgetFactsRequest(user_id="u", ids=FactIds(ids=ids[1:2])))

    store.commits.settle()
    bodies = [body for (body,) in store.database.rows("SELECT body FROM receipt_facts")]

    assert [b"Lisbon" in body for body in bodies] == [True]


@pytest.mark.parametrize("named", [1_000, 0])
def test_nothing_is_kept_where_all_facts_are_forgotten(
    store: LocalStore, caller: DirectCaller, monkeypatch: pytest.MonkeyPatch, named: int
) -> None:
    name_at_most(named, monkeypatch)
    add_facts(caller)
    receipt(caller, with_facts(caller, query="cats in Lisbon").receipt_id)

    store.commits.settle()
    assert store.database.rows("SELECT body FROM receipt_facts")
    ask(caller, "ForgetFacts", pb.ForgetFactsRequest(user_id="u", all=pb.AllFacts()))

    store.commits.settle()
    assert store.database.rows("SELECT body FROM receipt_facts") == []


def test_a_receipt_of_another_user_is_not_found(caller: DirectCaller) -> None:
    context = assemble(caller)

    for method, request in (
        ("GetReceipt", pb.GetReceiptRequest(receipt_id=context.receipt_id, user_id="v")),
        ("ReplayContext", pb.ReplayContextRequest(receipt_id=context.receipt_id, user_id="v")),
    ):
        assert caller.call(method, request.SerializeToString()).reason == "RECEIPT_NOT_FOUND"


def test_a_receipt_stays_with_the_conversation_that_was_searched(
    caller: DirectCaller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receipt_book, "LINGER_SECONDS", PATIENCE)
    found, nothing = search(caller).receipt_id, search(caller, text="zebra").receipt_id
    ask(caller, "DeleteConversation", conversations.DeleteConversationRequest(conversation_id="c"))
    append(caller, Message(role="user", text="Cats?"), create_if_missing=Conversation(user_id="another"))

    for each in (found, nothing):
        kept = receipt(caller, each)
        assert (kept.user_id, kept.HasField("search")) == ("u", False), "the request went with the conversation"
    assert not listed(caller, user_id="another").receipts
    assert not listed(caller, conversation_id="c").receipts


def test_a_receipt_of_another_tenant_is_not_found(caller: DirectCaller) -> None:
    context = assemble(caller)
    other = DirectCaller(caller.methods, caller.store, (("remora-tenant", "other"),))

    answer = other.call("GetReceipt", pb.GetReceiptRequest(receipt_id=context.receipt_id).SerializeToString())

    assert answer.reason == "RECEIPT_NOT_FOUND"
    assert not listed(other).receipts


def test_receipts_are_listed_newest_first_in_pages(caller: DirectCaller) -> None:
    ids = [assemble(caller).receipt_id, search(caller).receipt_id, assemble(caller).receipt_id]
    elsewhere = search(caller, conversation=None, user_id="u").receipt_id

    first = listed(caller, user_id="u", conversation_id="c", page_size=2)
    rest = listed(caller, user_id="u", conversation_id="c", page_size=2, page_token=first.next_page_token)
    everything = listed(caller)

    assert [found.id for found in (*first.receipts, *rest.receipts)] == ids[::-1]
    assert [found.id for found in everything.receipts] == [elsewhere, *ids[::-1]]
    assert [found.item_count > 0 for found in first.receipts] == [True, True]


def test_a_request_can_leave_no_receipt(caller: DirectCaller) -> None:
    assert not assemble(caller, without_receipt=True).receipt_id
    assert not search(caller, without_receipt=True).receipt_id
    assert not listed(caller).receipts


def test_a_difference_says_what_came_in_and_what_went_out_and_why(caller: DirectCaller) -> None:
    before = assemble(caller, search=None, query="", max_tokens=50)
    append(caller, Message(id="new", role="user", text="Do they purr?"))
    after = assemble(caller, search=None, query="", max_tokens=40)

    found = diff(caller, before.receipt_id, after.receipt_id)

    kept = {item.message.id for item in before.items} & {item.message.id for item in after.items}
    assert [change.after.message_id for change in found.came_in] == ["new"]
    assert {change.before.message_id for change in found.went_out} == {item.message.id for item in before.items} - kept
    assert all("the recent messages begin later" in change.why for change in found.went_out)
    assert found.unchanged == len(kept)
    assert "the budget was 50 tokens and is 40" in found.differences


def test_a_difference_of_searches_says_what_was_asked_otherwise(caller: DirectCaller) -> None:
    before = search(caller, options=pb.SearchOptions(k=1))
    after = search(caller, text="tax office", options=pb.SearchOptions(k=2), index_wait={"seconds": 1})
    of_user = search(caller, conversation=None, user_id="u", text="tax office", options=pb.SearchOptions(k=2))

    assert diff(caller, before.receipt_id, before.receipt_id).differences == []
    assert diff(caller, before.receipt_id, after.receipt_id).differences == [
        "the query was `cats` and is `tax office`",
        "`options` of the request differs",
        "`index_wait` of the request differs",
    ]
    assert diff(caller, after.receipt_id, of_user.receipt_id).differences == [
        "`conversation` of the request differs",
        "`user_id` of the request differs",
        "`index_wait` of the request differs",
    ]


def test_a_difference_tells_a_query_from_a_vector_and_from_the_newest_message(caller: DirectCaller) -> None:
    vector = Embedding(model="other", values=struct.pack("<2f", 1, 0))
    asked = assemble(caller, query="cats").receipt_id
    by_vector = assemble(caller, query="", query_embedding=vector).receipt_id
    of_newest = assemble(caller, query="").receipt_id

    assert "the query was `cats` and is a vector" in diff(caller, asked, by_vector).differences
    assert "the query was the newest user message and is `cats`" in diff(caller, of_newest, asked).differences


def test_a_difference_from_a_later_context_says_that_recent_messages_end_earlier(caller: DirectCaller) -> None:
    earlier = assemble(caller, search=None, query="", max_tokens=200)
    append(caller, Message(id="new", role="user", text="Do they purr?"))
    later = assemble(caller, search=None, query="", max_tokens=200)

    found = diff(caller, later.receipt_id, earlier.receipt_id)

    assert [(change.before.message_id, change.why) for change in found.went_out] == [
        ("new", "the recent messages end earlier, at sequence 6")
    ]


def test_a_difference_says_that_recent_messages_are_of_another_conversation(caller: DirectCaller) -> None:
    here = assemble(caller, search=None, query="", max_tokens=200)
    said = [Message(id=str(number), role="user", text="Again.") for number in range(9)]
    append(caller, *said, conversation_id="d", create_if_missing=Conversation(user_id="u"))
    there = assemble(caller, conversation_id="d", search=None, query="", max_tokens=200)

    found = diff(caller, here.receipt_id, there.receipt_id)

    assert {change.why for change in found.went_out} == {"the recent messages are of another conversation"}


def test_a_difference_names_the_recent_messages_that_a_message_is_not_among(caller: DirectCaller) -> None:
    append(caller, Message(id="guest", role="user", text="Who is this?"))
    append(caller, Message(id="late", role="user", text="It is me."), user_id="v")
    append(caller, Message(id="end", role="user", text="Hello."))
    of_guest = assemble(caller, user_id="v", search=None, query="", max_tokens=200)
    of_owner = assemble(caller, search=None, query="", max_tokens=200)

    found = diff(caller, of_guest.receipt_id, of_owner.receipt_id)

    assert [(change.before.message_id, change.why) for change in found.went_out] == [
        ("late", "it is not among the recent messages, from sequence 1 to 9")
    ]


def test_a_difference_says_that_a_message_was_erased_or_replaced(caller: DirectCaller) -> None:
    before = assemble(caller, search=None, query="", max_tokens=200)
    delete_messages(caller, "3")
    append(caller, Message(id="4", role="user", text="Fado and Nata."))
    after = assemble(caller, search=None, query="", max_tokens=200)

    found = diff(caller, before.receipt_id, after.receipt_id)

    assert [(change.before.message_id, change.why) for change in found.went_out] == [("3", "the message was erased")]
    assert [change.after.message_id for change in found.changed] == ["4"]
    assert "the message was replaced at revision" in found.changed[0].why


def test_a_difference_says_that_a_static_fact_and_the_system_text_were_changed(caller: DirectCaller) -> None:
    contexts = []
    for closing, system in ((6, "Be brief."), (7, "Be short.")):
        fact = StaticFact(id="s", content=f"Offices close at {closing}.")
        ask(caller, "SetStaticFacts", pb.SetStaticFactsRequest(facts=[fact]))
        contexts.append(assemble(caller, search=None, query="", max_tokens=200, system=system, static_facts=True))

    found = diff(caller, *(context.receipt_id for context in contexts))

    assert [(change.after.section, change.why) for change in found.changed] == [
        (pb.SECTION_SYSTEM, "the system text was changed"),
        (pb.SECTION_STATIC_FACTS, "the static fact was changed"),
    ]
    assert found.unchanged == len(contexts[1].items) - 2


def test_a_static_fact_is_the_same_in_contexts_of_two_conversations(caller: DirectCaller) -> None:
    ask(caller, "SetStaticFacts", pb.SetStaticFactsRequest(facts=[StaticFact(id="s", content="Offices close at 6.")]))
    said = Message(id="1", role="user", text="Hello")
    append(caller, said, conversation_id="other", user_id="v", create_if_missing=Conversation(user_id="v"))
    contexts = [
        assemble(caller, conversation_id=name, user_id=user, search=None, query="", max_tokens=200, static_facts=True)
        for name, user in (("c", "u"), ("other", "v"))
    ]

    found = diff(caller, *(context.receipt_id for context in contexts))

    changed = (*found.came_in, *found.went_out, *found.changed)
    assert pb.SECTION_STATIC_FACTS not in {one.section for change in changed for one in (change.before, change.after)}
    assert found.unchanged == 1


def test_contexts_share_the_messages_that_both_have(store: LocalStore, caller: DirectCaller) -> None:
    for _ in range(5):
        receipt(caller, assemble(caller, search=None).receipt_id)

    store.commits.settle()
    [(contents,)] = store.database.rows("SELECT count(*) FROM receipt_contents WHERE partition IS NOT NULL")

    assert contents == len(assemble(caller, search=None).items) + 1  # and the request


@pytest.mark.slow
def test_a_replay_gives_the_same_reply_whatever_was_written_since(caller: DirectCaller) -> None:
    chance = random.Random(5)
    given: dict[str, bytes] = {}
    for turn in range(RECEIPTS):
        text = " ".join(chance.choices(WORDS, k=chance.randint(1, 30)))
        append(caller, Message(id=str(chance.randrange(60)), role=chance.choice(["user", "assistant"]), text=text))
        set_memories(caller, text, chance.choice(WORDS))
        said = Fact(subject="user", predicate="lives in", object=chance.choice(WORDS), exclusive=True)
        ask(caller, "AddFacts", pb.AddFactsRequest(user_id="u", facts=[said]))
        if turn % 5 == 4:
            found = search(caller, text=chance.choice(WORDS), options=pb.SearchOptions(k=chance.randint(1, 9)))
            given[found.receipt_id] = found.SerializeToString()
            continue
        context = assemble(
            caller,
            query=chance.choice(WORDS),
            max_tokens=chance.randint(150, 600),
            allow_partial=True,
            rendering=chance.choice(RENDERINGS),
            working_memory=chance.random() < 0.5,
            facts=pb.ContextFacts(k=3) if chance.random() < 0.5 else None,
            system=chance.choice(["", "Be brief."]),
            merge=chance.choice(pb.Merge.values()),
        )
        given[context.receipt_id] = context.SerializeToString()

    again = {name: replay(caller, name) for name in given}

    assert len(given) == RECEIPTS
    assert all(reply.identical for reply in again.values())
    assert {
        name: (reply.context if reply.HasField("context") else reply.search).SerializeToString()
        for name, reply in again.items()
    } == given
