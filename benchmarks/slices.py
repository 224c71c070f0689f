"""What is measured, and the arithmetic of it: slices, which of them are quiet, medians and spreads."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

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


LEAST_SLICES = 5
"""What a median is made of at least, where so many were measured."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A load with the probes of raw write+fdatasync, in seconds, before and after it."""

    measured: Measured
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


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with the smallest and the largest value."""

    median: float
    low: float
    high: float

    @staticmethod
    def of(values: Iterable[float]) -> Spread:
        """Of at least one value."""
        ordered = sorted(values)
        return Spread(statistics.median(ordered), ordered[0], ordered[-1])


@dataclass(frozen=True, slots=True)
class Row:
    """The slices of one engine under one load that count, and how many of them were quiet."""

    engine: str
    load: str
    slices: Sequence[Slice]
    quiet: int

    def rate(self) -> Spread:
        """Operations a second."""
        return Spread.of(one.measured.rate for one in self.slices)

    def quantile(self, share: float) -> Spread:
        """The latency that this share of the operations stays below, in seconds."""
        return Spread.of(quantile(one.measured.latencies, share) for one in self.slices)

    def cpu(self) -> Spread:
        """Seconds of CPU time an operation."""
        return Spread.of(one.measured.cpu for one in self.slices)

    def failed(self) -> int:
        """Operations that the server answered with an error."""
        return sum(len(one.measured.failures) for one in self.slices)

    def offered(self) -> Spread:
        """Operations a second that were asked for."""
        return Spread.of(one.measured.offered for one in self.slices)

    def load_cores(self) -> Spread:
        """Cores that the load itself took."""
        return Spread.of(one.measured.load_cpu_seconds / one.measured.seconds for one in self.slices)

    def failed_after(self, share: float) -> float:
        """The time, in seconds, within which this share of the errors came; 0 where there is none."""
        waits = [ended - began for one in self.slices for began, ended in one.measured.failures]
        return quantile(waits, share) if waits else 0.0


def kept(engine: str, load: str, slices: Sequence[Slice]) -> Row:
    """The quiet slices; where they are fewer than LEAST_SLICES, the quietest so many."""
    quiet = sum(one.is_quiet for one in slices)
    quietest = sorted(slices, key=lambda one: max(one.before, one.after))
    return Row(engine, load, quietest[: max(quiet, LEAST_SLICES)], quiet)


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
