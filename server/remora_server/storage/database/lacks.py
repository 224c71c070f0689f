"""Failures of the database for lack of disk space or of memory. Both are temporary, and nothing was written."""

from __future__ import annotations

from typing import TypeAlias

import duckdb

from remora_server.domain.errors import MemoryExhausted, StoreFull
from remora_server.storage.database.disk_space import is_lack_of_space

Lack: TypeAlias = type[StoreFull] | type[MemoryExhausted]

_NO_MEMORY = "Out of Memory Error"
"""How DuckDB's messages of this begin. For an interrupted checkpoint it is within the text of another error."""
_NOTHING_ALLOCATED = ("failed to allocate data of size", "could not allocate block", "failed to pin block")


def lack_of(error: BaseException) -> Lack | None:
    """The refusal that names what is lacking; None if the failure is of another kind."""
    if is_lack_of_space(error):
        return StoreFull
    return MemoryExhausted if is_lack_of_memory(error) else None


def is_lack_of_memory(error: BaseException) -> bool:
    """Whether a failure is due to a lack of memory for the database."""
    text = str(error)
    return isinstance(error, duckdb.OutOfMemoryException | MemoryError) or (
        isinstance(error, duckdb.Error) and any(told in text for told in (_NO_MEMORY, *_NOTHING_ALLOCATED))
    )
