"""Looking for messages without a vector in a store that is much larger than the memory that its database may take."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from tests.faults.test_short_memory import LEAST

from remora_server.domain.models import EVERYBODY, ServedModel
from remora_server.storage.commit.commits import Commits
from remora_server.storage.database.database import Database
from remora_server.storage.embedding.left_behind import PLACE_ROWS, SCAN_ROWS, LeftBehind
from remora_server.storage.embedding.scopes import ResolvedScope

CONVERSATIONS, EACH = 10_000, 100
MESSAGES = CONVERSATIONS * EACH
EMBEDDED = MESSAGES * 9 // 10
"""The first ones."""
BUILDING_BYTES = 1 << 30
LONG_PARTS = 1_000


class Settled:
    """Commits of a store that has nothing to apply."""

    def settle(self) -> int:
        return 1


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store whose newest messages have no vector; it is written by SQL, because there are many."""
    directory = tmp_path_factory.mktemp("store")
    database = Database(directory, BUILDING_BYTES)
    places = f"1 + i // {EACH}, 1 + i % {EACH}"
    for statement in (
        f"""INSERT INTO conversations SELECT 'acme', 'c' || i, 1 + i, 'u', '', '', NULL, '', 0
            FROM range({CONVERSATIONS}) r(i)""",
        f"""INSERT INTO messages SELECT 'acme', {places}, i, 'u', 'm' || i, 'user', '', repeat('words of it ', 30) || i,
            '', NULL, '', 0, 0, 1 FROM range({MESSAGES}) r(i)""",
        f"""INSERT INTO embeddings SELECT 'acme', {places}, i, 'm', false, 1, [1]::FLOAT[], NULL
            FROM range({EMBEDDED}) r(i)""",
    ):
        database.cursor().execute(statement)
    database.checkpoint()
    database.close()
    return directory


@pytest.fixture
def left_behind(directory: Path) -> Iterator[LeftBehind]:
    database = Database(directory, LEAST)
    yield LeftBehind(database, cast("Commits", Settled()), ServedModel("m"), EVERYBODY)
    database.close()


def test_some_are_found_with_little_memory(left_behind: LeftBehind) -> None:
    found, more = left_behind.some()

    assert more
    assert len({each.revision for each in found}) == SCAN_ROWS
    for each in found:
        assert each.revision >= EMBEDDED
        assert each.text.endswith(f"words of it {each.revision}")
        assert each.conversation_id == f"c{each.conversation_uid - 1}"
        assert (each.conversation_uid, each.sequence) == (1 + each.revision // EACH, 1 + each.revision % EACH)


def test_the_newest_of_a_tenant_are_found_with_little_memory(left_behind: LeftBehind) -> None:
    found, more = left_behind.newest_of(ResolvedScope("acme"))

    assert more
    assert [each.revision for each in found] == list(range(MESSAGES - PLACE_ROWS, MESSAGES))


def test_all_are_counted_with_little_memory(left_behind: LeftBehind) -> None:
    assert left_behind.count() == MESSAGES - EMBEDDED
