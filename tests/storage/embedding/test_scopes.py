"""How many of something are in each scope: the count beside one that asks every scope what it holds."""

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from remora_server.storage.embedding.scopes import Part, ResolvedScope, Tally

PARTS: list[Part] = list(product(("acme", "other"), ("ann", "bob"), (1, 2)))
SCOPES = [
    *(ResolvedScope(tenant_id) for tenant_id in ("acme", "other", "nobody")),
    *(ResolvedScope("acme", user_id) for user_id in ("ann", "bob", "tom")),
    *(ResolvedScope(*part) for part in PARTS),
]


@given(st.lists(st.sampled_from(PARTS)), st.integers(0))
def test_a_place_has_what_came_and_has_not_gone(came: list[Part], gone: int) -> None:
    tally = Tally()
    for part in came:
        tally.add(part)
    for part in came[:gone]:
        tally.add(part, -1)

    assert [tally.count(scope) for scope in SCOPES] == [sum(map(scope.holds, came[gone:])) for scope in SCOPES]
