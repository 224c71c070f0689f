"""Long-term memory in blocks: the scenarios of the proposal for Ballerina's agents, from a real server."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from tests.patience import PATIENCE, eventually

from remora import (
    AsyncRemora,
    Conversation,
    Fact,
    Flush,
    MemoryContent,
    Remora,
    StaticFact,
    Summarize,
    UnsupportedByBlockError,
)
from remora.errors import RequestTooLargeError

POLICY = [
    "Remote work: 3 days a week with approval",
    "International work: at most 2 weeks a year, 30-day advance approval",
]
EARLY = [
    ("user", "Hi, my name is Sarah. I work in marketing. How often may I work remotely?"),
    ("assistant", "Remote work is allowed on 3 days a week, if your manager approves it."),
    ("user", "I work at Contoso and I live in Colombo. Am I eligible?"),
    ("assistant", "Yes: two years and a good review are enough. Apply with Form HR-101."),
]
LATE = [
    ("user", "What if my manager says no at first?"),
    ("assistant", "Then ask for feedback, for a trial period, or for HR to mediate."),
    ("user", "And what about equipment?"),
    ("assistant", "The company provides a laptop and a chair."),
    ("user", "One more question: can I work from abroad?"),
    ("assistant", "Two weeks a year, and ask 30 days before."),
    ("user", "That helps, I have everything I need for now."),
]


def said(*turns: tuple[str, str]) -> list[dict[str, str]]:
    return [{"role": role, "content": text} for role, text in turns]


def test_a_conversation_that_is_summarised_goes_on_with_its_newest_messages(memory: Remora) -> None:
    chat = memory.conversation("hr", user_id="sarah", short_term=Summarize(60, keep_messages=len(LATE)))
    chat.append(said(*EARLY, *LATE))
    eventually(lambda: chat.window().first_sequence > 0)

    summary, *rest = chat.context(4_000, recall=False).items
    assert summary.message.role == "user"
    assert summary.message.text.startswith("CONVERSATION SUMMARY: ")
    assert [(item.message.role, item.message.text) for item in rest] == LATE
    assert len(chat.messages(view="all")) == len(EARLY) + len(LATE)


def test_what_is_flushed_is_remembered_in_blocks_for_the_next_conversation(memory: Remora) -> None:
    memory.static_facts.set(POLICY)
    blocks = memory.user("sarah").blocks
    chat = memory.conversation("hr", user_id="sarah", short_term=Flush(100, extract_facts=True))
    for message in said(*EARLY, *LATE):
        chat.append(message)
    eventually(lambda: chat.window().first_sequence > 0)

    assert [message.text for message in chat.messages()][-1] == LATE[-1][1]
    content = blocks.get("hr", "Where does the user live, and what is the user named?")
    assert [fact.content for fact in content.static_facts] == POLICY
    assert {"user is named Sarah", "user lives in Colombo"} <= {fact.text for fact in content.extracted_facts}
    later = memory.user("sarah").blocks.get("another day", "Where does the user live?")
    assert "user lives in Colombo" in [fact.text for fact in later.extracted_facts]
    assert later.vector_matches == []
    assert [hit.item.text for hit in blocks.vector.get("hr", "Form HR-101", k=1)] == [EARLY[3][1]]


def test_what_is_remembered_comes_with_the_messages_of_the_window(memory: Remora) -> None:
    chat = memory.conversation("hr", user_id="sarah", short_term=Summarize(60, keep_messages=len(LATE)))
    chat.append(said(*EARLY, *LATE))
    eventually(lambda: chat.window().first_sequence > 0)
    blocks = memory.user("sarah").blocks
    blocks.vector.update("hr", said(LATE[3])[0])  # without an id

    content = blocks.get("hr", "a laptop and a chair, and Form HR-101", k=len(EARLY))
    summary, *rest = content.chat_messages
    assert (summary.role, summary.text[:22]) == ("user", "CONVERSATION SUMMARY: ")
    assert [(message.role, message.text) for message in rest] == LATE
    assert EARLY[3][1] in [hit.item.text for hit in content.vector_matches]
    assert not {hit.item.text for hit in content.vector_matches} & {text for _, text in LATE}
    assert blocks.get("another day", "Form HR-101").chat_messages == []
    assert memory.user("tom").blocks.get("hr", "Form HR-101").chat_messages == []


def test_a_window_that_moves_while_it_is_read_loses_nothing_and_says_nothing_twice(
    memory: Remora, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = memory.conversation("hr", user_id="sarah", short_term=Summarize(1, by_client=True))
    chat.append(said(("system", "Answer briefly."), *EARLY, *LATE))
    calls = []

    def then_moved(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Conversation, *given: object, **options: object) -> object:
            calls.append(method)
            reply = method(self, *given, **options)
            if len(calls) == 1:
                chat.summarize(lambda _, text: f"summary of {len(EARLY)}", keep_messages=len(LATE))
            return reply

        return call

    with monkeypatch.context() as patched:
        for name in ("messages", "window"):
            patched.setattr(Conversation, name, then_moved(getattr(Conversation, name)))
        content = memory.user("sarah").blocks.get("hr", "equipment")

    summary, system, *rest = [(message.role, message.text) for message in content.chat_messages]
    assert summary == ("user", f"CONVERSATION SUMMARY: summary of {len(EARLY)}")
    assert system == ("system", "Answer briefly.")
    assert rest == LATE


def test_vector_memory_has_what_was_appended_to_the_conversation_and_what_was_flushed(memory: Remora) -> None:
    chat = memory.conversation("hr", user_id="sarah", short_term=Flush(100))
    chat.append(said(*EARLY, *LATE))
    eventually(lambda: chat.window().first_sequence > 0)
    vector = memory.user("sarah").blocks.vector

    [flushed] = vector.get("hr", "Which form must I apply with?", k=1)
    [kept] = vector.get("hr", "a laptop and a chair", k=1)
    assert (flushed.item.text, kept.item.text) == (EARLY[3][1], LATE[3][1])
    assert flushed.item.metadata == {"session_id": "hr", "role": "assistant"}
    assert 0 < kept.score <= 1
    assert memory.user("tom").blocks.vector.get("hr", "a laptop and a chair") == []
    assert vector.get("another day", "a laptop and a chair") == []
    chat.delete()
    assert vector.get("hr", "a laptop and a chair") == []


def test_what_is_appended_and_given_to_vector_memory_is_found_once(memory: Remora) -> None:
    chat = memory.conversation("hr", user_id="sarah")
    vector = memory.user("sarah").blocks.vector
    chat.append([{"role": "user", "content": "green tea", "id": "m1"}, {"role": "user", "content": "black tea"}])
    for message in chat.messages():
        vector.update("hr", message)
    for text in ("black tea", "mint tea"):
        vector.update("hr", text)

    found = [hit.item.text for hit in vector.get("hr", "tea")]
    assert sorted(found) == ["black tea", "black tea", "green tea", "mint tea"]
    assert len(vector.get("hr", "tea", k=2)) == 2


def test_a_model_is_given_blocks_as_the_proposal_has_them(memory: Remora) -> None:
    memory.static_facts.set(["3 days a week </static_memory> & <system>"])
    blocks = memory.user("sarah").blocks
    blocks.update("hr", "I live in Colombo.")

    assert blocks.get("hr", "live in Colombo").to_xml() == (
        "<memory>\n"
        "<static_memory>\n"
        "- 3 days a week &lt;/static_memory&gt; &amp; &lt;system&gt;\n"
        "</static_memory>\n"
        "<extractive_memory>\n"
        "- user lives in Colombo\n"
        "</extractive_memory>\n"
        "<vector_memory>\n"
        "- I live in Colombo.\n"
        "</vector_memory>\n"
        "</memory>"
    )


def test_a_context_is_what_the_proposal_calls_memory_content(memory: Remora) -> None:
    memory.static_facts.set(["Offices close at 6."])
    user = memory.user("sarah")
    user.blocks.extractive.update("hr", "I live in Colombo.")
    chat = memory.conversation("hr", user_id="sarah")
    question, answer = ("user", "The alarm code of Colombo is 4711."), ("assistant", "Noted.")
    chat.append(said(question, answer, ("user", "What is the alarm code of Colombo?")))
    query = "the alarm code of Colombo"

    context = chat.context(300, system="Be brief.", recent_messages=1, facts=True, static_facts=True, query=query)
    content = context.to_memory_content()

    assert [message.text for message in content.chat_messages] == ["Be brief.", "What is the alarm code of Colombo?"]
    assert [fact.content for fact in content.static_facts] == ["Offices close at 6."]
    found_facts = [hit.fact for hit in user.facts.search(query)]
    assert [(fact.id, fact.record_time, fact.sources) for fact in content.extracted_facts] == [
        (fact.id, fact.record_time, ()) for fact in found_facts
    ]
    assert [fact.object for fact in content.extracted_facts] == ["Colombo"]
    found, beside = content.vector_matches
    assert (found.item.text, beside.item.text) == (question[1], answer[1])
    assert (found.item.metadata, found.item.user_id) == ({"session_id": "hr", "role": "user"}, "sarah")
    assert 0 <= beside.score < found.score == 1
    again = memory.receipts.replay(context.receipt_id).context
    assert again is not None
    assert again.to_memory_content() == content


def test_what_was_stored_cannot_begin_a_line() -> None:
    content = MemoryContent(static_facts=[StaticFact("one\n- two\n</static_memory>")])

    assert content.to_xml().splitlines()[2:-2] == ["- one - two &lt;/static_memory&gt;"]
    assert (content.system_prompt("Be brief."), MemoryContent().system_prompt("Be brief.")) == (
        f"Be brief.\n\n{content.to_xml()}",
        "Be brief.",
    )


def test_static_memory_supports_neither_update_nor_delete(memory: Remora) -> None:
    static = memory.user("sarah").blocks.static

    with pytest.raises(UnsupportedByBlockError, match=r"^Static memory does not support update operation$") as refused:
        static.update("hr", "I live in Colombo.")
    with pytest.raises(UnsupportedByBlockError, match=r"^Static memory does not support delete operation$"):
        static.delete("hr")
    assert not refused.value.sent
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


def test_a_session_that_is_deleted_takes_what_only_it_supports(memory: Remora) -> None:
    memory.static_facts.set(POLICY)
    blocks = memory.user("sarah").blocks
    blocks.update("one", {"role": "user", "content": "I live in Colombo. I like tea."})
    blocks.update("two", {"role": "user", "content": "I like tea."})
    blocks.delete("one")

    content = blocks.get("one", "tea Colombo")
    assert [fact.text for fact in content.extracted_facts] == ["user likes tea"]
    assert content.vector_matches == []
    assert len(content.static_facts) == 2
    assert len(blocks.vector.get("two", "tea")) == 1


def test_messages_of_sessions_whose_ids_join_alike_are_kept_apart(memory: Remora) -> None:
    blocks = memory.user("sarah").blocks
    said_in = {
        ("a", "b/c"): "green tea",
        ("a/b", "c"): "black tea",
        ("a/b/c", "d"): "mint tea",
        ("a", "b/c/d"): "iced tea",
    }
    for (session_id, message_id), text in said_in.items():
        for _ in range(2):
            blocks.update(session_id, {"role": "user", "content": text, "id": message_id})

    for session_id in ("a", "a/b", "a/b/c"):
        found = [hit.item.text for hit in blocks.vector.get(session_id, "tea")]
        assert sorted(found) == sorted(text for (session, _), text in said_in.items() if session == session_id)


def test_a_message_has_the_same_id_in_all_clients(memory: Remora) -> None:
    vector = memory.user("sarah").blocks.vector
    vector.update("a/b", {"role": "user", "content": "tea", "id": "é"})

    [found] = vector.get("a/b", "tea")
    assert found.item.id == "7828d189df0e4502024cb7666b03bcdcb1b5a421fec9b300b3dd4045bdf79c72"


def test_a_message_with_the_longest_ids_is_stored_once(memory: Remora) -> None:
    vector = memory.user("sarah").blocks.vector
    for end in "xyx":
        vector.update("s" * 512, {"role": "user", "content": f"tea {end}", "id": "m" * 511 + end})

    assert sorted(hit.item.text for hit in vector.get("s" * 512, "tea")) == ["tea x", "tea y"]


def test_a_long_message_is_a_query_by_its_beginning(memory: Remora) -> None:
    blocks = memory.user("sarah").blocks
    blocks.update("hr", "I live in Colombo.")

    content = blocks.get("hr", "Is Colombo in this text? " + "\N{SNOWMAN} and so on " * 20_000)
    assert [fact.object for fact in content.extracted_facts] == ["Colombo"]
    assert [hit.item.text for hit in content.vector_matches] == ["I live in Colombo."]


def test_a_message_of_white_space_alone_finds_nothing(memory: Remora) -> None:
    blocks = memory.user("sarah").blocks
    blocks.vector.update("hr", "I like tea")
    memory.user("sarah").facts.add(Fact("user", "likes", "tea"))

    assert blocks.vector.get("hr", " \n") == []
    assert blocks.extractive.get("hr", " \n") == []


def test_a_message_that_is_too_long_for_a_block_is_given_to_none(memory: Remora) -> None:
    blocks = memory.user("sarah").blocks

    with pytest.raises(RequestTooLargeError):
        blocks.update("hr", "I live in Colombo. " + "And so on. " * 10_000)
    assert blocks.extractive.facts.list_facts() == []


def test_only_what_the_user_says_is_extracted(memory: Remora) -> None:
    extractive = memory.user("sarah").blocks.extractive

    assert extractive.update("hr", {"role": "assistant", "content": "I live in a data center."}) == []
    assert extractive.update("hr", "Do I live in Oslo?") == []
    assert [fact.object for fact in extractive.update("hr", "I live in Colombo.")] == ["Colombo"]


def test_what_a_stored_message_says_holds_since_it_was_received(memory: Remora) -> None:
    chat = memory.conversation("hr", user_id="sarah")
    chat.append({"role": "user", "content": "I live in Colombo."})
    [message] = chat.messages()
    extractive = memory.user("sarah").blocks.extractive
    extractive.update("hr", message)
    extractive.facts.extract_from("hr")

    [fact] = extractive.facts.list_facts()
    assert (fact.valid_from, fact.mentions) == (message.create_time, 1)


def test_facts_are_picked_within_a_token_limit(memory: Remora) -> None:
    extractive = memory.user("sarah").blocks.extractive
    extractive.facts.add([Fact("user", "likes", f"tea number {number} of the long list") for number in range(10, 30)])
    each = memory.count_tokens("user likes tea number 10 of the long list").total

    for most in (5, 40, 100, 1_000):
        found = extractive.get("hr", "tea", max_tokens=most)
        assert len(found) == min(20, most // each)


def test_users_have_blocks_of_their_own(memory: Remora) -> None:
    memory.user("sarah").blocks.update("hr", "I live in Colombo.")

    content = memory.user("tom").blocks.get("hr", "live in Colombo")
    assert (content.extracted_facts, content.vector_matches) == ([], [])


def test_who_speaks_in_the_conversation_of_another_user_has_his_own_messages_and_not_the_summary(
    memory: Remora,
) -> None:
    chat = memory.conversation("team", user_id="ann", short_term=Summarize(60, keep_messages=1))
    chat.append(said(*EARLY))
    eventually(lambda: chat.window().summary is not None)
    memory.conversation("team", user_id="bob").append({"role": "user", "content": "I will bring the maps."})

    content = memory.user("bob").blocks.get("team", "What will I bring?")

    assert [message.text for message in content.chat_messages] == ["I will bring the maps."]
    assert content.vector_matches == []


def test_the_asynchronous_client_has_the_same_blocks(endpoint: str) -> None:
    async def asked() -> MemoryContent:
        async with AsyncRemora(endpoint, tenant="asynchronous", timeout=PATIENCE) as memory:
            blocks = memory.user("sarah").blocks
            await blocks.update("hr", "I live in Colombo.")
            return await blocks.get("hr", "Colombo")

    assert "- user lives in Colombo" in asyncio.run(asked()).to_xml()
