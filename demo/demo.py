"""Shows what Remora does, here: conversations, a crash, recall, facts, contexts, receipts and an overflow."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from remora import Context, Conversation, Hit, Message, Remora, Summarize, Summary, ToolCall

HERE = Path(__file__).resolve().parent
MODEL = HERE.parent / ".cache" / "model"
INSTALL = "`make demo`, which installs it in this clone, or `remora model install`"
REMORA = Path(sys.executable).with_name("remora")
USER = "nora"
CRASH_AFTER = 23
BUDGET = 260
TICKETS, BATCH = 20_000, 1_000
NEEDLES = (1_234, 404, 9_999, 18_250, 13_337)
FONTS_OF_OTHERS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
"""Fonts that a picture would load from the network."""
WAIT_SECONDS = 30.0
"""What a busy machine may take until messages are embedded."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Question:
    """A question about what Nora said, and the words that answer it."""

    asked: str
    answer: str


QUESTIONS = (
    Question("What food must be avoided when a dinner is booked for Nora?", "allergic to shellfish"),
    Question("When does the choir rehearse?", "Tuesdays at seven"),
    Question("Who is in charge at the museum?", "My boss, Ingrid"),
    Question("FV-77120", "FV-77120"),
)
DINNER = "Book a dinner for Lotte and me. What must the kitchen know: allergies, diets?"
NEEDED = ("shellfish", "vegetarian")
"""What Nora said in two other conversations, and the kitchen must know."""
FACT = "user is allergic to shellfish"
CORRECTION = "Lotte eats fish again. What changes for the kitchen?"
WINDOW, LONG_TALK = 400, 60
"""The tokens of a window, and how many messages are too many for it."""


class Sidecar:
    """A `remora serve` process on a Unix socket in a temporary directory."""

    def __init__(self, directory: Path, remora: Path | None) -> None:
        self.endpoint = f"unix:{directory / 'remora.sock'}"
        model = ["--model-dir", str(MODEL)] if remora is None and MODEL.exists() else []
        self._command = [
            str(remora or REMORA), "serve", "--listen", self.endpoint, "--data", str(directory / "data"), *model,
            "--log-level", "warning",
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start it; the seconds until it answers."""
        began = time.perf_counter()
        self._process = subprocess.Popen(self._command)
        with Remora(self.endpoint, timeout=WAIT_SECONDS) as memory:
            memory.status()
        return time.perf_counter() - began

    def kill(self) -> None:
        """SIGKILL: no goodbye, no flush."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM: drain, apply, close."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(WAIT_SECONDS)


class Failed(Exception):
    """Something is not as the demonstration says."""


class Demonstration:
    """The steps, one after the other. Each shows what it found, and fails if that is not what it promises."""

    def __init__(self, sidecar: Sidecar, memory: Remora, console: Console) -> None:
        self._sidecar = sidecar
        self._memory = memory
        self._console = console
        self._seconds: dict[str, list[float]] = {}

    def run(self) -> None:
        """Run all steps."""
        self._start()
        self._converse(load())
        self._embed()
        self._recall()
        self._facts()
        self._receipts(self._context())
        self._overflow()
        self._find_among_many()
        self._latencies()

    def _say(self, text: str) -> None:
        self._console.print(f"\n[bold]{text}[/bold]")

    def _timed(self, what: str, call: Callable[[], Result]) -> tuple[Result, str]:
        """A call's result, and what it took as text."""
        began = time.perf_counter()
        result = call()
        seconds = time.perf_counter() - began
        self._seconds.setdefault(what, []).append(seconds)
        return result, f"{seconds * 1e3:.1f} ms"

    def _start(self) -> None:
        self._say("$ remora serve")
        self._console.print(f"It answers after {self._sidecar.start():.2f} s.")
        if not self._memory.status().model.name:
            raise Failed(f"this needs the embedding model: run {INSTALL}")

    def _converse(self, messages: Sequence[tuple[str, Message]]) -> None:
        """Append message by message; in the middle, kill the server and start it again."""
        names = list(dict.fromkeys(name for name, _ in messages))
        self._say(f"Nora talks to her assistant Otto: {len(messages)} messages in {len(names)} conversations.")
        for number, (name, message) in enumerate(messages, 1):
            chat = self._memory.conversation(name, user_id=USER)
            self._timed("append, on disk", partial(chat.append, message))
            if number == CRASH_AFTER:
                self._console.print(f"{number} messages are acknowledged. [red]kill -9[/red], now.")
                self._sidecar.kill()
                self._console.print(f"Started again: it answers after {self._sidecar.start():.2f} s.")
        for name, said in groupby(messages, key=lambda pair: pair[0]):
            kept = self._memory.conversation(name, user_id=USER).messages(None)
            if [message.text for message in kept] != [message.text for _, message in said]:
                raise Failed(f"{name} lacks what was acknowledged")
        self._console.print(f"[green]✓[/green] All {len(messages)} messages are there: nothing acknowledged was lost.")

    def _embed(self) -> None:
        self._memory.user(USER).search("ready?", k=1, index_wait=WAIT_SECONDS, timeout=2 * WAIT_SECONDS)

    def _recall(self) -> None:
        self._say("Four questions. Each is answered by what was said, in whatever conversation:")
        for question in QUESTIONS:
            found, took = self._timed("search", partial(self._memory.user(USER).search, question.asked, k=3))
            best = next((hit for hit in found if question.answer in hit.message.text), None)
            if best is None:
                raise Failed(f"{question.asked} is not answered")
            self._console.print(f"\n[cyan]? {question.asked}[/cyan]   [dim]{took}[/dim]")
            self._console.print(_answer(best, question.answer))

    def _facts(self) -> None:
        self._say("What Nora says of herself, found by patterns, and where she said it:")
        facts = self._memory.user(USER).facts
        for name in dict.fromkeys(name for name, _ in load()):
            for fact in facts.extract_from(name):
                self._console.print(f"  {fact.text}  [dim]({fact.sources[0].conversation_id})[/dim]")
        if FACT not in [fact.text for fact in facts.list_facts()]:
            raise Failed(f"this fact is missing: {FACT}")

    def _context(self) -> Context:
        chat = self._memory.conversation("dinner-at-the-opening", user_id=USER)
        chat.append({"role": "user", "content": DINNER})
        self._say(f"A new conversation. Its context for the model, with facts, in at most {BUDGET} tokens:")
        context, took = self._timed(
            "context", partial(chat.context, max_tokens=BUDGET, recall_scope="user", facts={"k": 1})
        )
        for word in (*NEEDED, FACT):
            if not any(word in item.message.text for item in context.items):
                raise Failed(f"the context lacks what Nora said: {word}")
        self._console.print(_context_table(context))
        exact = "exact in o200k_base" if context.exact else "approximate"
        self._console.print(
            f"{context.tokens_used} of {BUDGET} tokens, {exact}, {took}. No LLM and no network were used."
        )
        self._console.print(
            "[green]✓[/green] The shellfish and the vegetarian: said months ago, in two other conversations."
        )
        return context

    def _receipts(self, before: Context) -> None:
        """Replay the context after a message that changes the next one, and show what differs."""
        chat = self._memory.conversation("dinner-at-the-opening", user_id=USER)
        chat.append({"role": "assistant", "content": "No shellfish, and a vegetarian menu. Noted."})
        chat.append({"role": "user", "content": CORRECTION})
        after = chat.context(BUDGET, recall_scope="user", facts={"k": 1})
        self._say("Nora corrects herself. What did the model see before, and what does it see now?")
        replay, took = self._timed("replay", partial(self._memory.receipts.replay, before.receipt_id))
        if not replay.identical or replay.context is None or replay.context.messages != before.messages:
            raise Failed("the replayed context is another one")
        self._console.print(
            f"[green]✓[/green] The first context is replayed to the byte from its receipt, {took}. Since then:"
        )
        found = self._memory.receipts.diff(before.receipt_id, after.receipt_id)
        texts = {item.message.id: item.message.text for item in (*before.items, *after.items)}
        for mark, changes in (("[red]-", found.went_out), ("[green]+", found.came_in)):
            for change in changes:
                item = change.after or change.before
                said = texts[item.message_id] if item else ""
                self._console.print(f"  {mark} {said[:60]}[/]  [dim]{change.why}[/dim]")
        if CORRECTION not in [texts[change.after.message_id] for change in found.came_in if change.after]:
            raise Failed("what Nora said last did not come in")

    def _overflow(self) -> None:
        """Let a conversation grow beyond what its window holds."""
        self._say(f"A conversation whose window holds {WINDOW} tokens, and {LONG_TALK} messages:")
        chat = self._memory.conversation("minutes", user_id=USER, short_term=Summarize(WINDOW, keep_messages=6))
        for number in range(LONG_TALK):
            chat.append(Message("user", f"Ship model {number} of the museum needs {number % 5 + 2} metres of thread."))
        window = self._moved(chat)
        kept, everything = chat.messages(None), chat.messages(None, view="all")
        if len(everything) != LONG_TALK:
            raise Failed("messages are lost")
        self._console.print(f"  [dim]{' '.join(window.text.split())[:200]}…[/dim]")
        self._console.print(
            f"[green]✓[/green] {len(kept)} messages are in the window, behind a summary written without a model; "
            f"all {len(everything)} are still there."
        )

    def _moved(self, chat: Conversation) -> Summary:
        """The summary before the window, once what overflows has left it."""
        deadline = time.monotonic() + WAIT_SECONDS
        while sum(message.token_count for message in chat.messages(None)) > WINDOW:
            if time.monotonic() > deadline:
                raise Failed(f"the window does not move: {chat.window().failure}")
            time.sleep(0.05)
        summary = chat.window().summary
        if summary is None:
            raise Failed("no summary takes the place of what has left the window")
        return summary

    def _find_among_many(self) -> None:
        self._say(f"{TICKETS:,} support messages more, and some of them are wanted:")
        chat = self._memory.conversation("tickets", user_id="desk")
        began = time.perf_counter()
        for first in range(0, TICKETS, BATCH):
            chat.append([_ticket(number) for number in range(first, first + BATCH)], timeout=WAIT_SECONDS)
        seconds = time.perf_counter() - began
        self._console.print(f"Stored in {seconds:.1f} s: {TICKETS / seconds:,.0f} messages per second, each on disk.")
        desk = self._memory.user("desk")
        for number in NEEDLES:
            wanted = f"ticket {number}"
            found, took = self._timed(
                f"search by words among {TICKETS:,}",
                partial(desk.search, wanted, k=1, profile="lexical", timeout=WAIT_SECONDS),
            )
            if f"{wanted} " not in found.hits[0].message.text:
                raise Failed(f"{wanted} is not the first hit")
        self._console.print(f"\n[cyan]? {wanted}[/cyan]   [dim]{took}[/dim]")
        self._console.print(_answer(found.hits[0], wanted))

    def _latencies(self) -> None:
        self._say("What the calls took, from the client's side:")
        table = Table("call", box=None, pad_edge=False)
        for column in ("calls", "median", "slowest"):
            table.add_column(column, justify="right")
        for what, taken in self._seconds.items():
            table.add_row(
                what, str(len(taken)), f"{statistics.median(taken) * 1e3:.1f} ms", f"{max(taken) * 1e3:.1f} ms"
            )
        self._console.print(table)


def load() -> list[tuple[str, Message]]:
    """The sample messages with their conversations: Nora and her assistant Otto, from March to September 2026."""
    rows = json.loads((HERE / "conversation.json").read_text("utf-8"))
    return [(row["sitting"], _message(row)) for row in rows]


def _message(row: dict[str, Any]) -> Message:
    return Message(
        row["role"],
        row["text"],
        name=row.get("name", ""),
        sent_time=datetime.fromisoformat(row["sent"]),
        tool_calls=tuple(
            ToolCall(call["id"], call["name"], call["arguments"].encode()) for call in row.get("calls", ())
        ),
        tool_result_ids=(row["answers"],) if "answers" in row else (),
    )


def _ticket(number: int) -> Message:
    what = ("The invoice is wrong", "The parcel is late", "The login fails", "The heating is cold")[number % 4]
    return Message("user", f"{what}, see ticket {number} of room {number * 7 % 400}.")


def _answer(hit: Hit, answer: str) -> Text:
    """A hit on one line, with the answer marked."""
    message = hit.message
    said = Text(f"  {message.text}")
    said.highlight_regex(re.escape(answer), "bold green")
    when = f"{message.sent_time:%d %B}" if message.sent_time else ""
    source = ", ".join(filter(None, (message.name or message.role, when, hit.conversation_id)))
    return said.append(f"  ({source})", style="dim")


def _context_table(context: Context) -> Table:
    table = Table(expand=True, show_lines=False)
    table.add_column("tokens", justify="right")
    table.add_column("from")
    table.add_column("message", ratio=1)
    for item in context.items:
        said = Text(item.message.text)
        said.highlight_regex("|".join(NEEDED), "bold green")
        when = f", {item.message.sent_time:%d %b}" if item.message.sent_time else ""
        table.add_row(str(item.tokens), f"{item.conversation_id or item.section}{when}", said)
    return table


def main() -> int:
    """Run the demonstration; 0 if everything held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--svg", type=Path, metavar="FILE", help="also write a picture of the terminal")
    parser.add_argument(
        "--remora",
        type=Path,
        metavar="PROGRAM",
        help="another `remora`, with a model of its own (default: this clone's)",
    )
    given = parser.parse_args()
    console = Console(highlight=False, width=110, record=given.svg is not None)
    directory = Path(tempfile.mkdtemp(prefix="remora-demo-"))
    sidecar = Sidecar(directory, given.remora)
    try:
        with Remora(sidecar.endpoint, timeout=10.0) as memory:
            Demonstration(sidecar, memory, console).run()
        sidecar.stop()
    except Failed as failure:
        console.print(f"[red]FAILED[/red]: {failure}")
        return 1
    finally:
        with suppress(ProcessLookupError):
            sidecar.kill()
        shutil.rmtree(directory, ignore_errors=True)
    if given.svg is not None:
        given.svg.write_text(FONTS_OF_OTHERS.sub("", console.export_svg(title="make demo")))
    console.print("\nNothing is left running, and nothing on disk.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
