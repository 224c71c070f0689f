"""Facts as the client gives them, from a real server."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.patience import PATIENCE

from remora import AsyncRemora, Fact, FactSource, Remora, StaticFact
from remora.context import SharedSection
from remora.errors import ConversationNotFoundError, FactNotFoundError, InvalidFieldError

HOME = Fact("user", "lives in", "Berlin", exclusive=True, valid_from=datetime(2020, 1, 1, tzinfo=UTC))
MUNICH = Fact("user", "lives in", "Munich", exclusive=True, valid_from=datetime(2024, 1, 1, tzinfo=UTC))
TEA = Fact("user", "likes", "tea", confidence=0.5)


def test_a_fact_says_where_it_was_said(memory: Remora) -> None:
    facts = memory.user("sarah").facts
    (fact_id,) = facts.add(TEA, source=FactSource("trip", "m1", datetime(2026, 1, 1, tzinfo=UTC)))

    fact = facts.get(fact_id)
    assert (fact.text, fact.mentions, fact.confidence, fact.user_id) == ("user likes tea", 1, 0.5, "sarah")
    assert fact.sources == (FactSource("trip", "m1", datetime(2026, 1, 1, tzinfo=UTC)),)
    assert fact.valid_from == datetime(2026, 1, 1, tzinfo=UTC)


def test_a_fact_that_changed_can_be_asked_for_as_of_a_time(memory: Remora) -> None:
    facts = memory.user("sarah").facts
    facts.add([HOME, MUNICH])

    assert [fact.object for fact in facts.list_facts()] == ["Munich"]
    assert [fact.object for fact in facts.list_facts(valid_at=datetime(2021, 1, 1, tzinfo=UTC))] == ["Berlin"]
    assert {fact.object for fact in facts.list_facts(at_any_time=True)} == {"Berlin", "Munich"}
    assert facts.list_facts(recorded_at=datetime(2021, 1, 1, tzinfo=UTC)) == []
    assert [hit.fact.object for hit in facts.search("where lives the user")] == ["Munich"]


def test_facts_have_the_ids_under_which_they_were_added_where_they_were_found(memory: Remora) -> None:
    memory.conversation("trip", user_id="sarah").append({"role": "user", "content": "I live in Bergen."})
    facts = memory.user("sarah").facts

    [tea], [home] = facts.extract("I like tea."), facts.extract_from("trip")
    [rain] = facts.extract("I like rain.", dry_run=True)
    assert [facts.get(each.id).object for each in (tea, home)] == ["tea", "Bergen"]
    assert rain.id == ""
    assert facts.forget(tea.id) == 1


def test_what_a_user_says_becomes_facts_once(memory: Remora) -> None:
    chat = memory.conversation("trip", user_id="sarah")
    chat.append({"role": "user", "content": "My name is Sarah and I live in Bergen."})
    chat.append({"role": "assistant", "content": "I live in a data center."})
    chat.append({"role": "user", "content": "Do I live in Oslo? I am allergic to peanuts."})
    facts = memory.user("sarah").facts

    assert len(facts.extract_from("trip", dry_run=True)) == 3
    assert facts.list_facts() == []
    for _ in range(2):
        facts.extract_from("trip")

    found = {(fact.predicate, fact.object): fact.mentions for fact in facts.list_facts()}
    assert found == {("is named", "Sarah"): 1, ("lives in", "Bergen"): 1, ("is allergic to", "peanuts"): 1}
    assert {source.conversation_id for fact in facts.list_facts() for source in fact.sources} == {"trip"}
    with pytest.raises(ConversationNotFoundError):
        facts.extract_from("lost")


def test_what_a_user_says_no_longer_holds_ends(memory: Remora) -> None:
    facts = memory.user("sarah").facts
    facts.extract("I live in Munich. I like tea.")

    shown = facts.extract("I no longer live in Munich.", dry_run=True)
    assert (shown, [(fact.object, fact.valid_to) for fact in shown.ended]) == ([], [("Munich", None)])
    over = facts.extract("I no longer live in Munich.")

    [munich] = over.ended
    assert (over, munich.object) == ([], "Munich")
    assert munich.valid_from is not None
    assert munich.valid_to is not None
    assert munich.valid_from < munich.valid_to
    assert [fact.object for fact in facts.list_facts()] == ["tea"]
    assert {fact.object for fact in facts.list_facts(valid_at=munich.valid_from)} == {"Munich", "tea"}
    assert facts.extract("I no longer live in Munich.").ended == []
    assert [fact.object for fact in facts.extract("I live in Munich again.")] == ["Munich"]
    assert {fact.object for fact in facts.list_facts()} == {"Munich", "tea"}


def test_a_reply_shows_what_its_own_write_ended(tmp_path: Path) -> None:
    with Remora.start(data=tmp_path / "data", timeout=PATIENCE) as memory:
        for number in range(10):
            facts = memory.user(f"user {number}").facts
            facts.extract("I live in Munich.")

            [munich] = facts.extract("I no longer live in Munich.").ended

            assert munich == facts.get(munich.id)


def test_where_nothing_is_recorded_what_ended_gives_nothing(memory: Remora) -> None:
    facts = memory.user("sarah").facts
    found = facts.extract("I no longer live in Munich. I used to like tea. I am not allergic to nuts.")

    assert (found, found.ended, facts.list_facts(at_any_time=True)) == ([], [], [])


def test_what_a_text_contradicts_and_says_to_be_over_has_ended(memory: Remora) -> None:
    facts = memory.user("sarah").facts
    facts.extract("I live in Munich. I work at Acme.")
    for dry_run in (True, False):
        found = facts.extract("I live in Berlin, I no longer live in Munich. I left Acme.", dry_run=dry_run)
        assert ([fact.object for fact in found], {fact.object for fact in found.ended}) == (
            ["Berlin"],
            {"Munich", "Acme"},
        )

    assert [fact.object for fact in facts.list_facts()] == ["Berlin"]


def test_a_request_that_is_repeated_ends_nothing_else(memory: Remora) -> None:
    facts = memory.user("sarah").facts
    facts.extract("I live in Munich.")
    once = facts.extract("I no longer live in Munich.", request_id="once")
    none = facts.extract("I no longer like tea.", request_id="none")
    facts.extract("I live in Munich. I like tea.")

    assert facts.extract("I no longer live in Munich.", request_id="once").ended == once.ended
    assert facts.extract("I no longer like tea.", request_id="none").ended == none.ended == []
    assert {fact.object for fact in facts.list_facts()} == {"Munich", "tea"}


def test_messages_of_one_append_end_in_their_order_and_are_read_again(memory: Remora) -> None:
    chat = memory.conversation("trip", user_id="sarah")
    said = ["I live in Munich.", "I no longer live in Munich.", "I live in Bern.", "I live in Oslo."]
    chat.append([{"role": "user", "content": text} for text in said])
    facts = memory.user("sarah").facts

    found = facts.extract_from("trip")
    recorded = facts.list_facts(at_any_time=True)
    assert [fact.object for fact in found.ended] == ["Munich"]
    assert [fact.object for fact in facts.list_facts()] == ["Oslo"]
    assert {fact.object for fact in recorded} == {"Munich", "Bern", "Oslo"}
    assert facts.extract_from("trip").ended == []
    assert facts.list_facts(at_any_time=True) == recorded


def test_an_old_message_that_is_read_late_does_not_end_what_began_after_it(memory: Remora) -> None:
    facts = memory.user("sarah").facts
    facts.extract("I live in Munich.", source=FactSource("trip", "m2", datetime(2026, 2, 1, tzinfo=UTC)))

    late = facts.extract(
        "I no longer live in Munich.", source=FactSource("trip", "m1", datetime(2026, 1, 1, tzinfo=UTC))
    )

    assert late.ended == []
    assert [fact.object for fact in facts.list_facts()] == ["Munich"]


def test_what_remora_recalled_is_not_what_the_user_says(memory: Remora) -> None:
    chat = memory.conversation("trip", user_id="sarah")
    chat.append({"role": "user", "content": "I live in Bergen."})
    chat.append([{"role": "user", "content": f"message {number}"} for number in range(8)])
    earlier = chat.context(400, query="Bergen", recent_messages=1).earlier
    assert earlier is not None
    memory.user("tom").facts.extract(earlier.text)
    memory.user("tom").facts.extract("CONVERSATION SUMMARY: I live in Bergen.")

    assert "I live in Bergen" in earlier.text
    assert memory.user("tom").facts.list_facts() == []


def test_what_remora_recalled_is_not_what_the_user_says_where_it_stands_in_a_prompt(memory: Remora) -> None:
    blocks = memory.user("sarah").blocks
    blocks.update("trip", {"role": "assistant", "content": "I live in a data center."})
    remembered = blocks.get("trip", "Where do you live?").to_xml()
    chat = memory.conversation("trip", user_id="sarah")
    chat.append([{"role": "user", "content": text} for text in ("I live in Bergen.", "Hello", "Hello again")])
    earlier = chat.context(400, query="Bergen", recent_messages=1).earlier
    assert earlier is not None
    tom = memory.user("tom").facts

    for prompt in (
        remembered,
        f"Be brief.\n\n{remembered}\n\nI like tea.",
        remembered.replace("\n", "\r\n").removesuffix("</memory>"),
        f"I like coffee.\n\n{earlier.text}",
    ):
        tom.extract(prompt)

    assert "I live in a data center" in remembered
    assert "I live in Bergen" in earlier.text
    assert sorted(fact.text for fact in tom.list_facts()) == ["user likes coffee", "user likes tea"]


def test_a_text_gives_facts_with_the_source_that_it_is_given(memory: Remora) -> None:
    facts = memory.user("sarah").facts
    source = FactSource("mail", "m7")

    assert [fact.object for fact in facts.extract("I moved from Berlin to Munich.", source=source)] == ["Munich"]
    assert facts.list_facts(predicate="lives in")[0].sources == (source,)


def test_facts_are_corrected_retracted_and_forgotten(memory: Remora) -> None:
    facts = memory.user("sarah").facts
    home, tea = facts.add([HOME, TEA])

    corrected = facts.correct(home, Fact("user", "lives in", "Bern", exclusive=True))
    assert (facts.get(corrected).corrects, facts.get(corrected).valid_from) == (home, HOME.valid_from)
    assert facts.retract([tea, "lost"]) == 1
    assert [fact.object for fact in facts.list_facts()] == ["Bern"]
    assert facts.forget(corrected) == 1
    assert facts.clear() == 2  # what was corrected and what was retracted is still recorded as such
    with pytest.raises(FactNotFoundError):
        facts.get(home)
    with pytest.raises(FactNotFoundError):
        facts.correct(home, TEA)


def test_a_conversation_takes_its_facts_along(memory: Remora) -> None:
    facts = memory.user("sarah").facts
    facts.extract("I like tea.", source=FactSource("a", "m1"))
    facts.extract("I like coffee.", source=FactSource("b", "m1"))

    assert facts.forget_conversation("a") == 1
    assert [fact.object for fact in facts.list_facts()] == ["coffee"]


def test_no_user_sees_the_facts_of_another(memory: Remora) -> None:
    (fact_id,) = memory.user("sarah").facts.add(TEA)

    assert memory.user("tom").facts.list_facts() == []
    assert len(memory.user("tom").facts.search("tea")) == 0
    with pytest.raises(FactNotFoundError):
        memory.user("tom").facts.get(fact_id)


def test_static_facts_hold_for_all(memory: Remora) -> None:
    hours, closed = memory.static_facts.set([StaticFact("Open from 9 to 5", "hours"), "Closed on Sundays"])

    assert memory.static_facts.get() == [
        StaticFact("Open from 9 to 5", "hours"),
        StaticFact("Closed on Sundays", closed),
    ]
    assert hours == "hours"
    memory.static_facts.set([])
    assert memory.static_facts.get() == []


def test_an_end_before_the_beginning_is_refused_by_name(memory: Remora) -> None:
    wrong = Fact("user", "likes", "tea", valid_from=MUNICH.valid_from, valid_to=HOME.valid_from)

    with pytest.raises(InvalidFieldError, match=r"facts\[1\]\.valid_to"):
        memory.user("sarah").facts.add([TEA, wrong])


def test_the_asynchronous_client_does_the_same(endpoint: str) -> None:
    async def both() -> list[str]:
        async with AsyncRemora(endpoint, tenant="asynchronous", timeout=PATIENCE) as memory:
            facts = memory.user("sarah").facts
            await facts.add([HOME, TEA])
            await memory.static_facts.set(["Open from 9 to 5"])
            return [hit.fact.object for hit in await facts.search("tea")]

    assert asyncio.run(both()) == ["tea"]


def test_a_context_has_the_facts_that_answer_best_behind_the_system_text(memory: Remora) -> None:
    chat = memory.conversation("trip", user_id="sarah")
    chat.append({"role": "user", "content": "Where do I live, and what do I drink?"})
    memory.user("sarah").facts.add([HOME, MUNICH, TEA])
    memory.static_facts.set(["Offices close at 6."])

    context = chat.context(400, system="Be brief.", facts={"k": 2}, static_facts=True, query="where does the user live")

    assert [item.section for item in context.items] == ["system", "static_facts", "facts", "facts", "recent"]
    assert {item.message.text for item in context.items[2:4]} == {"user lives in Munich", "user likes tea"}
    system, known, said = context.messages
    assert (system["content"], said["role"]) == ("Be brief.", "user")
    assert (known["role"], known["content"].splitlines()[1:6:2]) == (
        "user",
        ["<memory>", "- Offices close at 6.", "<extractive_memory>"],
    )
    assert "facts, in one message of the role user:" in str(context)


def test_a_transcript_is_sent_as_it_was_counted_and_no_fact_as_what_the_user_said(memory: Remora) -> None:
    chat = memory.conversation("trip", user_id="sarah")
    chat.append({"role": "user", "content": "What do I drink?"})
    memory.user("sarah").facts.add(TEA)

    context = chat.context(400, query="tea", facts=True, rendering="transcript")

    assert "- user likes tea" in context.text
    assert context.messages == [{"role": "user", "content": context.text}]
    assert context.to_anthropic()["messages"] == context.messages


def test_a_context_has_the_facts_of_a_time(memory: Remora) -> None:
    chat = memory.conversation("trip", user_id="sarah")
    chat.append({"role": "user", "content": "Where did I live?"})
    memory.user("sarah").facts.add([HOME, MUNICH])

    context = chat.context(400, facts={"valid_at": datetime(2021, 1, 1, tzinfo=UTC)}, query="live")

    assert [item.message.text for item in context.items if item.section == "facts"] == ["user lives in Berlin"]


def test_a_section_without_a_share_has_what_others_leave(memory: Remora) -> None:
    chat = memory.conversation("trip", user_id="sarah")
    chat.append(
        [{"role": role, "content": f"words {number}"} for number in range(30) for role in ("user", "assistant")]
    )
    facts = memory.user("sarah").facts
    facts.add([Fact("user", "likes", f"tea of the kind {number}") for number in range(30)])

    def tokens(section: str, shares: Mapping[SharedSection, float]) -> int:
        context = chat.context(300, query="tea", recall=False, facts={"k": 30}, shares=shares)
        return sum(item.tokens for item in context.items if item.section == section)

    assert tokens("facts", {"recent": 1.0}) == 0
    assert tokens("facts", {"facts": 0.5, "recent": 1.0}) > 75
    assert tokens("recent", {"facts": 1.0}) < 20, "the newest turn is always in"


def test_nothing_that_is_known_is_learned_from_a_context(memory: Remora) -> None:
    chat = memory.conversation("trip", user_id="sarah")
    chat.append({"role": "user", "content": "Hello."})
    memory.user("sarah").facts.add(Fact("user", "said", "so", text="I live in Bergen."))

    known = chat.context(400, facts=True, query="Bergen").memory

    assert known is not None
    memory.user("tom").facts.extract(known.text)
    assert memory.user("tom").facts.list_facts() == []
