"""Sequences of calls that a fuzzer found, or that lead it far into the code, replayed without one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.input.callers import DOCUMENTED, direct_caller
from tests.input.sequences import NAMES, Step, check, decoded, encoded
from tests.input.table import MODEL

CORPUS = Path(__file__).resolve().parents[2] / "fuzz" / "corpus" / "requests"


@pytest.mark.slow
def test_every_sequence_that_is_kept_is_answered_as_documented() -> None:
    kept = sorted(CORPUS.iterdir())

    assert len(kept) >= len(NAMES)
    with direct_caller(MODEL, receipt_days=0) as caller:
        for file in kept:
            check(caller, file.read_bytes())


def test_an_answer_that_is_not_documented_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.input.sequences.DOCUMENTED", DOCUMENTED - {("INVALID_ARGUMENT", "INVALID_FIELD")})

    with direct_caller(MODEL, receipt_days=0) as caller, pytest.raises(AssertionError, match="INVALID_FIELD"):
        check(caller, encoded([Step("GetConversation", b"")]))


def test_a_sequence_is_read_as_it_was_written() -> None:
    steps = [Step("GetStatus", b""), Step("CountTokens", b"\x12\x01a")]

    assert list(decoded(encoded(steps))) == steps
