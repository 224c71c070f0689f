"""Threads that begin anew where they fail, and say so."""

from __future__ import annotations

import logging
import threading

import pytest
from tests.patience import PATIENCE, eventually

from remora_server import supervision
from remora_server.supervision import LongLived, run_apart


class EndsAThread(BaseException):
    """What no `except Exception` sees, as a panic of the engine."""


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "FIRST_PAUSE", 0.001)


@pytest.mark.parametrize("failure", [ValueError("secret"), SystemExit("secret"), EndsAThread("secret")])
def test_work_that_fails_is_begun_anew_and_logged(failure: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    begun = threading.Semaphore(0)
    ending = threading.Event()

    def work() -> None:
        begun.release()
        if not ending.is_set() and begun._value < 3:
            raise failure
        ending.wait()

    thread = LongLived("tested", work)
    thread.start()
    eventually(lambda: begun._value >= 3)
    thread.end()
    ending.set()
    thread.join()

    records = [record for record in caplog.records if record.message == "a thread failed; it is restarted"]
    assert [vars(record)["failed"] for record in records] == ["tested", "tested"]
    assert thread.failure == ""


def test_work_that_ends_before_it_is_told_to_is_a_failure() -> None:
    thread = LongLived("tested", lambda: None)
    thread.start()

    assert "tested failed and is restarted: EndedTooSoon" in eventually(lambda: thread.failure)
    thread.join()


def test_a_thread_that_waits_to_begin_anew_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "FIRST_PAUSE", 10 * PATIENCE)
    thread = LongLived("tested", lambda: None)
    thread.start()
    eventually(lambda: thread.failure)

    thread.join()


def test_a_thread_that_was_never_started_can_be_waited_for() -> None:
    LongLived("tested", lambda: None).join()


def test_what_runs_apart_and_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise EndsAThread

    with caplog.at_level(logging.ERROR):
        run_apart("tested", fail)
        eventually(lambda: [record for record in caplog.records if record.message == "a thread failed"])
