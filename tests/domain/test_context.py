"""Contexts by example: what has precedence, what belongs together, how it is rendered."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.domain.conversing import CONVERSATION, DAY, READ, Conversations, WordCounter, message, words

from remora_server.domain.assembler import ContextAssembler
from remora_server.domain.calls import Read
from remora_server.domain.context import Context, ContextRequest, Merge, Rendering, Section
from remora_server.domain.context_messages import ContextMessage, whole_units
from remora_server.domain.errors import BudgetTooSmall, ConversationNotFound
from remora_server.domain.messages import MessagePage, MessageQuery
from remora_server.domain.search import InConversation, OfUser, SearchOptions
from remora_server.domain.tokens import CL100K_BASE, TokenEncoding

PLENTY = 10_000
COST = 6  # in tokens, of a message of two words: 3, the role, the text
TALK = [message(sequence, f"words {sequence}", role=("assistant", "user")[sequence % 2]) for sequence in range(1, 9)]


def assemble(store: Conversations, **request: object) -> Context:
    given = {"max_tokens": PLENTY, **request}
    asked = ContextRequest(CONVERSATION, **given)  # type: ignore[arg-type]
    return ContextAssembler(store, store, store, WordCounter(), store).assemble(READ, asked)


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


def test_at_most_the_recent_messages_that_are_asked_for_are_in() -> None:
    assert sequences(assemble(Conversations(TALK), recent_messages=3)) == [6, 7, 8]
    assert sequences(assemble(Conversations(TALK), recent_messages=0)) == []


def test_recent_messages_have_half_of_the_budget_and_recalled_ones_the_rest() -> None:
    store = Conversations(TALK, places(1, 2, 3, 4))
    context = assemble(store, max_tokens=3 + 4 * COST, search=SearchOptions())
    assert [(item.sequence, item.section.name) for item in context.items] == [
        (1, "RECALLED"),
        (2, "RECALLED"),
        (3, "RECALLED"),
        (8, "RECENT"),
    ]


def test_what_recalled_messages_leave_goes_to_recent_ones() -> None:
    context = assemble(Conversations(TALK, places(1)), max_tokens=3 + 4 * COST, search=SearchOptions())
    assert sequences(context) == [1, 6, 7, 8]


def test_the_newest_message_may_take_more_than_its_half() -> None:
    talk = [*TALK, message(9, "long " * 30)]
    context = assemble(Conversations(talk, places(1, 2, 3)), max_tokens=50, search=SearchOptions())
    assert sequences(context) == [1, 2, 9]


def test_a_message_that_no_budget_holds_does_not_end_the_recent_ones() -> None:
    talk = [*TALK[:-1], message(8, "long " * 100), message(9, "last")]
    context = assemble(Conversations(talk, places(1)), max_tokens=40, search=SearchOptions())
    assert sequences(context) == [1, 4, 5, 6, 7, 9]


def test_small_messages_fill_what_large_ones_leave() -> None:
    talk = [message(1, "ok"), message(2, "long " * 6), message(3, "long " * 6)]
    context = assemble(Conversations(talk), max_tokens=3 + 10 + 5)
    assert sequences(context) == [1, 3]


@pytest.mark.parametrize(
    ("merge", "expected"),
    [(Merge.APPEND, [6, 7, 8, 3, 1]), (Merge.PREPEND, [3, 1, 6, 7, 8]), (Merge.INTERLEAVE, [3, 6, 1, 7, 8])],
)
def test_recalled_messages_are_merged_best_first(merge: Merge, expected: list[int]) -> None:
    store = Conversations(TALK, places(3, 1))
    assert sequences(assemble(store, recent_messages=3, search=SearchOptions(), merge=merge)) == expected


def test_each_item_says_why_it_is_there_and_what_it_costs() -> None:
    context = assemble(Conversations(TALK, places(3)), recent_messages=1, search=SearchOptions())
    recalled, recent = context.items
    assert (recalled.section, recalled.score, recalled.tokens) == (Section.RECALLED, 1.0, COST)
    assert recalled.reason == "number 1 of the messages that the query found"
    assert (recent.section, recent.score, recent.reason) == (Section.RECENT, None, "one of the newest messages")
    assert recent.encoded == b"c1/8"


def test_the_query_is_the_text_of_the_newest_message_of_the_user_which_is_not_recalled() -> None:
    store = Conversations(TALK, places(7, 1))
    context = assemble(store, recent_messages=0, search=SearchOptions())
    assert store.searches[0].text == "words 7"
    assert sequences(context) == [1]


def test_a_given_query_may_recall_every_message() -> None:
    store = Conversations(TALK, places(7, 1))
    context = assemble(store, recent_messages=0, search=SearchOptions(), query="seven")
    assert store.searches[0].text == "seven"
    assert sequences(context) == [7, 1]


def test_messages_that_are_in_already_do_not_use_up_hits() -> None:
    store = Conversations(TALK, places(8, 7, 2))
    context = assemble(store, recent_messages=2, search=SearchOptions(k=1))
    assert sequences(context) == [2, 7, 8]


def test_without_a_message_of_a_user_nothing_is_searched() -> None:
    store = Conversations([message(1, role="assistant")], places(1))
    context = assemble(store, search=SearchOptions())
    assert (sequences(context), store.searches, context.index) == ([1], [], None)


def test_the_owner_of_the_conversation_is_the_user_unless_one_is_given() -> None:
    store = Conversations(TALK)
    assemble(store, search=SearchOptions())
    assemble(store, search=SearchOptions(), user_id="tom", search_user_scope=True)
    assert [query.scope for query in store.searches] == [InConversation(CONVERSATION, "sarah"), OfUser("tom")]
    assert [query.user_id for query in store.lists] == ["sarah", "tom"]


def test_messages_of_the_users_other_conversations_can_be_recalled() -> None:
    other = [message(sequence, f"other {sequence}", conversation_id="c2") for sequence in (1, 2)]
    store = Conversations([*TALK, *other], places(2, conversation_id="c2"))
    context = assemble(store, recent_messages=2, search=SearchOptions(), search_user_scope=True)
    assert [(item.conversation_id, item.sequence) for item in context.items] == [("c2", 2), ("c1", 7), ("c1", 8)]


def test_an_unknown_conversation_is_an_error() -> None:
    with pytest.raises(ConversationNotFound):
        ContextAssembler(store := Conversations(TALK), store, store, WordCounter(), store).assemble(
            READ, ContextRequest("nowhere", PLENTY)
        )


def test_a_budget_below_the_fixed_cost_is_refused() -> None:
    with pytest.raises(BudgetTooSmall, match="is 2, and the context's fixed parts cost 3"):
        assemble(Conversations(TALK), max_tokens=2)
    assert sequences(assemble(Conversations(TALK), max_tokens=3)) == []
    assert assemble(Conversations(TALK), max_tokens=1, rendering=Rendering.TRANSCRIPT).tokens_used == 0


def test_messages_are_read_in_pages_until_they_fill_the_budget() -> None:
    talk = [message(sequence, f"words {sequence}") for sequence in range(1, 201)]
    store = Conversations(talk)
    context = assemble(store, max_tokens=3 + 40 * COST)
    assert sequences(context) == list(range(161, 201))
    assert [query.before_sequence for query in store.lists] == [None, 185, 169]


def test_messages_with_opaque_parts_are_counted() -> None:
    talk = [message(1, has_parts=True), message(2), message(3, has_parts=True)]
    assert assemble(Conversations(talk)).uncounted_parts == 2


def test_texts_that_were_counted_before_are_not_counted_again() -> None:
    store, tokens = Conversations(TALK), CountedTexts()
    assembler = ContextAssembler(store, store, store, tokens, store)
    assembler.assemble(READ, ContextRequest(CONVERSATION, PLENTY))
    assert tokens.seen == {"user", "assistant"}
    assembler.assemble(READ, ContextRequest(CONVERSATION, PLENTY, encoding=CL100K_BASE))
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
    assert sequences(context) == [3, 4, 5, 7]
    assert [item.score for item in context.items] == [None, None, 1.0, None]
    assert context.items[0].reason == "shares a tool call with a message that the query found"


def test_recent_messages_are_cut_where_a_tool_call_is_not_parted() -> None:
    assert sequences(assemble(Conversations(TOOLS), recent_messages=4)) == [6, 7]
    assert sequences(assemble(Conversations(TOOLS), recent_messages=5)) == [3, 4, 5, 6, 7]


def test_calls_without_results_and_results_without_calls_are_left_out() -> None:
    talk = [message(1, role="tool", answers=["gone"]), message(2), message(3, role="assistant", calls=["pending"])]
    context = assemble(Conversations(talk, places(1, 3)), search=SearchOptions())
    assert (sequences(context), context.left_out) == ([2], 0)


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


def test_a_transcript_dates_each_sitting_and_runs_in_order_of_time() -> None:
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


def test_a_sitting_is_dated_once_for_all_its_messages() -> None:
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


@pytest.mark.parametrize("budget", range(40, 60))
def test_a_transcript_that_costs_more_than_its_lines_still_keeps_the_budget(budget: int) -> None:
    store, tokens = Conversations(TALK, places(1)), JoiningCounter()
    request = ContextRequest(CONVERSATION, budget, rendering=Rendering.TRANSCRIPT, search=SearchOptions())
    context = ContextAssembler(store, store, store, tokens, store).assemble(READ, request)
    assert context.tokens_used == tokens.count(request.encoding, [context.text])[0] <= budget
    assert len(context.items) + context.left_out == len(TALK)
    assert context.text.count("words") == len(context.items)


class Vanishing(Conversations):
    """A conversation that is deleted after the search."""

    def list(self, read: Read, query: MessageQuery) -> MessagePage:
        raise ConversationNotFound(query.conversation_id)


def test_a_tool_call_whose_conversation_is_deleted_meanwhile_is_left_out() -> None:
    store = Vanishing(TOOLS, places(5, 1))
    assert sequences(assemble(store, query="a", recent_messages=0, search=SearchOptions())) == [1]


def test_units_are_in_the_order_of_their_first_messages() -> None:
    talk: list[ContextMessage] = [message(1, calls=["x"]), message(2), message(3, answers=["x"]), message(4)]
    assert [[each.sequence for each in unit] for unit in whole_units(talk)] == [[1, 3], [2], [4]]
