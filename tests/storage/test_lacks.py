"""What is said of a database that cannot be written."""

from __future__ import annotations

import duckdb
import pytest

from remora_server.storage.database.lacks import cause_of

SAID = "what somebody said"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (duckdb.FatalException(SAID), "DuckDB failed, and is opened again (FatalException;"),
        (duckdb.TransactionException(SAID), "a transaction was not committed (TransactionException;"),
        (duckdb.IOException(SAID), "its files cannot be read or written (IOException;"),
        (duckdb.ConstraintException(SAID), "DuckDB refused what was applied (ConstraintException;"),
        (PermissionError(13, SAID), "its files cannot be read or written (PermissionError;"),
        (KeyError(SAID), "what was applied failed (KeyError;"),
    ],
)
def test_a_cause_is_told_in_plain_words_without_contents(error: BaseException, told: str) -> None:
    assert cause_of(error).startswith(told)
    assert SAID not in cause_of(error)
