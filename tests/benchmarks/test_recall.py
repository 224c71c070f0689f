"""The measurement of recall, as it is run for any set: through a server, with all that it writes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from benchmarks import recall

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


def test_any_set_is_measured_and_written(turns: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recall, "MODEL", Path(os.environ["REMORA_MODEL_DIR"]))
    monkeypatch.setattr(recall, "SETTLE_SECONDS", 0.0)
    out, ranking = turns.with_name("out.json"), turns.with_name("ranking.jsonl")

    assert recall.main(["--data", str(turns), "--out", str(out), "--ranking", str(ranking)]) == 0

    written = json.loads(out.read_text())
    assert written["figures"] == {"small_hybrid_r10": 100.0, "small_hybrid_evidence_1024": 100.0}
    assert written["curve"] == {str(budget): 100.0 for budget in recall.BUDGETS}
    lines = [json.loads(line) for line in ranking.read_text().splitlines()]
    assert [line["qa_id"] for line in lines] == ["q1", "q2", "q3"]
    assert [len(line["ranked"]) for line in lines] == [recall.DEPTH, 2, 2]
    assert [line["ranked"][0] for line in lines[:2]] == [f"long-{SITTING}", "short-1"]


@pytest.mark.parametrize("arguments", [["--plot", "curve.png"], ["--ablation", "--out", "out.json"]])
def test_what_would_not_be_written_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        recall.main(arguments)
    assert arguments[0] in capsys.readouterr().err
