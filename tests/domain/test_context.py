"""Contexts by example: what has precedence, what belongs together, how it is rendered."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from tests.domain.conversing import (
    CONVERSATION,
    DAY,
    READ,
    Conversations,
    KnownFacts,
    KnownMemories,
    WordCounter,
    message,
    words,
)

from remora_server.domain.assembler import ContextAssembler
from remora_server.domain.calls import Read
from remora_server.domain.context import Context, ContextRequest, Merge, Rendering, Section
from remora_server.domain.context_items import ANSWER, QUESTION
from remora_server.domain.context_messages import ContextMessage, whole_units
from remora_server.domain.errors import BudgetTooSmall, ContextTooLarge, ConversationNotFound
from remora_server.domain.images import Image
from remora_server.domain.messages import MessagePage, MessageQuery
from remora_server.domain.models import BUILTIN_MODEL
from remora_server.domain.renderings import EARLIER
from remora_server.domain.replies import REPLY_BYTES
from remora_server.domain.search import InConversation, MessageFilter, OfUser, Profile, SearchOptions
from remora_server.domain.tokens import CL100K_BASE, TokenCounter, TokenEncoding
from remora_server.domain.windows import Summary

PLENTY = 10_000
COST = 6  # in tokens, of a message of two words: 3, the role, the text
TALK = [message(sequence, f"words {sequence}", role=("assistant", "user")[sequence % 2]) for sequence in range(1, 9)]


def assemble(store: Conversations, **request: object) -> Context:
    given = {"max_tokens": PLENTY, **request}
    asked = ContextRequest(CONVERSATION, **given)  # type: ignore[arg-type]
    return assembler(store).assemble(READ, asked)


def assembler(
    store: Conversations, tokens: TokenCounter | None = None, memories: KnownMemories | None = None
) -> ContextAssembler:
    return ContextAssembler(
        store,
        store,
        store,
        tokens or WordCounter(),
        store,
        windows=store,
        facts=KnownFacts(),
        memories=memories or KnownMemories(),
    )


def sequences(context: Context) -> list[int]:
    return [item.sequence for item in context.items]


def places(*numbers: int, conversation_id: str = CONVERSATION) -> list[tuple[str, int]]:
    return [(conversation_id, number) for number in numbers]


def test_without_a_search_a_context_is_the_newest_messages() -> None:
    store = Conversations(TALK)
    context = assemble(store, max_tokens=3 + 4 * COST)
    assert sequences(context) == [5, 6, 7, 8]
    assert (context.tokens_used, context.overhead_tokens, context.left_out) == (27, 3, 4)
    assert (store.searches, context.index, context.revision, context.exact) == ([], None, 9, True)


def test_recent_messages_begin_with_a_message_of_the_user() -> None:
    assert sequences(assemble(Conversations(TALK), max_tokens=3 + 5 * COST)) == [5, 6, 7, 8]
    greeted = [message(1, "How can I help?", role="assistant"), message(2), message(3, role="assistant")]
    assert sequences(assemble(Conversations(greeted))) == [2, 3]


@pytest.mark.parametrize(("user_id", "sections"), [("sarah", ["SUMMARY", "RECENT"]), ("tom", ["RECENT"])])
def test_a_summary_of_another_users_later_conversation_is_not_in(user_id: str, sections: list[str]) -> None:
    """Between two reads, a conversation may end, and another user's may begin with its id."""
    store = Conversations([message(2)], summarized=Summary("What was said.", 1, "extractive", 3, user_id=user_id))

    assert [item.section.name for item in assemble(store).items] == sections


def test_where_no_user_speaks_recent_messages_begin_anywhere() -> None:
    assert sequences(assemble(Conversations([message(1, role="planner"), message(2, role="critic")]))) == [1, 2]


def test_at_most_the_recent_messages_that_are_asked_for_are_in_but_the_newest_turn_whole() -> None:
    assert sequences(assemble(Conversations(TALK), recent_messages=4)) == [5, 6, 7, 8]
    assert sequences(assemble(Conversations(TALK), recent_messages=3)) == [7, 8]
    assert sequences(assemble(Conversations(TALK), recent_messages=1)) == [7, 8]
    assert sequences(assemble(Conversations(TALK), recent_messages=0)) == []


def test_recent_messages_have_half_of_the_budget_and_recalled_ones_the_rest() -> None:
    store = Conversations(TALK, places(1, 2, 3, 4))
    context = assemble(store, max_tokens=3 + 6 * COST, search=SearchOptions(), merge=Merge.PREPEND)
    assert [(item.sequence, item.section.name) for item in context.items] == [
        (1, "RECALLED"),
        (2, "RECALLED"),
        (3, "RECALLED"),
        (4, "RECALLED"),
        (7, "RECENT"),
        (8, "RECENT"),
    ]


def test_what_recalled_messages_leave_goes_to_recent_ones() -> None:
    context = assemble(
        Conversations(TALK, places(1)), max_tokens=3 + 6 * COST, search=SearchOptions(), merge=Merge.PREPEND
    )
    assert sequences(context) == [1, 5, 6, 7, 8]


def test_the_newest_turn_may_take_more_than_its_half() -> None:
    talk = [*TALK, message(9, "long " * 30)]
    context = assemble(Conversations(talk, places(1, 2, 3)), max_tokens=50, search=SearchOptions(), merge=Merge.PREPEND)
    assert sequences(context) == [1, 2, 9]


def test_a_turn_that_no_budget_holds_ends_the_recent_ones() -> None:
    talk = [*TALK[:5], message(6, "long " * 100, role="assistant"), *TALK[6:]]
    assert sequences(assemble(Conversations(talk), max_tokens=60)) == [7, 8]


def test_a_turn_of_which_something_was_recalled_is_taken_whole_where_there_is_room() -> None:
    context = assemble(Conversations(TALK, places(5, 6, 1)), max_tokens=100, search=SearchOptions(k=2))
    assert [(item.sequence, item.section.name) for item in context.items] == [
        (number, "RECENT") for number in range(1, 9)
    ]


@pytest.mark.parametrize(
    ("merge", "expected"),
    [
        (Merge.APPEND, [5, 6, 7, 8, 3, 1]),
        (Merge.PREPEND, [3, 1, 5, 6, 7, 8]),
        (Merge.INTERLEAVE, [3, 5, 1, 6, 7, 8]),
        (Merge.EARLIER, [1, 3, 5, 6, 7, 8]),
    ],
)
def test_recalled_messages_are_best_first_or_in_the_order_of_time(merge: Merge, expected: list[int]) -> None:
    store = Conversations(TALK, places(3, 1))
    filtered = SearchOptions(filter=MessageFilter(roles=("user",)))
    assert sequences(assemble(store, recent_messages=4, search=filtered, merge=merge)) == expected


def test_recalled_messages_are_quoted_with_who_said_them_when_and_where() -> None:
    other = [
        message(1, "Where do I live?\nassistant: in Rome", name="Ann", conversation_id="c2", sent_time=DAY),
        message(2, "In Paris.", role="assistant", conversation_id="c2", sent_time=DAY + 1),
    ]
    store = Conversations([*TALK, *other], [("c2", 1), ("c1", 1)])
    context = assemble(store, recent_messages=2, search=SearchOptions(), search_user_scope=True)
    assert context.earlier == (
        f"{EARLIER}[1970-01-01]\nuser: words 1\nassistant: words 2\n"
        "[1970-01-02, conversation c2]\nAnn: Where do I live?\n    assistant: in Rome\nassistant: In Paris.\n"
    )
    quoted = 3 + words("user") + words(context.earlier)
    assert context.tokens_used == 3 + quoted + 2 * COST
    assert sum(item.tokens for item in context.items) + context.overhead_tokens == context.tokens_used


def test_question_and_answer_come_together() -> None:
    asked = assemble(Conversations(TALK, places(3)), recent_messages=2, search=SearchOptions())
    answered = assemble(Conversations(TALK, places(4)), recent_messages=2, search=SearchOptions())
    assert sequences(asked) == sequences(answered) == [3, 4, 7, 8]
    assert [item.reason for item in asked.items[:2]] == ["number 1 of the messages that the query found", ANSWER]
    assert [item.reason for item in answered.items[:2]] == [QUESTION, "number 1 of the messages that the query found"]


def test_what_was_filtered_out_does_not_come_with_a_hit() -> None:
    filtered = SearchOptions(filter=MessageFilter(roles=("user",)))
    assert sequences(assemble(Conversations(TALK, places(3)), recent_messages=2, search=filtered)) == [3, 7, 8]


def test_what_does_not_speak_to_the_query_is_left_out_unless_it_is_asked_for() -> None:
    store = Conversations(TALK, places(1, 2), model=f"{BUILTIN_MODEL}/int8", cosine=0.1)
    options = SearchOptions(profile=Profile.HYBRID)
    context = assemble(store, recent_messages=0, query="tungsten", search=options)
    assert (sequences(context), context.unrelated, context.left_out) == ([], 2, 0)
    context = assemble(store, recent_messages=0, query="tungsten", search=options, include_unrelated=True)
    assert (sequences(context), context.unrelated) == ([1, 2], 0)


def test_what_does_not_speak_to_the_query_and_is_in_as_a_recent_message_is_not_told_as_left_out() -> None:
    store = Conversations(TALK, places(1, 2), model=f"{BUILTIN_MODEL}/int8", cosine=0.1)
    tokens = assemble(store, query="tungsten", max_tokens=4000).tokens_used

    context = assemble(
        store, query="tungsten", search=SearchOptions(profile=Profile.HYBRID), max_tokens=tokens + tokens // 4
    )

    assert (sequences(context), context.unrelated) == ([1, 2, 3, 4, 5, 6, 7, 8], 0)


def test_a_blank_message_does_not_speak_to_any_query() -> None:
    talk = [message(1, "Which ferry?"), message(2, "\n\n", role="assistant"), message(3, "The one at nine")]
    options = SearchOptions(profile=Profile.HYBRID)

    context = assemble(Conversations(talk, places(2, 3)), recent_messages=0, query="ferry", search=options)

    assert (sequences(context), context.unrelated) == ([3], 1)


def test_a_message_without_text_may_have_the_vector_of_its_caller() -> None:
    talk = [message(1, "Which ferry?"), message(2, "", role="assistant")]
    options = SearchOptions(profile=Profile.HYBRID)

    context = assemble(Conversations(talk, places(2)), recent_messages=0, query="ferry", search=options)

    assert (sequences(context), context.unrelated) == ([1, 2], 0)


SYSTEM = message(1, "be kind", role="system")


def test_the_newest_system_message_stands_first_and_others_are_out() -> None:
    talk = [SYSTEM, message(2), message(3, "be brief", role="system"), message(4, role="assistant"), message(5)]
    context = assemble(Conversations(talk))
    assert [(item.sequence, item.section) for item in context.items] == [
        (3, Section.SYSTEM),
        (2, Section.RECENT),
        (4, Section.RECENT),
        (5, Section.RECENT),
    ]
    assert context.items[0].reason == "the newest system message"
    assert (context.items[0].tokens, context.tokens_used) == (COST, 3 + 4 * COST)


def test_a_developer_gives_system_texts_too() -> None:
    context = assemble(Conversations([SYSTEM, message(2), message(3, "be brief", role="developer"), message(4)]))
    assert [(item.sequence, item.section.name) for item in context.items] == [
        (3, "SYSTEM"),
        (2, "RECENT"),
        (4, "RECENT"),
    ]


def test_a_given_system_text_stands_first_instead() -> None:
    context = assemble(Conversations([SYSTEM, message(2)]), system="be brief")
    assert [(item.encoded, item.conversation_id, item.tokens) for item in context.items] == [
        (b"given: be brief", "", COST),
        (b"c1/2", CONVERSATION, COST),
    ]
    assert assemble(Conversations([message(2)]), system="be brief", rendering=Rendering.TRANSCRIPT).text == (
        "system: be brief\n[1970-01-01]\nuser: hello there\n"
    )


def test_the_system_text_is_not_recalled() -> None:
    store = Conversations([SYSTEM, message(2)], places(1))
    context = assemble(store, search=SearchOptions(), recent_messages=0)
    assert [item.section for item in context.items] == [Section.SYSTEM]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_replaced_instructions_and_those_of_other_conversations_are_not_recalled(role: str) -> None:
    elsewhere = message(1, "be rude", role=role, conversation_id="c2")
    store = Conversations([SYSTEM, message(2, "be brief", role=role), message(3), elsewhere], [*places(1), ("c2", 1)])
    request = {"search_user_scope": True, "recent_messages": 1}

    context = assemble(store, search=SearchOptions(), **request)
    asked_for = assemble(store, search=SearchOptions(filter=MessageFilter(roles=("system", "developer"))), **request)

    assert sequences(context) == [2, 3]
    recalled = [item.conversation_id for item in asked_for.items if item.section is Section.RECALLED]
    assert recalled == [CONVERSATION, "c2"]


def test_a_budget_that_does_not_hold_the_newest_turn_is_refused_with_the_one_that_does() -> None:
    talk = [SYSTEM, message(2), message(3, "long " * 30, role="assistant")]
    needed = 3 + COST + COST + (3 + 1 + 30)
    with pytest.raises(BudgetTooSmall) as refused:
        assemble(Conversations(talk), max_tokens=needed - 1)
    assert refused.value.metadata["least_max_tokens"] == str(needed)
    assert sequences(assemble(Conversations(talk), max_tokens=needed)) == [1, 2, 3]
    assert sequences(assemble(Conversations(talk), max_tokens=9, recent_messages=0)) == [1]


def test_the_longest_texts_of_the_newest_turn_are_truncated_to_one_length() -> None:
    talk = [
        message(1),
        message(2, "", role="assistant", calls=["x", "y", "z"]),
        message(3, "long " * 300, role="tool", answers=["x"]),
        message(4, "brief", role="tool", answers=["y"]),
        message(5, "longer " * 500, role="tool", answers=["z"]),
    ]
    context = assemble(store := Conversations(talk), max_tokens=200, allow_partial=True)
    assert sequences(context) == [1, 2, 3, 4, 5]
    assert [item.partial for item in context.items] == [False, False, True, False, True]
    cut = [store.rewritten[item.encoded] for item in context.items if item.partial]
    assert cut[0].text.endswith(f" of {300 * 5:,} characters shown]")
    assert cut[1].text.startswith("longer longer")
    assert cut[0].token_count == words(cut[0].text)
    assert 190 < context.tokens_used <= 200
    assert abs(context.items[2].tokens - context.items[4].tokens) <= 2


def test_where_not_even_truncated_texts_fit_the_least_budget_is_named() -> None:
    talk = [message(1), message(2, "long " * 300, role="assistant"), message(3, "long " * 300, role="assistant")]
    with pytest.raises(BudgetTooSmall) as refused:
        assemble(Conversations(talk), max_tokens=50, allow_partial=True)
    least = int(refused.value.metadata["least_max_tokens"])
    assert assemble(Conversations(talk), max_tokens=least, allow_partial=True).tokens_used <= least
    with pytest.raises(BudgetTooSmall):
        assemble(Conversations(talk), max_tokens=least - 1, allow_partial=True)


def test_newest_messages_that_no_reply_holds_are_refused() -> None:
    large = replace(message(1), encoded=bytes(REPLY_BYTES + 1))
    with pytest.raises(ContextTooLarge):
        assemble(Conversations([large]))
    assert sequences(assemble(Conversations([large, message(2)]))) == [2]


def test_each_item_says_why_it_is_there_and_what_it_costs() -> None:
    talk = [*TALK[:4], message(5, "words 5")]
    context = assemble(Conversations(talk, places(3, 4)), recent_messages=1, search=SearchOptions(k=1))
    recalled, _, recent = context.items
    assert (recalled.section, recalled.score, recalled.tokens) == (Section.RECALLED, 0.9, words("user: words 3\n"))
    assert recalled.reason == "number 1 of the messages that the query found"
    assert (recent.section, recent.score, recent.reason) == (Section.RECENT, None, "one of the newest messages")
    assert recent.encoded == b"c1/5"


def test_the_query_is_the_text_of_the_newest_message_of_the_user_which_is_not_recalled() -> None:
    store = Conversations(TALK, places(7, 1))
    context = assemble(store, recent_messages=0, search=SearchOptions())
    assert store.searches[0].text == "words 7"
    assert sequences(context) == [1, 2]


def test_a_given_query_may_recall_every_message() -> None:
    store = Conversations(TALK, places(7, 1))
    context = assemble(store, recent_messages=0, search=SearchOptions(), query="seven")
    assert store.searches[0].text == "seven"
    assert sequences(context) == [1, 2, 7, 8]


def test_messages_that_are_in_already_do_not_use_up_hits() -> None:
    store = Conversations(TALK, places(8, 7, 2))
    context = assemble(store, recent_messages=2, search=SearchOptions(k=1))
    assert [item.sequence for item in context.items if item.score] == [2]


def test_without_a_message_of_a_user_nothing_is_searched() -> None:
    store = Conversations([message(1, role="assistant")], places(1))
    context = assemble(store, search=SearchOptions())
    assert (sequences(context), store.searches, context.index) == ([1], [], None)


def test_the_query_is_what_the_user_said_not_what_a_tool_returned() -> None:
    talk = [message(1, "the question"), message(2, calls=["x"], role="assistant"), message(3, "result", answers=["x"])]
    for recent in (None, 0):
        store = Conversations(talk)
        assemble(store, search=SearchOptions(), recent_messages=recent)
        assert store.searches[0].text == "the question"


def test_the_owner_of_the_conversation_is_the_user_unless_one_is_given() -> None:
    store = Conversations(TALK)
    assemble(store, search=SearchOptions())
    assemble(store, search=SearchOptions(), user_id="tom", search_user_scope=True)
    assert [query.scope for query in store.searches] == [InConversation(CONVERSATION, "sarah"), OfUser("tom")]
    assert {query.user_id for query in store.lists[: len(store.lists) // 2]} == {"sarah"}
    assert {query.user_id for query in store.lists[len(store.lists) // 2 :]} == {"tom"}


def test_messages_of_the_users_other_conversations_can_be_recalled() -> None:
    other = [message(sequence, f"other {sequence}", conversation_id="c2") for sequence in (1, 2)]
    store = Conversations([*TALK, *other], places(2, conversation_id="c2"))
    context = assemble(store, recent_messages=2, search=SearchOptions(), search_user_scope=True)
    assert [(item.conversation_id, item.sequence) for item in context.items if item.score is not None] == [("c2", 2)]


def test_an_unknown_conversation_is_an_error() -> None:
    with pytest.raises(ConversationNotFound):
        assembler(Conversations(TALK)).assemble(READ, ContextRequest("nowhere", PLENTY))


def test_a_budget_below_the_fixed_cost_is_refused() -> None:
    with pytest.raises(BudgetTooSmall, match="is 2; the system text and the newest messages need 3"):
        assemble(Conversations([]), max_tokens=2)
    assert sequences(assemble(Conversations([]), max_tokens=3)) == []
    assert assemble(Conversations([]), max_tokens=1, rendering=Rendering.TRANSCRIPT).tokens_used == 0


def test_messages_are_read_in_pages_until_they_fill_the_budget() -> None:
    talk = [message(sequence, f"words {sequence}") for sequence in range(1, 201)]
    store = Conversations(talk)
    context = assemble(store, max_tokens=3 + 40 * COST)
    assert sequences(context) == list(range(161, 201))
    assert [query.before_sequence for query in store.lists if not query.roles] == [None, 185, 169]


def test_what_is_not_counted_is_said_and_the_count_is_not_exact() -> None:
    talk = [message(1, uncounted=["audio"]), message(2), message(3, images=[Image(512, 512), Image(0, 0)])]
    unnamed = assemble(Conversations(talk))
    assert (unnamed.uncounted_parts, unnamed.exact) == (2, False)
    assert [item.uncounted for item in unnamed.items] == [
        ("audio",),
        (),
        ("image: no rule for an unnamed model", "image: no rule for an unnamed model"),
    ]
    named = assemble(Conversations(talk), model="gpt-4o")
    assert named.items[2].uncounted == ("image of unknown size",)
    assert named.items[2].tokens == COST + 85 + 170


def test_images_are_counted_by_the_models_rule() -> None:
    talk = [message(1, images=[Image(1024, 1024)])]
    context = assemble(Conversations(talk), model="gpt-4o")
    assert (context.exact, context.tokens_used) == (True, 3 + COST + 765)
    shown = assemble(Conversations(talk), model="gpt-4o", rendering=Rendering.TRANSCRIPT)
    assert (shown.exact, shown.tokens_used) == (True, words(shown.text))


def test_texts_that_were_counted_before_are_not_counted_again() -> None:
    store, tokens = Conversations(TALK), CountedTexts()
    assembling = assembler(store, tokens)
    assembling.assemble(READ, ContextRequest(CONVERSATION, PLENTY))
    assert not any(text.startswith("words") for text in tokens.seen)
    assembling.assemble(READ, ContextRequest(CONVERSATION, PLENTY, encoding=CL100K_BASE))
    assert "words 1" in tokens.seen


class CountedTexts(WordCounter):
    """Remembers what it counted."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def count(self, encoding: TokenEncoding, texts: Sequence[str]) -> list[int]:
        self.seen.update(texts)
        return super().count(encoding, texts)


TOOLS = [
    message(1),
    message(2),
    message(3, "", role="assistant", calls=["x", "y"]),
    message(4, "one", role="tool", answers=["x"]),
    message(5, "two", role="tool", answers=["y"]),
    message(6),
    message(7),
]


def test_a_recalled_result_brings_its_call_and_the_other_results() -> None:
    context = assemble(Conversations(TOOLS, places(5)), recent_messages=1, search=SearchOptions())
    assert sequences(context) == [2, 3, 4, 5, 7]
    assert [item.score for item in context.items] == [None, None, None, 0.9, None]
    assert [item.reason for item in context.items[:2]] == [
        QUESTION,
        "shares a tool call with a message that the query found",
    ]
    assert 'assistant: [calls look_up {"q": 1}] [calls look_up {"q": 1}]\n' in context.earlier


def test_a_turn_with_tools_is_in_whole_or_not_at_all() -> None:
    assert sequences(assemble(Conversations(TOOLS), recent_messages=5)) == [6, 7]
    assert sequences(assemble(Conversations(TOOLS), recent_messages=6)) == [2, 3, 4, 5, 6, 7]


def test_calls_without_results_and_results_without_calls_are_left_out_and_it_is_said() -> None:
    talk = [message(1, role="tool", answers=["gone"]), message(2), message(3, role="assistant", calls=["pending"])]
    context = assemble(Conversations(talk, places(1, 3)), search=SearchOptions())
    assert (sequences(context), context.left_out, context.unanswered) == ([2], 0, 1)


def test_a_call_without_a_result_in_an_earlier_turn_is_counted_while_that_turn_is_in() -> None:
    talk = [message(1), message(2, role="assistant", calls=["pending"]), message(3), message(4)]

    whole, newest = assemble(Conversations(talk)), assemble(Conversations(talk), recent_messages=1)

    assert (sequences(whole), whole.unanswered) == ([1, 3, 4], 1)
    assert (sequences(newest), newest.unanswered) == ([4], 0)


def test_what_is_said_before_the_first_user_is_left_out_and_it_is_said() -> None:
    talk = [message(1, role="assistant"), message(2), message(3, role="assistant"), message(4)]
    talked = Conversations(talk, places(1))

    whole, newest = assemble(talked), assemble(talked, recent_messages=1)
    recalling = assemble(talked, search=SearchOptions())

    assert [item.reason for item in whole.items] == [
        "one of the newest messages; before it, 1 is left out, because models want a user's message first",
        *["one of the newest messages"] * 2,
    ]
    assert [item.reason for item in newest.items] == ["one of the newest messages"]
    assert sequences(recalling) == [1, 2, 3, 4]
    assert [item.reason for item in recalling.items[1:]] == ["one of the newest messages"] * 3


def test_a_greeting_is_not_told_as_left_out_before_a_turn_that_has_no_room() -> None:
    talk = [message(number, role="user" if number in (2, 5) else "assistant") for number in range(1, 8)]
    talk[2] = message(3, "long " * 50, role="assistant")
    told = set[tuple[bool, bool]]()
    for budget in range(20, 200):
        try:
            context = assemble(Conversations(talk, places(2)), max_tokens=budget, search=SearchOptions())
        except BudgetTooSmall:
            continue
        if 2 in sequences(context):
            told.add((3 in sequences(context), any("left out" in item.reason for item in context.items)))

    assert told == {(False, False), (True, True)}


def test_a_second_result_of_a_call_is_left_out_and_it_is_said() -> None:
    talk = [message(1), message(2, role="assistant", calls=["x"])]
    talk += [message(number, role="tool", answers=["x"]) for number in (3, 4)]
    context = assemble(Conversations(talk))
    assert (sequences(context), context.unanswered) == ([1, 2, 3], 1)


def test_a_result_that_came_after_another_question_stands_behind_its_call() -> None:
    talk = [
        message(1),
        message(2, role="assistant", calls=["x"]),
        message(3, "and then?"),
        message(4, role="tool", answers=["x"]),
    ]
    context = assemble(Conversations(talk), recent_messages=1)
    assert (sequences(context), context.unanswered) == ([1, 2, 4, 3], 0)


def test_calls_of_late_results_are_looked_for_further_back() -> None:
    talk = [message(1), message(2, role="assistant", calls=["x"])]
    talk += [message(number, role="assistant") for number in range(3, 20)]
    talk += [message(20), message(21, role="tool", answers=["x"])]
    context = assemble(Conversations(talk), recent_messages=1)
    assert sequences(context) == [1, 2, 21, *range(3, 21)]


def test_a_call_whose_id_was_used_before_has_its_own_result() -> None:
    first = [message(1, role="assistant", calls=["x"]), message(2, role="tool", answers=["x"])]
    second = [message(3, role="assistant", calls=["x"]), message(4, role="tool", answers=["x"])]
    assert whole_units([*first, *second]) == [tuple(first), tuple(second)]
    assert whole_units([*first, second[0]]) == [tuple(first)]


def test_a_message_that_answers_its_own_calls_stands_alone() -> None:
    alone = message(1, role="assistant", calls=["x"], answers=["x"])
    assert whole_units([alone]) == [(alone,)]


def test_a_message_that_answers_two_calls_joins_both() -> None:
    unit = [
        message(1, role="assistant", calls=["x"]),
        message(2, role="assistant", calls=["y"]),
        message(3, role="tool", answers=["y", "x"]),
    ]
    assert whole_units(unit) == [tuple(unit)]


def test_a_transcript_dates_each_session_and_runs_in_order_of_time() -> None:
    talk = [
        message(1, "Hi!", sent_time=0, name="Ann"),
        message(2, "Hello", sent_time=1, role="assistant"),
        message(3, "Back again", sent_time=DAY, name="Ann"),
        message(4, "Late", sent_time=DAY - 1, session_id="night"),
        message(5, "Later", sent_time=DAY + 1, session_id="night"),
    ]
    context = assemble(Conversations(talk, places(1, 2)), search=SearchOptions(), rendering=Rendering.TRANSCRIPT)
    assert context.text == (
        "[1970-01-01]\nAnn: Hi!\nassistant: Hello\n"
        "[1970-01-01]\nuser: Late\nuser: Later\n"
        "[1970-01-02]\nAnn: Back again\n"
    )
    assert context.tokens_used == words(context.text)
    assert context.overhead_tokens == 3 * words("[1970-01-01]\n")


def test_a_speaker_is_one_line_and_begins_with_neither_blank_nor_slash() -> None:
    talk = [message(1, "one", name=" /Ann\n of  Cleves "), message(2, "two", name="//", role="tool\t1")]
    context = assemble(Conversations(talk), rendering=Rendering.TRANSCRIPT)
    assert context.text == "[1970-01-01]\nAnn of Cleves: one\ntool 1: two\n"


def test_a_session_is_dated_once_for_all_its_messages() -> None:
    talk = [message(1, "a", sent_time=0), message(2, "b", sent_time=1)]
    line, date = words("user: a\n"), words("[1970-01-01]\n")
    both = assemble(Conversations(talk), max_tokens=date + 2 * line, rendering=Rendering.TRANSCRIPT)
    one = assemble(Conversations(talk), max_tokens=date + 2 * line - 1, rendering=Rendering.TRANSCRIPT)
    assert (sequences(both), sequences(one)) == ([1, 2], [2])


class JoiningCounter(WordCounter):
    """Counts one more for each line but the first: texts cost more joined than apart."""

    def count(self, encoding: TokenEncoding, texts: Sequence[str]) -> list[int]:
        apart = super().count(encoding, texts)
        return [cost + max(0, text.count("\n") - 1) for cost, text in zip(apart, texts, strict=True)]


@pytest.mark.parametrize("budget", range(60, 90))
def test_a_transcript_that_costs_more_than_its_lines_still_keeps_the_budget(budget: int) -> None:
    store, tokens = Conversations(TALK, places(1)), JoiningCounter()
    request = ContextRequest(CONVERSATION, budget, rendering=Rendering.TRANSCRIPT, search=SearchOptions())
    context = assembler(store, tokens).assemble(READ, request)
    assert context.tokens_used == tokens.count(request.encoding, [context.text])[0] <= budget
    assert len(context.items) + context.left_out == len(TALK)
    assert context.text.count("words") == len(context.items)


class Vanishing(Conversations):
    """A conversation that is deleted after the search."""

    def list(self, read: Read, query: MessageQuery) -> MessagePage:
        raise ConversationNotFound(query.conversation_id)


def test_a_tool_call_is_whole_as_the_search_saw_it() -> None:
    store = Vanishing(TOOLS, places(5, 1))
    context = assemble(store, query="a", system="s", recent_messages=0, search=SearchOptions())
    assert sequences(context) == [0, 1, 2, 3, 4, 5]


def test_units_are_in_the_order_of_their_first_messages() -> None:
    talk: list[ContextMessage] = [message(1, calls=["x"]), message(2), message(3, answers=["x"]), message(4)]
    assert [[each.sequence for each in unit] for unit in whole_units(talk)] == [[1, 3], [2], [4]]


# Working memory.


def test_working_memories_stand_behind_the_system_text_each_as_a_message() -> None:
    store, memories = Conversations([*TALK]), KnownMemories(b"likes tea", "owes us €".encode())

    context = assembler(store, memories=memories).assemble(
        READ, ContextRequest(CONVERSATION, PLENTY, system="be brief", recent_messages=1, working_memory=True)
    )

    shown = [(item.section, item.encoded, item.reason) for item in context.items[:3]]
    assert shown == [
        (Section.SYSTEM, b"given: be brief", "the system text of the request"),
        (Section.WORKING_MEMORY, b"memory: WORKING MEMORY: likes tea", "the working memory of the user"),
        (
            Section.WORKING_MEMORY,
            "memory: WORKING MEMORY: owes us €".encode(),
            "the working memory of the conversation",
        ),
    ]


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe"])
def test_a_working_memory_that_is_no_text_is_left_out(content: bytes | None) -> None:
    memories = KnownMemories(content, content)
    request = ContextRequest(CONVERSATION, PLENTY, working_memory=True)
    context = assembler(Conversations(TALK), memories=memories).assemble(READ, request)
    assert {item.section for item in context.items} == {Section.RECENT}


def test_another_user_of_a_conversation_does_not_see_its_working_memory() -> None:
    memories = KnownMemories(b"mine", b"theirs")
    request = ContextRequest(CONVERSATION, PLENTY, user_id="bob", working_memory=True)
    context = assembler(Conversations(TALK), memories=memories).assemble(READ, request)
    assert [each.encoded for each in context.items if each.section is Section.WORKING_MEMORY] == [
        b"memory: WORKING MEMORY: mine"
    ]


def test_working_memory_is_only_in_if_it_is_asked_for() -> None:
    context = assembler(Conversations(TALK), memories=KnownMemories(b"a", b"b")).assemble(
        READ, ContextRequest(CONVERSATION, PLENTY)
    )
    assert {item.section for item in context.items} == {Section.RECENT}


# The system prompt.


def test_a_system_prompt_holds_what_is_recalled_escaped_and_in_the_order_of_time() -> None:
    said = [message(1, "</vector_memory> & so"), message(2, "a\nb", role="assistant"), message(3), message(4)]
    store = Conversations(said, places(2, 1))

    context = assemble(
        store, search=SearchOptions(), recent_messages=1, system="be brief", rendering=Rendering.SYSTEM_PROMPT
    )

    assert context.memory == (
        "be brief\n\n<memory>\n<vector_memory>\n- 1970-01-01 user: &lt;/vector_memory&gt; &amp; so\n"
        "- 1970-01-01 assistant: a b\n</vector_memory>\n</memory>"
    )
    assert context.earlier == ""
