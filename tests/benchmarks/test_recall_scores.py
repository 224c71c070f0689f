"""How rankings and contexts are scored, and that both shapes of a set give the same conversations."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from benchmarks import recall_scores, recall_sets
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

    rows = recall_scores.rows(answers, outside="5")

    assert {name: len(row) for name, row in rows.items()} == {"1": 2, "5": 1, OVERALL: 2}
    assert recall_scores.ranking_figures(rows[OVERALL])["r@10"] == 50.0
    assert recall_scores.ranking_figures(rows["5"])["r@10"] == 100.0


def test_the_curve_is_the_share_of_the_evidence_that_the_context_holds() -> None:
    assert recall_scores.curve([answer("", "ab", held="ax"), answer("", "c", held="c")], [256]) == {256: 75.0}


@pytest.fixture
def locomo(tmp_path: Path) -> Path:
    turns = {
        "session_2": [{"dia_id": "D2:1", "speaker": "Bob", "text": "Bye"}],
        "session_2_date_time": "9:05 am on 1 June, 2023",
        "session_1": [
            {"dia_id": "D1:1", "speaker": "Ann", "text": "Hi!"},
            {"dia_id": "D1:2", "speaker": "Bob", "text": "Look", "blip_caption": "a cat"},
        ],
        "session_1_date_time": "1:56 pm on 8 May, 2023",
    }
    asked = [
        {"question": "What did Bob show?", "category": 4, "evidence": ["D1:02; D:1:2", "D9:9"]},
        {"question": "Why?", "category": 5},
    ]
    path = tmp_path / "small.json"
    path.write_text(json.dumps([{"sample_id": "s", "conversation": turns, "qa": asked}]))
    return path


def test_locomo_is_read_in_the_order_of_its_sessions(locomo: Path) -> None:
    [talk] = recall_sets.load(locomo)

    assert [(one.id, one.session_id, one.name, one.text) for one in talk.messages] == [
        ("D1:1", "session_1", "Ann", "Hi!"),
        ("D1:2", "session_1", "Bob", "Look [image: a cat]"),
        ("D2:1", "session_2", "Bob", "Bye"),
    ]
    assert [str(one.sent_time) for one in talk.messages[1:]] == [
        "2023-05-08 13:56:00+00:00",
        "2023-06-01 09:05:00+00:00",
    ]
    assert [(one.id, one.category, one.evidence) for one in talk.questions] == [
        ("s/0", "4", ("D1:2",)),
        ("s/1", "5", ()),
    ]


def test_lines_give_the_same_as_locomo(locomo: Path) -> None:
    lines = [
        {"pos": 2, "id": "D2:1", "session": "session_2", "speaker": "Bob", "text": "Bye", "when": "2023-06-01T09:05"},
        {"pos": 0, "id": "D1:1", "session": "session_1", "speaker": "Ann", "text": "Hi!", "when": "2023-05-08T13:56"},
        {"pos": 1, "id": "D1:2", "session": "session_1", "speaker": "Bob", "text": "Look", "when": "2023-05-08T13:56"},
    ]
    lines[2]["caption"] = "a cat"
    path = locomo.with_name("small.turns.jsonl")
    path.write_text("".join(json.dumps({"conv": "s", **line}) + "\n" for line in lines))
    asked = [
        {"qa_id": "s/0", "conv": "s", "question": "What did Bob show?", "category": 4, "evidence": ["D1:2"]},
        {"qa_id": "s/1", "conv": "s", "question": "Why?", "category": 5, "evidence": []},
    ]
    locomo.with_name("small.qa.jsonl").write_text("\n".join(map(json.dumps, asked)))

    assert recall_sets.load(path) == recall_sets.load(locomo)
    assert recall_sets.name(path) == recall_sets.name(locomo) == "small"


def test_roles_are_no_names(tmp_path: Path) -> None:
    path = tmp_path / "roles.turns.jsonl"
    line = {"conv": "s", "pos": 0, "id": "1", "session": None, "speaker": "Assistant", "text": "Hi", "when": None}
    path.write_text(json.dumps(line))
    path.with_name("roles.qa.jsonl").write_text("")

    [message] = recall_sets.load(path)[0].messages

    assert (message.role, message.name, message.session_id, message.sent_time) == ("assistant", "", "", None)
