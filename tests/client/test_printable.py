"""What a terminal is given of texts that others wrote."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest

from remora._printable import printable, printable_json, printable_lines

SEEN = frozenset("\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd")
"""Format characters that are drawn around what follows (Prepended_Concatenation_Mark)."""
UNSEEN = {
    letter
    for letter in map(chr, range(sys.maxunicode + 1))
    if unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp") and letter not in SEEN
}


def test_no_control_or_format_character_is_printed() -> None:
    assert len(UNSEEN) > 200
    assert {letter for letter in UNSEEN if letter in printable(f"a{letter}b")} == set()
    assert {letter for letter in UNSEEN if letter in printable_lines(f"a{letter}b")} == {"\n", "\t"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m\x07\n", "␛[31m␇␊"),
        ("\x9b1m", "<U+009B>1m"),
        ("if \u202e} \u2066// admin\u2069", "if <U+202E>} <U+2066>// admin<U+2069>"),
        ("pay\u200bpal", "pay<U+200B>pal"),
        ("pay\u200dpal\u200c", "pay<U+200D>pal<U+200C>"),
        ("é\u200d\u200dé", "é<U+200D><U+200D>é"),
        ("\U000e0041", "<U+E0041>"),
        ("\u3164", "<U+3164>"),
    ],
)
def test_what_steers_hides_or_turns_around_is_shown_as_what_it_is(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "שלום, עולם",
        "مرحبا بالعالم",
        "\u0601 ١٤٤٨",
        "می\u200cخواهم",  # a joiner that Persian needs
        "क्\u200dष",
        "👩\u200d🚀 ❤\ufe0f\u200d🔥",
        "café ångström 東京 e\u0301",
    ],
)
def test_what_people_write_is_printed_as_it_is(text: str) -> None:
    assert printable(text) == printable_lines(text) == text


def test_json_says_the_same_without_what_cannot_be_seen() -> None:
    text = "".join(sorted(UNSEEN)) + "\u2028 é"

    encoded = printable_json(json.dumps(text, ensure_ascii=False))

    assert not UNSEEN & set(encoded)
    assert json.loads(encoded) == text
