"""How rankings and contexts are scored."""

from __future__ import annotations

import math

import pytest
from benchmarks import recall_scores
from benchmarks.recall_scores import OVERALL, Answer
from benchmarks.recall_sets import Question
from hypothesis import given
from hypothesis import strategies as st

IDS = st.lists(st.sampled_from("abcdefgh"), unique=True)
EVIDENCE = st.lists(st.sampled_from("abcdefgh"), min_size=1, unique=True)


def answer(ranked: str, evidence: str, category: str = "1", held: str = "") -> Answer:
    return Answer(Question("q", "?", category, tuple(evidence)), ranked, {256: frozenset(held)})


@given(ranked=IDS, evidence=EVIDENCE, depth=st.integers(1, 9))
def test_recall_is_the_share_of_the_evidence_that_is_near_the_top(
    ranked: list[str], evidence: list[str], depth: int
) -> None:
    found = [one for one in evidence if one in ranked and ranked.index(one) < depth]
    assert recall_scores.recall(ranked, evidence, depth) == len(found) / len(evidence)


@given(evidence=EVIDENCE, others=IDS)
def test_nothing_is_better_than_all_evidence_on_top(evidence: list[str], others: list[str]) -> None:
    best = evidence + [one for one in others if one not in evidence]
    assert math.isclose(recall_scores.ndcg(best, evidence), 1.0)
    assert recall_scores.reciprocal_rank(best, evidence) == 1.0
    assert recall_scores.ndcg(best[::-1], evidence) <= 1.0 + 1e-12


def test_gains_shrink_with_the_rank() -> None:
    assert math.isclose(recall_scores.ndcg("xay", "a"), 1 / math.log2(3))
    assert recall_scores.reciprocal_rank("xya", "a") == 1 / 3
    assert recall_scores.reciprocal_rank("xyz", "a") == 0.0


def test_a_row_is_a_mean_of_what_has_evidence_and_the_whole_leaves_a_category_out() -> None:
    answers = [answer("a", "a"), answer("x", "a"), answer("a", "a", "5"), answer("a", "")]

    rows = recall_scores.rows(answers, left_out={"5"})

    assert {name: len(row) for name, row in rows.items()} == {"1": 2, "5": 1, OVERALL: 2}
    assert recall_scores.ranking_figures(rows[OVERALL])["r@10"] == 50.0
    assert recall_scores.ranking_figures(rows["5"])["r@10"] == 100.0


@pytest.mark.parametrize("answers", [[], [answer("a", "")], [answer("a", "a", "5")]])
def test_a_whole_of_nothing_is_no_row(answers: list[Answer]) -> None:
    assert OVERALL not in recall_scores.rows(answers, left_out={"5"})


def test_the_curve_is_the_share_of_the_evidence_that_the_context_holds() -> None:
    assert recall_scores.curve([answer("", "ab", held="ax"), answer("", "c", held="c")], [256]) == {256: 75.0}
