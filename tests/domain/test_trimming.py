"""What stays of a history within a budget."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.domain.histories import HISTORIES, PER_MESSAGE, Said, SaidHistory, cost, pairs
from tests.examples import examples

from remora_server.domain.chat_histories import BLOCK
from remora_server.domain.costs import REPLY_PRIMING
from remora_server.domain.trimming import Cut, Dropped, Reason, Strategy, Trimmed, TrimOptions, trim

USER, ANSWER, SYSTEM = Said("user", "hello"), Said("assistant", "hi"), Said("system", "be brief")
CALL, RESULT = Said("assistant", calls=("a", "b")), Said("tool", "ten", answers=("a",))
RESULTS = (RESULT, Said("tool", "two", answers=("b",)))

ROLES = st.frozensets(st.sampled_from(["user", "assistant", "tool", "system"]), max_size=2)
LIMITS = st.builds(
    TrimOptions,
    st.integers(1, 160),
    st.just(Strategy.LAST),
    start_on=ROLES,
    end_on=ROLES,
    include_system=st.booleans(),
    allow_partial=st.booleans(),
) | st.builds(TrimOptions, st.integers(1, 160), st.just(Strategy.FIRST), end_on=ROLES, allow_partial=st.booleans())


def tokens(*messages: Said) -> int:
    return REPLY_PRIMING + sum(map(cost, messages))


def trimmed(messages: list[Said], max_tokens: int, **options: object) -> Trimmed:
    return trim(SaidHistory(messages), TrimOptions(max_tokens, **options))  # type: ignore[arg-type]


@pytest.mark.slow
@settings(max_examples=examples(2_000))
@given(HISTORIES, LIMITS)
def test_no_call_is_parted_from_a_result(messages: list[Said], options: TrimOptions) -> None:
    kept = set(trim(SaidHistory(messages), options).kept)

    for caller, result in pairs(messages):
        assert (caller in kept) == (result in kept)


@settings(max_examples=examples(500))
@given(HISTORIES, LIMITS)
def test_every_message_stays_or_goes_for_one_reason(messages: list[Said], options: TrimOptions) -> None:
    left = trim(SaidHistory(messages), options)

    gone = [index for each in left.dropped for index in range(each.begin, each.end)]
    assert sorted([*left.kept, *gone]) == list(range(len(messages)))


@settings(max_examples=examples(500))
@given(HISTORIES, LIMITS)
def test_the_tokens_are_those_of_what_stays(messages: list[Said], options: TrimOptions) -> None:
    left = trim(SaidHistory(messages), options)

    shown = list(messages)
    if left.cut is not None:
        shown[left.cut.index] = replace(messages[left.cut.index], text=left.cut.text)
    assert left.tokens == tokens(*(shown[index] for index in left.kept))


def longest(messages: list[Said], options: TrimOptions) -> list[int] | None:
    """The longest run at the end that the options allow for, beside the system messages; tried one by one."""
    size = len(messages)
    heads = (index for index, message in enumerate(messages) if message.role not in ("system", "developer"))
    head = next(heads, size) if options.include_system else 0
    spans = pairs(messages)

    def is_whole(at: int) -> bool:
        return not any(caller < at <= result for caller, result in spans)

    ends = [
        at
        for at in range(head + 1, size + 1)
        if is_whole(at) and (not options.end_on or messages[at - 1].role in options.end_on)
    ]
    end = max(ends, default=head)
    for begin in range(head, end):
        kept = [*range(head), *range(begin, end)]
        starts = not options.start_on or messages[begin].role in options.start_on
        if starts and is_whole(begin) and tokens(*(messages[index] for index in kept)) <= options.max_tokens:
            return kept
    return None


@settings(max_examples=examples(500))
@given(HISTORIES, LIMITS.filter(lambda options: options.strategy is Strategy.LAST))
def test_the_longest_end_that_fits_stays(messages: list[Said], options: TrimOptions) -> None:
    left = trim(SaidHistory(messages), replace(options, allow_partial=False))

    expected = longest(messages, options)
    if expected is not None:
        assert left.kept == expected
        assert left.tokens <= options.max_tokens


def test_the_newest_messages_stay() -> None:
    left = trimmed([USER, ANSWER, USER, ANSWER], tokens(USER, ANSWER))

    assert left.kept == [2, 3]
    assert left.dropped == (Dropped(0, 2, Reason.OVER_BUDGET),)


def test_a_result_goes_with_its_call() -> None:
    left = trimmed([USER, CALL, *RESULTS, ANSWER], tokens(*RESULTS, ANSWER))

    assert left.kept == [4]
    assert left.dropped == (Dropped(0, 2, Reason.OVER_BUDGET), Dropped(2, 4, Reason.TOOL_PAIR))


def test_other_messages_between_a_call_and_its_result_go_with_both() -> None:
    left = trimmed([CALL, USER, RESULT, ANSWER, USER], tokens(USER, RESULT, ANSWER, USER))

    assert left.kept == [3, 4]


def test_results_of_a_repeated_id_belong_to_the_newest_call() -> None:
    history = [USER, Said("assistant", calls=("a",)), RESULT, USER, Said("assistant", calls=("a",)), RESULT]

    assert trimmed(history, tokens(*history[3:])).kept == [3, 4, 5]


def test_the_system_messages_at_the_head_stay() -> None:
    history = [SYSTEM, Said("developer", "x"), USER, ANSWER, USER]

    assert trimmed(history, tokens(*history[:2], USER)).kept == [0, 1, 4]
    assert trimmed(history, tokens(USER), include_system=False).kept == [4]


def test_what_stays_begins_and_ends_where_it_may() -> None:
    history = [USER, ANSWER, USER, ANSWER, USER]

    left = trimmed(history, tokens(ANSWER, USER, ANSWER), start_on=frozenset({"user"}), end_on=frozenset({"assistant"}))

    assert left.kept == [2, 3]
    assert [each.reason for each in left.dropped] == [Reason.OVER_BUDGET, Reason.START_ON, Reason.END_ON]


def test_where_nothing_fits_the_last_turn_of_the_user_stays() -> None:
    history = [SYSTEM, USER, ANSWER, USER, CALL, *RESULTS]

    left = trimmed(history, 5)

    assert left.kept == [0, 3, 4, 5, 6]
    assert left.tokens == tokens(SYSTEM, USER, CALL, *RESULTS) > 5


def test_the_last_turn_begins_earlier_where_a_pair_reaches_into_it() -> None:
    assert trimmed([USER, CALL, USER, RESULT], 5).kept == [1, 2, 3]


def test_tool_results_of_a_user_open_no_turn() -> None:
    assert trimmed([USER, CALL, Said("user", "ten", answers=("a",))], 5).kept == [0, 1, 2]


def test_without_a_user_the_last_message_stays() -> None:
    assert trimmed([ANSWER, CALL, RESULT], 5).kept == [1, 2]


def test_the_first_messages_stay_where_that_is_asked_for() -> None:
    history = [USER, CALL, *RESULTS, ANSWER]

    left = trimmed(history, tokens(USER, CALL, RESULT), strategy=Strategy.FIRST)

    assert left.kept == [0]
    assert [each.reason for each in left.dropped] == [Reason.TOOL_PAIR, Reason.OVER_BUDGET]


def test_where_nothing_fits_the_first_message_stays_with_its_results() -> None:
    assert trimmed([CALL, *RESULTS, ANSWER], 5, strategy=Strategy.FIRST).kept == [0, 1, 2]


def test_the_message_that_does_not_fit_keeps_its_last_lines() -> None:
    history = [Said("user", "one\ntwo\nthree"), ANSWER]
    room = tokens(ANSWER) + PER_MESSAGE + len("two\nthree")

    assert trimmed(history, room, allow_partial=True).cut == Cut(0, "two\nthree")
    assert trimmed(history, room + 2, allow_partial=True).cut == Cut(0, "two\nthree")
    assert trimmed(history, room, allow_partial=True, start_on=frozenset({"assistant"})).cut is None


def test_the_first_message_that_does_not_fit_keeps_its_first_lines() -> None:
    history = [ANSWER, Said("user", "one\ntwo\nthree")]
    room = tokens(ANSWER) + PER_MESSAGE + len("one\n")

    left = trimmed(history, room, allow_partial=True, strategy=Strategy.FIRST)

    assert (left.kept, left.cut) == ([0, 1], Cut(1, "one\n"))


def test_a_message_that_uses_tools_is_not_cut() -> None:
    history = [Said("assistant", "one\ntwo", calls=("a",)), RESULT, ANSWER]

    left = trimmed(history, tokens(ANSWER) + PER_MESSAGE + 4, allow_partial=True)

    assert (left.kept, left.cut) == ([2], None)


@pytest.mark.parametrize("strategy", Strategy)
def test_nothing_stays_of_nothing(strategy: Strategy) -> None:
    left = trimmed([], 1, strategy=strategy)

    assert (left.kept, left.dropped) == ([], ())


def test_what_is_far_from_the_end_is_never_counted() -> None:
    history = SaidHistory([USER, ANSWER] * 5 * BLOCK)

    trim(history, TrimOptions(tokens(USER, ANSWER)))

    assert history.counted == [(9 * BLOCK, 10 * BLOCK)]


def test_a_call_is_found_however_far_before_its_result_it_is() -> None:
    history = [USER, CALL, *[USER, ANSWER] * 3 * BLOCK, RESULT, ANSWER]

    assert trimmed(history, tokens(*history[2:])).kept == [len(history) - 1]
