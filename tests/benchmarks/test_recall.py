"""The measurement of recall, as it is run for any set: through a server, with all that it writes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import cast

import pytest
from benchmarks import recall

from remora import Remora

pytestmark = pytest.mark.slow

SITTING = 1_001
"""Messages without sessions: more than one request takes."""


@pytest.fixture
def turns(tmp_path: Path) -> Path:
    """A set of two conversations, one of them long."""
    said = [turn("long", number, "user", f"Number {number}.") for number in range(SITTING)]
    said.append(turn("long", SITTING, "assistant", "The harbour was closed."))
    said += [
        turn("short", 0, "Ann", "My dog is called Rex.", session="1"),
        turn("short", 1, "Bob", "Look!", session="2", caption="a red boat"),
    ]
    asked = [
        {"qa_id": "q1", "conv": "long", "question": "What was closed?", "evidence": [f"long-{SITTING}"]},
        {"qa_id": "q2", "conv": "short", "question": "Which boat did Bob show?", "evidence": ["short-1"]},
        {"qa_id": "q3", "conv": "short", "question": "Why?", "evidence": []},
    ]
    path = tmp_path / "small.turns.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in said))
    path.with_name("small.qa.jsonl").write_text("".join(json.dumps(each) + "\n" for each in asked))
    return path


def turn(conv: str, pos: int, speaker: str, text: str, **others: str) -> dict[str, object]:
    shared = {"session": None, "caption": None, "when": None, **others}
    return {"conv": conv, "id": f"{conv}-{pos}", "pos": pos, "speaker": speaker, "text": text, **shared}


@pytest.fixture(autouse=True)
def _model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "MODEL", Path(os.environ["REMORA_MODEL_DIR"]))


def rankings(path: Path) -> dict[str, list[str]]:
    return {line["qa_id"]: line["ranked"] for line in map(json.loads, path.read_text().splitlines())}


def write_set(directory: Path, turns: list[dict[str, object]], questions: list[dict[str, object]]) -> Path:
    path = directory / "set.turns.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in turns))
    path.with_name("set.qa.jsonl").write_text("".join(json.dumps(each) + "\n" for each in questions))
    return path


def test_any_set_is_measured_and_written(turns: Path) -> None:
    out, ranking = turns.with_name("out.json"), turns.with_name("ranking.jsonl")

    assert recall.main(["--data", str(turns), "--out", str(out), "--ranking", str(ranking)]) == 0

    written = json.loads(out.read_text())
    assert written["figures"] == {"small_hybrid_r10": 100.0, "small_hybrid_evidence_1024": 100.0}
    assert written["curve"] == {str(budget): 100.0 for budget in recall.BUDGETS}
    ranked = rankings(ranking)
    assert {name: len(ids) for name, ids in ranked.items()} == {"q1": recall.DEPTH, "q2": 2, "q3": 2}
    assert (ranked["q1"][0], ranked["q2"][0]) == (f"long-{SITTING}", "short-1")


def test_questions_are_asked_of_all_that_the_user_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    turns: list[dict[str, object]] = [
        {"conv": conv, "id": "1", "speaker": "Ann", "text": f"The {animal} sleeps in the kitchen."}
        for conv, animal in (("a", "dog"), ("b", "cat"))
    ]
    asked: list[dict[str, object]] = [
        {"qa_id": "q", "conv": "b", "question": "Where does the cat sleep?", "evidence": ["1"]}
    ]
    out, ranking = tmp_path / "out.json", tmp_path / "ranking.jsonl"
    wanted = ["--scope", "user", "--distractors", "101", "--out", str(out), "--ranking", str(ranking)]

    assert recall.main(["--data", str(write_set(tmp_path, turns, asked)), *wanted]) == 0

    assert json.loads(out.read_text())["figures"] == {
        "set_hybrid_user_r10": 100.0,
        "set_hybrid_user_evidence_1024": 100.0,
    }
    [ranked] = rankings(ranking).values()
    assert ranked[:2] == ["1", "a\t1"], "what another conversation says bears its name, and is no evidence"
    assert len(ranked) == recall.DEPTH
    assert "100.00 in all 4 of the user with 103 messages: +0.00 points" in capsys.readouterr().out


def test_what_the_api_would_refuse_is_said_and_the_rest_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    turns = [
        {"conv": 1, "id": number, "speaker": "é" * 200, "text": f"{word} " * 300_000}
        for number, word in enumerate(("one", "two", "three"))
    ]
    turns.append({"conv": 1, "id": 3, "speaker": None, "text": "The harbour was closed."})
    asked = [
        {"qa_id": "closed", "conv": 1, "question": "What was closed?", "evidence": [3]},
        {"qa_id": "empty", "conv": 1, "question": "", "evidence": [3]},
        {"qa_id": "long", "conv": 1, "question": "harbour " * 10_000, "evidence": [3]},
    ]
    out, ranking = tmp_path / "out.json", tmp_path / "ranking.jsonl"

    path = write_set(tmp_path, turns, asked)
    assert recall.main(["--data", str(path), "--out", str(out), "--ranking", str(ranking)]) == 0

    assert list(rankings(ranking)) == ["closed", "empty", "long"]
    assert rankings(ranking)["empty"] == [], "an empty question counts, and finds nothing"
    assert json.loads(out.read_text())["figures"]["set_hybrid_r10"] == pytest.approx(200 / 3)
    said = capsys.readouterr().out
    assert f"{path}:1: text: has 1,200,000 bytes: cut to 1,048,576" in said
    assert "set.qa.jsonl:2: question: is empty" in said


@pytest.mark.parametrize(
    ("asked", "arguments"),
    [
        ([{"qa_id": "q", "conv": "s", "question": "Hi?", "evidence": ["1"], "category": 5}], ["--leave-out", "5"]),
        ([{"qa_id": "q", "conv": "s", "question": "Hi?", "evidence": []}], ["--scope", "user"]),
    ],
    ids=["all left out", "no evidence"],
)
def test_where_nothing_is_scored_there_are_no_figures(
    asked: list[dict[str, object]], arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = write_set(tmp_path, [{"conv": "s", "id": "1", "text": "Hi!"}], asked), tmp_path / "out.json"

    assert recall.main(["--data", str(path), "--out", str(out), *arguments]) == 0

    assert json.loads(out.read_text()) == {"workload": "recall", "figures": {}, "curve": {}}
    assert "nothing to score" in capsys.readouterr().out


def test_a_category_counts_unless_it_is_left_out(tmp_path: Path) -> None:
    turns: list[dict[str, object]] = [{"conv": "s", "id": "1", "text": "Hi!"}]
    asked = [
        {"qa_id": "found", "conv": "s", "question": "Hi?", "evidence": ["1"], "category": 1},
        {"qa_id": "missed", "conv": "s", "question": "", "evidence": ["1"], "category": 5},
    ]
    path, out = write_set(tmp_path, turns, asked), tmp_path / "out.json"

    def r10(*arguments: str) -> float:
        assert recall.main(["--data", str(path), "--out", str(out), *arguments]) == 0
        figure: float = json.loads(out.read_text())["figures"]["set_hybrid_r10"]
        return figure

    assert r10() == 50.0
    assert r10("--leave-out", "5") == 100.0


def test_a_set_that_cannot_be_read_ends_with_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_set(tmp_path, [{"conv": "s", "id": "1", "text": "Hi!", "when": "some day"}], [])

    assert recall.main(["--data", str(path)]) == 1
    assert capsys.readouterr().err == f'{path}:1: when: is "some day", not a time that is understood\n'

    assert recall.main(["--data", str(tmp_path / "none.json")]) == 1
    assert capsys.readouterr().err == f"{tmp_path / 'none.json'}: cannot be read: No such file or directory\n"


class Embedding:
    """Stands for a server: what its searches and its status say is pending, one after the other."""

    def __init__(self, *pending: tuple[int, int]) -> None:
        self.states = list(pending)
        self.model = self

    def user(self, _user_id: str) -> Embedding:
        return self

    def search(self, _query: str, **_options: object) -> Embedding:
        return self

    def status(self) -> Embedding:
        return Embedding((self.states.pop(0)[1], 0))

    @property
    def store(self) -> Embedding:
        return self

    failure = "the disk is full"

    @property
    def index(self) -> Embedding:
        return self

    @property
    def pending(self) -> int:
        """Of the scope; 0 leaves the state to be asked for the server's."""
        scope, _ = self.states[0]
        if scope:
            self.states.pop(0)
        return scope


def test_questions_wait_until_the_scope_and_the_model_have_nothing_pending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "POLL_SECONDS", 0.0)
    server = Embedding((9, 9), (1, 1), (30, 30), (0, 2), (0, 0), (5, 5))

    recall.settle(cast("Remora", server))

    assert server.states == [(5, 5)], "the first state in which nothing was pending ends the wait"


def test_embedding_that_comes_to_a_halt_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(recall, "EMBED_SECONDS", 0.0)

    with pytest.raises(RuntimeError, match=r"7 messages are not embedded, .* the disk is full"):
        recall.settle(cast("Remora", Embedding(*[(7, 7)] * 9)))


@pytest.mark.parametrize(
    "arguments",
    [
        ["--plot", "curve.png"],
        ["--ablation", "--out", "out.json"],
        ["--distractors", "10"],
        ["--plot-python", "/nowhere/python", "--plot", "curve.png", "--out", "out.json"],
        ["--weights", "{"],
    ],
)
def test_what_would_not_be_measured_or_written_is_refused(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        recall.main(arguments)
    assert arguments[0] in capsys.readouterr().err
