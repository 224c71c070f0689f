"""Which messages a summary replaces."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.domain.histories import HISTORIES, Said, SaidHistory, cost, pairs
from tests.examples import examples

from remora_server.domain.costs import REPLY_PRIMING
from remora_server.domain.summaries import Amount, SummaryPlan, plan_summary

USER, ANSWER, SYSTEM = Said("user", "hello"), Said("assistant", "hi"), Said("system", "be brief")
CALL, RESULT = Said("assistant", calls=("a",)), Said("tool", "ten", answers=("a",))
AMOUNTS = st.builds(Amount, st.none() | st.integers(0, 100), st.none() | st.integers(0, 12))


ALWAYS = Amount(messages=0)


def planned(messages: list[Said], keep: Amount, trigger: Amount = ALWAYS) -> SummaryPlan | None:
    return plan_summary(SaidHistory(messages), trigger, keep)


def tokens(messages: list[Said]) -> int:
    return REPLY_PRIMING + sum(map(cost, messages))


def test_the_newest_messages_stay() -> None:
    history = [SYSTEM, USER, ANSWER, USER, ANSWER]

    assert planned(history, Amount(messages=2)) == SummaryPlan(1, 3, tokens(history))
    assert planned(history, Amount(tokens=cost(USER) + cost(ANSWER))) == SummaryPlan(1, 3, tokens(history))


def test_nothing_is_summarised_up_to_the_trigger() -> None:
    history = [SYSTEM, USER, ANSWER]

    assert planned(history, Amount(messages=1), Amount(messages=2, tokens=tokens(history))) is None
    assert planned(history, Amount(messages=1), Amount(messages=1)) is not None
    assert planned(history, Amount(messages=1), Amount(tokens=tokens(history) - 1)) is not None


def test_a_call_is_summarised_with_its_result() -> None:
    plan = planned([USER, CALL, RESULT, ANSWER], Amount(messages=2))

    assert plan is not None
    assert plan.cutoff == 3


def test_at_least_the_last_message_stays_with_its_call() -> None:
    plan = planned([USER, ANSWER, CALL, RESULT], Amount(messages=0))

    assert plan is not None
    assert plan.cutoff == 2


def test_nothing_is_left_to_summarise_of_one_message() -> None:
    assert planned([SYSTEM, USER], Amount(messages=0)) is None
    assert planned([SYSTEM], Amount(messages=0)) is None
    assert planned([], Amount(messages=0)) is None


@pytest.mark.slow
@settings(max_examples=examples(1_000))
@given(HISTORIES, AMOUNTS)
def test_no_pair_is_parted_and_as_much_stays_as_may(messages: list[Said], keep: Amount) -> None:
    plan = planned(messages, keep)
    if plan is None:
        return

    spans = pairs(messages)
    size = len(messages)

    def may_stay(begin: int) -> bool:
        fits = keep.tokens is None or sum(map(cost, messages[begin:])) <= keep.tokens
        return fits and (keep.messages is None or size - begin <= keep.messages)

    whole = [at for at in range(plan.begin, size) if not any(caller < at <= result for caller, result in spans)]
    assert plan.begin < plan.cutoff < size
    assert plan.cutoff == next(filter(may_stay, whole), whole[-1])
