"""Vectors through the client, sync and async, and the server that it is for."""

import copy
import pickle
from array import array
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.patience import PATIENCE

from remora import Condition, Embedding, Remora, Vector, errors, testing

remora_server, remora_tenant = testing.remora_server, testing.remora_tenant

F32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
ROW = [0.5, -2.0, 0.25]


@pytest.fixture
def memory(connect: Callable[..., Remora], remora_server: str, remora_tenant: str) -> Iterator[Remora]:
    made = connect(remora_server, tenant=remora_tenant, timeout=PATIENCE)
    yield made
    made.close()


def ids(found: Any) -> list[str]:  # noqa: ANN401 - a result or a list of vectors
    return [getattr(item, "vector", item).id for item in found]


def test_what_a_vector_carries_comes_back(memory: Remora) -> None:
    given_vector = Vector("a", ROW, content="Leave", metadata={"page": 3}, attributes={"topic": "visa", "year": 2026})
    memory.vectors("docs", user_id="ana").upsert(given_vector)

    (found,) = memory.vectors("docs", user_id="ana").get("a")

    assert found.values == tuple(ROW)
    assert (found.content, found.metadata, found.attributes) == ("Leave", {"page": 3}, {"topic": "visa", "year": 2026})
    assert (found.user_id, found.revision > 0, found.update_time is not None) == ("ana", True, True)
    assert memory.vectors("docs").get("a") == []


@pytest.mark.parametrize(
    "row",
    [
        ROW,
        tuple(ROW),
        array("f", ROW),
        array("d", ROW),
        np.array(ROW),
        np.array(ROW, np.float32),
        np.array(ROW, np.float16),
        np.array([ROW, ROW])[0],
        np.array([0.5, 9, -2.0, 9, 0.25, 9], ">f4")[::2],
        memoryview(array("f", ROW)),
    ],
    ids=lambda row: type(row).__name__,
)
def test_numbers_come_in_any_sequence_or_array(memory: Remora, row: Any) -> None:  # noqa: ANN401
    vectors = memory.vectors("docs")
    vectors.upsert([Vector("a", row), Vector("b", [0, 0, 1])])

    assert Vector("a", row).values == tuple(ROW)
    assert ids(vectors.search(row, k=1)) == ["a"]


def test_numbers_of_numpy_may_be_as_large_as_32_bits_hold() -> None:
    row: Any = [np.float32(3e38)] * 4

    assert Vector("a", row).values == tuple(map(float, row))


@given(st.lists(F32, min_size=1, max_size=20))
def test_numbers_of_32_bits_are_kept_to_the_bit(row: list[float]) -> None:
    assert np.array(Vector("a", row).values, "<f4").tobytes() == np.array(row, "<f4").tobytes()


def test_a_vector_is_copied_pickled_and_replaced(memory: Remora) -> None:
    memory.vectors("docs").upsert(Vector("a", ROW, metadata=[1]))
    (found,) = memory.vectors("docs").get("a")

    for twin in (copy.copy(found), copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert twin == found
        memory.vectors("docs").upsert(replace(twin, id="b"))
    assert memory.vectors("docs").get("b")[0].metadata == [1]


def test_a_search_finds_the_nearest_first(memory: Remora) -> None:
    vectors = memory.vectors("docs")
    vectors.upsert(
        [Vector(str(angle), [np.cos(angle), np.sin(angle)], attributes={"angle": angle}) for angle in range(4)]
    )

    result = vectors.search([1, 0])

    assert ids(result) == ["0", "1", "2", "3"]
    assert [hit.score for hit in result] == pytest.approx([(1 + np.cos(angle)) / 2 for angle in range(4)], abs=1e-6)
    assert (len(result), result[0].vector.id, result.truncated) == (4, "0", False)
    assert ids(vectors.search(Embedding.of("mine", [1, 0]), k=2)) == ["0", "1"]
    assert ids(vectors.search([1, 0], threshold=0.7)) == ["0", "1"]
    assert ids(vectors.search([1, 0], where=Condition("angle", ">", 1))) == ["2", "3"]
    assert ids(vectors.search([1, 0], where={"angle": 2})) == ["2"]
    assert vectors.search([1, 0], omit_values=True)[0].vector.values == ()


def test_a_text_is_embedded_by_the_tenants_model(memory: Remora) -> None:
    texts = ["The visa for Portugal is ready", "Bread with olives"]
    for embedding, text in zip(memory.embed(texts), texts, strict=True):
        memory.vectors("texts").upsert(Vector(text, embedding))

    assert ids(memory.vectors("texts").search("travel documents", k=1)) == [texts[0]]


def test_many_vectors_are_got_in_the_order_asked_for(memory: Remora) -> None:
    vectors = memory.vectors("many")
    names = [f"v{index}" for index in range(2_500)]
    for start in range(0, 2_500, 500):
        vectors.upsert(
            [Vector(name, [index, 1.0], content="x" * 2_000) for index, name in enumerate(names[start:][:500])]
        )
    wanted = [*reversed(names), "v7", "unknown"]

    assert ids(vectors.get(wanted)) == list(reversed(names))


def test_vectors_are_counted_and_deleted_by_id_and_by_filter(memory: Remora) -> None:
    vectors = memory.vectors("docs")
    vectors.upsert([Vector(str(index), [1.0], attributes={"odd": index % 2 == 1}) for index in range(6)])

    assert (vectors.count(), vectors.count(where={"odd": True})) == (6, 3)
    assert vectors.delete(["0", "unknown"]) == 1
    assert vectors.delete("2") == 1
    assert vectors.delete_where({"odd": True}) == 3
    assert ids(vectors.search([1.0])) == ["4"]


def test_a_collection_is_created_described_cleared_and_deleted(memory: Remora) -> None:
    fixed = memory.vectors("fixed")
    fixed.create_collection(dimension=2)
    with pytest.raises(errors.DimensionMismatchError):
        fixed.upsert(Vector("a", [1.0]))
    with pytest.raises(errors.CollectionExistsError):
        fixed.create_collection()
    memory.vectors("fixed", user_id="ana").upsert(Vector("a", [1.0, 2.0]))

    stats = fixed.get_collection()

    assert (stats.collection.id, stats.collection.dimension, stats.collection.current_dimension) == ("fixed", 2, 2)
    assert (stats.vectors, stats.bytes > 0) == (1, True)
    assert [collection.id for collection in memory.list_collections()] == ["fixed"]
    fixed.clear_collection()
    assert fixed.get_collection().vectors == 0
    assert fixed.delete_collection()
    assert not fixed.delete_collection(allow_missing=True)
    with pytest.raises(errors.CollectionNotFoundError):
        fixed.get_collection()


def test_a_collection_without_a_dimension_takes_that_of_its_first_vector(memory: Remora) -> None:
    memory.vectors("open").create_collection()
    empty = memory.vectors("open").get_collection().collection
    memory.vectors("open").upsert(Vector("a", ROW))

    assert (empty.dimension, empty.current_dimension) == (None, None)
    assert memory.vectors("open").get_collection().collection.current_dimension == 3
