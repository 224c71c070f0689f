"""How much evidence recall finds, through the public API: `python -m benchmarks.recall --data FILE`.

Conversations are appended, then each question is searched for, and a context assembled for it under each budget. The
set is LoCoMo's JSON, or `x.turns.jsonl` with `x.qa.jsonl` beside it (`recall_sets`). Every setting is the server's own.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import cast, get_args

from benchmarks import recall_scores, recall_sets
from benchmarks.recall_scores import OVERALL, Answer
from benchmarks.recall_sets import Question, Talk
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from remora import Conversation, Remora
from remora.search import Profile, SearchOptions, Weights
from remora.testing import serve

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data" / "locomo_dev.json"
MODEL = ROOT / ".cache" / "model"
PLOT = Path(__file__).with_name("plot_recall.py")
PLOT_PYTHON = ROOT / ".cache" / "bench" / "bin" / "python"
BUDGETS = (256, 512, 1024, 2048, 4096)
FIGURE_BUDGET = 1024
DEPTH = 50
ADVERSARIAL = "5"
"""LoCoMo's questions that have no answer: listed, but left out of the whole."""
AT_ONCE = 200
"""Messages of a request, at most."""
EMBED_SECONDS = 60.0
SETTLE_SECONDS = 2.0
"""Vectors that a speaker who came late has made anew are waited for so long."""


@dataclass(frozen=True, slots=True)
class Result:
    """Everything that was measured of one profile."""

    answers: list[Answer]
    outside: str

    @property
    def rows(self) -> dict[str, list[Answer]]:
        return recall_scores.rows(self.answers, self.outside)

    def figures(self, prefix: str) -> dict[str, float]:
        """The two that stand for all."""
        whole = self.rows[OVERALL]
        return {
            f"{prefix}_r10": recall_scores.ranking_figures(whole)["r@10"],
            f"{prefix}_evidence_{FIGURE_BUDGET}": recall_scores.curve(whole, [FIGURE_BUDGET])[FIGURE_BUDGET],
        }


def measure(
    console: Console,
    talks: Sequence[Talk],
    ways: Mapping[str, SearchOptions],
    budgets: Sequence[int] = BUDGETS,
    outside: str = ADVERSARIAL,
) -> dict[str, Result]:
    """Load the conversations into a server of their own and ask it everything, in each of the ways."""
    with (
        serve("--model-dir", str(MODEL)) as endpoint,
        Remora(endpoint, timeout=2 * EMBED_SECONDS) as memory,
        Progress(console=console, transient=True) as progress,
    ):
        for talk in progress.track(talks, description="appending"):
            _append(memory, talk)
        for talk in progress.track(talks, description="embedding"):
            _wait_for_vectors(_chat(memory, talk))
        time.sleep(SETTLE_SECONDS)
        asked = [(talk, question) for talk in talks for question in talk.questions]
        return {
            name: Result(
                [
                    _answer(_chat(memory, talk), question, options, budgets)
                    for talk, question in progress.track(asked, description=f"asking: {name}")
                ],
                outside,
            )
            for name, options in ways.items()
        }


def _chat(memory: Remora, talk: Talk) -> Conversation:
    return memory.conversation(talk.id, user_id=talk.id)


def _append(memory: Remora, talk: Talk) -> None:
    """Sitting by sitting, as it was said; a long one in parts."""
    chat = _chat(memory, talk)
    for _, sitting in groupby(talk.messages, key=lambda message: message.session_id):
        said = list(sitting)
        for at in range(0, len(said), AT_ONCE):
            chat.append(said[at : at + AT_ONCE])


def _wait_for_vectors(chat: Conversation) -> None:
    before = math.inf
    while pending := chat.search("?", k=1, index_wait=EMBED_SECONDS).index.pending:
        if pending >= before:
            raise RuntimeError(f"none of {pending} messages of {chat.id} was embedded in {EMBED_SECONDS:.0f} s")
        before = pending


def _answer(chat: Conversation, question: Question, options: SearchOptions, budgets: Sequence[int]) -> Answer:
    recall: SearchOptions = {**options, "k": DEPTH}
    found = chat.search(question.text, **recall)
    return Answer(
        question,
        [hit.message.id for hit in found],
        {budget: _context(chat, question, budget, recall) for budget in budgets},
    )


def _context(chat: Conversation, question: Question, budget: int, recall: SearchOptions) -> frozenset[str]:
    """What a context of this budget holds, all of it spent on recall."""
    context = chat.context(
        budget, query=question.text, recall=recall, recent_messages=0, encoding="o200k_base", rendering="transcript"
    )
    return frozenset(item.message.id for item in context.items)


def ablations(options: SearchOptions) -> dict[str, SearchOptions]:
    """The options, and without each component that has a weight of its own."""
    names = [name for name in Weights.__annotations__ if name != "late" or options.get("profile") == "hybrid_late"]
    without: dict[str, SearchOptions] = {
        f"without {name}": {**options, "weights": cast("Weights", {**options.get("weights", {}), name: 0.0})}
        for name in names
    }
    return {"all": options} | without


def show_ablations(console: Console, results: Mapping[str, Result]) -> None:
    """One table: what the figures are with everything, and without each component."""
    rows = {name: result.figures("x") for name, result in results.items()}
    table = Table("components", "r@10", f"evidence in {FIGURE_BUDGET:,}", title="worth, %", title_justify="left")
    for name, figures in rows.items():
        table.add_row(name, *(f"{value:.2f}" for value in figures.values()))
    console.print(table)


def show(console: Console, result: Result, profile: str) -> None:
    """Two tables: the ranking, and the evidence inside the budgets, by category."""
    ranking = {name: recall_scores.ranking_figures(row) for name, row in result.rows.items()}
    budgets = {name: recall_scores.curve(row, BUDGETS) for name, row in result.rows.items()}
    counts = {name: len(row) for name, row in result.rows.items()}
    _table(console, f"{profile}: ranking, %", counts, ranking)
    columns = {name: {f"{budget:,}": share for budget, share in row.items()} for name, row in budgets.items()}
    _table(console, f"{profile}: evidence inside a budget of tokens, %", counts, columns)


def _table(console: Console, title: str, counts: Mapping[str, int], rows: Mapping[str, Mapping[str, float]]) -> None:
    table = Table(title=title, title_justify="left")
    table.add_column("category")
    for heading in ("n", *rows[OVERALL]):
        table.add_column(heading, justify="right")
    for name, row in rows.items():
        table.add_row(name, str(counts[name]), *(f"{value:.1f}" for value in row.values()))
    console.print(table)


def write(options: argparse.Namespace, figures: Mapping[str, float], result: Result) -> None:
    """The ranking as JSON lines, the figures and the curve as JSON, the curve as a picture; each where asked for."""
    if options.ranking:
        options.ranking.write_text("".join(_ranking_lines(result)))
    if options.out:
        curve = recall_scores.curve(result.rows[OVERALL], BUDGETS)
        options.out.write_text(json.dumps({"workload": "recall", "figures": figures, "curve": curve}, indent=2) + "\n")
    if options.plot:
        subprocess.run([options.plot_python, PLOT, options.out, options.plot], check=True)


def _ranking_lines(result: Result) -> Iterator[str]:
    for answer in result.answers:
        yield json.dumps({"qa_id": answer.question.id, "ranked": list(answer.ranked)}) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is asked for and write it."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.ablation and (options.out or options.ranking or options.plot):
        parser.error("--ablation shows a table and writes nothing")
    if options.plot and not options.out:
        parser.error("--plot draws what --out holds: name it, too")
    console = Console(width=None if sys.stdout.isatty() else 120)
    search: SearchOptions = {"profile": options.profile}
    if options.weights:
        search["weights"] = json.loads(options.weights)
    talks = recall_sets.load(options.data)
    if options.ablation:
        show_ablations(console, measure(console, talks, ablations(search), [FIGURE_BUDGET], options.outside))
        return 0
    [result] = measure(console, talks, {options.profile: search}, outside=options.outside).values()
    show(console, result, options.profile)
    figures = result.figures(f"{recall_sets.name(options.data)}_{options.profile}")
    for name, value in figures.items():
        console.print(f"{name:44} {value:.2f}", highlight=False)
    write(options, figures, result)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--data", type=Path, default=DATA, help="LoCoMo's JSON, or x.turns.jsonl beside x.qa.jsonl")
    parser.add_argument("--profile", choices=get_args(Profile), default="hybrid")
    parser.add_argument("--weights", help='JSON, instead of the profile\'s own: {"speaker": 0}')
    parser.add_argument("--ablation", action="store_true", help="instead: what is lost without each component")
    parser.add_argument("--outside", default=ADVERSARIAL, help="the category that is left out of the whole")
    parser.add_argument("--ranking", type=Path, help="write the ranking there, as JSON lines")
    parser.add_argument("--out", type=Path, help="write the figures and the curve there, as JSON")
    parser.add_argument("--plot", type=Path, help="draw the curve there, as PNG")
    parser.add_argument(
        "--plot-python", default=PLOT_PYTHON, help="a Python that has matplotlib; default: the benchmarks'"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
