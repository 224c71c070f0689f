"""How many of something are in each place: the count beside one that asks every place what it holds."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from remora_server.storage.embedding.places import Part, Place, Tally

PARTS: list[Part] = list(product(("acme", "other"), ("ann", "bob"), (1, 2)))
PLACES = [
    *(Place(tenant_id) for tenant_id in ("acme", "other", "nobody")),
    *(Place("acme", user_id) for user_id in ("ann", "bob", "tom")),
    *(Place(*part) for part in PARTS),
]


@given(st.lists(st.sampled_from(PARTS)), st.integers(0))
def test_a_place_has_what_came_and_has_not_gone(came: list[Part], gone: int) -> None:
    tally = Tally()
    for part in came:
        tally.add(part)
    for part in came[:gone]:
        tally.add(part, -1)

    assert [tally.count(place) for place in PLACES] == [sum(map(place.holds, came[gone:])) for place in PLACES]
