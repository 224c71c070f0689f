"""How much evidence recall finds, through the public API: `python -m benchmarks.recall --data FILE`.

Conversations are appended, then each question is searched for, and a context assembled for it under each budget. The
set is LoCoMo's JSON, or `x.turns.jsonl` with `x.qa.jsonl` beside it (`recall_sets`). Every setting is the server's own.

`--scope user` asks each question of all conversations, which are one user's, and `--distractors 50000` of 500 more.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, TypeAlias, cast, get_args

from benchmarks import recall_scores, recall_sets
from benchmarks.recall_chatter import chatter
from benchmarks.recall_records import SetError
from benchmarks.recall_scores import OVERALL, Answer
from benchmarks.recall_sets import Question, RecallSet, Talk
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from remora import Conversation, Message, Remora
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
USER = "user"
"""Whose all conversations are."""
AT_ONCE, BYTES_AT_ONCE = 200, 2 << 20
"""Messages of a request and bytes of their texts, at most, unless one message has more."""
EMBED_SECONDS, WAIT_SECONDS, POLL_SECONDS = 60.0, 5.0, 0.2

Scope: TypeAlias = Literal["conversation", "user"]
"""Where a question is asked: in its own conversation, or in all of the user's."""


@dataclass(frozen=True, slots=True)
class Way:
    """How questions are asked: with these options, of their own conversation or of all that the user has."""

    options: SearchOptions
    scope: Scope = "conversation"


@dataclass(frozen=True, slots=True)
class Result:
    """Everything that was measured in one way."""

    answers: list[Answer]
    left_out: Collection[str]

    @property
    def rows(self) -> dict[str, list[Answer]]:
        return recall_scores.rows(self.answers, self.left_out)

    def figures(self, prefix: str) -> dict[str, float]:
        """The two that stand for all; none where there is nothing to score."""
        if not (whole := self.rows.get(OVERALL)):
            return {}
        return {
            f"{prefix}_r10": recall_scores.ranking_figures(whole)["r@10"],
            f"{prefix}_evidence_{FIGURE_BUDGET}": recall_scores.curve(whole, [FIGURE_BUDGET])[FIGURE_BUDGET],
        }


def measure(
    console: Console,
    talks: Sequence[Talk],
    ways: Mapping[str, Way],
    *,
    budgets: Sequence[int] = BUDGETS,
    left_out: Collection[str] = (),
    others: Sequence[Talk] = (),
) -> dict[str, Result]:
    """Load the conversations, and others of the same user, into a server of their own and ask it everything."""
    with (
        # On a disk, as servers have it: in memory, the default for the database holds few vectors.
        TemporaryDirectory(prefix="remora-recall-") as data,
        serve("--model-dir", str(MODEL), "--data", data) as endpoint,
        Remora(endpoint, timeout=2 * EMBED_SECONDS) as memory,
        Progress(console=console, transient=True) as progress,
    ):
        for talk in progress.track([*talks, *others], description="appending"):
            _append(memory, talk)
        progress.add_task("embedding", total=None)
        settle(memory)
        return {
            name: Result(
                [
                    _answer(memory, talk, question, way, budgets)
                    for talk, question in progress.track(_asked(talks), description=f"asking: {name}")
                ],
                left_out,
            )
            for name, way in ways.items()
        }


def _asked(talks: Sequence[Talk]) -> list[tuple[Talk, Question]]:
    return [(talk, question) for talk in talks for question in talk.questions]


def _chat(memory: Remora, talk: Talk) -> Conversation:
    return memory.conversation(talk.id, user_id=USER)


def _append(memory: Remora, talk: Talk) -> None:
    """Sitting by sitting, as it was said; a long one in parts."""
    chat = _chat(memory, talk)
    for _, sitting in groupby(talk.messages, key=lambda message: message.session_id):
        for part in _parts(sitting):
            chat.append(part)


def _parts(messages: Iterable[Message]) -> Iterator[list[Message]]:
    """As many messages at once as a request holds."""
    part: list[Message] = []
    size = 0
    for message in messages:
        length = len(message.text.encode())
        if part and (len(part) == AT_ONCE or size + length > BYTES_AT_ONCE):
            yield part
            part, size = [], 0
        part.append(message)
        size += length
    if part:
        yield part


def settle(memory: Remora) -> None:
    """Wait until no message is to be embedded. Raises RuntimeError where none is for a minute."""
    last, since = 0, time.monotonic()
    while pending := _pending(memory):
        if pending != last:
            last, since = pending, time.monotonic()
        elif time.monotonic() - since > EMBED_SECONDS:
            failure = memory.status().store.failure
            raise RuntimeError(
                f"{pending} messages are not embedded, as {EMBED_SECONDS:.0f} s ago: {failure or 'slow'}"
            )
        time.sleep(POLL_SECONDS)


def _pending(memory: Remora) -> int:
    """What is left to be done, for the user as a search tells it, or else for the whole server."""
    index = memory.user(USER).search("?", k=1, index_wait=WAIT_SECONDS).index
    return index.pending or memory.status().model.pending


def _answer(memory: Remora, talk: Talk, question: Question, way: Way, budgets: Sequence[int]) -> Answer:
    """What is found; an empty question, which the API refuses, finds nothing."""
    if not question.text:
        return Answer(question, [], dict.fromkeys(budgets, frozenset()))
    chat = _chat(memory, talk)
    options: SearchOptions = {**way.options, "k": DEPTH}
    found = (memory.user(USER) if way.scope == "user" else chat).search(question.text, **options)
    return Answer(
        question,
        [_name(chat, hit.conversation_id, hit.message) for hit in found],
        {budget: _context(chat, question, budget, Way(options, way.scope)) for budget in budgets},
        found.truncated,
    )


def _context(chat: Conversation, question: Question, budget: int, way: Way) -> frozenset[str]:
    """What a context of this budget holds, all of it spent on recall."""
    context = chat.context(
        budget,
        query=question.text,
        recall=way.options,
        recall_scope=way.scope,
        recent_messages=0,
        encoding="o200k_base",
        rendering="transcript",
    )
    return frozenset(_name(chat, item.conversation_id, item.message) for item in context.items)


def _name(chat: Conversation, conversation_id: str, message: Message) -> str:
    """The id of a message of the question's conversation; that of another, which is no evidence, after its own."""
    return message.id if conversation_id == chat.id else f"{conversation_id}\t{message.id}"


def ablations(way: Way) -> dict[str, Way]:
    """The way, and without each component that has a weight of its own."""
    options = way.options
    names = [name for name in Weights.__annotations__ if name != "late" or options.get("profile") == "hybrid_late"]
    without = {name: cast("Weights", {**options.get("weights", {}), name: 0.0}) for name in names}
    return {"all": way} | {
        f"without {name}": Way({**options, "weights": weights}, way.scope) for name, weights in without.items()
    }


def show_ablations(console: Console, results: Mapping[str, Result]) -> None:
    """One table: what the figures are with everything, and without each component."""
    rows = {name: result.figures("x") for name, result in results.items()}
    table = Table("components", "r@10", f"evidence in {FIGURE_BUDGET:,}", title="worth, %", title_justify="left")
    for name, figures in rows.items():
        table.add_row(name, *(f"{value:.2f}" for value in figures.values()))
    console.print(table)


def show(console: Console, result: Result, title: str) -> None:
    """Two tables: the ranking, and the evidence inside the budgets, by category; and what is to be known of them."""
    ranking = {name: recall_scores.ranking_figures(row) for name, row in result.rows.items()}
    budgets = {name: recall_scores.curve(row, BUDGETS) for name, row in result.rows.items()}
    counts = {name: len(row) for name, row in result.rows.items()}
    if counts:
        _table(console, f"{title}: ranking, %", counts, ranking)
        columns = {name: {f"{budget:,}": share for budget, share in row.items()} for name, row in budgets.items()}
        _table(console, f"{title}: evidence inside a budget of tokens, %", counts, columns)
    for line in remarks(result):
        console.print(line, highlight=False)


def remarks(result: Result) -> Iterator[str]:
    """What the tables do not say by themselves."""
    if OVERALL not in result.rows:
        yield f"nothing to score: none of {len(result.answers)} questions has evidence and counts for the whole"
    elif set(result.left_out).intersection(result.rows):
        yield f"left out of {OVERALL}: {', '.join(sorted(result.left_out))}"
    if short := sum(answer.truncated for answer in result.answers):
        yield f"{short} rankings end early: their replies would be larger than the API's"


def _table(console: Console, title: str, counts: Mapping[str, int], rows: Mapping[str, Mapping[str, float]]) -> None:
    table = Table(title=title, title_justify="left")
    table.add_column("category")
    for heading in ("n", *next(iter(rows.values()))):
        table.add_column(heading, justify="right")
    for name, row in rows.items():
        table.add_row(name or "none", str(counts[name]), *(f"{value:.1f}" for value in row.values()))
    console.print(table)


def compare(console: Console, own: Result, users: Result, talks: Sequence[Talk]) -> None:
    """One line: the same questions asked of their own conversation, and of all that the user has."""
    pair = [list(result.figures("x").values()) for result in (own, users)]
    if all(pair):
        (alone, _), (among, _) = pair
        messages = sum(len(talk.messages) for talk in talks)
        console.print(
            f"r@10: {alone:.2f} in the question's conversation, {among:.2f} in all {len(talks):,} of the user "
            f"with {messages:,} messages: {among - alone:+.2f} points",
            highlight=False,
        )


def write(options: argparse.Namespace, figures: Mapping[str, float], result: Result) -> None:
    """The ranking as JSON lines, the figures and the curve as JSON, the curve as a picture; each where asked for."""
    if options.ranking:
        options.ranking.write_text("".join(_ranking_lines(result)))
    whole = result.rows.get(OVERALL)
    if options.out:
        curve = recall_scores.curve(whole, BUDGETS) if whole else {}
        options.out.write_text(json.dumps({"workload": "recall", "figures": figures, "curve": curve}, indent=2) + "\n")
    if options.plot and whole:
        subprocess.run([options.plot_python, PLOT, options.out, options.plot], check=True)


def _ranking_lines(result: Result) -> Iterator[str]:
    for answer in result.answers:
        yield json.dumps({"qa_id": answer.question.id, "ranked": list(answer.ranked)}) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is asked for and write it."""
    options = _options(arguments)
    console = Console(width=None if sys.stdout.isatty() else 120)
    try:
        found = recall_sets.load(options.data)
    except SetError as error:
        print(error, file=sys.stderr)
        return 1
    for note in found.notes:
        console.print(note, highlight=False, markup=False, soft_wrap=True)
    _run(console, options, found)
    return 0


def _run(console: Console, options: argparse.Namespace, found: RecallSet) -> None:
    way = Way({"profile": options.profile, **({"weights": options.weights} if options.weights else {})}, options.scope)
    others = chatter(options.distractors, found.talks)
    left_out = found.left_out if options.leave_out is None else frozenset(options.leave_out)
    if options.ablation:
        ways, budgets = ablations(way), [FIGURE_BUDGET]
        show_ablations(console, measure(console, found.talks, ways, budgets=budgets, left_out=left_out, others=others))
        return
    ways = {"conversation": Way(way.options), str(way.scope): way}
    results = measure(console, found.talks, ways, left_out=left_out, others=others)
    result, title = results[way.scope], f"{found.name}_{options.profile}"
    show(console, result, f"{options.profile}, scope {way.scope}")
    figures = result.figures(title if way.scope == "conversation" else f"{title}_{way.scope}")
    for name, value in figures.items():
        console.print(f"{name:44} {value:.2f}", highlight=False)
    if way.scope == "user":
        compare(console, results["conversation"], result, [*found.talks, *others])
    write(options, figures, result)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.ablation and (options.out or options.ranking or options.plot):
        parser.error("--ablation shows a table and writes nothing")
    if options.plot and not options.out:
        parser.error("--plot draws what --out holds: name it, too")
    if options.plot and not shutil.which(options.plot_python):
        parser.error(f"--plot-python: {options.plot_python} is no program; `make bench` installs it")
    if options.distractors and options.scope != "user":
        parser.error("--distractors are other conversations: they need --scope user")
    return options


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--data", type=Path, default=DATA, help="LoCoMo's JSON, or x.turns.jsonl beside x.qa.jsonl")
    parser.add_argument("--profile", choices=get_args(Profile), default="hybrid")
    parser.add_argument("--weights", type=json.loads, help='JSON, instead of the profile\'s own: {"speaker": 0}')
    parser.add_argument(
        "--scope",
        choices=get_args(Scope),
        default="conversation",
        help="ask each question of its own conversation, or of all conversations, which are one user's",
    )
    parser.add_argument(
        "--distractors", type=int, default=0, metavar="N", help="so many messages of the user's small talk beside them"
    )
    parser.add_argument("--ablation", action="store_true", help="instead: what is lost without each component")
    parser.add_argument(
        "--leave-out",
        nargs="*",
        metavar="CATEGORY",
        help="categories that do not count for the whole; default: LoCoMo's adversarial 5 of LoCoMo's JSON, else none",
    )
    parser.add_argument("--ranking", type=Path, help="write the ranking there, as JSON lines")
    parser.add_argument("--out", type=Path, help="write the figures and the curve there, as JSON")
    parser.add_argument("--plot", type=Path, help="draw the curve there, as PNG")
    parser.add_argument(
        "--plot-python", default=PLOT_PYTHON, help="a Python that has matplotlib; default: the benchmarks'"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
