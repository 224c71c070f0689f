"""The circuit breaker."""

from __future__ import annotations

import pytest

from remora_server.engine.breaker import FAILURES, REST_SECONDS, Breaker


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opened(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Breaker:
    """A breaker that has just been given enough failures, without jitter."""
    monkeypatch.setattr("random.uniform", lambda _low, _high: 1.0)
    made = Breaker(clock)
    for _ in range(FAILURES):
        assert made.allows()
        made.failed()
    return made


def test_failures_in_a_row_close_the_way_for_a_while(opened: Breaker, clock: Clock) -> None:
    assert not opened.allows()
    assert opened.rest() == REST_SECONDS[0]
    clock.now += REST_SECONDS[0]
    assert opened.rest() == 0.0
    assert opened.allows()
    assert not opened.allows(), "one at a time tries"


def test_each_trial_that_fails_doubles_the_rest(opened: Breaker, clock: Clock) -> None:
    rest = REST_SECONDS[0]
    for _ in range(10):
        clock.now += rest
        assert opened.allows()
        opened.failed()
        rest = min(2 * rest, REST_SECONDS[1])
        clock.now += rest * 0.9
        assert not opened.allows()
        clock.now -= rest * 0.9


def test_a_success_opens_the_way(opened: Breaker, clock: Clock) -> None:
    clock.now += REST_SECONDS[0]
    assert opened.allows()
    opened.succeeded()
    for _ in range(FAILURES - 1):
        opened.failed()
    assert all(opened.allows() for _ in range(10))


def test_one_may_try_where_something_speaks_for_it(opened: Breaker) -> None:
    opened.may_work_again()
    assert opened.allows()
    assert not opened.allows()
