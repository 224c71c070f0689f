"""Makes users' texts safe to print: they cannot control the terminal, hide, or reverse the text beside them.

Control, format and invisible characters are escaped (Unicode Technical Standard 55, 3.2). Joiners stay between letters
and emoji that they join. Visible format characters stay.
"""

import re
from collections.abc import Sequence

_CONTROLS = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421, 0x2028: 0x2424, 0x2029: 0x2424}
"""Control characters and line breaks, each with its picture (Unicode's Control Pictures)."""
_CONTROLS_IN_LINES = {code: picture for code, picture in _CONTROLS.items() if chr(code) not in "\n\t"}

_INVISIBLE = re.compile(
    "[\x80-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
    # Joiners that join nothing: at the beginning, at the end, and beside ASCII or one another.
    "|(?<![^\0-\x7f\u200c\u200d])[\u200c\u200d]|[\u200c\u200d](?![^\0-\x7f\u200c\u200d])"
)
_IN_JSON = re.compile(f"{_INVISIBLE.pattern}|[\x7f\u2028\u2029]")


def printable(text: str) -> str:
    """Text on one line. Pictures replace control characters, and codes like <U+202E> replace invisible characters."""
    return _INVISIBLE.sub(_code, text.translate(_CONTROLS))


def printable_lines(text: str) -> str:
    """The same, with line breaks and tabs kept."""
    return _INVISIBLE.sub(_code, text.translate(_CONTROLS_IN_LINES))


def printable_json(encoded: str) -> str:
    """Equal JSON, with invisible characters escaped."""
    return _IN_JSON.sub(_escape, encoded)


def ranked(hits: Sequence[object]) -> list[str]:
    """A line for each hit of a search, with its rank from 1 on; one that says so if there is none."""
    return [f"{rank:3}  {hit}" for rank, hit in enumerate(hits, 1)] or ["nothing was found"]


def _code(found: re.Match[str]) -> str:
    return f"<U+{ord(found[0]):04X}>"


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
