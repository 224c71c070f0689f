"""Which messages leave a window that has too many tokens."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora_server.domain.context_messages import ContextMessage
from remora_server.domain.costs import ToolCall
from remora_server.domain.short_term import DeleteOldest, Flush, Overflow, ShortTermPolicy, Trim
from remora_server.domain.windows import (
    Weights,
    first_to_stay,
    first_to_stay_without_tools,
    missing_to_summarize,
    oldest_to_summarize,
)


def message(sequence: int, *, calls: tuple[str, ...] = (), answers: tuple[str, ...] = ()) -> ContextMessage:
    return ContextMessage(
        "c",
        sequence,
        "tool" if answers else "assistant" if calls else "user",
        "",
        b"",
        tool_calls=tuple(ToolCall(call, "search", "{}") for call in calls),
        tool_result_ids=answers,
    )


def plain(count: int) -> list[ContextMessage]:
    return [message(sequence) for sequence in range(1, count + 1)]


@pytest.mark.parametrize(
    ("overflow", "first"),
    [
        (Trim(50), 6),  # of ten messages of ten tokens, five stay
        (Trim(1), 10),  # the newest stays in any case
        (DeleteOldest(1), 2),  # ninety tokens are allowed
        (DeleteOldest(4), 5),
        (DeleteOldest(100), 10),
        (Flush(0.5), 9),  # with more than 45 tokens, until 22 remain
        (Flush(1.0), 7),
    ],
)
def test_the_oldest_messages_leave(overflow: Overflow, first: int) -> None:
    policy = ShortTermPolicy(90, overflow)

    assert first_to_stay(policy, plain(10), [10] * 10) == first


def test_a_window_of_as_many_tokens_as_it_may_have_stays() -> None:
    for overflow in (Trim(1), DeleteOldest(1), Flush(1.0)):
        assert first_to_stay(ShortTermPolicy(100, overflow), plain(10), [10] * 10) == 0


def test_a_call_of_tools_and_its_results_leave_together() -> None:
    turn = [
        message(1),
        message(2, calls=("a", "b")),
        message(3, answers=("a",)),
        message(4),
        message(5, answers=("b",)),
        message(6),
    ]

    firsts = {first_to_stay(ShortTermPolicy(5, Trim(keep)), turn, [1] * 6) for keep in range(1, 6)}

    assert firsts == {2, 6}


@pytest.mark.parametrize(("keep", "missing"), [(1, 1), (2, 2), (10, 10)])
def test_a_call_that_is_too_long_is_summarised_once_enough_follows_it(keep: int, missing: int) -> None:
    unit = [message(1, calls=("a", "b")), message(2, answers=("a",)), message(3, answers=("b",))]
    more = [message(4 + number) for number in range(missing)]

    assert missing_to_summarize(unit, keep) == missing
    assert oldest_to_summarize([*unit, *more[:-1]], [9] * (2 + missing), keep, 5) == (0, False)
    assert oldest_to_summarize([*unit, *more], [9] * (3 + missing), keep, 5) == (3, False)
    assert missing_to_summarize([message(1)], keep) == missing


def test_a_long_window_is_cut_in_one_pass() -> None:
    """Were each cut counted anew, this would take hours."""
    count = 100_000
    policy = ShortTermPolicy(10, DeleteOldest(1))

    assert first_to_stay(policy, plain(count), [1] * count) == count - 9


TURNS = st.lists(
    st.one_of(
        st.just("say"),
        st.tuples(st.just("call"), st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True)),
        st.tuples(st.just("answer"), st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True)),
    ),
    min_size=1,
    max_size=20,
)
OVERFLOWS = st.one_of(st.integers(1, 60).map(Trim), st.integers(1, 9).map(DeleteOldest), st.floats(0.1, 1.0).map(Flush))


@given(TURNS, st.data(), OVERFLOWS, st.integers(1, 60))
def test_no_cut_parts_a_call_from_its_result(
    turns: list[object], data: st.DataObject, overflow: Overflow, most: int
) -> None:
    messages = [
        message(at) if turn == "say" else message(at, **{"calls" if turn[0] == "call" else "answers": tuple(turn[1])})  # type: ignore[index]
        for at, turn in enumerate(turns, 1)
    ]
    counts = data.draw(st.lists(st.integers(0, 9), min_size=len(messages), max_size=len(messages)))

    first = first_to_stay(ShortTermPolicy(most, overflow), messages, counts)

    callers: dict[str, int] = {}
    for each in messages:
        for answered in each.tool_result_ids:
            caller = callers.get(answered)
            assert caller is None or (caller < first) == (each.sequence < first)
        callers.update((call.id, each.sequence) for call in each.tool_calls)
    assert first <= len(messages)
    if sum(counts) <= ShortTermPolicy(most, overflow).trigger:
        assert first == 0


@given(st.lists(st.integers(0, 9), max_size=20), OVERFLOWS, st.integers(1, 60))
def test_without_tools_the_weights_alone_say_who_leaves(counts: list[int], overflow: Overflow, most: int) -> None:
    policy, messages = ShortTermPolicy(most, overflow), plain(len(counts))
    weights = Weights([each.sequence for each in messages], counts, newest_system=0, may_use_tools=False, revision=1)

    assert first_to_stay_without_tools(policy, weights) == first_to_stay(policy, messages, counts)
