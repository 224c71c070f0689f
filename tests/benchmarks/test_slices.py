"""The arithmetic of the benchmarks."""

from benchmarks.slices import Measured, Slice, Spread, joined, kept, quantile, split

QUIET, BUSY = 0.0002, 0.004


def slice_of(before: float, after: float) -> Slice:
    return Slice(Measured([(0.0, 1.0)], cpu_seconds=0.5), before, after)


def test_a_rate_is_of_the_time_from_the_first_begin_to_the_last_end() -> None:
    measured = Measured([(10.0, 10.5), (10.1, 11.0), (11.5, 12.0)], cpu_seconds=0.3)

    assert measured.rate == 1.5


def test_the_servers_cpu_time_is_shared_by_the_operations() -> None:
    measured = Measured([(0.0, 1.0), (1.0, 2.0)], cpu_seconds=0.3)

    assert measured.cpu == 0.15


def test_a_slice_is_quiet_where_both_probes_are() -> None:
    probes = [(QUIET, QUIET), (QUIET, BUSY), (BUSY, QUIET), (BUSY, BUSY)]

    assert [slice_of(*pair).is_quiet for pair in probes] == [True, False, False, False]


def test_quiet_slices_are_kept_and_counted() -> None:
    quiet = [slice_of(QUIET, QUIET)] * 6

    row = kept("engine", "c1", [slice_of(BUSY, BUSY), *quiet, slice_of(QUIET, BUSY)])

    assert (list(row.slices), row.quiet) == (quiet, 6)


def test_where_few_are_quiet_the_quietest_are_kept_and_the_count_says_so() -> None:
    busiest = slice_of(2 * BUSY, QUIET)
    others = [slice_of(QUIET, QUIET), *[slice_of(QUIET, BUSY)] * 4]

    row = kept("engine", "c1", [busiest, *others])

    assert (list(row.slices), row.quiet) == (others, 1)


def test_a_spread_is_the_median_between_the_smallest_and_the_largest() -> None:
    assert Spread.of([5.0, 1.0, 2.0]) == Spread(2.0, 1.0, 5.0)


def test_a_quantile_is_one_of_the_values() -> None:
    values = [float(value) for value in range(100, 0, -1)]

    assert [quantile(values, share) for share in (0.0, 0.5, 0.99, 1.0)] == [1.0, 51.0, 100.0, 100.0]


def test_operations_are_split_by_whether_they_overlap_an_interval() -> None:
    spans = [(0.0, 1.0), (1.5, 2.5), (3.0, 3.5), (4.5, 5.0)]

    inside, outside = split(spans, [(2.0, 3.2)])

    assert (inside, outside) == ([1.0, 0.5], [1.0, 0.5])


def test_moments_that_are_close_are_one_interval() -> None:
    assert joined([1.0, 1.25, 1.5, 4.0], gap=0.5) == [(1.0, 1.5), (4.0, 4.0)]


def test_no_moments_are_no_interval() -> None:
    assert joined([], gap=0.5) == []
