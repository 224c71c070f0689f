"""How a write command runs: a repeat gets its first outcome, anything else is planned and accepted under its locks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from remora_server.domain.calls import Outcome, Write
from remora_server.domain.errors import (
    DeadlineExceeded,
    MemoryExhausted,
    Overloaded,
    RemoraError,
    RequestTooLarge,
    StoreDamaged,
    StoreFailed,
    StoreFull,
)
from remora_server.locking import Level
from remora_server.storage.commit.changes import Change
from remora_server.storage.commit.clock import Clock
from remora_server.storage.commit.commits import Accepted, Commits
from remora_server.storage.commit.locks import Locks

T = TypeVar("T")

UNDECIDED = (
    DeadlineExceeded,
    MemoryExhausted,
    Overloaded,
    RequestTooLarge,
    StoreDamaged,
    StoreFailed,
    StoreFull,
)
"""Failures that say nothing of what has been accepted."""


class Planned(Struct, frozen=True):
    """The decisions of a command: its changes, their outcome and their user.

    `time` is the record's; None for the time that the plan was given. `tell` gets the revision of an accepted plan
    while the locks are held.
    """

    changes: Iterable[Change]
    outcome: Outcome
    user_id: str = ""
    time: int | None = None
    tell: Callable[[int], object] | None = None


class Commands:
    """Runs write commands."""

    def __init__(self, commits: Commits, clock: Clock) -> None:
        self._commits = commits
        self._clock = clock
        self._in_parts = Locks(Level.REQUESTS)

    def run(self, write: Write, held: AbstractContextManager[T], plan: Callable[[T, int], Planned | None]) -> Outcome:
        """Run one command.

        Entering `held` takes the command's locks and gives what has been accepted. `plan` decides on that and the time;
        None says that there is nothing to change. A refusal is raised once readers see what it is for: a caller who is
        told that something exists can read it.
        """
        repeated = self._commits.repeated(write)
        if repeated is not None:
            return repeated
        try:
            accepted = self._decide(write, held, plan)
        except UNDECIDED:
            raise
        except RemoraError:
            self._commits.wait_accepted(write.deadline)
            raise
        return self._commits.finish(write, accepted)

    def run_in_parts(self, write: Write, run: Callable[[Write], Outcome]) -> Outcome:
        """Run a command that may be too much for one journal record.

        `run` gets the write of every part but the last, which it runs as `write`: the command is done once that is. A
        repeat waits for its end and runs no part again.
        """
        with self._in_parts.of(write, write.request_id) if write.request_id else nullcontext():
            repeated = self._commits.repeated(write)
            return run(replace(write, request_id="", fingerprint=b"")) if repeated is None else repeated

    def _decide(
        self, write: Write, held: AbstractContextManager[T], plan: Callable[[T, int], Planned | None]
    ) -> Accepted:
        with held as found:
            # The same request may have been accepted while this one waited for the locks.
            accepted = self._commits.accepted_meanwhile(write)
            if accepted is None:
                now = self._clock()
                accepted = self._accept(write, plan(found, now), now)
            return accepted

    def _accept(self, write: Write, planned: Planned | None, now: int) -> Accepted:
        if planned is None:
            return self._commits.nothing(write, now)
        time = now if planned.time is None else planned.time
        accepted = self._commits.accept(write, time, planned.changes, planned.outcome, planned.user_id)
        if planned.tell is not None and not accepted.repeated:
            planned.tell(accepted.revision)
        return accepted
