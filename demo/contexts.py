"""Contexts of five kinds of conversations, for people and as a model gets them: `python demo/contexts.py`."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from remora import Context, Conversation, Message, Remora
from remora.errors import BudgetTooSmallError
from remora.testing import serve

MODEL = Path(__file__).resolve().parents[1] / ".cache" / "model"
MONDAY = datetime(2026, 5, 4, 9, tzinfo=UTC)
SUPPORT = "You are the travel desk. Answer in one sentence."


def talk(chat: Conversation, lines: str, begin: datetime = MONDAY) -> None:
    """Append lines of a user and the assistant by turns, a minute apart."""
    for number, line in enumerate(lines.strip().splitlines()):
        role = ("user", "assistant")[number % 2]
        chat.append(Message(role, line.strip(), sent_time=begin + timedelta(minutes=number)))


def long_support_talk(memory: Remora) -> Context:
    """A support conversation over weeks, whose new question needs an old answer."""
    chat = memory.conversation("support", user_id="sarah")
    chat.append({"role": "system", "content": SUPPORT})
    talk(
        chat, "My passport number is X1234567.\nNoted.\nI never fly before ten in the morning.\nNo early flights, then."
    )
    small = "\n".join(f"What is the weather in city {number}?\nIt is {number} degrees there." for number in range(40))
    talk(chat, small, MONDAY + timedelta(days=14))
    chat.append({"role": "user", "content": "When may my flight to Lisbon leave?"})
    return chat.context(260, recall={"k": 3}, index_wait=10)


def agent_with_large_result(memory: Remora) -> Context:
    """An agent whose tool returned more than the budget holds."""
    chat = memory.conversation("agent", user_id="tom")
    call = {"id": "call_1", "type": "function", "function": {"name": "read_log", "arguments": '{"path": "build.log"}'}}
    chat.append({"role": "user", "content": "Why does the build fail?"})
    chat.append({"role": "assistant", "content": None, "tool_calls": [call]})
    log = "\n".join(f"step {number}: compiling module_{number}.c ... ok" for number in range(400))
    chat.append({"role": "tool", "tool_call_id": "call_1", "content": log})
    try:
        return chat.context(300)
    except BudgetTooSmallError as error:
        print(f"refused: {error}\n")
        return chat.context(300, allow_partial=True)


def other_conversation(memory: Remora) -> Context:
    """A new conversation, whose question was answered in another one."""
    talk(memory.conversation("april", user_id="ann"), "I am allergic to shellfish.\nI will remember that.")
    chat = memory.conversation("dinner", user_id="ann")
    chat.append({"role": "user", "content": "Book a table. Mind what I am allergic to."})
    return chat.context(400, recall_scope="user", system=SUPPORT, index_wait=10)


def pictures(memory: Remora) -> Context:
    """Pictures of known and of unknown size, and a sound."""
    chat = memory.conversation("pictures", user_id="bob")
    small = "data:image/gif;base64,R0lGODlhAAQAA4AAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
    content = [
        {"type": "text", "text": "What is in these?"},
        {"type": "image_url", "image_url": {"url": small}},
        {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
    ]
    chat.append({"role": "user", "content": content})
    return chat.context(2000, model="gpt-4o")


def about_nothing(memory: Remora) -> Context:
    """A question about something that nobody ever said."""
    chat = memory.conversation("nothing", user_id="eve")
    talk(
        chat,
        "My sister lives in Oslo.\nIt is cold there.\nI like jazz.\nWho is your favourite?\nMiles Davis.\nMine, too.",
    )
    return chat.context(400, query="What is the boiling point of tungsten?", recent_messages=0, index_wait=10)


KINDS: tuple[Callable[[Remora], Context], ...] = (
    long_support_talk,
    agent_with_large_result,
    other_conversation,
    pictures,
    about_nothing,
)


def main() -> None:
    """Show all of them."""
    with serve("--model-dir", str(MODEL)) as endpoint, Remora(endpoint, timeout=60) as memory:
        for kind in KINDS:
            print(f"# {kind.__doc__}\n")
            context = kind(memory)
            print(f"{context}\n")
            for message in context.messages:
                print(shown(json.dumps(message, ensure_ascii=False)))
            print()


def shown(line: str) -> str:
    """The beginning and the end of a long line."""
    return line if len(line) <= 400 else f"{line[:300]} ... {line[-90:]}"


if __name__ == "__main__":
    main()
