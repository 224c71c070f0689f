"""The code of the documents about the Python client runs, and does what they say."""

import inspect
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import remora
from remora import Message, Remora, Trim
from remora.errors import InvalidFieldError

ROOT = Path(__file__).resolve().parents[2]
CONCEPTS = ROOT / "docs" / "concepts.md"
SAID = {
    "connect": "CONVERSATION_NOT_FOUND",
    "workflow": "continuing at step 1 with {'sum': 20}",
    "history": "Yes, for 90 days. ['search'] ['agent:start']",
    "vectors": "A visa for Portugal takes six weeks.",
}
"""What each block of docs/python.md prints, in their order."""


def code_of(page: Path) -> list[str]:
    """The blocks of Python on a page, in their order."""
    return re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("block", "said"), list(zip(code_of(ROOT / "docs" / "python.md"), SAID.values(), strict=True)), ids=SAID
)
def test_each_block_of_the_page_runs_alone(block: str, said: str, tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text(block, "utf-8")

    done = subprocess.run([sys.executable, str(script)], check=False, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert said in done.stdout


def test_the_readme_of_the_package_gives_a_model_what_it_gets(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REMORA_ENDPOINT", endpoint)
    [block] = code_of(ROOT / "clients" / "python" / "README.md")

    made = ran(block)

    assert made["context"].messages == [{"role": "user", "content": "Can I work abroad?"}]


def test_the_reference_of_the_client_shows_what_users_call_and_nothing_of_the_wire() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text("utf-8")
    shown = re.findall(r"^## (\w+)$", page, re.MULTILINE)
    asynchronous = re.findall(r"`(Async\w+)`", page.partition("\n## ")[0])

    assert {*shown, *asynchronous} == {name for name in remora.__all__ if inspect.isclass(getattr(remora, name))}
    assert re.findall(r"\w+_proto\b|\w+_pb2\b|\bCalls\b|Annotated\[", page) == []


def ran(block: str, **names: object) -> dict[str, Any]:
    """The names after a block, which begins with these."""
    given: dict[str, Any] = dict(names)
    exec(compile(block, "<page>", "exec"), given)
    return given


def concept(words: str) -> str:
    """The one block of the concepts that has these words."""
    [found] = [block for block in code_of(CONCEPTS) if words in block]
    return found


def shown(block: str, words: str) -> str:
    """The expression of the one line of a block that has these words, without what is said of it."""
    [line] = [line for line in block.splitlines() if words in line]
    return line.partition("#")[0].strip()


def test_the_concepts_have_no_code_that_is_not_run() -> None:
    tried = ("receipts.replay", "FactSource", "blocks.update", "profile", "Trim", "summarize", "memory.trim")

    assert sorted(map(concept, tried)) == sorted(code_of(CONCEPTS))


def test_a_receipt_gives_the_same_context_and_says_what_came_in(
    memory: Remora, capsys: pytest.CaptureFixture[str]
) -> None:
    chat = memory.conversation("support-42", user_id="sarah")
    chat.append({"role": "user", "content": "Can I work abroad?"})
    earlier = chat.context(4000)
    chat.append({"role": "assistant", "content": "Yes, for 90 days."})

    made = ran(concept("receipts.replay"), memory=memory, chat=chat, earlier=earlier)

    again = memory.receipts.replay(made["context"].receipt_id).context
    assert again is not None
    assert again.messages == made["context"].messages
    assert "Yes, for 90 days." not in earlier.text
    assert "1 unchanged" in capsys.readouterr().out


def test_facts_are_what_is_shown_at_each_time(memory: Remora) -> None:
    now = datetime.now(UTC)
    times = {
        "two_years_ago": now - timedelta(days=730),
        "last_year": now - timedelta(days=365),
        "yesterday": now - timedelta(days=1),
    }
    block = concept("FactSource")

    made = ran(block, memory=memory, **times)

    [line] = [line for line in block.splitlines() if line.startswith("[fact.text")]
    assert eval(line.partition("#")[0], made) == re.findall(r"'([^']+)'", line)
    [then] = eval(shown(block, "valid_at"), made)
    assert then.object == "Berlin"
    assert eval(shown(block, "recorded_at"), made) == []


def test_blocks_remember_for_another_session(memory: Remora) -> None:
    made = ran(concept("blocks.update"), memory=memory)

    assert [fact.object for fact in made["content"].extracted_facts] == ["Colombo"]
    assert made["prompt"].startswith("You are an HR assistant.\n\n<memory>")
    assert made["blocks"].get("session-2", "Where do I live?").extracted_facts == []


def test_a_working_memory_refuses_what_does_not_match_its_schema(memory: Remora) -> None:
    made = ran(concept("profile"), memory=memory)

    assert '"likes"' in made["prompt"]
    assert made["profile"].get().json() == {"likes": ["tea"]}
    with pytest.raises(InvalidFieldError, match="schema"):
        made["profile"].edit({"likes": "tea"})


def test_a_policy_belongs_to_the_conversation(memory: Remora) -> None:
    made = ran(concept("Trim"), memory=memory)
    made["chat"].append({"role": "user", "content": "hello"})

    assert made["chat"].get().short_term == Trim(8_000, keep_tokens=4_000)


def test_a_summary_is_written_by_the_callers_model(memory: Remora) -> None:
    chat = memory.conversation("long", user_id="sarah")
    chat.append([{"role": "user", "content": f"number {number}"} for number in range(12)])

    ran(concept("summarize"), chat=chat, llm=lambda _instruction, _text: "Numbers.")

    summary = chat.window().summary
    assert summary is not None
    assert summary.text == "Numbers."


def test_a_history_is_trimmed_checked_and_cleared(memory: Remora) -> None:
    messages = [Message("user", "hello"), Message("assistant", "hi")]

    made = ran(concept("memory.trim"), memory=memory, messages=messages)

    assert (made["left"].messages, made["left"].dropped) == (messages, ())
    assert list(made["faults"]) == []
    assert made["view"].messages == messages
    assert made["view"].tokens_after == made["left"].tokens
