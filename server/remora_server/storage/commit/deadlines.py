"""Deadlines: times of the monotonic clock in seconds, None for no limit."""

from __future__ import annotations

import time

from remora_server.domain.errors import DeadlineExceeded


def remaining(deadline: float | None) -> float | None:
    """The seconds until a deadline, at least 0."""
    return None if deadline is None else max(0.0, deadline - time.monotonic())


def require_time(deadline: float | None) -> None:
    """Refuse slow work if there is no time left. Raises DeadlineExceeded."""
    if deadline is not None and deadline <= time.monotonic():
        raise DeadlineExceeded
