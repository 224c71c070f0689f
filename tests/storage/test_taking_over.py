"""What schema 2 kept is taken over in pieces, and goes on where it was interrupted."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import pytest

from remora_server.storage.database import taking_over
from remora_server.storage.database.database import FILE_NAME, Database
from remora_server.storage.schema.kinds import STEPS, Kind

SAMPLE = Path(__file__).with_name("formats") / "schema_2" / "closed.tar.xz"
COPIES = 50
ROOM = 64 << 20


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A database of schema 2 with many steps, some of them deleted."""
    with tarfile.open(SAMPLE) as archive:
        archive.extract(FILE_NAME, tmp_path, filter="data")
    with duckdb.connect(str(tmp_path / FILE_NAME)) as connection:
        for number in range(COPIES):
            connection.execute(
                "INSERT INTO steps SELECT * REPLACE (id || ? AS id) FROM steps LIMIT 100", [f"-{number}"]
            )
        connection.execute("DELETE FROM steps WHERE rowid % 7 = 0")
    return tmp_path


def old_rows(data: Path) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(data / FILE_NAME), read_only=True) as connection:
        return sorted(
            connection.execute(
                """SELECT tenant_id, conversation_uid, user_id, id, operation_id, step_index, revision, ordinal, body
                   FROM steps"""
            ).fetchall()
        )


def new_rows(database: Database) -> list[tuple[Any, ...]]:
    rows = database.rows(
        f"""SELECT tenant_id, conversation_uid, user_id, key, operation_id, step_index, revision, ordinal, body
            FROM {STEPS.name}"""
    )
    return sorted((*row[:3], row[3][:-2].decode(), *row[4:]) for row in rows)


@pytest.mark.slow
def test_rows_are_taken_over_in_pieces_of_bounded_size(data: Path) -> None:
    expected = old_rows(data)
    assert len(expected) > 4_000
    pieces: list[int] = []
    insert = taking_over.insert

    def counting(cursor: duckdb.DuckDBPyConnection, converted: Iterable[tuple[Kind, taking_over.Row]]) -> None:
        rows = list(converted)
        pieces.append(sum(len(row[-1]) for _, row in rows))
        insert(cursor, rows)

    with patch.object(taking_over, "PIECE_BYTES", 20_000), patch.object(taking_over, "insert", counting):
        database = Database(data, ROOM)

    assert new_rows(database) == expected
    assert len(pieces) > 20
    assert max(pieces) <= 20_000
    names = {name for (name,) in database.rows("SELECT table_name FROM duckdb_tables()")}
    assert not names & {old.set_aside for old in taking_over.OLD_TABLES}
    database.close()


@pytest.mark.slow
def test_an_interrupted_take_over_goes_on_where_it_was(data: Path) -> None:
    expected = old_rows(data)
    copied: list[int] = []
    copy = taking_over.copy_piece

    def interrupted(
        cursor: duckdb.DuckDBPyConnection, old: taking_over.OldTable, source: str, begin: int, end: int
    ) -> None:
        copied.append(1)
        if len(copied) == 5:
            raise KeyboardInterrupt
        copy(cursor, old, source, begin, end)

    with patch.object(taking_over, "PIECE_BYTES", 50_000):
        with (
            patch("remora_server.storage.database.database.copy_piece", interrupted),
            pytest.raises(KeyboardInterrupt),
        ):
            Database(data, ROOM)
        with duckdb.connect(str(data / FILE_NAME), read_only=True) as connection:
            [(begun,)] = connection.execute(f"SELECT count(*) FROM {STEPS.name}").fetchall()
        assert 0 < begun < len(expected)

        database = Database(data, ROOM)

    assert new_rows(database) == expected
    database.close()
