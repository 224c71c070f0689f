"""What errors say of what was written: the value, and a known name for a misspelled one."""

from __future__ import annotations

from collections.abc import Iterable

LONGEST_SHOWN = 60


def shown(value: object) -> str:
    """A value in a sentence, and no more than the beginning of it."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def hint(name: str, names: Iterable[str], likeness: float) -> str:
    """A clause that asks for the nearest of the names, empty where none is as like as that (0 to 1).

    A name of the same letters in another order is near, however short it is: `lgo` is `log`.
    """
    import difflib  # noqa: PLC0415 - a start whose settings are spelled well does without it

    known = list(names)
    near = [each for each in known if sorted(each) == sorted(name)]
    near = near or difflib.get_close_matches(name, known, 1, likeness)
    return f"; did you mean {near[0]}?" if near else ""
