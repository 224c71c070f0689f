"""Failures of the database: for lack of disk space or of memory, which are temporary, and others."""

from __future__ import annotations

from typing import TypeAlias

import duckdb

from remora_server.domain.errors import MemoryExhausted, StoreFull
from remora_server.storage.database.disk_space import is_lack_of_space

Lack: TypeAlias = type[StoreFull] | type[MemoryExhausted]

_NO_MEMORY = "Out of Memory Error"
"""How DuckDB's messages of this begin. For an interrupted checkpoint it is within the text of another error."""
_NOTHING_ALLOCATED = ("failed to allocate data of size", "could not allocate block", "failed to pin block")
_CAUSES = (
    (duckdb.FatalException, "DuckDB failed, and is opened again"),
    (duckdb.InternalException, "DuckDB found an error of its own"),
    (duckdb.TransactionException, "a transaction was not committed"),
    (duckdb.IOException, "its files cannot be read or written"),
    (duckdb.Error, "DuckDB refused what was applied"),
    (OSError, "its files cannot be read or written"),
)
_UNKNOWN_CAUSE = "what was applied failed"


def lack_of(error: BaseException) -> Lack | None:
    """The refusal that names what is lacking; None if the failure is of another kind."""
    if is_lack_of_space(error):
        return StoreFull
    return MemoryExhausted if is_lack_of_memory(error) else None


def cause_of(error: BaseException) -> str:
    """Why the database cannot be written, for people. DuckDB's own words may hold what was said."""
    told = next((told for kind, told in _CAUSES if isinstance(error, kind)), _UNKNOWN_CAUSE)
    return f"{told} ({type(error).__name__}; the log has more)"


def is_lack_of_memory(error: BaseException) -> bool:
    """Whether a failure is due to a lack of memory for the database."""
    text = str(error)
    return isinstance(error, duckdb.OutOfMemoryException | MemoryError) or (
        isinstance(error, duckdb.Error) and any(told in text for told in (_NO_MEMORY, *_NOTHING_ALLOCATED))
    )
