"""What is measured, and the arithmetic of it: slices, which of them are quiet, and the figures that they give."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")

QUIET_SECONDS = 0.4e-3
"""A probe of write+fdatasync below this says that the machine is quiet: with busy cores, it takes up to 4 ms."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What became of a load: when each operation began and ended, in seconds of the monotonic clock, the CPU time that
    the server took for all of them, its work behind included, and that of the load. `failures` are answers with an
    error, `turned_away` operations that a load of a fixed rate did not make.
    """

    spans: Sequence[tuple[float, float]]
    cpu_seconds: float
    failures: Sequence[tuple[float, float]] = ()
    turned_away: int = 0
    load_cpu_seconds: float = 0.0

    @property
    def latencies(self) -> list[float]:
        """Seconds that each operation took."""
        return [ended - began for began, ended in self.spans]

    @property
    def rate(self) -> float:
        """Operations a second, from the first one's begin to the last one's end."""
        return len(self.spans) / self.seconds

    @property
    def seconds(self) -> float:
        """How long it took, from the first one's begin to the last one's end."""
        return max(ended for _, ended in self.spans) - min(began for began, _ in self.spans)

    @property
    def offered(self) -> float:
        """Operations a second that were asked for."""
        return (len(self.spans) + len(self.failures) + self.turned_away) / self.seconds

    @property
    def cpu(self) -> float:
        """Seconds of CPU time an operation."""
        return self.cpu_seconds / len(self.spans)

    @property
    def load_cores(self) -> float:
        """Cores that the load itself took."""
        return self.load_cpu_seconds / self.seconds

    def failed_after(self, share: float) -> float:
        """The time, in seconds, within which this share of the errors came; 0 where there is none."""
        waits = [ended - began for began, ended in self.failures]
        return quantile(waits, share) if waits else 0.0


def rate(measured: Measured) -> float:
    """Operations a second."""
    return measured.rate


def cpu(measured: Measured) -> float:
    """Seconds of CPU time an operation."""
    return measured.cpu


def latency(share: float) -> Callable[[Measured], float]:
    """The latency that this share of the operations stays below, in seconds."""
    return lambda measured: quantile(measured.latencies, share)


LEAST_SLICES = 5
"""What a median is made of at least, where so many were measured."""


@dataclass(frozen=True, slots=True)
class Slice(Generic[T]):
    """Something measured, with the probes of raw write+fdatasync, in seconds, before and after it."""

    measured: T
    before: float
    after: float

    @property
    def is_quiet(self) -> bool:
        """Whether both probes say that the machine was quiet."""
        return max(self.before, self.after) < QUIET_SECONDS

    @property
    def probe(self) -> float:
        """Raw write+fdatasync at the time of the slice."""
        return (self.before + self.after) / 2


def kept(slices: Sequence[Slice[T]]) -> Sequence[Slice[T]]:
    """Those that count: the quiet ones; where they are fewer than LEAST_SLICES, the quietest so many."""
    quietest = sorted(slices, key=lambda one: max(one.before, one.after))
    return quietest[: max(quiet(slices), LEAST_SLICES)]


def quiet(slices: Iterable[Slice[T]]) -> int:
    """How many are quiet."""
    return sum(one.is_quiet for one in slices)


@dataclass(frozen=True, slots=True)
class Figure:
    """A median between its quartiles; how many slices were measured for it, and how many of these were quiet, None
    where nothing was probed.
    """

    median: float
    low: float
    high: float
    quiet: int | None
    slices: int

    @staticmethod
    def unprobed(*values: float) -> Figure:
        """Measured once, or several times."""
        return Figure(statistics.median(values), *quartiles(values), None, len(values))

    @staticmethod
    def of(slices: Sequence[Slice[T]], value: Callable[[T], float]) -> Figure:
        """A value of what was measured in each slice that counts, of at least one."""
        values = _values(slices, value)
        return Figure(statistics.median(values), *quartiles(values), quiet(slices), len(slices))

    def times(self, factor: float) -> Figure:
        """In another unit."""
        return Figure(self.median * factor, self.low * factor, self.high * factor, self.quiet, self.slices)


def _values(slices: Sequence[Slice[T]], value: Callable[[T], float]) -> list[float]:
    return [value(one.measured) for one in kept(slices)]


def quartiles(values: Iterable[float]) -> tuple[float, float]:
    """The values that less than a quarter of all are below, and above."""
    ordered = sorted(values)
    place = (len(ordered) - 1) // 4
    return ordered[place], ordered[-1 - place]


@dataclass(frozen=True, slots=True)
class Row:
    """All slices of one engine under one load."""

    engine: str
    load: str
    slices: Sequence[Slice[Measured]]

    def figure(self, value: Callable[[Measured], float]) -> Figure:
        """The median of a value."""
        return Figure.of(self.slices, value)

    def over(
        self, other: Row, value: Callable[[Measured], float], other_value: Callable[[Measured], float] | None = None
    ) -> Figure:
        """A median over that of another row, or over another one of it."""
        return over(self.slices, other.slices, value, other_value)

    def probe(self) -> Figure:
        """Raw write+fdatasync at the time, in seconds."""
        probes = [Slice(one.probe, one.before, one.after) for one in self.slices]
        return Figure.of(probes, float)

    def failed(self) -> int:
        """Operations that the server answered with an error."""
        return sum(len(one.measured.failures) for one in kept(self.slices))


def over(
    slices: Sequence[Slice[T]],
    others: Sequence[Slice[T]],
    value: Callable[[T], float],
    other_value: Callable[[T], float] | None = None,
) -> Figure:
    """The median of a value over that of it, or of another one, in other slices. The quartiles are those of each of the
    ones over each of the others.
    """
    ones, below = _values(slices, value), _values(others, other_value or value)
    return Figure(
        statistics.median(ones) / statistics.median(below),
        *quartiles(one / another for one in ones for another in below),
        min(quiet(slices), quiet(others)),
        min(len(slices), len(others)),
    )


def beside(row: Row, other: Row) -> list[Slice[tuple[Measured, Measured]]]:
    """Slices of two rows that were measured in turn, each with the one that followed it: as quiet as both."""
    return [
        Slice((one.measured, another.measured), max(one.before, another.before), max(one.after, another.after))
        for one, another in zip(row.slices, other.slices, strict=True)
    ]


def quantile(values: Iterable[float], share: float) -> float:
    """The value at this share of the ordered values, by the nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def split(
    spans: Sequence[tuple[float, float]], intervals: Sequence[tuple[float, float]]
) -> tuple[list[float], list[float]]:
    """The latencies of the operations that overlap one of the intervals, and of those that overlap none."""
    inside: list[float] = []
    outside: list[float] = []
    for began, ended in spans:
        overlaps = any(began <= end and ended >= start for start, end in intervals)
        (inside if overlaps else outside).append(ended - began)
    return inside, outside


def joined(moments: Sequence[float], gap: float) -> list[tuple[float, float]]:
    """Ascending moments as intervals: those that follow one another within the gap are one."""
    found: list[tuple[float, float]] = []
    for moment in moments:
        if found and moment - found[-1][1] < gap:
            found[-1] = (found[-1][0], moment)
        else:
            found.append((moment, moment))
    return found
