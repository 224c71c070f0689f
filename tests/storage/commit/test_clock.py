"""The time that records bear while the wall clock is set."""

from __future__ import annotations

from remora_server.storage.commit.clock import SteadyClock

HOUR = 3_600_000_000


class Clocks:
    """A wall clock that can be set and a monotonic one that cannot, in microseconds."""

    def __init__(self) -> None:
        self.wall, self.ticks = 100 * HOUR, 0
        self.steady = SteadyClock(lambda: self.wall, lambda: self.ticks)

    def after(self, micros: int) -> int:
        """What the clock shows when so much time has passed."""
        self.wall += micros
        self.ticks += micros
        return self.steady()


def test_time_is_the_wall_clocks() -> None:
    clocks = Clocks()

    assert clocks.after(5) == clocks.wall
    assert clocks.after(7) == clocks.wall


def test_time_goes_on_when_the_wall_clock_is_set_back() -> None:
    clocks = Clocks()
    before = clocks.after(5)

    clocks.wall -= HOUR

    assert [clocks.after(7), clocks.after(0), clocks.after(2 * HOUR)] == [before + 7, before + 7, before + 7 + 2 * HOUR]


def test_time_follows_when_the_wall_clock_is_set_forward() -> None:
    clocks = Clocks()
    clocks.after(5)

    clocks.wall += HOUR

    assert clocks.after(7) == clocks.wall
