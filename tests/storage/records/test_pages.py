"""Pages of records: what is in each, and that bounds select it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from remora_server.storage.records.pages import _end

PLACES = st.sets(st.tuples(st.binary(max_size=1), st.binary(max_size=1)), max_size=30).map(sorted)


@given(places=PLACES, most=st.integers(1, 12))
def test_the_bounds_of_a_page_select_it_and_no_other(places: list[tuple[bytes, bytes]], most: int) -> None:
    begin, pages = 0, []
    while begin < len(places):
        end = _end(places, begin, most)
        page = places[begin:end]
        assert 0 < len(page) <= most
        keys = [key for _, key in page]
        between = [
            (partition, key)
            for partition, key in places
            if page[0][0] <= partition <= page[-1][0] and min(keys) <= key <= max(keys)
        ]
        assert between == page
        pages += page
        begin = end

    assert pages == places
