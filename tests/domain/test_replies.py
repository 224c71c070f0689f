"""What of a list goes into a reply."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from remora_server.domain.replies import REPLY_BYTES, fitting, read_fitting

SIZES = st.lists(st.sampled_from([0, 1, 1000, REPLY_BYTES // 40, REPLY_BYTES // 3, REPLY_BYTES, 2 * REPLY_BYTES]))


def longest_prefix(sizes: Sequence[int], room: int, least: int) -> int:
    """How many elements fit, by trying every number of them."""
    fit = [count for count in range(len(sizes) + 1) if sum(sizes[:count]) <= room]
    return max([min(least, len(sizes)), *fit])


@given(SIZES, st.integers(-1, 2 * REPLY_BYTES), st.integers(0, 2))
def test_the_longest_beginning_that_fits_is_held(sizes: list[int], room: int, least: int) -> None:
    assert fitting(sizes, lambda size: size, room=room, least=least) == sizes[: longest_prefix(sizes, room, least)]


@given(SIZES, st.none() | st.integers(1, 20))
def test_reading_in_groups_finds_the_same(sizes: list[int], most: int | None) -> None:
    asked: list[int] = []

    def read(keys: Sequence[int]) -> list[int]:
        assert most is None or len(keys) <= most
        asked.extend(keys)
        return [sizes[key] for key in keys]

    assert read_fitting(range(len(sizes)), read, lambda size: size, most=most) == fitting(sizes, lambda size: size)
    assert asked == list(range(len(asked)))


def test_no_more_is_read_than_would_fill_the_reply_if_all_were_alike() -> None:
    asked: list[int] = []

    def read(keys: Sequence[int]) -> list[int]:
        asked.extend(keys)
        return [REPLY_BYTES // 100 for _ in keys]

    found = read_fitting(range(10_000), read, lambda size: size)

    assert len(found) == 100
    assert len(asked) <= 116
