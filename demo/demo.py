"""Shows what Remora does, on this machine: a conversation, a crash, recall, and a context under a budget."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from remora import Conversation, Message, Remora, ToolCall

HERE = Path(__file__).resolve().parent
MODEL = HERE.parent / ".cache" / "model"
REMORA = Path(sys.executable).with_name("remora")
USER = "nora"
CRASH_AFTER = 23
BUDGET = 320
QUESTIONS = (
    "What food must be avoided when a dinner is booked for Nora?",
    "When does the choir rehearse?",
    "Which ferry did Nora take with the cat?",
)

console = Console(highlight=False, width=118)


class Sidecar:
    """A `remora serve` process on a Unix socket in a temporary directory."""

    def __init__(self, directory: Path) -> None:
        self.endpoint = f"unix:{directory / 'remora.sock'}"
        self._command = [
            str(REMORA), "serve", "--listen", self.endpoint, "--data", str(directory / "data"),
            "--model-dir", str(MODEL), "--log-level", "warning",
        ]  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> float:
        """Start it; the seconds until it answers."""
        began = time.monotonic()
        self._process = subprocess.Popen(self._command)
        with Remora(self.endpoint, timeout=30.0) as memory:
            memory.status()
        return time.monotonic() - began

    def kill(self) -> None:
        """SIGKILL: no goodbye, no flush."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM: drain, apply, close."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(30)


def load() -> list[Message]:
    """The sample conversation: Nora and her assistant Otto, four sittings between March and September 2026."""
    return [_message(row) for row in json.loads((HERE / "conversation.json").read_text("utf-8"))]


def _message(row: dict[str, Any]) -> Message:
    return Message(
        row["role"],
        row["text"],
        name=row.get("name", ""),
        sent_time=datetime.fromisoformat(row["sent"]),
        session_id=row["sitting"],
        tool_calls=tuple(
            ToolCall(call["id"], call["name"], call["arguments"].encode()) for call in row.get("calls", ())
        ),
        tool_result_ids=(row["answers"],) if "answers" in row else (),
    )


def say(text: str) -> None:
    """A step of the demonstration, in plain words."""
    console.print(f"\n[bold]{text}[/bold]")


def converse(sidecar: Sidecar, chat: Conversation, messages: list[Message]) -> None:
    """Append message by message; in the middle, kill the server and start it again."""
    acknowledged = []
    for number, message in enumerate(messages, 1):
        [placed] = chat.append(message).messages
        acknowledged.append((placed.sequence, placed.id, message.text))
        if number == CRASH_AFTER:
            say(f"{number} messages acknowledged. Killing the server with SIGKILL, now.")
            sidecar.kill()
            console.print(f"Started again; it answers after {sidecar.start():.2f} s.")
    kept = [(message.sequence, message.id, message.text) for message in chat.messages(limit=None)]
    if kept != acknowledged:
        raise SystemExit("LOST: what the server holds is not what it acknowledged")
    console.print(f"All {len(kept)} acknowledged messages are there, in order, byte for byte: nothing was lost.")


def show_recall(chat: Conversation) -> None:
    """Three questions, and the messages recalled for each."""
    for question in QUESTIONS:
        found = chat.search(question, k=3, index_wait=10.0, timeout=20.0)
        table = Table(title=f"“{question}”", title_justify="left", title_style="bold cyan", expand=True)
        table.add_column("score", justify="right")
        table.add_column("who")
        table.add_column("when")
        table.add_column("said", ratio=1)
        for hit in found.hits:
            when = f"{hit.message.sent_time:%d %b %Y}" if hit.message.sent_time else ""
            table.add_row(f"{hit.score:.3f}", hit.message.name or hit.message.role, when, hit.message.text)
        console.print(table)
    how = "by words alone" if found.index.words_only else f"by meaning ({found.index.model}) and by words"
    console.print(f"Found {how}; no LLM and no network were asked.")


def show_context(chat: Conversation) -> None:
    """The context for the newest question, under a budget."""
    context = chat.context(max_tokens=BUDGET, recall={"k": 8}, recent_messages=6, index_wait=10.0, timeout=20.0)
    table = Table(expand=True)
    table.add_column("tokens", justify="right")
    table.add_column("why it is there")
    table.add_column("message", ratio=1)
    for item in context.items:
        calls = ", ".join(f"calls {call.name}" for call in item.message.tool_calls)
        table.add_row(str(item.tokens), item.reason, item.message.text or calls)
    console.print(table)
    console.print(
        f"{context.tokens_used} of {BUDGET} tokens used ({context.overhead_tokens} of them overhead), "
        f"{'exact' if context.exact else 'approximate'} in o200k_base; {context.left_out} candidates left out."
    )


def show_tokens(memory: Remora) -> None:
    """Exact token counts in two encodings."""
    texts = ["Can I work abroad?", "Übermorgen fährt die Fähre.", "明日の船は何時ですか？", "def f(x): return x ** 2"]
    table = Table("text", "o200k_base", "cl100k_base")
    counts = [memory.count_tokens(texts, encoding=name).counts for name in ("o200k_base", "cl100k_base")]
    for row in zip(texts, *counts, strict=True):
        table.add_row(row[0], *map(str, row[1:]))
    console.print(table)


def main() -> int:
    """Run the demonstration; 0 when everything held."""
    directory = Path(tempfile.mkdtemp(prefix="remora-demo-"))
    sidecar = Sidecar(directory)
    try:
        say(f"Starting a sidecar on a Unix socket in {directory}.")
        console.print(f"It answers after {sidecar.start():.2f} s.")
        with Remora(sidecar.endpoint, timeout=10.0) as memory:
            chat = memory.conversation("nora-and-otto", user_id=USER)
            messages = load()
            say(f"Playing a conversation of {len(messages)} messages in four sittings: Nora and her assistant Otto.")
            converse(sidecar, chat, messages)
            say("Three questions, and what is recalled for each:")
            show_recall(chat)
            say(f"The context for Nora's last message, under {BUDGET} tokens:")
            show_context(chat)
            say("Exact token counts:")
            show_tokens(memory)
        sidecar.stop()
    finally:
        sidecar.kill()
        shutil.rmtree(directory, ignore_errors=True)
    say("Done. Nothing is left running, and nothing on disk.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
