"""How far an export and an import are: shown to a person at a terminal, and to nobody else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.commands.stalling import stalling
from tests.commands.terminal import conversation_lines, done, remora, showing, write_export

from remora.testing import serve

CONVERSATIONS, MESSAGES = 40, 100
RECORDS = CONVERSATIONS * (1 + MESSAGES)
STALLED_BYTES = 600_000
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
BAR = "━"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export of conversations."""
    path = tmp_path_factory.mktemp("exports") / "many.jsonl"
    text = "the night train to Lisbon leaves at ten " * 5
    lines = [line for number in range(CONVERSATIONS) for line in conversation_lines(f"c{number}", MESSAGES, text)]
    write_export(path, lines)
    return path


@pytest.fixture(scope="module")
def endpoint(path: Path) -> Iterator[str]:
    """A server that holds them."""
    with serve("--model=none") as endpoint:
        done(endpoint, "import", path)
        yield endpoint


def frames(shown: Iterator[bytes]) -> Iterator[str]:
    """All that was shown up to each moment, without what steers the terminal."""
    output = b""
    for part in shown:
        output += part
        yield ESCAPE.sub("", output.decode(errors="replace"))


def last(shown: Iterator[bytes]) -> str:
    *_, output = frames(shown)
    return output


@pytest.mark.slow
def test_an_export_shows_a_bar_of_conversations_at_a_terminal(endpoint: str, tmp_path: Path) -> None:
    with showing(endpoint, "export", tmp_path / "out.jsonl", stream="stderr", COLUMNS="120") as (process, shown):
        output = last(shown)

    assert process.returncode == 0
    assert re.search(rf"exporting {BAR}+ {CONVERSATIONS}/{CONVERSATIONS} conversations, {RECORDS:,} records", output)
    assert output.endswith(f"{RECORDS:,} records exported\r\n")


@pytest.mark.slow
def test_an_export_that_is_under_way_shows_how_far_it_is(endpoint: str, tmp_path: Path) -> None:
    under_way = re.compile(rf"exporting \S+ +([1-9]\d*)/{CONVERSATIONS} conversations, ([1-9][\d,]*) records")
    with (
        stalling(endpoint, answered=STALLED_BYTES) as stalled,
        showing(stalled, "export", tmp_path / "out.jsonl", stream="stderr", COLUMNS="120") as (process, shown),
    ):
        found = next(match for match in map(under_way.search, frames(shown)) if match)
        process.kill()

    assert int(found[1]) < CONVERSATIONS
    assert int(found[2].replace(",", "")) < RECORDS


@pytest.mark.slow
def test_an_export_of_one_conversation_shows_a_bar_too(endpoint: str) -> None:
    arguments = ("export", "--conversation", "c7", "-")
    with showing(endpoint, *arguments, stream="stderr", COLUMNS="120") as (_, shown):
        assert f"1/1 conversations, {1 + MESSAGES} records" in last(shown)


@pytest.mark.slow
def test_an_import_shows_a_bar_of_bytes_at_a_terminal(endpoint: str, path: Path) -> None:
    with showing(endpoint, "import", path, stream="stderr", COLUMNS="120") as (process, shown):
        output = last(shown)

    assert process.returncode == 0
    size = f"{path.stat().st_size / 2**20:.1f}"
    assert re.search(rf"importing {BAR}+ {size}/{size} MiB", output)


@pytest.mark.slow
@pytest.mark.parametrize("variables", [{}, {"FORCE_COLOR": "1", "TERM": "xterm-256color"}], ids=["", "colours"])
def test_nothing_of_it_is_shown_where_standard_error_is_no_terminal(
    endpoint: str, path: Path, tmp_path: Path, variables: dict[str, str]
) -> None:
    exported = remora(endpoint, "export", tmp_path / "out.jsonl", variables=variables)
    imported = remora(endpoint, "import", path, variables=variables)

    assert exported == (0, b"", f"{RECORDS:,} records exported\n")
    assert imported == (0, b"", f"0 records imported; {RECORDS:,} were there already\n")
