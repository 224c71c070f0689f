"""Queries made of other texts: with typing errors, in quotation marks, within a paragraph."""

from __future__ import annotations

import random
import re

from benchmarks.queries import material

LONGEST_WITHOUT_ERROR = 4
ERRORS = 2
QUOTED_WORDS = (3, 5)
_KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_WORD = re.compile(r"[A-Za-z]+")


def misspelled(text: str, chance: random.Random) -> str:
    """The text with typing errors in two of its longer words."""
    able = [match for match in _WORD.finditer(text) if len(match[0]) > LONGEST_WITHOUT_ERROR]
    wrong = chance.sample(able, min(ERRORS, len(able)))
    for match in sorted(wrong, key=re.Match.start, reverse=True):
        text = text[: match.start()] + _mistyped(match[0], chance) + text[match.end() :]
    return text


def quoted(text: str, chance: random.Random) -> str:
    """Some words that follow each other, in quotation marks."""
    words = text.rstrip(".!?").split()
    length = chance.randint(*QUOTED_WORDS)
    start = chance.randrange(max(1, len(words) - length))
    return '"' + " ".join(words[start : start + length]).strip(",:;") + '"'


def paragraph(question: str, chance: random.Random) -> str:
    """The question within a long message of about a hundred words."""
    parts = material.sections("paragraphs.txt")
    before, after = chance.sample(parts["before"], 2), chance.choice(parts["after"])
    return " ".join([*before, chance.choice(parts["question"]).format(question=question), after])


def _mistyped(word: str, chance: random.Random) -> str:
    at = chance.randrange(1, len(word) - 1)
    match chance.randrange(4):
        case 0:
            return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        case 1:
            return word[:at] + word[at + 1 :]
        case 2:
            return word[:at] + word[at] + word[at:]
        case _:
            return word[:at] + _beside(word[at], chance) + word[at + 1 :]


def _beside(letter: str, chance: random.Random) -> str:
    """A key beside that of a letter."""
    for row in _KEYS:
        at = row.find(letter.lower())
        if at >= 0:
            return chance.choice(row[max(0, at - 1) : at] + row[at + 1 : at + 2])
    return letter
