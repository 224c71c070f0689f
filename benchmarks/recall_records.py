"""Records of a set, read field by field: what cannot be read is said with its file, record and field."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

TIMES = (
    "%I:%M %p on %d %B, %Y",
    "%Y/%m/%d (%a) %H:%M",
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
    "%d %B %Y",
    "%d %B, %Y",
    "%B %d, %Y",
    "%B %d, %Y %H:%M",
    "%B %d, %Y %I:%M %p",
)
"""How times are written beside ISO 8601 and the dates of mail (RFC 5322). The first is LoCoMo's."""
FIRST_SECONDS = 1e8
"""Of March 1973: a smaller number is a day, a year or a place in a list, not a time."""
FIRST_MILLISECONDS = 1e11
"""From here on a number counts milliseconds since 1970, else seconds, which reach it in the year 5138."""

_READERS: Sequence[Callable[[str], datetime]] = (
    datetime.fromisoformat,
    *(lambda words, form=form: datetime.strptime(words, form).replace(tzinfo=UTC) for form in TIMES),
    parsedate_to_datetime,
)


class SetError(Exception):
    """A set that cannot be read; the message is one line that names file, record and field."""


@dataclass(frozen=True, slots=True)
class Record:
    """The fields of one record, and its place in the file."""

    place: str
    fields: Mapping[str, Any]

    def error(self, field: str, problem: str) -> SetError:
        """What is wrong with a field."""
        return SetError(f"{self.place}: {field}: {problem}")

    def required(self, field: str) -> str:
        """A word that is not empty: an id."""
        if not (word := self.word(field)):
            raise self.error(field, "is missing")
        return word

    def present(self, field: str) -> str:
        """A text that may be empty or null, of a field that is there."""
        if field not in self.fields:
            raise self.error(field, "is missing")
        return self.word(field)

    def word(self, field: str) -> str:
        """A string or an integer, as a string; empty where it is null or missing."""
        return self._as_word(field, self.fields.get(field))

    def words(self, field: str) -> tuple[str, ...]:
        """A list of words, or one; each once."""
        value = self.fields.get(field)
        several = value if isinstance(value, list) else [value]
        return tuple(dict.fromkeys(word for one in several if (word := self._as_word(field, one))))

    def _as_word(self, field: str, value: object) -> str:
        if value is None:
            return ""
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise self.error(field, f"is {_shown(value)}, not a string or an integer")
        return str(value)

    def number(self, field: str) -> float | None:
        """A number, or one in a string."""
        value = self.fields.get(field)
        if value is None or value == "":
            return None
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise self.error(field, f"is {_shown(value)}, not a number")
        return number

    def time(self, field: str) -> datetime | None:
        """A time, UTC where it names no zone: ISO 8601, one of `TIMES`, or seconds or milliseconds since 1970."""
        value = self.fields.get(field)
        if value is None or value == "":
            return None
        try:
            return _time(value)
        except (TypeError, ValueError, OverflowError, OSError):
            raise self.error(field, f"is {_shown(value)}, not a time that is understood") from None


def lines(path: Path) -> list[Record]:
    """The objects of a file of JSON lines."""
    # Not splitlines(): a string of JSON may hold other ends of lines as they are.
    numbered = enumerate(text(path).split("\n"), 1)
    return [record(f"{path}:{number}", parsed(f"{path}:{number}", line)) for number, line in numbered if line.strip()]


def record(place: str, value: object) -> Record:
    """A record of an object."""
    if not isinstance(value, dict):
        raise SetError(f"{place}: is {_shown(value)}, not an object")
    return Record(place, value)


def parsed(place: str, json_text: str) -> object:
    """What JSON holds."""
    try:
        value: object = json.loads(json_text)
    except (ValueError, RecursionError) as error:
        raise SetError(f"{place}: is not JSON: {error}") from None
    return value


def text(path: Path) -> str:
    """What a file of UTF-8 holds, with or without a byte order mark."""
    try:
        return path.read_text("utf-8-sig")
    except OSError as error:
        raise SetError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SetError(f"{path}: is not UTF-8: {error.reason} at byte {error.start}") from None


def _time(value: object) -> datetime:
    if isinstance(value, str):
        time = _time_in_words(value.strip())
    elif isinstance(value, int | float) and not isinstance(value, bool):
        time = _time_in_seconds(value)
    else:
        raise TypeError(value)
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)


def _time_in_words(words: str) -> datetime:
    for read in _READERS:
        try:
            return read(words)
        except ValueError:
            continue
    return _time_in_seconds(float(words))


def _time_in_seconds(number: float) -> datetime:
    if number < FIRST_SECONDS:
        raise ValueError(number)
    return datetime.fromtimestamp(number / 1000 if number >= FIRST_MILLISECONDS else number, UTC)


def _shown(value: object) -> str:
    """A value in an error, on one line."""
    shown = json.dumps(value, ensure_ascii=True)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
