"""Vectors and their collections, as any store keeps them."""

from __future__ import annotations

import struct
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.store.asking import Tenant

from remora.v1.transfer_service_pb2 import Record
from remora.v1.vector_pb2 import Vector, VectorCollection
from remora_server import wire
from remora_server.domain.calls import Outcome, Read
from remora_server.domain.conversations import AttributeValue
from remora_server.domain.errors import CollectionExists, CollectionNotFound, DimensionMismatch, RecordConflict
from remora_server.domain.filters import AllOf, AnyOf, Condition, Filter, Negated, Operator
from remora_server.domain.transfers import Import, ImportedRecord
from remora_server.domain.vectors import CollectionDraft, VectorDraft, VectorQuery, VectorScope

SCOPE = VectorScope("books")
OF_SARAH, OF_TOM = VectorScope("books", "sarah"), VectorScope("books", "tom")


def packed(values: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(values)}f", *values)


def vector(
    vector_id: str,
    values: Sequence[float] = (1.0, 0.0),
    scope: VectorScope = SCOPE,
    attributes: dict[str, AttributeValue] | None = None,
    **fields: str | bytes,
) -> Vector:
    given = {key: wire.scalar(value) for key, value in (attributes or {}).items()}
    return Vector(
        id=vector_id,
        collection_id=scope.collection_id,
        user_id=scope.user_id,
        values=packed(values),
        attributes=given,
        **fields,  # type: ignore[arg-type]
    )


def draft(given: Vector, index: int = 0) -> VectorDraft:
    return VectorDraft(given.id, len(given.values) // 4, given.SerializeToString(), f"vectors[{index}].values")


def put(tenant: Tenant, *given: Vector, scope: VectorScope = SCOPE) -> Outcome:
    drafts = [draft(each, index) for index, each in enumerate(given)]
    return tenant.store.vectors.upsert(tenant.write, scope, drafts)


def near(
    tenant: Tenant,
    values: Sequence[float] = (1.0, 0.0),
    k: int = 10,
    threshold: float | None = None,
    passing: Filter | None = None,
    *,
    scope: VectorScope = SCOPE,
) -> list[tuple[str, float]]:
    """The ids and scores of the nearest vectors."""
    query = VectorQuery(packed(values), k, threshold, passing)
    found = tenant.store.vectors.search(tenant.read, scope, query)
    return [(Vector.FromString(hit.encoded).id, hit.score) for hit in found.hits]


def ids(tenant: Tenant, passing: Filter | None = None, scope: VectorScope = SCOPE) -> list[str]:
    return sorted(name for name, _ in near(tenant, k=1_000, passing=passing, scope=scope))


def got(tenant: Tenant, *names: str, scope: VectorScope = SCOPE) -> list[Vector]:
    found = tenant.store.vectors.get(tenant.read, scope, names)
    return [Vector.FromString(each) for each in found.encoded]


def count(tenant: Tenant, passing: Filter | None = None, scope: VectorScope = SCOPE) -> int:
    return tenant.store.vectors.count(tenant.read, scope, passing)[0]


def collection(tenant: Tenant, name: str = "books") -> VectorCollection:
    return VectorCollection.FromString(tenant.store.collections.get(tenant.read, name).encoded)


def is_(key: str, value: AttributeValue, operator: Operator = Operator.EQ) -> Condition:
    return Condition(key, operator, (value,))


def test_a_vector_comes_back_as_it_was_stored(tenant: Tenant) -> None:
    given = vector("a", (0.1, -3e38), attributes={"k": 1, "t": "x"}, content="über", metadata=b"\0\xff")

    revision = put(tenant, given).revision

    [found] = got(tenant, "a")
    assert found.revision == revision
    assert found.update_time.seconds > 0
    found.ClearField("revision")
    found.ClearField("update_time")
    assert found == given


def test_vectors_come_in_the_order_of_their_ids_asked_for(tenant: Tenant) -> None:
    put(tenant, vector("a"), vector("b"), vector("c"))

    assert [each.id for each in got(tenant, "c", "missing", "a")] == ["c", "a"]


def test_a_search_sees_what_was_stored_before_it(tenant: Tenant) -> None:
    for number in range(5):
        put(tenant, vector(f"v{number}"))
        assert len(near(tenant)) == number + 1


def test_the_score_is_half_of_one_more_than_the_cosine(tenant: Tenant) -> None:
    put(tenant, vector("same", (2.0, 0.0)), vector("across", (0.0, 1.0)), vector("against", (-0.5, 0.0)))

    assert near(tenant, (3.0, 0.0)) == [("same", 1.0), ("across", 0.5), ("against", 0.0)]


def test_a_zero_vector_has_the_similarity_zero_to_all(tenant: Tenant) -> None:
    put(tenant, vector("zero", (0.0, 0.0)), vector("a", (1.0, 0.0)))

    assert near(tenant) == [("a", 1.0), ("zero", 0.5)]
    assert near(tenant, (0.0, 0.0)) == [("a", 0.5), ("zero", 0.5)]


def test_ties_go_by_id(tenant: Tenant) -> None:
    put(tenant, *(vector(name, (1.0, 1.0)) for name in ("b", "ä", "a", "c")))

    assert [name for name, _ in near(tenant, k=3)] == ["a", "b", "c"]


def test_the_threshold_is_of_the_score_and_inclusive(tenant: Tenant) -> None:
    put(tenant, vector("same"), vector("across", (0.0, 1.0)), vector("against", (-1.0, 0.0)))

    assert [name for name, _ in near(tenant, threshold=0.5)] == ["same", "across"]
    assert near(tenant, threshold=1.5) == []


def test_results_are_those_of_comparing_all_in_double(tenant: Tenant) -> None:
    random = np.random.default_rng(7)
    stored = random.normal(size=(500, 33)).astype(np.float32)
    for begin in range(0, 500, 100):
        rows = range(begin, begin + 100)
        put(tenant, *(vector(f"{row:03}", stored[row].tolist(), attributes={"part": row % 5}) for row in rows))

    for number in range(20):
        query = random.normal(size=33).astype(np.float32)
        exact = stored.astype(np.float64) @ query.astype(np.float64)
        exact /= np.linalg.norm(stored.astype(np.float64), axis=1) * np.linalg.norm(query.astype(np.float64))
        part = number % 6
        passing = [row for row in range(500) if part == 5 or row % 5 == part]
        wanted = sorted(passing, key=lambda row: (-exact[row], row))[:17]

        found = near(tenant, query.tolist(), k=17, passing=None if part == 5 else is_("part", part))

        assert [name for name, _ in found] == [f"{row:03}" for row in wanted]
        assert [score for _, score in found] == pytest.approx((1 + exact[wanted]) / 2, abs=1e-12)


def test_filters_compare_attributes_by_type(tenant: Tenant) -> None:
    put(
        tenant,
        vector("one", attributes={"n": 1, "t": "b"}),
        vector("half", attributes={"n": 0.5, "t": "a"}),
        vector("true", attributes={"n": True}),
        vector("null", attributes={"n": None}),
        vector("text", attributes={"n": "1"}),
        vector("none"),
    )

    assert ids(tenant, is_("n", 1.0)) == ["one"]
    assert ids(tenant, is_("n", 1, Operator.LT)) == ["half"]
    assert ids(tenant, is_("n", 0.5, Operator.GTE)) == ["half", "one"]
    assert ids(tenant, is_("n", 1, Operator.NE)) == ["half", "none", "null", "text", "true"]
    assert ids(tenant, Condition("n", Operator.IN, ("1", True, 7))) == ["text", "true"]
    assert ids(tenant, Condition("n", Operator.ABSENT, ())) == ["none"]
    assert ids(tenant, Condition("t", Operator.PRESENT, ())) == ["half", "one"]
    assert ids(tenant, is_("n", None)) == ["null"]
    assert ids(tenant, AllOf((is_("t", "a", Operator.GT), is_("n", 0, Operator.GT)))) == ["one"]
    assert ids(tenant, AnyOf((is_("t", "a"), is_("n", "1")))) == ["half", "text"]
    assert ids(tenant, Negated(Condition("n", Operator.PRESENT, ()))) == ["none"]


def test_a_filter_sees_the_attributes_of_the_newest_write(tenant: Tenant) -> None:
    put(tenant, vector("a", attributes={"k": 1}))
    assert ids(tenant, is_("k", 1)) == ["a"]

    put(tenant, vector("a", attributes={"k": 2}))

    assert ids(tenant, is_("k", 1)) == []
    assert ids(tenant, is_("k", 2)) == ["a"]


def test_of_two_vectors_with_one_id_the_last_wins(tenant: Tenant) -> None:
    put(tenant, vector("a", (1.0, 0.0)), vector("a", (0.0, 1.0)))

    assert near(tenant, (0.0, 1.0)) == [("a", 1.0)]
    assert count(tenant) == 1
    assert [each.values for each in got(tenant, "a")] == [packed((0.0, 1.0))]


def test_the_first_vector_gives_the_dimension(tenant: Tenant) -> None:
    put(tenant, vector("a"))

    with pytest.raises(DimensionMismatch) as refused:
        put(tenant, vector("b"), vector("c", (1.0, 2.0, 3.0)))
    assert refused.value.field == "vectors[1].values"
    assert refused.value.metadata["expected_dimension"] == "2"
    with pytest.raises(DimensionMismatch) as refused:
        near(tenant, (1.0,))
    assert refused.value.field == "vector"
    assert ids(tenant) == ["a"]
    assert collection(tenant).current_dimension == 2
    assert collection(tenant).dimension == 0


def test_one_batch_has_one_dimension(tenant: Tenant) -> None:
    with pytest.raises(DimensionMismatch):
        put(tenant, vector("a"), vector("b", (1.0,)))

    assert ids(tenant) == []
    with pytest.raises(CollectionNotFound):
        collection(tenant)


def test_a_collection_may_have_its_dimension_from_the_beginning(tenant: Tenant) -> None:
    tenant.store.collections.create(tenant.write, CollectionDraft("books", 3))

    with pytest.raises(DimensionMismatch):
        put(tenant, vector("a"))
    put(tenant, vector("a", (1.0, 2.0, 3.0)))
    tenant.store.collections.clear(tenant.write, "books")
    with pytest.raises(DimensionMismatch):
        put(tenant, vector("a"))


def test_a_collection_is_created_once(tenant: Tenant) -> None:
    tenant.store.collections.create(tenant.write, CollectionDraft("books"))

    with pytest.raises(CollectionExists):
        tenant.store.collections.create(tenant.write, CollectionDraft("books", 3))


def test_clearing_resets_the_dimension(tenant: Tenant) -> None:
    put(tenant, vector("a"))
    put(tenant, vector("s", scope=OF_SARAH), scope=OF_SARAH)
    ids(tenant)

    tenant.store.collections.clear(tenant.write, "books")

    assert ids(tenant) == []
    assert ids(tenant, scope=OF_SARAH) == []
    assert collection(tenant).current_dimension == 0
    put(tenant, vector("b", (1.0, 2.0, 3.0)))
    assert near(tenant, (1.0, 2.0, 3.0)) == [("b", 1.0)]


def test_what_does_not_exist_is_empty(tenant: Tenant) -> None:
    assert near(tenant) == []
    assert got(tenant, "a") == []
    assert count(tenant) == 0
    assert count(tenant, is_("k", 1)) == 0
    assert tenant.store.vectors.delete(tenant.write, SCOPE, ["a"]).deleted_records == 0
    tenant.store.collections.clear(tenant.write, "books")
    with pytest.raises(CollectionNotFound):
        collection(tenant)


def test_vectors_go_by_their_ids(tenant: Tenant) -> None:
    put(tenant, vector("a"), vector("b"), vector("c"))
    assert ids(tenant) == ["a", "b", "c"]

    outcome = tenant.store.vectors.delete(tenant.write, SCOPE, ["a", "missing", "c", "a"])

    assert outcome.deleted_records == 2
    assert ids(tenant) == ["b"]
    assert count(tenant) == 1


def test_vectors_go_by_a_filter(tenant: Tenant) -> None:
    put(tenant, *(vector(f"v{number}", attributes={"n": number}) for number in range(6)))
    put(tenant, vector("s", scope=OF_SARAH, attributes={"n": 5}), scope=OF_SARAH)

    outcome = tenant.store.vectors.delete_where(tenant.write, SCOPE, is_("n", 2, Operator.GT))

    assert outcome.deleted_records == 3
    assert ids(tenant) == ["v0", "v1", "v2"]
    assert ids(tenant, scope=OF_SARAH) == ["s"]
    assert count(tenant, is_("n", 1, Operator.LTE)) == 2


def test_users_have_vectors_of_their_own(tenant: Tenant) -> None:
    put(tenant, vector("a"))
    put(tenant, vector("a", (0.0, 1.0), OF_SARAH), vector("b", (0.0, 1.0), OF_SARAH), scope=OF_SARAH)
    put(tenant, vector("c", scope=OF_TOM), scope=OF_TOM)

    assert ids(tenant) == ["a"]
    assert near(tenant, scope=OF_SARAH) == [("a", 0.5), ("b", 0.5)]
    assert [count(tenant, scope=scope) for scope in (SCOPE, OF_SARAH, OF_TOM)] == [1, 2, 1]
    stored = tenant.store.collections.get(tenant.read, "books")
    assert stored.vectors == 4
    assert stored.bytes > 0


def test_a_user_goes_with_its_vectors(tenant: Tenant) -> None:
    for scope in (SCOPE, OF_SARAH, OF_TOM, VectorScope("films", "sarah")):
        put(tenant, vector("a", scope=scope), scope=scope)
        ids(tenant, scope=scope)

    tenant.store.users.delete(tenant.write, "sarah")

    assert ids(tenant, scope=OF_SARAH) == []
    assert ids(tenant, scope=VectorScope("films", "sarah")) == []
    assert ids(tenant) == ids(tenant, scope=OF_TOM) == ["a"]


def test_a_collection_goes_with_its_vectors(tenant: Tenant) -> None:
    put(tenant, vector("a"))
    other = VectorScope("books2")
    put(tenant, vector("a", scope=other), scope=other)
    ids(tenant)

    assert tenant.store.collections.delete(tenant.write, "books", allow_missing=False).deleted

    assert ids(tenant) == []
    assert ids(tenant, scope=other) == ["a"]
    with pytest.raises(CollectionNotFound):
        tenant.store.collections.delete(tenant.write, "books", allow_missing=False)
    assert not tenant.store.collections.delete(tenant.write, "books", allow_missing=True).deleted


def test_collections_are_listed_by_id(tenant: Tenant) -> None:
    for name in ("b", "a", "ä", "c"):
        tenant.store.collections.create(tenant.write, CollectionDraft(name))

    found: list[str] = []
    after: str | None = ""
    while after is not None:
        page = tenant.store.collections.list(tenant.read, after, 2)
        found += [VectorCollection.FromString(each).id for each in page.encoded]
        after = page.following
    assert found == ["a", "b", "c", "ä"]


def test_no_tenant_sees_the_vectors_of_another(tenant: Tenant, other: Tenant) -> None:
    put(tenant, vector("a"))
    put(other, vector("b", (1.0, 2.0, 3.0)))

    assert ids(tenant) == ["a"]
    assert near(other, (1.0, 2.0, 3.0)) == [("b", 1.0)]
    tenant.store.collections.delete(tenant.write, "books", allow_missing=False)
    assert near(other, (1.0, 2.0, 3.0)) == [("b", 1.0)]


def test_a_repeated_request_stores_once(tenant: Tenant) -> None:
    first = tenant.store.vectors.upsert(tenant.request("r"), SCOPE, [draft(vector("a"))])
    put(tenant, vector("a", (0.0, 1.0)))
    again = tenant.store.vectors.upsert(tenant.request("r"), SCOPE, [draft(vector("a"))])

    assert again.revision == first.revision
    assert near(tenant, (0.0, 1.0)) == [("a", 1.0)]


def test_a_search_shows_the_revision_that_it_asks_for(tenant: Tenant) -> None:
    revision = put(tenant, vector("a")).revision
    query = VectorQuery(packed((1.0, 0.0)))

    found = tenant.store.vectors.search(Read(tenant.id, min_revision=revision), SCOPE, query)

    assert found.revision >= revision


def test_batches_are_seen_whole(tenant: Tenant) -> None:
    """While one thread replaces all vectors, another never finds some of one write and some of another."""
    put(tenant, *(vector(f"v{number}", attributes={"n": 0}) for number in range(20)))
    done = threading.Event()

    def write() -> None:
        for turn in range(1, 40):
            put(tenant, *(vector(f"v{number}", attributes={"n": turn}) for number in range(20)))
        done.set()

    with ThreadPoolExecutor(1) as writer:
        writing = writer.submit(write)
        while not done.is_set():
            query = VectorQuery(packed((1.0, 0.0)), k=20)
            hits = tenant.store.vectors.search(tenant.read, SCOPE, query).hits
            assert len({Vector.FromString(hit.encoded).attributes["n"].integer for hit in hits}) == 1
            if writing.done():
                break
        writing.result()


def imported(tenant: Tenant, *records: Record) -> int:
    given = []
    for index, record in enumerate(records):
        kind = str(record.WhichOneof("kind"))
        given.append(ImportedRecord(f"records[{index}].{kind}", kind, getattr(record, kind).SerializeToString()))
    return tenant.store.imports.store(tenant.write, Import("", None, (), tuple(given))).imported_records


def test_an_export_and_import_keeps_all(tenant: Tenant, other: Tenant) -> None:
    put(tenant, vector("a", attributes={"k": 1}, content="text"))
    put(tenant, vector("a", (0.0, 1.0), OF_SARAH), scope=OF_SARAH)
    tenant.store.collections.create(tenant.write, CollectionDraft("empty", 7))
    records = tenant.exported()
    assert [record.WhichOneof("kind") for record in records] == ["vector_collection"] * 2 + ["vector"] * 2

    assert imported(other, *records) == 4

    assert other.exported() == records
    assert near(other) == [("a", 1.0)]
    assert ids(other, is_("k", 1)) == ["a"]
    assert imported(other, *records) == 0
    changed = Record()
    changed.CopyFrom(records[2])
    changed.vector.content = "another"
    with pytest.raises(RecordConflict):
        imported(other, changed)


def test_vectors_without_their_collection_bring_one(tenant: Tenant, other: Tenant) -> None:
    put(tenant, vector("a", scope=OF_SARAH), scope=OF_SARAH)
    vectors = [record for record in tenant.exported() if record.HasField("vector")]

    imported(other, *vectors)

    assert collection(other).current_dimension == 2
    another = Record(vector=vector("b", (1.0,)))
    another.vector.update_time.seconds = 1
    with pytest.raises(DimensionMismatch):
        imported(other, another)
