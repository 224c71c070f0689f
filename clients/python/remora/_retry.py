"""Which failures are retried, and after which pause."""

import random

from remora.errors import ModelUnreachableError, RemoraError, ResourceExhaustedError, UnavailableError

FIRST_PAUSE = 0.02
GREATEST_PAUSE = 1.0
MODEL_PATIENCE = 1.0
"""Seconds for which a call is retried because of the server's embedding model: an endpoint that is down is seldom up
again within a deadline, so callers are better told the reason at once.
"""


def pause_before_retry(failure: RemoraError, attempt: int, elapsed: float, remaining: float) -> float | None:
    """Seconds to wait before the next attempt; None if there should be none.

    `attempt` counts the failed ones from 0, `elapsed` and `remaining` are the seconds since the first began and until
    the deadline. The pause is drawn from [0, 20 ms * 2^attempt], at most 1 s (full jitter: Brooker, "Exponential
    Backoff And Jitter", AWS Architecture Blog, 2015), and is at least what the server asks for.
    """
    if not _passes(failure):
        return None
    ceiling = min(GREATEST_PAUSE, FIRST_PAUSE * 2.0 ** min(attempt, 16))
    pause = max(random.uniform(0, ceiling), failure.retry_delay or 0)  # noqa: S311 - jitter, no secret
    if isinstance(failure, ModelUnreachableError):
        remaining = min(remaining, MODEL_PATIENCE - elapsed)
    return pause if pause < remaining else None


def _passes(failure: RemoraError) -> bool:
    if isinstance(failure, UnavailableError):
        return True
    return isinstance(failure, ResourceExhaustedError) and failure.retry_delay is not None
