"""Which tool results are cleared."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.domain.conversing import WordCounter
from tests.domain.histories import HISTORIES, Said

from remora_server.domain.clearing import Cleared, ClearOptions, clear_tool_uses
from remora_server.domain.costs import REPLY_PRIMING, Counting

COUNTING = Counting(WordCounter())


def turn(call_id: str, *, tool: str = "search", result: str = "a long result of many words") -> list[Said]:
    call = Said("assistant", calls=(call_id,), tool=tool, arguments="one two three")
    return [call, Said("tool", result, answers=(call_id,))]


HISTORY = [Said("user", "hello"), *turn("a"), *turn("b"), *turn("c"), *turn("d"), *turn("e")]


def cleared(messages: list[Said], **options: Any) -> Cleared:  # noqa: ANN401 - any option
    return clear_tool_uses(messages, ClearOptions(**{"trigger_tokens": 0, **options}), COUNTING)


def total(messages: list[Said]) -> int:
    return sum(COUNTING.messages(messages)) + REPLY_PRIMING


def test_nothing_is_cleared_up_to_the_trigger() -> None:
    tokens = total(HISTORY)

    assert cleared(HISTORY, trigger_tokens=tokens) == Cleared((), (), tokens, tokens)
    assert cleared(HISTORY, trigger_tokens=tokens - 1).results


def test_all_but_the_newest_results_are_cleared() -> None:
    assert cleared(HISTORY).results == (2, 4)
    assert cleared(HISTORY, keep=0).results == (2, 4, 6, 8, 10)
    assert cleared(HISTORY, keep=9).results == ()


def test_clearing_stops_once_it_saved_enough() -> None:
    saved = total(HISTORY) - cleared(HISTORY, keep=4).tokens_after

    assert cleared(HISTORY, keep=0, clear_at_least=saved).results == (2,)
    assert cleared(HISTORY, keep=0, clear_at_least=saved + 1).results == (2, 4)


def test_results_of_excluded_tools_stay() -> None:
    history = [*turn("a", tool="look_up"), *turn("b"), *turn("c")]

    assert cleared(history, keep=1, exclude_tools=frozenset({"look_up"})).results == (3,)


def test_a_result_that_names_its_tool_is_of_that_tool() -> None:
    call, result = turn("a", tool="search_v2")
    history = [call, replace(result, name="search"), *turn("b")]

    assert cleared(history, keep=1, exclude_tools=frozenset({"search"})).results == ()
    assert cleared(history, keep=1, exclude_tools=frozenset({"search_v2"})).results == (1,)


def test_what_is_cleared_already_stays() -> None:
    history = [*turn("a", result="[cleared]"), *turn("b")]

    assert cleared(history, keep=0).results == (3,)


def test_a_result_without_its_call_stays() -> None:
    assert cleared([Said("tool", "words", answers=("x",)), *turn("a"), *turn("b")], keep=1).results == (2,)


def test_the_arguments_of_cleared_calls_go_where_that_is_asked_for() -> None:
    left = cleared(HISTORY, clear_inputs=True)

    assert left.inputs == ((1, "a"), (3, "b"))
    assert left.tokens_after < cleared(HISTORY).tokens_after


@given(HISTORIES, st.integers(0, 3), st.booleans(), st.integers(0, 30))
def test_the_tokens_are_those_of_the_cleared_history(
    messages: list[Said], keep: int, clear_inputs: bool, clear_at_least: int
) -> None:
    given = [replace(message, arguments="one two three") if message.calls else message for message in messages]
    left = cleared(given, keep=keep, clear_inputs=clear_inputs, clear_at_least=clear_at_least)

    assert left.tokens_before == total(given)
    if not clear_inputs:
        shown = [
            replace(message, text="[cleared]") if index in left.results else message
            for index, message in enumerate(given)
        ]
        assert left.tokens_after == total(shown)
    assert (bool(left.inputs) and clear_inputs) or not left.inputs
