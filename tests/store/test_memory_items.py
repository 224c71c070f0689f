"""Memory items, as any store keeps them."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence

import pytest
from tests.patience import eventually
from tests.store.asking import Tenant

from remora.v1.memory_item_pb2 import MemoryItem, SpokenMessage
from remora.v1.transfer_service_pb2 import Record
from remora_server import wire
from remora_server.domain.calls import Outcome
from remora_server.domain.embedded import ItemVector
from remora_server.domain.errors import MemoryItemNotFound, RecordConflict
from remora_server.domain.filters import AllOf, AnyOf, Condition, Filter, Negated, Operator, path_key
from remora_server.domain.memory_items import ItemDraft, ItemFilter, ItemQuery
from remora_server.domain.transfers import Import, ImportedRecord

MODEL = "m"
HOUR = 3_600_000_000


def draft(
    item_id: str = "",
    text: str = "",
    vector: Sequence[float] | None = None,
    *,
    model: str = MODEL,
    metadata: object = None,
    lifetime: int | None = None,
    **fields: object,
) -> ItemDraft:
    encoded = b"" if metadata is None else json.dumps(metadata).encode()
    body = MemoryItem(text=text, metadata=encoded, **fields)  # type: ignore[arg-type]
    made = None if vector is None else ItemVector(model, packed(vector))
    return ItemDraft(item_id, body.SerializeToString(), text, lifetime, made)


def packed(values: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def add(tenant: Tenant, *drafts: ItemDraft, user: str = "sarah") -> Outcome:
    return tenant.store.memory_items.add(tenant.write, user, drafts)


def found(
    tenant: Tenant,
    text: str = "",
    vector: Sequence[float] | None = None,
    *,
    user: str = "sarah",
    k: int = 100,
    threshold: float | None = None,
    tags: tuple[str, ...] = (),
    where: Filter | None = None,
    model: str = MODEL,
) -> list[tuple[str, float]]:
    """The ids and scores of the best items."""
    query = ItemQuery(text, k, threshold, ItemFilter(tags, where), model, None if vector is None else packed(vector))
    ranked = tenant.store.memory_items.search(tenant.read, user, query)
    return [(MemoryItem.FromString(hit.encoded).id, hit.score) for hit in ranked.hits]


def ids(tenant: Tenant, where: Filter | None = None, tags: tuple[str, ...] = (), user: str = "sarah") -> list[str]:
    return sorted(name for name, _ in found(tenant, "", [0.0, 1.0], user=user, tags=tags, where=where))


def listed(tenant: Tenant, passing: ItemFilter | None = None, *, user: str = "sarah", limit: int = 100) -> list[str]:
    """The ids of all pages."""
    names: list[str] = []
    after = None
    while True:
        page = tenant.store.memory_items.list(tenant.read, user, passing or ItemFilter(), after, limit)
        assert len(page.encoded) <= limit
        names += [MemoryItem.FromString(each).id for each in page.encoded]
        after = page.following
        if after is None:
            return names


def got(tenant: Tenant, item_id: str, user: str = "sarah") -> MemoryItem:
    return MemoryItem.FromString(tenant.store.memory_items.get(tenant.read, user, item_id)[0])


def at(*steps: str, operator: Operator = Operator.EQ, value: object = None) -> Condition:
    values = () if operator in {Operator.PRESENT, Operator.ABSENT} else (value,)
    return Condition(path_key(steps), operator, values)  # type: ignore[arg-type]


def test_an_item_comes_back_as_it_was_written(tenant: Tenant) -> None:
    said = [SpokenMessage(role="user", content="Tea, please", other={"name": wire.scalar("Sarah")})]

    add(tenant, draft("i", "likes tea", metadata={"cups": [1, {"é": None}]}, tags=["drink"], conversation=said))

    item = got(tenant, "i")
    assert item.user_id == "sarah"
    assert item.create_time == item.update_time
    assert (item.text, list(item.tags), list(item.conversation)) == ("likes tea", ["drink"], said)
    assert json.loads(item.metadata) == {"cups": [1, {"é": None}]}


def test_items_without_ids_get_some(tenant: Tenant) -> None:
    outcome = add(tenant, draft(), draft(), draft("own"))

    names = [placed.id for placed in outcome.messages]
    assert len(set(names)) == 3
    assert names[2] == "own"
    assert sorted(listed(tenant)) == sorted(names)


def test_an_item_with_a_known_id_is_replaced_and_keeps_its_create_time(tenant: Tenant) -> None:
    add(tenant, draft("i", "amber", [1, 0], tags=["old"]))
    before = got(tenant, "i")

    outcome = add(tenant, draft("i", "cobalt", [0, 1]), draft("i", "zinc", [0, 1]))

    after = got(tenant, "i")
    assert [placed.replaced for placed in outcome.messages] == [True, True]
    assert (after.text, list(after.tags), after.create_time) == ("zinc", [], before.create_time)
    assert after.update_time.ToMicroseconds() > before.update_time.ToMicroseconds()
    assert [name for name, _ in found(tenant, "zinc")] == ["i"]
    assert found(tenant, "amber") == found(tenant, "cobalt") == []


def test_an_item_is_found_right_after_it_was_added(tenant: Tenant) -> None:
    for number in range(20):
        add(tenant, draft(f"i{number}", f"word{number}x", [1, number]))
        assert found(tenant, f"word{number}x", [1, number], k=1)[0][0] == f"i{number}"


def test_a_score_is_of_the_vector_and_of_the_words(tenant: Tenant) -> None:
    add(tenant, draft("both", "amber cobalt", [1, 0]), draft("near", "zinc", [1, 0]), draft("far", "amber", [-1, 0]))

    scores = dict(found(tenant, "amber cobalt", [1, 0]))

    assert scores["near"] == pytest.approx(1 / 1.5)
    assert scores["both"] > scores["near"] > scores["far"] > 0
    assert all(0 <= score <= 1 for score in scores.values())


def test_of_equal_vectors_the_identifier_decides(tenant: Tenant) -> None:
    add(tenant, *(draft(f"i{number}", f"order {number} was refunded", [1, 0]) for number in range(4711, 4761)))

    assert found(tenant, "what about order 4733", [1, 0], k=1)[0][0] == "i4733"


def test_without_a_vector_of_the_query_items_are_found_by_words_alone(tenant: Tenant) -> None:
    add(tenant, draft("a", "amber cobalt", [1, 0]), draft("b", "amber", [1, 0]), draft("c", "zinc", [1, 0]))

    assert [name for name, _ in found(tenant, "amber cobalt")] == ["a", "b"]


def test_vectors_of_another_model_are_not_compared(tenant: Tenant) -> None:
    add(tenant, draft("a", "amber", [1, 0], model="old"), draft("b", "cobalt", [1, 0]), draft("c", "zinc"))

    scores = dict(found(tenant, "quartz", [1, 0]))

    assert scores == {"a": 0, "b": pytest.approx(1 / 1.5), "c": 0}
    query = ItemQuery("quartz", model=MODEL, vector=packed([1, 0]))
    assert tenant.store.memory_items.search(tenant.read, "sarah", query).pending == 2


def test_a_vector_of_another_dimension_is_near_nothing(tenant: Tenant) -> None:
    add(tenant, draft("a", "amber", [1, 0, 0]), draft("b", "amber", [1, 0]))

    scores = dict(found(tenant, "quartz", [1, 0]))

    assert scores == {"a": 0, "b": pytest.approx(1 / 1.5)}


def test_only_scores_from_the_threshold_on_are_found(tenant: Tenant) -> None:
    add(tenant, draft("near", "x", [1, 0]), draft("far", "y", [1, 5]))

    assert [name for name, _ in found(tenant, "z", [1, 0], threshold=0.5)] == ["near"]


def test_no_user_sees_the_items_of_another(tenant: Tenant) -> None:
    add(tenant, draft("i", "amber", [1, 0], tags=["t"]), user="sarah")
    add(tenant, draft("i", "cobalt", [1, 0]), user="sarah\0")

    assert found(tenant, "amber", [1, 0], user="tom") == []
    assert listed(tenant, user="tom") == []
    with pytest.raises(MemoryItemNotFound):
        got(tenant, "i", "tom")
    assert tenant.store.memory_items.delete(tenant.write, "tom", ["i"]).deleted_records == 0
    assert tenant.store.memory_items.delete_where(tenant.write, "tom", ItemFilter()).deleted_records == 0
    assert got(tenant, "i", "sarah").text == "amber"
    assert got(tenant, "i", "sarah\0").text == "cobalt"


def test_no_tenant_sees_the_items_of_another(tenant: Tenant, other: Tenant) -> None:
    add(tenant, draft("i", "amber", [1, 0]))

    assert found(other, "amber", [1, 0]) == []
    assert other.store.memory_items.delete(other.write, "", ["i"]).deleted_records == 0
    assert listed(tenant) == ["i"]


METADATA = {
    "plan": "pro",
    "age": 30,
    "big": 2**53 + 1,
    "ratio": 0.5,
    "active": True,
    "gone": None,
    "nested": {"deep": {"er": "x"}, "list": [{"a": 1}, "two"], "": "empty", "a\0b": "nul", "\1": "one"},
}


@pytest.mark.parametrize(
    ("where", "passes"),
    [
        (at("plan", value="pro"), True),
        (at("plan", value="free"), False),
        (at("age", operator=Operator.GT, value=29.5), True),
        (at("age", operator=Operator.LT, value=30), False),
        (at("big", value=2**53 + 1), True),
        (at("big", value=2**53), False),
        (at("ratio", operator=Operator.LTE, value=0.5), True),
        (at("active", value=True), True),
        (at("active", value=1), False),
        (at("gone", value=None), True),
        (at("gone", operator=Operator.PRESENT), True),
        (at("nothing", operator=Operator.ABSENT), True),
        (at("nothing", value=None), False),
        (at("nested", operator=Operator.PRESENT), True),
        (at("nested", value=None), False),
        (at("nested", operator=Operator.NE, value="x"), True),
        (at("nested", "deep", "er", value="x"), True),
        (at("nested", "list", "0", "a", value=1), True),
        (at("nested", "list", "1", value="two"), True),
        (at("nested", "list", "2", operator=Operator.ABSENT), True),
        (at("nested", "", value="empty"), True),
        (at("nested", "a\0b", value="nul"), True),
        (at("nested", "a", "b", operator=Operator.ABSENT), True),
        (at("nested", "\1", value="one"), True),
        (AllOf((at("plan", value="pro"), Negated(at("age", value=30)))), False),
        (AnyOf((at("plan", value="free"), at("age", value=30))), True),
    ],
)
def test_a_filter_sees_the_values_within_metadata(tenant: Tenant, where: Filter, passes: bool) -> None:
    add(tenant, draft("i", "amber", [1, 0], metadata=METADATA), draft("bare", "amber", [1, 0]))

    assert ("i" in ids(tenant, where)) is passes
    assert sorted(listed(tenant, ItemFilter(where=where))) == ids(tenant, where)


def test_all_tags_of_a_filter_are_wanted(tenant: Tenant) -> None:
    add(tenant, draft("ab", "x", tags=["a", "b"]), draft("a", "y", tags=["a"]), draft("none", "z"))

    assert ids(tenant, tags=("a",)) == ["a", "ab"]
    assert ids(tenant, tags=("a", "b")) == ["ab"]
    assert ids(tenant, tags=("tag:a",)) == []


def test_no_metadata_looks_like_a_tag(tenant: Tenant) -> None:
    hidden = {"tag:a": True, "expires": 1}
    add(tenant, draft("i", "x", metadata=hidden))

    assert ids(tenant) == ["i"]
    assert ids(tenant, tags=("a",)) == []


def test_items_are_listed_the_newest_first_in_pages(tenant: Tenant) -> None:
    for number in range(7):
        add(tenant, draft(f"i{number}", "x", tags=["odd"] if number % 2 else []))
    add(tenant, draft("i0", "again"))

    assert listed(tenant, limit=3) == [f"i{number}" for number in range(6, -1, -1)]
    assert listed(tenant, ItemFilter(("odd",)), limit=2) == ["i5", "i3", "i1"]


def test_a_page_ends_before_the_reply_is_too_large(tenant: Tenant) -> None:
    add(tenant, *(draft(f"i{number}", "x" * 60_000) for number in range(60)))

    page = tenant.store.memory_items.list(tenant.read, "sarah", ItemFilter(), None, 1_000)

    if page.following is not None:
        assert sum(map(len, page.encoded)) <= 3 << 20
    assert len(listed(tenant, limit=1_000)) == 60


def test_items_are_deleted_by_their_ids(tenant: Tenant) -> None:
    add(tenant, draft("a", "amber"), draft("b", "amber"), draft("c", "amber"))

    assert tenant.store.memory_items.delete(tenant.write, "sarah", ["a", "a", "lost", "b"]).deleted_records == 2
    assert listed(tenant) == ["c"]
    assert [name for name, _ in found(tenant, "amber")] == ["c"]
    assert tenant.store.memory_items.delete(tenant.write, "sarah", ["a"]).deleted_records == 0


def test_ids_alone_delete_the_items_of_any_user(tenant: Tenant) -> None:
    for user in ("sarah", "tom", "zoe"):
        add(tenant, draft("i" if user != "zoe" else "j", "amber"), user=user)

    assert tenant.store.memory_items.delete(tenant.write, "", ["i"]).deleted_records == 2
    assert listed(tenant, user="sarah") == listed(tenant, user="tom") == []
    assert listed(tenant, user="zoe") == ["j"]


def test_items_are_deleted_by_a_filter(tenant: Tenant) -> None:
    add(tenant, draft("a", metadata={"n": 1}), draft("b", metadata={"n": 2}), draft("c", tags=["t"]))
    memory = tenant.store.memory_items

    above = ItemFilter(where=at("n", operator=Operator.GT, value=1))
    assert memory.delete_where(tenant.write, "sarah", above).deleted_records == 1
    assert memory.delete_where(tenant.write, "sarah", ItemFilter(("t",))).deleted_records == 1
    assert listed(tenant) == ["a"]
    assert memory.delete_where(tenant.write, "sarah", ItemFilter()).deleted_records == 1
    assert memory.delete_where(tenant.write, "sarah", ItemFilter()).deleted_records == 0
    assert ids(tenant) == []


def test_the_items_of_a_deleted_user_are_gone(tenant: Tenant) -> None:
    for user in ("sarah", "tom"):
        add(tenant, draft("i", "amber", [1, 0]), user=user)
        assert ids(tenant, user=user) == ["i"]

    tenant.store.users.delete(tenant.write, "sarah")

    assert (ids(tenant), listed(tenant)) == ([], [])
    assert ids(tenant, user="tom") == ["i"]


def test_what_has_expired_is_gone_for_all_calls(tenant: Tenant) -> None:
    add(tenant, draft("brief", "amber", [1, 0], lifetime=1_000), draft("long", "amber", [1, 0], lifetime=HOUR))
    past = wire.timestamp(1_000_000)
    add(tenant, draft("past", "amber", [1, 0], expire_time=past))
    eventually(lambda: listed(tenant) == ["long"])

    assert ids(tenant) == ["long"]
    with pytest.raises(MemoryItemNotFound):
        got(tenant, "brief")
    assert tenant.store.memory_items.delete(tenant.write, "sarah", ["brief", "past"]).deleted_records == 0
    assert got(tenant, "long").expire_time.ToMicroseconds() > got(tenant, "long").create_time.ToMicroseconds()


def test_an_export_holds_items_whole_and_an_import_brings_them_back(tenant: Tenant, other: Tenant) -> None:
    add(tenant, draft("i", "amber", [1, 0], tags=["t"], metadata={"a": {"b": 1}}, lifetime=HOUR))
    [record] = tenant.exported()
    given = [ImportedRecord("records[0].memory_item", "memory_item", _imported(record))]

    assert other.store.imports.store(other.write, Import("", records=tuple(given))).imported_records == 1
    assert other.store.imports.store(other.write, Import("", records=tuple(given))).imported_records == 0

    before, after = (each.SerializeToString(deterministic=True) for each in (got(tenant, "i"), got(other, "i")))
    assert after == before
    assert ids(other, at("a", "b", value=1), ("t",)) == ["i"]
    assert found(other, "amber", [1, 0]) == found(tenant, "amber", [1, 0])
    changed = MemoryItem.FromString(given[0].body)
    changed.text = "another"
    conflicting = [ImportedRecord("records[0].memory_item", "memory_item", changed.SerializeToString())]
    with pytest.raises(RecordConflict):
        other.store.imports.store(other.write, Import("", records=tuple(conflicting)))


def _imported(record: Record) -> bytes:
    """The body of an item as an import takes it."""
    record.memory_item.ClearField("indexed")
    return record.memory_item.SerializeToString()
