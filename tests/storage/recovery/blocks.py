"""Blocks of a database's file, by what is in them; and stores whose journal holds nothing that could replace one."""

from __future__ import annotations

from pathlib import Path

import duckdb

from remora_server.storage.recovery.salvage import repair

HEADERS, BLOCK = 3 * 4096, 256 << 10
"""DuckDB's storage format: three headers, then blocks that begin with their checksum."""
FILE = "remora.duckdb"


def flip_block(store: Path, number: int) -> None:
    """Flip bits of a byte behind the block's checksum."""
    with (store / FILE).open("r+b") as file:
        file.seek(HEADERS + number * BLOCK + 100)
        [byte] = file.read(1)
        file.seek(-1, 1)
        file.write(bytes([byte ^ 0x55]))


def blocks_of(store: Path, table: str, column: str) -> list[int]:
    """Where the values of a column are. A small column shares its block with others that were written with it."""
    with duckdb.connect(str(store / FILE), read_only=True) as connection:
        found = connection.execute(
            "SELECT DISTINCT block_id FROM pragma_storage_info(?) WHERE column_name = ? AND persistent ORDER BY 1",
            [table, column],
        ).fetchall()
    return [number for (number,) in found if number >= 0]


def move(store: Path, *tables: str) -> None:
    """Write tables anew, so that their blocks hold nothing else."""
    for table in tables:
        with duckdb.connect(str(store / FILE)) as connection:
            connection.execute(f"CREATE TABLE moved AS FROM {table}")
            connection.execute(f"DELETE FROM {table}")
            connection.execute("CHECKPOINT")
            connection.execute(f"INSERT INTO {table} FROM moved")
            connection.execute("DROP TABLE moved")
            connection.execute("CHECKPOINT")


def damage(store: Path, table: str, column: str) -> None:
    """Make a column of a table unreadable, and nothing of another table: see `move`."""
    found = blocks_of(store, table, column)
    assert found, "the column has blocks"
    for number in found:
        flip_block(store, number)


def released(store: Path, target: Path) -> Path:
    """A sound store again, in another directory, with a journal that holds no record."""
    assert repair(store, target).is_complete
    return target
