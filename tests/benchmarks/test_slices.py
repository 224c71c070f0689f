"""The arithmetic of the benchmarks."""

import statistics

from benchmarks.slices import (
    Figure,
    Measured,
    Row,
    Slice,
    beside,
    cpu,
    joined,
    kept,
    over,
    quantile,
    quartiles,
    quiet,
    rate,
    split,
)
from hypothesis import given
from hypothesis import strategies as st

QUIET, BUSY = 0.0002, 0.004


def slice_of(before: float, after: float, cpu_seconds: float = 0.5) -> Slice[Measured]:
    return Slice(Measured([(0.0, 1.0)], cpu_seconds), before, after)


def row_of(*cpu_seconds: float) -> Row:
    return Row("engine", "c1", [slice_of(QUIET, QUIET, seconds) for seconds in cpu_seconds])


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
    calm = [slice_of(QUIET, QUIET)] * 6
    slices = [slice_of(BUSY, BUSY), *calm, slice_of(QUIET, BUSY)]

    assert kept(slices) == calm
    assert quiet(slices) == 6


def test_where_few_are_quiet_the_quietest_are_kept_and_the_count_says_so() -> None:
    busiest = slice_of(2 * BUSY, QUIET)
    others = [slice_of(QUIET, QUIET), *[slice_of(QUIET, BUSY)] * 4]

    assert kept([busiest, *others]) == others
    assert quiet([busiest, *others]) == 1


def test_a_figure_is_the_median_of_the_slices_that_count_between_its_quartiles() -> None:
    slices = [slice_of(QUIET, QUIET, seconds) for seconds in (5.0, 1.0, 2.0, 4.0, 3.0)]
    busy = slice_of(BUSY, BUSY, 100.0)

    assert Figure.of([*slices, busy], cpu) == Figure(3.0, 2.0, 4.0, quiet=5, slices=6)


def test_what_was_measured_once_has_no_spread() -> None:
    assert Figure.unprobed(7.0) == Figure(7.0, 7.0, 7.0, quiet=None, slices=1)


@given(st.lists(st.floats(1.0, 9.0), min_size=1))
def test_less_than_a_quarter_lies_on_each_side_of_the_quartiles(values: list[float]) -> None:
    low, high = quartiles(values)

    assert {low, high} <= set(values)
    assert max(sum(value < low for value in values), sum(value > high for value in values)) < len(values) / 4


def test_one_row_over_another_is_the_ratio_of_the_medians_and_rests_on_what_both_have() -> None:
    figure = row_of(2.0, 4.0, 6.0).over(row_of(1.0, 2.0), cpu)

    assert figure.median == 4.0 / 1.5
    assert (figure.low, figure.high) == quartiles([2.0, 4.0, 6.0, 1.0, 2.0, 3.0])
    assert (figure.quiet, figure.slices) == (2, 2)


def test_one_value_is_compared_with_another_where_asked_for() -> None:
    assert row_of(0.5).over(row_of(0.5), rate, cpu).median == 2.0


def test_what_two_rows_cost_together_is_as_quiet_as_both() -> None:
    first = Row("one", "put", [slice_of(QUIET, QUIET, 1.0), slice_of(QUIET, BUSY, 2.0)])
    second = Row("one", "get", [slice_of(BUSY, QUIET, 3.0), slice_of(QUIET, QUIET, 4.0)])

    both = beside(first, second)

    assert [sum(map(cpu, one.measured)) for one in both] == [4.0, 6.0]
    assert [(one.before, one.after) for one in both] == [(BUSY, QUIET), (QUIET, BUSY)]
    assert over(both, both, lambda pair: cpu(pair[1]), lambda pair: cpu(pair[0])).median == 3.5 / 1.5


@given(st.lists(st.floats(1.0, 9.0), min_size=1), st.lists(st.floats(1.0, 9.0), min_size=1))
def test_a_ratio_lies_between_its_quartiles(ones: list[float], others: list[float]) -> None:
    figure = row_of(*ones).over(row_of(*others), cpu)

    assert figure.median == statistics.median(ones) / statistics.median(others)
    assert figure.low <= figure.median <= figure.high


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
