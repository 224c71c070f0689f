"""Files of credentials that are read again, whatever fails meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.patience import eventually

from remora_server.rpc import rereading
from remora_server.rpc.private_files import CredentialFileError
from remora_server.rpc.rereading import Rereading, Source, state_of


class Watched:
    """A file, how often it was read, and what its next readings raise."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.read = 0
        self.failures: list[BaseException] = []
        file.write_text("before")
        self.source = Source((file,), state_of((file,)), self._reread)

    def _reread(self) -> None:
        self.read += 1
        if self.failures:
            raise self.failures.pop(0)

    def replace(self) -> None:
        """Put another file in its place."""
        following = self.file.with_suffix(".next")
        following.write_text(f"after {self.read}")
        following.replace(self.file)


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rereading, "LOOK_SECONDS", 0.01)


@pytest.fixture
def tokens(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "tokens")


@pytest.fixture
def tls(tmp_path: Path) -> Watched:
    return Watched(tmp_path / "cert")


@pytest.fixture
def told(tokens: Watched, tls: Watched) -> Iterator[list[tuple[int, int]]]:
    """How often each file was read when callers were forgotten."""
    told: list[tuple[int, int]] = []
    running = Rereading([tokens.source, tls.source], lambda: told.append((tokens.read, tls.read)))
    running.start()
    yield told
    running.close()
    assert not running.failure


def test_what_has_changed_is_read_again_and_callers_are_forgotten(tokens: Watched, told: list[tuple[int, int]]) -> None:
    tokens.replace()

    eventually(lambda: told == [(1, 0)])
    tokens.replace()
    eventually(lambda: told == [(1, 0), (2, 0)])


@pytest.mark.parametrize("failure", [RuntimeError, SystemExit])
def test_a_change_whose_reading_fails_is_read_again(
    tokens: Watched, told: list[tuple[int, int]], failure: type[BaseException]
) -> None:
    tokens.failures = [failure()]
    tokens.replace()

    eventually(lambda: told == [(2, 0)])


def test_callers_are_forgotten_though_the_next_file_cannot_be_read(
    tokens: Watched, tls: Watched, told: list[tuple[int, int]]
) -> None:
    tls.failures = [SystemExit()] * 1_000
    tls.replace()
    eventually(lambda: tls.read)
    tokens.replace()

    eventually(lambda: [read for read, _ in told] == [1])
    assert tls.failures
    tls.failures.clear()
    eventually(lambda: len(told) == 2)


def test_a_file_that_cannot_be_used_is_not_read_again_until_it_changes(
    tokens: Watched, told: list[tuple[int, int]]
) -> None:
    tokens.failures = [CredentialFileError("no token in it", "write one")]
    tokens.replace()
    eventually(lambda: tokens.read == 1)
    assert told == []

    tokens.replace()

    eventually(lambda: told == [(2, 0)])


def test_a_file_that_was_refused_for_its_mode_is_read_again_once_its_mode_is_another(
    tokens: Watched, told: list[tuple[int, int]]
) -> None:
    tokens.failures = [CredentialFileError("others may read it", "chmod 600")]
    tokens.replace()
    eventually(lambda: tokens.read == 1)

    tokens.file.chmod(0o600)

    eventually(lambda: told == [(2, 0)])
