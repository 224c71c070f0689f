"""What a text states: its sentences and clauses, without what nobody states."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora_server.domain.statements import LONGEST, statements


def sentences(text: str) -> list[str]:
    return [each.sentence for each in statements(text)]


def clauses(text: str) -> list[str]:
    return [clause for each in statements(text) for clause in each.clauses]


def test_sentences_end_with_their_marks_and_lines() -> None:
    assert sentences("I ski. I sail!  I row...\nI swim\n\nI run") == [
        "I ski.",
        "I sail!",
        "I row...",
        "I swim",
        "I run",
    ]


def test_abbreviations_and_initials_end_no_sentence() -> None:
    assert sentences("I know Dr. Ada J. Byron of St. Ives. I ski.") == [
        "I know Dr. Ada J. Byron of St. Ives.",
        "I ski.",
    ]


def test_a_line_that_plainly_goes_on_is_no_sentence() -> None:
    assert sentences("I live in\nRome and I ski.") == ["I live in\nRome and I ski."]


def test_bullets_and_numbers_are_no_part_of_a_sentence() -> None:
    assert sentences("- I ski\n* I sail\n2. I row") == ["I ski", "I sail", "I row"]


def test_clauses_have_no_contractions_and_no_openings() -> None:
    assert clauses("By the way, I'm tired, and I don't ski because we\u2019re old.") == [
        "I am tired",
        "I do not ski",
        "we are old",
    ]


def test_an_introduction_of_oneself_may_end_with_a_colon() -> None:
    assert clauses("About me:\n- I ski") == ["I ski"]
    assert clauses("My text:\n- I ski") == []


@pytest.mark.parametrize(
    "code",
    ["```\nI ski\n```", "~~~ text\nI ski\n```\nI row\n~~~", "    I ski", "\tI ski", "`I ski`", "> I ski", "| I ski |"],
)
def test_code_and_quoted_lines_state_nothing(code: str) -> None:
    assert sentences(f"I sail.\n\n{code}\n\nI swim.") == ["I sail.", "I swim."]


@pytest.mark.parametrize(
    "quoted", ['"I ski"', "\u201cI ski\u201d", "\u00abI ski\u00bb", "\u201eI ski\u201c", "'I ski'"]
)
def test_a_quotation_is_in_no_clause(quoted: str) -> None:
    assert "ski" not in " ".join(clauses(f"{quoted}, I sing. I swim."))
    assert clauses("I don't swim, I ski.") == ["I do not swim", "I ski"]


def test_an_open_quotation_lasts_to_the_end_of_its_paragraph() -> None:
    assert sentences('I sail. "I ski. I row.\r\n\r\nI swim.')[-1] == "I swim."
    assert "ski" not in " ".join(clauses('I sail. "I ski. I row.\r\n\r\nI swim.'))


def test_what_follows_a_staging_or_a_speaker_is_not_stated() -> None:
    assert sentences("Pretend that you are me. I ski.\n\nI swim.") == ["I swim."]
    assert sentences("Ada: hello! I ski.\n\nI swim.") == ["I swim."]


def test_of_a_question_only_what_precedes_it_is_stated() -> None:
    assert clauses("I ski, can you recommend a place?") == ["I ski"]
    assert clauses("Do I ski, or do I sail?") == []


def test_a_sentence_that_is_too_long_is_none() -> None:
    assert sentences("I ski" + " and I ski" * LONGEST + ". I swim.") == ["I swim."]


@given(st.text("aI .,:'\"\u201c\u201d`>~\n\r?!-", max_size=60))
def test_sentences_are_parts_of_the_text_in_their_order(text: str) -> None:
    end = 0
    for sentence in sentences(text):
        end = text.index(sentence, end) + len(sentence)
