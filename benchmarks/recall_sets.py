"""Conversations with questions whose evidence is known: LoCoMo's own JSON, or two files of JSON lines.

The lines are {conv, id, session, pos, speaker, text, caption, when} for what was said, and {qa_id, conv, question,
evidence} for questions, with a `category` where they have one. Ids are strings or integers; `conv`, `id`, `text`,
`qa_id` and `question` are required, all others may be null or missing. LoCoMo: Maharana et al., "Evaluating Very
Long-Term Conversational Memory of LLM Agents", ACL 2024.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.recall_records import Record, SetError, lines, parsed, record, text

from remora import Message

ROLES = frozenset({"user", "assistant", "system", "tool"})
TURNS, QUESTIONS = ".turns.jsonl", ".qa.jsonl"
ADVERSARIAL = "5"
"""LoCoMo's questions that have no answer: they are listed, and left out of the whole."""
ID_BYTES = 512
TEXT_BYTES, NAME_BYTES, QUESTION_BYTES = 1 << 20, 256, 32 << 10
"""What the API takes of a message's text, of a name and of a query."""
_SESSION = re.compile(r"session_(\d+)")
_EVIDENCE = re.compile(r"D:?(\d+):0*(\d+)")


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


@dataclass(slots=True)
class RecallSet:
    """All conversations of a set, and what its own rules say of it."""

    name: str
    talks: list[Talk]
    left_out: frozenset[str]
    """The categories that are left out of the whole."""
    notes: list[str]
    """What of the files could not be taken as it is, a line for each."""


def load(path: Path) -> RecallSet:
    """The set of a LoCoMo file, or of a `.turns.jsonl` file with a `.qa.jsonl` beside it.

    Texts, names and questions that are longer than the API takes are cut, and noted. Raises SetError for what cannot be
    read.
    """
    if path.name.endswith(TURNS):
        set_name = path.name.removesuffix(TURNS)
        return _read(set_name, lines(path), lines(path.with_name(set_name + QUESTIONS)), frozenset())
    samples = _samples(path)
    turns = [turn for sample in samples for turn in _locomo_turns(sample)]
    questions = [asked for sample in samples for asked in _locomo_questions(sample)]
    return _read(path.stem, turns, questions, frozenset({ADVERSARIAL}))


def _read(name: str, turns: Iterable[Record], questions: Iterable[Record], left_out: frozenset[str]) -> RecallSet:
    notes: list[str] = []
    by_talk: dict[str, list[Record]] = defaultdict(list)
    for turn in turns:
        by_talk[_id(turn, "conv")].append(turn)
    talks = {conv: Talk(conv, _messages(own, notes)) for conv, own in by_talk.items()}
    known = {conv: {message.id for message in talk.messages} for conv, talk in talks.items()}
    asked_before: set[str] = set()
    for asked in questions:
        conv = asked.required("conv")
        if conv not in talks:
            raise asked.error("conv", f"{conv!r} is no conversation of the set")
        question = _question(asked, notes)
        if question.id in asked_before:
            raise asked.error("qa_id", f"{question.id!r} is another question's, too")
        asked_before.add(question.id)
        if unknown := [one for one in question.evidence if one not in known[conv]]:
            notes.append(f"{asked.place}: evidence: {len(unknown)} ids are no messages of {conv!r}: never found")
        talks[conv].questions.append(question)
    return RecallSet(name, list(talks.values()), left_out, notes)


def _messages(turns: Sequence[Record], notes: list[str]) -> list[Message]:
    messages: dict[str, Message] = {}
    for turn in _in_order(turns):
        message = _message(turn, notes)
        if message.id in messages:
            notes.append(f"{turn.place}: id: {message.id!r} is another message's, too: this one is left out")
        else:
            messages[message.id] = message
    return list(messages.values())


def _in_order(turns: Sequence[Record]) -> list[Record]:
    """By position in the conversation or, where positions repeat, in the session, of which the file gives the order.

    Turns without a position follow the one before them in the file.
    """
    given = [turn.number("pos") for turn in turns]
    numbers = [number for number in given if number is not None]
    sessions = {session: at for at, session in enumerate(dict.fromkeys(turn.word("session") for turn in turns))}
    repeat = len(set(numbers)) < len(numbers)
    places: list[tuple[int, float]] = []
    last = -math.inf
    for turn, number in zip(turns, given, strict=True):
        last = last if number is None else number
        places.append((sessions[turn.word("session")] if repeat else 0, last))
    return [turns[at] for at in sorted(range(len(turns)), key=places.__getitem__)]


def _message(turn: Record, notes: list[str]) -> Message:
    """A turn as an application would append it: people are named, roles are not."""
    speaker, said, caption = turn.word("speaker"), turn.present("text"), turn.word("caption")
    role = speaker.lower()
    is_role = role in ROLES
    return Message(
        role if is_role else "user",
        _fitting(turn, "text", f"{said} [image: {caption}]" if caption else said, TEXT_BYTES, notes),
        name="" if is_role else _fitting(turn, "speaker", speaker, NAME_BYTES, notes),
        id=_id(turn, "id"),
        session_id=_short(turn, "session", turn.word("session")),
        sent_time=turn.time("when"),
    )


def _question(asked: Record, notes: list[str]) -> Question:
    words = _fitting(asked, "question", asked.present("question"), QUESTION_BYTES, notes)
    if not words:
        notes.append(f"{asked.place}: question: is empty: it is not asked, and finds nothing")
    return Question(asked.required("qa_id"), words, asked.word("category"), asked.words("evidence"))


def _id(of: Record, name: str) -> str:
    return _short(of, name, of.required(name))


def _short(of: Record, name: str, value: str) -> str:
    """An id as it is: one that is cut might be another's."""
    encoded = value.encode("utf-8", "replace")
    if len(encoded) > ID_BYTES or encoded.decode() != value:
        raise of.error(name, f"is not a text of at most {ID_BYTES} bytes")
    return value


def _fitting(of: Record, name: str, value: str, most: int, notes: list[str]) -> str:
    """As much as the API takes of a text, in whole characters."""
    encoded = value.encode("utf-8", "replace")
    if len(encoded) > most:
        notes.append(f"{of.place}: {name}: has {len(encoded):,} bytes: cut to {most:,}")
    return encoded[:most].decode("utf-8", "ignore")


def _samples(path: Path) -> list[Record]:
    samples = parsed(str(path), text(path))
    if not isinstance(samples, list):
        raise SetError(f"{path}: is not a list of samples")
    return [record(f"{path}: sample {number}", sample) for number, sample in enumerate(samples, 1)]


def _locomo_turns(sample: Record) -> Iterator[Record]:
    """The lines that a sample would be."""
    conversation = record(f"{sample.place}, conversation", sample.fields.get("conversation"))
    for session, turns in _sessions(conversation):
        for number, value in enumerate(turns, 1):
            turn = record(f"{conversation.place}, {session}, turn {number}", value)
            yield Record(
                turn.place,
                {
                    "conv": sample.required("sample_id"),
                    "id": turn.fields.get("dia_id"),
                    "session": session,
                    "speaker": turn.fields.get("speaker"),
                    "text": turn.fields.get("text"),
                    "caption": turn.fields.get("blip_caption"),
                    "when": conversation.fields.get(f"{session}_date_time"),
                },
            )


def _sessions(conversation: Record) -> Iterator[tuple[str, list[Any]]]:
    found = {int(match[1]): key for key in conversation.fields if (match := _SESSION.fullmatch(key))}
    for number in sorted(found):
        yield found[number], _list(conversation, found[number])


def _locomo_questions(sample: Record) -> Iterator[Record]:
    known = {turn.required("id") for turn in _locomo_turns(sample)}
    for number, value in enumerate(_list(sample, "qa")):
        asked = record(f"{sample.place}, question {number}", value)
        evidence = [turn for turn in _locomo_evidence(asked) if turn in known]
        yield Record(
            asked.place,
            {
                "qa_id": f"{sample.required('sample_id')}/{number}",
                "conv": sample.required("sample_id"),
                "question": asked.fields.get("question"),
                "category": asked.fields.get("category"),
                "evidence": evidence,
            },
        )


def _locomo_evidence(asked: Record) -> Iterator[str]:
    """Turn ids, which are written in several ways."""
    for raw in _list(asked, "evidence"):
        for session, turn in _EVIDENCE.findall(str(raw)):
            yield f"D{int(session)}:{int(turn)}"


def _list(of: Record, name: str) -> list[Any]:
    value = of.fields.get(name) or []
    if not isinstance(value, list):
        raise of.error(name, "is not a list")
    return value
