"""Which tool calls and results belong together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.domain.histories import HISTORIES, Said, SaidHistory, pairs

from remora_server.domain.tool_pairs import pair_tools, whole_cuts


@given(HISTORIES)
def test_each_result_is_accounted_for_once(messages: list[Said]) -> None:
    pairing = pair_tools(SaidHistory(messages).tool_uses(0, len(messages)))

    results = sum(len(message.answers) for message in messages)
    assert len(pairing.answers) + len(pairing.repeats) + len(pairing.orphans) == results
    assert set(pairing.spans) == pairs(messages)


@given(HISTORIES)
def test_each_call_is_answered_once_or_dangles(messages: list[Said]) -> None:
    pairing = pair_tools(SaidHistory(messages).tool_uses(0, len(messages)))

    calls = {(index, call_id) for index, message in enumerate(messages) for call_id in message.calls}
    assert len(pairing.answers) + len(pairing.dangling) == len(calls)
    assert set(pairing.dangling) <= calls


def test_an_id_may_be_used_again_once_it_was_answered() -> None:
    pairing = pair_tools([(0, "a", False), (1, "a", True), (2, "a", False), (3, "a", True)])

    assert pairing.answers == [(0, 1), (2, 3)]
    assert not pairing.renewed


@given(HISTORIES, st.integers(0, 12), st.integers(0, 12))
def test_a_whole_cut_has_no_pair_on_both_sides(messages: list[Said], first: int, last: int) -> None:
    spans = pairs(messages)

    cuts = list(whole_cuts(spans, first, last))

    assert cuts == [at for at in range(first, last + 1) if not any(caller < at <= result for caller, result in spans)]
