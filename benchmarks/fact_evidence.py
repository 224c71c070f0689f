"""What facts add to the evidence inside a context: LoCoMo's questions, with and without facts under the same budget.

The facts are those that patterns find in the conversations. A fact stands for the messages in which it was said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from tempfile import TemporaryDirectory

from benchmarks import recall, recall_scores, recall_sets
from benchmarks.recall import MODEL, settle
from benchmarks.recall_scores import OVERALL, Answer
from benchmarks.recall_sets import Question, Talk
from benchmarks.slices import Figure
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from remora import Conversation, Remora
from remora.testing import serve

BUDGETS = (512, 1_024)
SHOWN = 10
"""Facts of a context, at most."""


def run(console: Console) -> dict[str, Figure]:
    """Measure and show; no figures where the set is not there."""
    if not recall.DATA.is_file():
        console.print(f"[dim]without evidence: {recall.DATA} is missing, where LoCoMo's JSON belongs[/dim]")
        return {}
    found = recall_sets.load(recall.DATA)
    without, with_facts = _measure(console, found.talks, found.left_out)
    _show(console, without, with_facts)
    return {
        f"{found.name}_evidence_{budget}_{name}": Figure.unprobed(shares[budget])
        for name, shares in (("without_facts", without), ("with_facts", with_facts))
        for budget in BUDGETS
    }


def _measure(
    console: Console, talks: Sequence[Talk], left_out: frozenset[str]
) -> tuple[Mapping[int, float], Mapping[int, float]]:
    """The shares of the evidence by budget, without facts and with them."""
    answers: dict[bool, list[Answer]] = {False: [], True: []}
    with (
        TemporaryDirectory(prefix="remora-facts-") as data,
        serve("--model-dir", str(MODEL), "--data", data) as endpoint,
        Remora(endpoint, timeout=120) as memory,
        Progress(console=console, transient=True) as progress,
    ):
        for talk in progress.track(talks, description="appending"):
            chat = memory.conversation(talk.id, user_id=talk.id)
            for begin in range(0, len(talk.messages), recall.AT_ONCE):
                chat.append(talk.messages[begin : begin + recall.AT_ONCE])
        settle(memory)
        for talk in progress.track(talks, description="asking"):
            facts = memory.user(talk.id).facts
            facts.extract_from(talk.id, by_patterns=True)
            sources = {fact.id: [each.message_id for each in fact.sources] for fact in facts.list_facts(limit=None)}
            chat = memory.conversation(talk.id)
            for question in (each for each in talk.questions if each.text):
                for has_facts, asked in answers.items():
                    asked.append(_answer(chat, question, sources, has_facts=has_facts))
    return _shares(answers[False], left_out), _shares(answers[True], left_out)


def _answer(chat: Conversation, question: Question, sources: Mapping[str, Sequence[str]], *, has_facts: bool) -> Answer:
    held: dict[int, frozenset[str]] = {}
    for budget in BUDGETS:
        context = chat.context(
            budget,
            query=question.text,
            recall={"k": recall.DEPTH},
            recent_messages=0,
            rendering="transcript",
            facts={"k": SHOWN} if has_facts else False,
        )
        ids = [item.message.id for item in context.items]
        held[budget] = frozenset(said for each in ids for said in (each, *sources.get(each, ())))
    return Answer(question, [], held)


def _shares(answers: list[Answer], left_out: frozenset[str]) -> Mapping[int, float]:
    return recall_scores.curve(recall_scores.rows(answers, left_out)[OVERALL], BUDGETS)


def _show(console: Console, without: Mapping[int, float], with_facts: Mapping[int, float]) -> None:
    table = Table("tokens", "without facts", "with facts", title="evidence in a context, %", title_justify="left")
    for budget in BUDGETS:
        table.add_row(f"{budget:,}", f"{without[budget]:.1f}", f"{with_facts[budget]:.1f}")
    console.print(table)
