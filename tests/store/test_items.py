"""Items of the store, as any store keeps them."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence

import pytest
from tests.patience import eventually
from tests.store.asking import Tenant

from remora.v1.store_item_pb2 import ItemVector, StoreItem
from remora_server.domain.calls import Outcome
from remora_server.domain.errors import RequestIdReused
from remora_server.domain.filters import AllOf, AnyOf, Condition, Filter, Negated, Operator, path_key
from remora_server.domain.items import (
    ItemDraft,
    ItemPlace,
    ItemQuery,
    ItemSearch,
    LabelMatch,
    Namespace,
    NamespaceListing,
    Similarity,
)

SECOND = 1_000_000
BOOKS = ("sarah", "books")


def packed(values: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def item(
    key: str,
    value: object = None,
    namespace: Namespace = BOOKS,
    *vectors: Sequence[float],
    user: str = "",
    ttl: int | None = None,
    model: str = "",
) -> ItemDraft:
    """A draft. `ttl` is in microseconds."""
    given = StoreItem(namespace=namespace, key=key, value=json.dumps(value).encode(), user_id=user)
    given.vectors.extend(ItemVector(values=packed(each), model=model) for each in vectors)
    if ttl is not None:
        given.ttl.FromMicroseconds(ttl)
    return ItemDraft(ItemPlace(namespace, key), given.SerializeToString(), ttl)


def put(tenant: Tenant, *drafts: ItemDraft) -> Outcome:
    return tenant.store.items.write(tenant.write, drafts)


def test_a_repeat_is_known_before_it_is_made(tenant: Tenant) -> None:
    request = tenant.request("r")
    assert tenant.store.items.repeated(request) is None

    first = tenant.store.items.write(request, [item("a")])

    assert tenant.store.items.repeated(request) == first
    assert tenant.store.items.repeated(tenant.request("another")) is None
    with pytest.raises(RequestIdReused):
        tenant.store.items.repeated(tenant.request("r", b"x" * 16))


def get(
    tenant: Tenant, key: str, namespace: Namespace = BOOKS, *, refreshes: bool = False, sees_expired: bool = False
) -> StoreItem | None:
    place = ItemPlace(namespace, key)
    [found] = tenant.store.items.get(tenant.read, [place], refreshes=refreshes, sees_expired=sees_expired).encoded
    return None if found is None else StoreItem.FromString(found)


def search(tenant: Tenant, **how: object) -> list[tuple[StoreItem, float | None]]:
    found = tenant.store.items.search(tenant.read, ItemSearch(**how))  # type: ignore[arg-type]
    return [(StoreItem.FromString(hit.encoded), hit.score) for hit in found.hits]


def keys(tenant: Tenant, **how: object) -> list[str]:
    return [found.key for found, _ in search(tenant, **how)]


def near(values: Sequence[float], similarity: Similarity = Similarity.COSINE, model: str = "") -> ItemQuery:
    return ItemQuery(packed(values), model, similarity)


def is_(path: str, *values: bool | float | str | None, operator: Operator = Operator.EQ) -> Condition:
    return Condition(path_key(path.split(".")), operator, values)


def namespaces(tenant: Tenant, **how: object) -> list[Namespace]:
    return list(tenant.store.items.namespaces(tenant.read, NamespaceListing(**how)).namespaces)  # type: ignore[arg-type]


def test_an_item_comes_back_as_it_was_given(tenant: Tenant) -> None:
    revision = put(tenant, item("a", {"n": 1}, user="sarah")).revision

    found = get(tenant, "a")

    assert found is not None
    assert (tuple(found.namespace), found.key, found.value, found.user_id) == (BOOKS, "a", b'{"n": 1}', "sarah")
    assert found.revision == revision
    assert found.create_time == found.update_time
    assert not found.HasField("expire_time")


def test_a_replaced_item_keeps_when_it_was_created(tenant: Tenant) -> None:
    put(tenant, item("a", 1))
    first = get(tenant, "a")
    put(tenant, item("a", 2))

    second = get(tenant, "a")

    assert first is not None
    assert second is not None
    assert second.create_time == first.create_time
    assert second.update_time.ToMicroseconds() > first.update_time.ToMicroseconds()


def test_a_deleted_item_is_another_when_it_comes_back(tenant: Tenant) -> None:
    put(tenant, item("a", 1))
    first = get(tenant, "a")
    assert tenant.store.items.write(tenant.write, [ItemPlace(BOOKS, "a")]).deleted_records == 1
    assert get(tenant, "a") is None
    put(tenant, item("a", 2))

    second = get(tenant, "a")

    assert first is not None
    assert second is not None
    assert second.create_time.ToMicroseconds() > first.create_time.ToMicroseconds()


def test_of_several_changes_of_an_item_the_last_wins(tenant: Tenant) -> None:
    place = ItemPlace(BOOKS, "b")
    tenant.store.items.write(tenant.write, [item("a", 1), item("b", 1), item("a", 2), place])

    found = get(tenant, "a")

    assert found is not None
    assert found.value == b"2"
    assert get(tenant, "b") is None


def test_a_delete_of_nothing_writes_nothing(tenant: Tenant) -> None:
    outcome = tenant.store.items.write(tenant.write, [ItemPlace(BOOKS, "lost")])

    assert outcome.deleted_records == 0


def test_items_come_in_the_order_of_their_places(tenant: Tenant) -> None:
    put(tenant, item("a", 1), item("b", 2, ("films",)))
    places = [ItemPlace(("films",), "b"), ItemPlace(BOOKS, "lost"), ItemPlace(BOOKS, "a"), ItemPlace(("films",), "b")]

    found = tenant.store.items.get(tenant.read, places).encoded

    assert [each and StoreItem.FromString(each).key for each in found] == ["b", None, "a", "b"]


def test_a_search_shows_what_was_written_last_first(tenant: Tenant) -> None:
    for key in ("a", "b", "c"):
        put(tenant, item(key, 1))
    put(tenant, item("a", 2))

    assert keys(tenant) == ["a", "c", "b"]
    assert keys(tenant, limit=1, skip=1) == ["c"]
    assert keys(tenant, skip=5) == []


def test_a_prefix_has_whole_labels(tenant: Tenant) -> None:
    put(tenant, item("a", 1, ("x", "y")), item("b", 1, ("x",)), item("c", 1, ("xy",)), item("d", 1, ("x", "yz")))
    put(tenant, item("e", 1, ("x\0", "y")), item("f", 1, ("*", "%")))

    assert sorted(keys(tenant, prefix=("x",))) == ["a", "b", "d"]
    assert keys(tenant, prefix=("x", "y")) == ["a"]
    assert keys(tenant, prefix=("*",)) == ["f"]
    assert keys(tenant, prefix=("x\0",)) == ["e"]
    assert len(keys(tenant)) == 6


VALUES = {
    "int": {"n": 9, "t": "b"},
    "float": {"n": 10.5, "t": "a"},
    "text": {"n": "9"},
    "none": {"n": None},
    "bool": {"n": True},
    "inner": {"n": {"m": [1, {"o": "x"}]}},
    "list": {"n": []},
    "missing": {},
    "scalar": 7,
}


@pytest.mark.parametrize(
    ("passing", "found"),
    [
        (is_("n", 9), {"int"}),
        (is_("n", 9.0), {"int"}),
        (is_("n", "9"), {"text"}),
        (is_("n", None), {"none"}),
        (is_("n", True), {"bool"}),
        (is_("n", 9, operator=Operator.GT), {"float"}),
        (is_("n", 10.5, operator=Operator.LTE), {"int", "float"}),
        (is_("t", "a", operator=Operator.GT), {"int"}),
        (is_("n", 9, "9", operator=Operator.IN), {"int", "text"}),
        (is_("n", operator=Operator.PRESENT), {"int", "float", "text", "none", "bool", "inner", "list"}),
        (is_("n", operator=Operator.ABSENT), {"missing", "scalar"}),
        (is_("n", 9, operator=Operator.NE), set(VALUES) - {"int"}),
        (is_("n.m.0", 1), {"inner"}),
        (is_("n.m.1.o", "x"), {"inner"}),
        (is_("n.m.2", operator=Operator.PRESENT), set()),
        (is_("n.m.-1", operator=Operator.PRESENT), set()),
        (is_("n.m", operator=Operator.PRESENT), {"inner"}),
        (AllOf((is_("n", 1, operator=Operator.GT), is_("t", "b"))), {"int"}),
        (AnyOf((is_("n", 9), is_("n", None))), {"int", "none"}),
        (Negated(is_("n", operator=Operator.PRESENT)), {"missing", "scalar"}),
    ],
)
def test_a_filter_compares_what_paths_lead_to(tenant: Tenant, passing: Filter, found: set[str]) -> None:
    put(tenant, *(item(key, value) for key, value in VALUES.items()))

    assert set(keys(tenant, filter=passing)) == found


def test_a_filter_follows_the_values(tenant: Tenant) -> None:
    put(tenant, item("a", {"n": 1}), item("b", {"n": 2}), item("c", {"n": 1}))
    assert sorted(keys(tenant, filter=is_("n", 1))) == ["a", "c"]

    put(tenant, item("b", {"n": 1}), item("c", {"n": 2}), item("d", {"n": 1}))
    tenant.store.items.write(tenant.write, [ItemPlace(BOOKS, "a")])

    assert sorted(keys(tenant, filter=is_("n", 1))) == ["b", "d"]


def test_an_item_is_as_near_as_its_nearest_vector(tenant: Tenant) -> None:
    put(tenant, item("many", 1, BOOKS, *[[1, n / 10] for n in range(10)]), item("one", 1, BOOKS, [1, 1]))
    put(tenant, item("none", 1))

    found = search(tenant, query=near([1, 0]), limit=2)

    assert [each.key for each, _ in found] == ["many", "one"]
    assert [score for _, score in found] == pytest.approx([1.0, 0.5**0.5])


@pytest.mark.parametrize(
    ("similarity", "order", "best"),
    [
        (Similarity.COSINE, ["far", "near", "across"], 1.0),
        (Similarity.INNER_PRODUCT, ["far", "near", "across"], 9.0),
        (Similarity.L2, ["near", "across", "far"], -0.5),
    ],
)
def test_vectors_are_compared_as_asked_for(
    tenant: Tenant, similarity: Similarity, order: list[str], best: float
) -> None:
    put(tenant, item("far", 1, BOOKS, [9, 0]), item("near", 1, BOOKS, [1, 0.5]), item("across", 1, BOOKS, [0, 1]))

    found = search(tenant, query=near([1, 0], similarity))

    assert [each.key for each, _ in found] == order
    assert found[0][1] == pytest.approx(best)


def test_pages_of_a_search_by_vector_are_exact(tenant: Tenant) -> None:
    put(tenant, *(item(f"{n:02}", 1, BOOKS, [1, n / 10], [1, n / 10 + 3]) for n in range(20)))

    pages = [keys(tenant, query=near([1, 0]), limit=5, skip=skip) for skip in (0, 5, 10, 15, 20)]

    assert [key for page in pages for key in page] == [f"{n:02}" for n in range(20)]


def test_vectors_of_other_models_and_dimensions_are_not_compared(tenant: Tenant) -> None:
    put(tenant, item("a", 1, BOOKS, [1, 0], model="m"), item("b", 1, BOOKS, [1, 0, 0]), item("c", 1, BOOKS, [1, 0]))

    assert keys(tenant, query=near([1, 0])) == ["c"]
    assert keys(tenant, query=near([1, 0], model="m")) == ["a"]
    assert keys(tenant, query=near([1, 0, 0, 0])) == []


def test_vectors_go_with_what_they_are_of(tenant: Tenant) -> None:
    put(tenant, item("a", 1, BOOKS, [1, 0], [0, 1]), item("b", 1, BOOKS, [1, 1]), item("c", 1, BOOKS, [0, 1]))
    assert sorted(keys(tenant, query=near([1, 0]))) == ["a", "b", "c"]

    put(tenant, item("a", 2))
    tenant.store.items.write(tenant.write, [ItemPlace(BOOKS, "b")])
    put(tenant, item("b", 2))

    assert keys(tenant, query=near([1, 0])) == ["c"]


def test_a_query_filter_and_prefix_hold_together(tenant: Tenant) -> None:
    put(tenant, item("a", {"n": 1}, BOOKS, [1, 0]), item("b", {"n": 2}, BOOKS, [1, 0]))
    put(tenant, item("c", {"n": 1}, ("tom",), [1, 0]))

    assert keys(tenant, prefix=("sarah",), filter=is_("n", 1), query=near([1, 0])) == ["a"]


def test_namespaces_are_listed_while_they_have_items(tenant: Tenant) -> None:
    put(tenant, *(item("k", 1, labels) for labels in [("b",), ("a", "x"), ("a", "y", "z"), ("ab",), ("a", "\0")]))

    assert namespaces(tenant) == [("a", "\0"), ("a", "x"), ("a", "y", "z"), ("ab",), ("b",)]

    tenant.store.items.write(tenant.write, [ItemPlace(("a", "x"), "k")])

    assert namespaces(tenant, limit=2) == [("a", "\0"), ("a", "y", "z")]
    assert namespaces(tenant, limit=2, skip=2) == [("ab",), ("b",)]


@pytest.mark.parametrize(
    ("how", "found"),
    [
        ({"matches": (LabelMatch(("a",)),)}, [("a", "x", "p"), ("a", "y", "p"), ("a", "y", "q")]),
        ({"matches": (LabelMatch(("*", "y")),)}, [("a", "y", "p"), ("a", "y", "q"), ("b", "y")]),
        ({"matches": (LabelMatch(("p",), at_end=True),)}, [("a", "x", "p"), ("a", "y", "p")]),
        ({"matches": (LabelMatch(("y", "*"), at_end=True), LabelMatch(("a",)))}, [("a", "y", "p"), ("a", "y", "q")]),
        ({"matches": (LabelMatch(("a", "y", "q", "r")),)}, []),
        ({"matches": (LabelMatch(()),), "max_depth": 1}, [("a",), ("b",)]),
        ({"max_depth": 2}, [("a", "x"), ("a", "y"), ("b", "y")]),
        ({"max_depth": 2, "skip": 1, "limit": 1}, [("a", "y")]),
    ],
)
def test_namespaces_are_found_by_their_labels(tenant: Tenant, how: dict[str, object], found: list[Namespace]) -> None:
    given = [("a", "y", "q"), ("b", "y"), ("a", "x", "p"), ("a", "y", "p")]
    put(tenant, *(item("k", 1, labels) for labels in given))

    assert namespaces(tenant, **how) == found


def test_namespaces_go_by_their_first_labels(tenant: Tenant) -> None:
    put(tenant, item("k", 1, ("a", "x")), item("k", 1, ("a",)), item("k", 1, ("ab",)), item("l", 1, ("a", "x")))
    assert len(keys(tenant)) == 4

    tenant.store.items.delete_namespaces(tenant.write, ("a",))

    assert namespaces(tenant) == [("ab",)]
    assert get(tenant, "k", ("a", "x")) is None
    assert get(tenant, "k", ("ab",)) is not None


def test_the_items_of_a_user_go_with_the_user(tenant: Tenant) -> None:
    put(tenant, item("a", 1, BOOKS, [1, 0], user="sarah"), item("b", 1, BOOKS, [1, 0], user="tom"), item("c", 1))
    assert len(keys(tenant)) == 3

    tenant.store.users.delete(tenant.write, "sarah")

    assert sorted(keys(tenant)) == ["b", "c"]
    assert keys(tenant, query=near([1, 0])) == ["b"]
    assert get(tenant, "a") is None


def test_tenants_have_their_own_items(tenant: Tenant, other: Tenant) -> None:
    put(tenant, item("a", 1))

    assert get(other, "a") is None
    assert keys(other) == []
    assert namespaces(other) == []


def wait_until_gone(tenant: Tenant, key: str) -> None:
    eventually(lambda: get(tenant, key) is None)


def test_what_has_expired_is_not_seen(tenant: Tenant) -> None:
    put(tenant, item("soon", 1, BOOKS, [1, 0], ttl=50_000), item("late", 1, ("late",), [1, 0], ttl=900 * SECOND))
    found = get(tenant, "late", ("late",))
    assert found is not None
    assert found.expire_time.ToMicroseconds() == found.update_time.ToMicroseconds() + 900 * SECOND

    wait_until_gone(tenant, "soon")

    assert keys(tenant) == ["late"]
    assert keys(tenant, query=near([1, 0])) == ["late"]
    assert namespaces(tenant) == [("late",)]
    assert tenant.store.items.write(tenant.write, [ItemPlace(BOOKS, "soon")]).deleted_records == 0


@pytest.mark.parametrize("refreshes", [False, True])
def test_what_has_expired_is_seen_by_reads_that_ask_for_it_until_it_is_deleted(tenant: Tenant, refreshes: bool) -> None:
    put(tenant, item("soon", {"n": 1}, BOOKS, [1, 0], ttl=50_000), item("late", {"n": 1}, ("late",), ttl=900 * SECOND))
    first = search(tenant, prefix=("late",))[0][0].expire_time.ToMicroseconds()
    wait_until_gone(tenant, "soon")

    expired = get(tenant, "soon", refreshes=refreshes, sees_expired=True)
    found = search(tenant, filter=is_("n", 1), refreshes=refreshes, sees_expired=True)

    assert expired is not None
    assert expired.expire_time.ToMicroseconds() == expired.create_time.ToMicroseconds() + 50_000
    assert [each.key for each, _ in found] == ["late", "soon"]
    assert (found[0][0].expire_time.ToMicroseconds() > first) is refreshes
    assert keys(tenant, query=near([1, 0]), sees_expired=True) == ["soon"]
    assert namespaces(tenant, sees_expired=True) == [("late",), BOOKS]
    assert get(tenant, "soon") is None
    assert tenant.store.items.write(tenant.write, [ItemPlace(BOOKS, "soon")]).deleted_records == 0
    assert get(tenant, "soon", sees_expired=True) is None
    assert keys(tenant, sees_expired=True) == ["late"]


def test_an_item_in_the_place_of_an_expired_one_is_another(tenant: Tenant) -> None:
    put(tenant, item("a", 1, ttl=20_000))
    first = get(tenant, "a", sees_expired=True)
    wait_until_gone(tenant, "a")

    put(tenant, item("a", 2))

    second = get(tenant, "a", sees_expired=True)
    assert first is not None
    assert second is not None
    assert second.create_time.ToMicroseconds() > first.create_time.ToMicroseconds()


def test_what_has_expired_is_counted_when_it_is_deleted(tenant: Tenant) -> None:
    put(tenant, item("a", 1, ttl=20_000), item("b", 1, ttl=20_000), item("c", 1))
    wait_until_gone(tenant, "a")
    wait_until_gone(tenant, "b")

    assert tenant.store.items.delete_expired(tenant.write).deleted_records == 2
    assert tenant.store.items.delete_expired(tenant.write).deleted_records == 0
    assert keys(tenant) == ["c"]


@pytest.mark.parametrize("by_search", [False, True])
def test_an_item_that_is_read_lives_on_if_the_read_refreshes_it(tenant: Tenant, by_search: bool) -> None:
    put(tenant, item("a", 1, ttl=900 * SECOND))
    first = get(tenant, "a")
    keys(tenant)
    if by_search:
        keys(tenant, refreshes=True)
    else:
        get(tenant, "a", refreshes=True)

    for second in (get(tenant, "a"), search(tenant)[0][0]):
        assert first is not None
        assert second is not None
        assert second.expire_time.ToMicroseconds() > first.expire_time.ToMicroseconds()
