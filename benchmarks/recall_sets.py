"""Conversations with questions whose evidence is known: LoCoMo's own JSON, or two files of JSON lines.

The lines are {conv, id, session, pos, speaker, text, caption, when} for what was said, and {qa_id, conv, question,
evidence} for questions, with a `category` where they have one. LoCoMo: Maharana et al., "Evaluating Very Long-Term
Conversational Memory of LLM Agents", ACL 2024.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from remora import Message

ROLES = frozenset({"user", "assistant", "system", "tool"})
TURNS, QUESTIONS = ".turns.jsonl", ".qa.jsonl"
_SESSION = re.compile(r"session_(\d+)")
_EVIDENCE = re.compile(r"D:?(\d+):0*(\d+)")
_LOCOMO_TIME = "%I:%M %p on %d %B, %Y"


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the ids of the messages that answer it; those without any are not scored."""

    id: str
    text: str
    category: str
    evidence: tuple[str, ...]


@dataclass(slots=True)
class Talk:
    """One conversation in order, and what is asked of it."""

    id: str
    messages: list[Message] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)


def load(path: Path) -> list[Talk]:
    """The conversations of a LoCoMo file, or of a `.turns.jsonl` file with a `.qa.jsonl` beside it."""
    if path.name.endswith(TURNS):
        return _of_lines(_lines(path), _lines(path.with_name(path.name.removesuffix(TURNS) + QUESTIONS)))
    return [_of_locomo(sample) for sample in json.loads(path.read_text("utf-8"))]


def name(path: Path) -> str:
    """What figures of the set are called."""
    return path.name.removesuffix(TURNS) if path.name.endswith(TURNS) else path.stem


def _of_locomo(sample: dict[str, Any]) -> Talk:
    talk = Talk(sample["sample_id"])
    for session, turns in _sessions(sample["conversation"]):
        when = datetime.strptime(sample["conversation"][f"{session}_date_time"], _LOCOMO_TIME).replace(tzinfo=UTC)
        talk.messages += [
            _message(
                turn["dia_id"], session, turn["speaker"], turn["text"], caption=turn.get("blip_caption"), when=when
            )
            for turn in turns
        ]
    known = {message.id for message in talk.messages}
    for number, asked in enumerate(sample["qa"]):
        evidence = tuple(dict.fromkeys(turn for turn in _locomo_evidence(asked) if turn in known))
        talk.questions.append(Question(f"{talk.id}/{number}", str(asked["question"]), str(asked["category"]), evidence))
    return talk


def _sessions(conversation: dict[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    found = {int(match[1]): key for key in conversation if (match := _SESSION.fullmatch(key))}
    for number in sorted(found):
        yield found[number], conversation[found[number]]


def _locomo_evidence(asked: dict[str, Any]) -> Iterator[str]:
    """Turn ids, which are written in several ways."""
    for raw in asked.get("evidence") or ():
        for session, turn in _EVIDENCE.findall(str(raw)):
            yield f"D{int(session)}:{int(turn)}"


def _of_lines(turns: list[dict[str, Any]], questions: list[dict[str, Any]]) -> list[Talk]:
    by_talk: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for turn in turns:
        by_talk[turn["conv"]].append(turn)
    talks = {conv: Talk(conv, [_of_line(turn) for turn in sorted(own, key=_place)]) for conv, own in by_talk.items()}
    for asked in questions:
        talks[asked["conv"]].questions.append(
            Question(asked["qa_id"], asked["question"], str(asked.get("category", "")), tuple(asked["evidence"]))
        )
    return list(talks.values())


def _place(turn: dict[str, Any]) -> int:
    position: int = turn["pos"]
    return position


def _of_line(turn: dict[str, Any]) -> Message:
    when = datetime.fromisoformat(turn["when"]) if turn.get("when") else None
    if when is not None and when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    session = "" if turn.get("session") is None else str(turn["session"])
    return _message(turn["id"], session, turn["speaker"], turn["text"], caption=turn.get("caption"), when=when)


def _message(
    message_id: str, session: str, speaker: str, text: str, *, caption: str | None, when: datetime | None
) -> Message:
    """A turn as an application would append it: people are named, roles are not."""
    is_role = speaker.lower() in ROLES
    return Message(
        speaker.lower() if is_role else "user",
        f"{text} [image: {caption}]" if caption else text,
        name="" if is_role else speaker,
        id=message_id,
        session_id=session,
        sent_time=when,
    )


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
