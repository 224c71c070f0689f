"""RemoraStore: what LangGraph's own tests of stores do not ask for."""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
    TTLConfig,
)
from langgraph.store.memory import InMemoryStore
from tests.patience import PATIENCE, PAUSE_SECONDS, eventually
from tests.suites.conftest import Server, Silent
from tests.suites.langgraph.conftest import patient_client, patient_store

from remora.errors import (
    ClientClosedError,
    DeadlineExceededError,
    InvalidFieldError,
    ModelUnreachableError,
    RevisionUnknownError,
)
from remora.langgraph import AsyncRemoraStore, RemoraStore, _operations
from remora.langgraph import store as _store

NS = ("users", "sarah")


def embed(texts: list[str]) -> list[list[float]]:
    """How often each of four letters is in a text."""
    return [[float(text.count(letter)) + 0.01 for letter in "abcd"] for text in texts]


INDEX: Any = {"dims": 4, "embed": embed, "fields": ["text"]}


def indexed(**changed: Any) -> Any:  # noqa: ANN401 - an IndexConfig
    return {**INDEX, **changed}


@pytest.fixture
def store(server: Server, tenant: str) -> Iterator[RemoraStore]:
    with RemoraStore.from_conn_string(server.endpoint, index=INDEX, tenant=tenant, timeout=PATIENCE) as opened:
        opened.setup()
        yield opened


def keys(found: Any) -> list[str]:  # noqa: ANN401 - a list of items
    return [item.key for item in found]


async def test_a_store_is_of_the_tenant_of_the_environment(
    server: Server, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REMORA_TOKEN", raising=False)
    monkeypatch.setenv("REMORA_TENANT", tenant)

    with patient_store(server.endpoint) as unnamed:
        unnamed.put(NS, "a", {"n": 1})
        await unnamed.aput(NS, "b", {"n": 1})

    with patient_store(server.endpoint, tenant=tenant) as named:
        assert sorted(keys(named.search(NS))) == ["a", "b"]


async def test_a_store_that_only_writes_goes_on_when_its_server_has_lost_its_data(own_server: Server) -> None:
    with patient_store(own_server.endpoint) as store, patient_store(own_server.endpoint) as concurrent:
        for number in range(20):
            store.put(NS, str(number), {"n": number})
            await concurrent.aput(NS, str(number), {"n": number})
        own_server.kill()
        shutil.rmtree(own_server.directory / "data")
        own_server.start()

        with pytest.raises(RevisionUnknownError):
            store.put(NS, "a", {"n": 1})
        with pytest.raises(RevisionUnknownError):
            await concurrent.aput(NS, "b", {"n": 1})

        store.put(NS, "a", {"n": 2})
        await concurrent.aput(NS, "b", {"n": 2})
        assert sorted(keys(store.search(NS))) == ["a", "b"]


def test_reads_do_not_see_the_writes_of_their_batch(store: RemoraStore) -> None:
    store.put(NS, "a", {"n": 1})

    results = store.batch(
        [
            PutOp(NS, "a", {"n": 2}),
            GetOp(NS, "a"),
            SearchOp(("users",)),
            PutOp(NS, "b", {"n": 1}),
            PutOp(NS, "b", None),
            ListNamespacesOp(),
            PutOp(("tom",), "c", {}),
        ]
    )

    assert results[1].value == {"n": 1}  # type: ignore[union-attr]
    assert [item.value for item in results[2]] == [{"n": 1}]  # type: ignore[union-attr]
    assert results[5] == [NS]
    assert [each.value for each in store.search(("users",))] == [{"n": 2}]
    assert store.list_namespaces() == [("tom",), NS]


async def test_a_store_in_asyncio_is_opened_as_others_are(server: Server, tenant: str) -> None:
    async with RemoraStore.from_conn_string(server.endpoint, tenant=tenant, timeout=PATIENCE) as store:
        await store.setup()
        await store.aput(NS, "a", {"n": 1})

        assert keys(await store.asearch(NS)) == ["a"]


async def test_a_search_of_several_pages_does_not_see_the_writes_of_its_batch(store: RemoraStore) -> None:
    names = [f"{number:04}" for number in range(1_100)]
    store.batch([PutOp(NS, name, {"n": 1}) for name in names])

    changed: list[Op] = [PutOp(NS, name, {"n": 2} if name < "0550" else None) for name in names]
    found = store.batch([*changed, SearchOp(NS, {"n": 1}, limit=2_000)])[-1]
    store.batch([PutOp(NS, name, {"n": 1}) for name in names])
    afound = (await store.abatch([*changed, SearchOp(NS, {"n": 1}, limit=2_000)]))[-1]

    assert sorted(keys(found)) == sorted(keys(afound)) == names


def test_a_batch_that_is_not_valid_does_nothing(store: RemoraStore) -> None:
    refused: list[tuple[Op, type[Exception]]] = [
        (PutOp(("a.b",), "k", {}), InvalidNamespaceError),
        (PutOp(("a",), "k", {"n": object()}), TypeError),
        (PutOp(("a",), "k", {"n": float("nan")}), ValueError),
        (SearchOp(("a",), {"n": {"$in": [1]}}), ValueError),
    ]
    for wrong, error in refused:
        with pytest.raises(error):
            store.batch([PutOp(NS, "a", {}), wrong])

    assert store.search(()) == []


FILTERS: list[dict[str, Any]] = [
    {"n": 9},
    {"n": "9"},
    {"n": None},
    {"n": {"$ne": 9}},
    {"n": {"$ne": None}},
    {"n": {"$eq": "9"}},
    {"u": {"id": 1}},
    {"u": {"id": 1, "of": {"x": [1, 2]}}},
    {"u": {"id": {"$gt": 0}}},
    {"tags": ["a", "b"]},
    {"tags": ["a"]},
    {"tags": []},
    {"tags": [{"t": 1}]},
    {"n": 9, "tags": ["a", "b"]},
    {"lost": {"x": 1}},
    {"flag": True},
    {"flag": {"$ne": True}},
    {"big": 2**70},
]
VALUES: dict[str, dict[str, Any]] = {
    "number": {"n": 9, "tags": ["a", "b"], "flag": True},
    "text": {"n": "9", "tags": ["a"], "flag": False},
    "null": {"n": None, "tags": []},
    "user": {"u": {"id": 1, "of": {"x": [1, 2], "y": 0}}, "tags": [{"t": 1, "s": 2}]},
    "other": {"u": {"id": 2}, "n": 10.5, "tags": "a", "big": 2**70},
    "none": {},
}


@pytest.mark.parametrize("given", FILTERS, ids=str)
def test_filters_compare_as_in_memory(store: RemoraStore, given: dict[str, Any]) -> None:
    memory = InMemoryStore()
    for key, value in VALUES.items():
        memory.put(NS, key, value)
    store.batch([PutOp(NS, key, value) for key, value in VALUES.items()])

    found = store.search(NS, filter=given)

    assert sorted(keys(found)) == sorted(keys(memory.search(NS, filter=given)))


def test_filters_may_be_as_deep_as_values_and_have_long_lists(store: RemoraStore) -> None:
    deep: dict[str, Any] = {"a": {"b": {"c": {"d": {"e": [{"f": None}]}}}}}
    tags = list(range(60))
    store.put(NS, "deep", deep)
    store.put(NS, "tagged", {"tags": tags, "u": {"id": [{"n": 1}]}})

    assert keys(store.search(NS, filter=deep)) == ["deep"]
    assert keys(store.search(NS, filter={"a": {"$ne": deep["a"]}})) == ["tagged"]
    assert keys(store.search(NS, filter={"tags": tags})) == ["tagged"]
    assert keys(store.search(NS, filter={"u.id": {"$ne": [{"n": 1}]}})) == ["deep"]


def test_orders_compare_numbers_as_numbers_and_texts_as_texts(store: RemoraStore) -> None:
    for key, score in [("a", 9), ("b", 10), ("c", 10.5), ("d", "10"), ("e", None), ("f", "2026-01-02")]:
        store.put(NS, key, {"score": score})
    store.put(NS, "missing", {})

    assert sorted(keys(store.search(NS, filter={"score": {"$gte": 10}}))) == ["b", "c"]
    assert sorted(keys(store.search(NS, filter={"score": {"$gt": 9, "$lt": 10.5}}))) == ["b"]
    assert keys(store.search(NS, filter={"score": {"$gt": "2026-01-01"}})) == ["f"]
    assert sorted(keys(store.search(NS, filter={"score": {"$lt": 10**400}}))) == ["a", "b", "c"]
    assert sorted(keys(store.search(NS, filter={"score": {"$gte": -(10**400)}}))) == ["a", "b", "c"]
    assert keys(store.search(NS, filter={"score": {"$gt": 10**400}})) == []
    assert keys(store.search(NS, filter={"score": 10**400})) == []


def test_more_than_any_store_has_may_be_skipped_or_kept(store: RemoraStore) -> None:
    store.put(NS, "a", {})

    assert store.search(NS, offset=2**40) == []
    assert store.list_namespaces(offset=2**40) == []
    assert store.list_namespaces(max_depth=2**40) == [NS]


def test_a_list_of_labels_is_a_namespace(store: RemoraStore) -> None:
    labels = cast("Any", list(NS))
    store.put(labels, "a", {"n": 1})
    store.batch([PutOp(labels, "a", {"n": 2}), PutOp(NS, "a", {"n": 3})])

    found = store.get(labels, "a")

    assert found is not None
    assert found.value == {"n": 3}


def test_a_name_with_dots_is_a_path(store: RemoraStore) -> None:
    store.put(NS, "nested", {"u": {"id": 1}})
    store.put(NS, "flat", {"u.id": 1})
    store.put(NS, "both", {"u.id": 2, "u": {"id": 1}})

    assert sorted(keys(store.search(NS, filter={"u.id": 1}))) == ["flat", "nested"]


def test_pages_by_vector_are_exact(store: RemoraStore) -> None:
    store.batch([PutOp(NS, f"{n:02}", {"text": "a" * (n + 1) + "b" * n}) for n in range(20)])

    pages = [keys(store.search(NS, query="a", limit=5, offset=offset)) for offset in (0, 5, 10, 15, 20)]

    assert sorted(key for page in pages for key in page) == [f"{n:02}" for n in range(20)]
    assert [len(page) for page in pages] == [5, 5, 5, 5, 0]


@pytest.mark.parametrize(
    ("distance", "scores"),
    [
        ("cosine", {"long": 1.0, "near": 0.8, "far": 0.0}),
        ("inner_product", {"long": 9.0, "near": 0.8, "far": 0.0}),
        ("l2", {"near": -(0.4**0.5), "far": -(2**0.5), "long": -8.0}),
    ],
)
@pytest.mark.parametrize("paths", ["fields", "text_fields"])
def test_more_is_nearer_by_every_distance(
    server: Server, tenant: str, distance: str, scores: dict[str, float], paths: str
) -> None:
    vectors = {"q": [1.0, 0.0], "long": [9.0, 0.0], "near": [0.8, 0.6], "far": [0.0, 1.0]}
    index: Any = {"embed": lambda texts: [vectors[text] for text in texts], "distance_type": distance, paths: ["said"]}
    with patient_store(server.endpoint, index=index, tenant=tenant) as store:
        store.batch([PutOp(NS, name, {"said": name, "other": 1}) for name in scores])

        found = store.search(NS, query="q")

    assert {item.key: item.score for item in found} == pytest.approx(scores, abs=1e-6)
    assert keys(found) == list(scores)


def test_an_item_with_many_vectors_is_one_result(server: Server, tenant: str) -> None:
    with patient_store(server.endpoint, index=indexed(fields=["texts[*]"]), tenant=tenant) as store:
        store.put(NS, "many", {"texts": ["a", "aa", "aaa", "ab", "a"]})
        store.put(NS, "one", {"texts": ["b"]})

        found = store.search(NS, query="a", limit=2)

        assert keys(found) == ["many", "one"]


def test_vectors_go_with_what_they_were_of(store: RemoraStore) -> None:
    store.put(NS, "a", {"text": "a"})
    store.put(NS, "a", {"text": "b"}, index=False)
    assert store.search(NS, query="a") == []

    store.put(NS, "a", {"text": "a"})
    store.delete(NS, "a")
    store.put(NS, "a", {"text": "a"}, index=False)

    assert store.search(NS, query="a") == []
    assert keys(store.search(NS)) == ["a"]


def test_a_vector_of_another_dimension_is_refused(server: Server, tenant: str) -> None:
    with patient_store(server.endpoint, index=indexed(dims=3), tenant=tenant) as store:
        with pytest.raises(ValueError, match="4 dimensions, and the index says 3"):
            store.put(NS, "a", {"text": "a"})

        assert store.get(NS, "a") is None


def test_a_model_that_makes_too_few_vectors_is_named_and_nothing_is_written(server: Server, tenant: str) -> None:
    with patient_store(server.endpoint, index=indexed(embed=lambda texts: embed(texts)[1:]), tenant=tenant) as store:
        with pytest.raises(ValueError, match="embed gave 1 vectors for 2 texts"):
            store.batch([PutOp(NS, "a", {"text": "a"}), PutOp(NS, "b", {"text": "b"})])

        assert store.search(NS) == []


def test_a_text_is_embedded_once(server: Server, tenant: str) -> None:
    seen: list[str] = []

    def counting(texts: list[str]) -> list[list[float]]:
        seen.extend(texts)
        return embed(texts)

    with patient_store(server.endpoint, index=indexed(embed=counting), tenant=tenant) as store:
        store.batch([PutOp(NS, f"k{n}", {"text": "same"}) for n in range(5)])
        store.batch([SearchOp(NS, query="q1"), SearchOp(("users",), query="q1"), SearchOp(NS, query="q2")])

    assert sorted(seen) == ["q1", "q2", "same"]


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        (
            lambda store: store.batch([GetOp(cast("Any", None), "k")]),
            r"namespace is None; it must be a tuple of labels, such as \('users',\)",
        ),
        (lambda store: store.search(NS, limit="5"), "limit is '5'; it must be a whole number"),
        (lambda store: store.search(NS, limit=None), "limit is None; it must be a whole number"),
        (lambda store: store.search(NS, limit=1.5), "limit is 1.5; it must be a whole number"),
        (lambda store: store.search(NS, offset="1"), "offset is '1'; it must be a whole number"),
        (lambda store: store.list_namespaces(limit="x"), "limit is 'x'; it must be a whole number"),
        (lambda store: store.list_namespaces(max_depth="x"), "max_depth is 'x'; it must be a whole number"),
        (lambda store: store.search(NS, filter={5: 1}), "Invalid filter key: 5"),
        (lambda store: store.put(NS, "k", {"text": "x"}, index=[5]), "index has 5; a path is a text, such as 'text'"),
    ],
)
def test_a_mistake_is_answered_by_its_argument(store: RemoraStore, mistake: Callable[[Any], Any], told: str) -> None:
    with pytest.raises((InvalidNamespaceError, TypeError, ValueError), match=told):
        mistake(store)

    assert store.search(NS) == []


@pytest.mark.parametrize("made", ["a", 1e39])
def test_what_a_model_makes_must_be_numbers(server: Server, tenant: str, made: object) -> None:
    wordy: Any = indexed(dims=1, embed=lambda texts: [[made] for _ in texts])
    with patient_store(server.endpoint, index=wordy, tenant=tenant) as store:
        with pytest.raises(
            ValueError, match=rf"embed gave {re.escape(repr([made]))}; it must give numbers that 32 bits"
        ):
            store.put(NS, "k", {"text": "x"})

        assert store.search(NS) == []


async def test_what_asks_for_a_model_that_is_away_fails_at_once_and_the_rest_does_not(
    server: Server, tenant: str
) -> None:
    asking, most = 0, 0

    async def away(_texts: list[str]) -> list[list[float]]:
        nonlocal asking, most
        asking += 1
        most = max(most, asking)
        await asyncio.sleep(0)
        asking -= 1
        raise ConnectionError("the model is away")

    with patient_store(server.endpoint, index=indexed(embed=away), tenant=tenant) as store:
        store.put(NS, "a", {"text": "tea"}, index=False)
        searches = [store.asearch(NS, query=f"q{number}") for number in range(5)]
        *failed, found = await asyncio.gather(*searches, store.aget(NS, "a"), return_exceptions=True)
        await store.aclose()

    assert {str(each) for each in failed} == {"the model is away"}
    assert found.value == {"text": "tea"}  # type: ignore[union-attr]
    assert most == 5


async def test_a_text_that_the_model_refuses_fails_alone(server: Server, tenant: str) -> None:
    async def picky(texts: list[str]) -> list[list[float]]:
        if "?" in texts:
            raise ValueError("? is no question")
        return embed(texts)

    with patient_store(server.endpoint, index=indexed(embed=picky), tenant=tenant) as store:
        puts = [store.aput(NS, text, {"text": text}) for text in ("tea", "?", "milk")]
        said = await asyncio.gather(*puts, return_exceptions=True)
        await store.aclose()

        assert [str(each) for each in said] == ["None", "? is no question", "None"]
        assert keys(store.search(NS)) == ["milk", "tea"]


async def test_searches_by_a_model_of_the_server_that_is_away_are_asked_for_once(
    server: Server, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    async def execute(*given: Any) -> Any:  # noqa: ANN401 - what the store's own gives
        request = given[3]
        calls.append(len(request.operations))
        if any(each.search.text for each in request.operations):
            raise ModelUnreachableError("the endpoint is away", retry_delay=0.25)
        return await executed(*given)

    executed = _store._execute
    with patient_store(server.endpoint, index={"fields": ["text"]}, tenant=tenant) as store:
        store.put(NS, "a", {"text": "tea"}, index=False)
        monkeypatch.setattr(_store, "_execute", execute)
        searches = [store.asearch(NS, query=f"q{number}") for number in range(5)]
        gets = [store.aget(NS, "a"), store.aget(NS, "b")]
        *failed, there, missing = await asyncio.gather(*searches, *gets, return_exceptions=True)
        await store.aclose()

    assert {str(each) for each in failed} == {"the endpoint is away"}
    assert there.value == {"text": "tea"}  # type: ignore[union-attr]
    assert missing is None
    assert calls == [7, 2]


def test_the_server_embeds_where_the_index_has_no_embeddings(server: Server, tenant: str) -> None:
    index: Any = {"fields": ["text"]}
    with patient_store(server.endpoint, index=index, tenant=tenant) as store:
        store.put(NS, "train", {"text": "The night train goes to Lisbon."})
        store.put(NS, "cat", {"text": "My cat likes fish."})

        assert keys(store.search(NS, query="railway")) == ["train", "cat"]


def test_an_item_that_a_long_batch_puts_twice_is_never_gone(store: RemoraStore) -> None:
    store.put(("a",), "twice", {"turn": 0})
    before = store.get(("a",), "twice")
    long = {"text": "x" * (1 << 20)}

    store.batch(
        [
            PutOp(("a",), "twice", {"turn": 1}),
            *(PutOp(("a",), f"long {number}", long) for number in range(4)),
            PutOp(("a",), "twice", {"turn": 2}),
        ]
    )

    after = store.get(("a",), "twice")
    assert before is not None
    assert after is not None
    assert (after.value, after.created_at) == ({"turn": 2}, before.created_at)


def test_created_at_stays_and_times_have_microseconds_and_a_zone(store: RemoraStore) -> None:
    store.put(NS, "a", {"n": 1})
    first = store.get(NS, "a")
    store.put(NS, "a", {"n": 2})
    second = store.get(NS, "a")

    assert first is not None
    assert second is not None
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at
    assert second.updated_at.tzinfo is not None


def test_what_does_not_fit_into_a_reply_is_asked_for_again(store: RemoraStore) -> None:
    text = "x" * 900_000
    ops = [PutOp(NS, f"{n}", {"text": text, "n": n}, index=False) for n in range(9)]
    store.batch(ops)

    assert sorted(keys(store.search(NS, limit=20))) == [str(n) for n in range(9)]
    got = store.batch([GetOp(NS, str(n)) for n in range(9)])
    assert [item.value["n"] for item in got] == list(range(9))  # type: ignore[union-attr]


def test_more_than_a_page_is_found(store: RemoraStore) -> None:
    store.batch([PutOp(("many", str(n)), "k", {"n": n}, index=False) for n in range(1_100)])

    assert len(store.search(("many",), limit=2_000)) == 1_100
    assert len(store.list_namespaces(prefix=("many",), limit=2_000)) == 1_100
    assert store.search(("many",), limit=0) == []


async def test_more_pages_than_calls_may_be_nested_are_found(
    server: Server, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = sys.getrecursionlimit()
    with patient_store(server.endpoint, tenant=tenant) as store:
        store.batch([PutOp(("many", str(n)), "k", {"n": n}) for n in range(count)])
        monkeypatch.setattr(_operations, "LARGEST_PAGE", 1)

        assert len(store.search(("many",), limit=count + 1)) == count
        assert len(await store.asearch(("many",), limit=count + 1)) == count
        await store.aclose()


def test_the_items_of_a_user_go_with_the_user(server: Server, tenant: str) -> None:
    with patient_store(server.endpoint, tenant=tenant, user_label=1) as store:
        store.put(("users", "sarah", "facts"), "a", {})
        store.put(("users", "tom", "facts"), "b", {})
        store.put(("shared",), "c", {})

        with patient_client(server.endpoint, tenant=tenant) as client:
            client.user("sarah").delete()

        assert sorted(keys(store.search(()))) == ["b", "c"]


def test_namespaces_are_deleted_with_all_in_them(store: RemoraStore) -> None:
    for namespace in [("a",), ("a", "b"), ("ab",)]:
        store.put(namespace, "k", {})

    store.delete_namespace(("a",))

    assert store.list_namespaces() == [("ab",)]


TTL: TTLConfig = {"default_ttl": 0.2 / 60, "refresh_on_read": False}
OMITTING: TTLConfig = {**TTL, "omit_expired": True}


def test_what_has_expired_is_not_seen_before_it_is_swept_if_it_is_omitted(server: Server, tenant: str) -> None:
    with patient_store(server.endpoint, ttl=OMITTING, tenant=tenant) as store:
        store.put(NS, "a", {})
        store.put(NS, "kept", {}, ttl=None)
        eventually(lambda: store.get(NS, "a") is None)

        assert keys(store.search(NS)) == ["kept"]
        assert store.sweep_ttl() == 1
        assert store.sweep_ttl() == 0


@pytest.mark.parametrize("ttl", [TTL, {**TTL, "omit_expired": False}])
def test_what_has_expired_is_seen_until_it_is_swept_if_it_is_not_omitted(
    server: Server, tenant: str, ttl: TTLConfig
) -> None:
    with (
        patient_store(server.endpoint, ttl=ttl, index=INDEX, tenant=tenant) as store,
        patient_store(server.endpoint, ttl=OMITTING, tenant=tenant) as strict,
    ):
        store.put(NS, "a", {"text": "a"})
        eventually(lambda: strict.get(NS, "a") is None)

        assert store.get(NS, "a", refresh_ttl=True) is not None
        assert keys(store.search(NS, refresh_ttl=True)) == keys(store.search(NS, query="a")) == ["a"]
        assert store.list_namespaces() == [NS]
        assert strict.get(NS, "a") is None
        assert strict.list_namespaces() == []
        assert store.sweep_ttl() == 1
        assert store.get(NS, "a") is None
        assert store.list_namespaces() == []


async def test_an_asynchronous_store_sees_what_it_does_not_omit(server: Server, tenant: str) -> None:
    ttl: TTLConfig = {**OMITTING}
    async with AsyncRemoraStore.from_conn_string(server.endpoint, ttl=ttl, tenant=tenant, timeout=PATIENCE) as store:
        await store.aput(NS, "a", {})
        async with asyncio.timeout(PATIENCE):
            while await store.aget(NS, "a") is not None:  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(PAUSE_SECONDS)
        assert await store.alist_namespaces() == []

        ttl["omit_expired"] = False

        assert await store.aget(NS, "a") is not None
        assert keys(await store.asearch(NS)) == ["a"]


def test_a_store_is_safe_for_threads(store: RemoraStore) -> None:
    def work(number: int) -> None:
        for n in range(20):
            store.put((*NS, str(number)), f"{n}", {"text": f"{n}"})
            store.search(NS, query="a", limit=3)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))

    assert len(store.search(NS, limit=1_000)) == 160


def test_items_survive_a_kill(own_server: Server) -> None:
    with patient_store(own_server.endpoint, index=INDEX) as store:
        store.put(NS, "a", {"text": "a"})
        own_server.kill()
        own_server.start()

        assert keys(store.search(NS, query="a")) == ["a"]
        assert store.get(NS, "a") is not None


async def test_one_turn_of_the_loop_is_one_call(server: Server, tenant: str) -> None:
    async with patient_store(server.endpoint, index=INDEX, tenant=tenant) as store:
        await asyncio.gather(*(store.aput(NS, f"k{n}", {"text": "a", "n": n}) for n in range(50)))
        found = await asyncio.gather(*(store.aget(NS, f"k{n}") for n in range(50)), store.asearch(NS, limit=50))

        assert [item.value["n"] for item in found[:50]] == list(range(50))  # type: ignore[union-attr]
        assert len(found[50]) == 50  # type: ignore[arg-type]
        revisions = {item.updated_at for item in found[50]}  # type: ignore[union-attr]
        assert len(revisions) == 1


async def test_a_call_that_is_refused_fails_alone(server: Server, tenant: str) -> None:
    async with patient_store(server.endpoint, tenant=tenant) as store:
        outcomes = await asyncio.gather(
            store.aput(NS, "a", {}), store.aput(NS, "k" * 2_000, {}), store.aput(("a.b",), "k", {}),
            return_exceptions=True,
        )  # fmt: skip

        assert outcomes[0] is None
        assert all(isinstance(outcome, Exception) for outcome in outcomes[1:])
        assert keys(await store.asearch(())) == ["a"]


@pytest.mark.parametrize("others", [1, 2, 3])
async def test_a_batch_is_all_or_none_beside_what_others_write_in_its_turn(
    server: Server, tenant: str, others: int
) -> None:
    value = {"text": "a" * (700 << 10)}
    async with patient_store(server.endpoint, tenant=tenant) as store:
        outcomes = await asyncio.gather(
            *(store.aput(NS, f"other{n}", {"text": "b" * (1 << 20)}) for n in range(others)),
            store.abatch([PutOp(NS, "a", value), PutOp(NS, "k" * 2_000, value)]),
            return_exceptions=True,
        )

        assert [type(outcome) for outcome in outcomes] == [type(None)] * others + [InvalidFieldError]
        assert await store.aget(NS, "a") is None
        assert len(await store.asearch(NS)) == others


async def test_calls_of_one_turn_that_end_at_their_deadline_do_not_wait_for_another(
    silent: Silent, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[Op]] = []

    async def ends(_: object, ops: list[Op], *_given: object) -> None:
        asked.append(ops)
        raise DeadlineExceededError("no answer")

    monkeypatch.setattr("remora.langgraph.store._Tick._results", ends)
    async with RemoraStore(silent.endpoint) as store:
        results = await asyncio.gather(*(store.aget(NS, key) for key in "abc"), return_exceptions=True)

    assert [[op.key for op in ops] for ops in asked] == [["a", "b", "c"]]  # type: ignore[union-attr]
    assert all(isinstance(result, DeadlineExceededError) for result in results)


@pytest.mark.parametrize("kind", [RemoraStore, AsyncRemoraStore])
async def test_what_is_under_way_or_waits_when_a_store_is_closed_fails(
    kind: type[RemoraStore | AsyncRemoraStore], silent: Silent
) -> None:
    store = kind(silent.endpoint, timeout=PATIENCE)
    under_way = asyncio.create_task(store.aget(NS, "a"))
    await asyncio.wait_for(silent.reached.wait(), PATIENCE)
    waits = asyncio.create_task(store.aget(NS, "b"))
    await asyncio.sleep(0)

    await store.aclose()

    for each in (under_way, waits):
        with pytest.raises(ClientClosedError):
            await each


async def test_threads_may_call_a_store_of_a_loop(server: Server, tenant: str) -> None:
    async with AsyncRemoraStore.from_conn_string(server.endpoint, tenant=tenant, timeout=PATIENCE) as store:
        await store.setup()
        await asyncio.to_thread(store.put, NS, "a", {"n": 1})

        found = await asyncio.to_thread(store.get, NS, "a")

        assert found is not None
        with pytest.raises(asyncio.InvalidStateError):
            store.get(NS, "a")


def test_a_sweeper_ends_with_its_store(server: Server, tenant: str) -> None:
    with patient_store(server.endpoint, ttl={"default_ttl": 1}, tenant=tenant) as store:
        ended = store.start_ttl_sweeper()
        assert any(thread.name == "ttl-sweeper" for thread in threading.enumerate())

    assert ended.done()


def test_a_misspelt_key_of_an_index_is_refused() -> None:
    misspelt: Any = {"dim": 3}

    with pytest.raises(ValueError, match="did you mean 'dims'"):
        RemoraStore(index=misspelt)


def test_a_user_label_that_is_no_place_in_a_namespace_is_refused() -> None:
    wrong: list[Any] = ["1", True, 1.0]
    for label in wrong:
        with pytest.raises(TypeError, match=f"user_label is {label!r}; it must be a whole number"):
            RemoraStore(user_label=label)


def test_a_ttl_that_is_misspelt_or_no_number_of_minutes_is_refused(store: RemoraStore) -> None:
    misspelt: Any = {"defaultttl": 1}
    with pytest.raises(ValueError, match="did you mean 'default_ttl'"):
        RemoraStore(ttl=misspelt)
    wrong: list[Any] = ["5", float("nan"), float("inf"), 1e300, True, -5, -0.1]
    for minutes in wrong:
        with pytest.raises(ValueError, match=r"default_ttl is .* number of minutes"):
            RemoraStore(ttl={"default_ttl": minutes})
        with pytest.raises(ValueError, match=r"ttl is .* number of minutes"):
            store.put(NS, "a", {}, ttl=minutes)

    assert store.get(NS, "a") is None


def test_a_wrong_interval_of_sweeps_is_refused(server: Server) -> None:
    wrong: list[Any] = [-1, "5", float("nan"), float("inf"), True]
    for minutes in wrong:
        with pytest.raises(ValueError, match=r"sweep_interval_minutes is .* number of minutes above 0"):
            RemoraStore(ttl={"sweep_interval_minutes": minutes})
        with pytest.raises(ValueError, match=r"sweep_interval_minutes is .* number of minutes above 0"):
            RemoraStore(server.endpoint, ttl={"default_ttl": 1}).start_ttl_sweeper(minutes)


@pytest.mark.parametrize(
    ("given", "said_so"),
    [
        ({"ttl": 5}, "ttl is 5; it must be a dict with default_ttl, "),
        ({"ttl": {"refresh_on_read": "no"}}, "refresh_on_read of ttl is 'no'; it must be True or False"),
        ({"index": ["text"]}, r"index is \['text'\]; it must be a dict with .*fields"),
        (
            {"index": {"fields": "text"}},
            r"fields of the index is 'text'; it must be a list of paths, such as \['text'\]",
        ),
    ],
)
def test_a_wrong_configuration_is_named(given: dict[str, Any], said_so: str) -> None:
    with pytest.raises(TypeError, match=said_so):
        RemoraStore(**given)


def nested(levels: int) -> list[Any]:
    outermost: list[Any] = []
    for _ in range(levels):
        outermost = [outermost]
    return outermost


WRONG_VALUES: list[tuple[Any, str]] = [
    ("tea", r"is 'tea' \(a str\); it must be a dict"),
    ([("a", 1)], r"is \[\('a', 1\)\] \(a list\); it must be a dict"),
    (5, r"is 5 \(an int\); it must be a dict"),
    ({"a": 1, "when": {1}}, "must be JSON, and 'when' is not: Object of type set"),
    ({"a": 1, "b": float("nan")}, "must be JSON, and 'b' is not: "),
    ({"a": 1, "b": nested(100_000)}, "is nested too deeply, in 'b'"),
    ({"a": "half \ud83d"}, r"has half of a surrogate pair, U\+D83D, which UTF-8 cannot hold"),
]


@pytest.mark.parametrize(("value", "said_so"), WRONG_VALUES, ids=[said_so for _, said_so in WRONG_VALUES])
def test_a_value_that_is_no_json_object_is_named(store: RemoraStore, value: Any, said_so: str) -> None:  # noqa: ANN401
    with pytest.raises((TypeError, ValueError), match=rf"the value of 'k' in \('users', 'sarah'\) {said_so}"):
        store.put(NS, "k", value)

    assert store.get(NS, "k") is None


WRONG_CALLS: list[tuple[Callable[[Any], object], str]] = [
    (
        lambda store: store.put("users", "k", {}),
        r"namespace is 'users'; it must be a tuple of labels, such as \('users',\)",
    ),
    (lambda store: store.get("users", "k"), "namespace is 'users'"),
    (lambda store: store.delete("users", "k"), "namespace is 'users'"),
    (lambda store: store.search("users"), "namespace is 'users'"),
    (lambda store: store.delete_namespace("users"), "namespace is 'users'"),
    (lambda store: store.put(NS, "k", {"text": "a"}, index="text"), r"index is 'text'; it must be a list of paths"),
    (lambda store: store.search(NS, filter={"$or": [{"n": 1}, {"n": 2}]}), r"Unsupported operator: \$or"),
    (lambda store: store.search(NS, filter=[1]), r"filter is \[1\]; it must be a dict"),
    (lambda store: store.search(NS, filter={"n": nested(100_000)}), "filter is nested too deeply"),
    (lambda store: store.get(NS, "\ud83d"), r"has half of a surrogate pair, U\+D83D"),
    (lambda store: store.search(NS, filter={"n": "\ud83d"}), r"has half of a surrogate pair, U\+D83D"),
]


@pytest.mark.parametrize(("call", "said_so"), WRONG_CALLS, ids=[said_so for _, said_so in WRONG_CALLS])
def test_a_wrong_call_is_named(store: RemoraStore, call: Callable[[Any], object], said_so: str) -> None:
    with pytest.raises((TypeError, ValueError), match=said_so):
        call(store)


def test_a_text_as_a_condition_of_namespaces_is_one_label(store: RemoraStore) -> None:
    store.put(("tom", "notes"), "a", {})
    store.put(("tom", "notes", "old"), "a", {})

    [ending, beginning, both] = store.batch(
        [
            ListNamespacesOp((MatchCondition("suffix", cast("Any", "notes")),)),
            ListNamespacesOp((MatchCondition("prefix", cast("Any", "tom")),)),
            ListNamespacesOp((MatchCondition("prefix", ("tom",)), MatchCondition("suffix", cast("Any", "old")))),
        ]
    )

    assert ending == [("tom", "notes")]
    assert beginning == [("tom", "notes"), ("tom", "notes", "old")]
    assert both == [("tom", "notes", "old")]
    with pytest.raises(InvalidNamespaceError):
        store.batch([ListNamespacesOp((MatchCondition("prefix", cast("Any", "tom.notes")),))])


def test_a_value_that_is_too_long_is_named(store: RemoraStore) -> None:
    with pytest.raises(ValueError, match=r"value of 'a' in \('users', 'sarah'\) has 9,000,011 bytes"):
        store.batch([PutOp(NS, "b", {}), PutOp(NS, "a", {"text": "x" * 9_000_000})])

    assert store.get(NS, "b") is None


def test_what_no_item_can_be_is_not_found_and_deleted_without_an_error(store: RemoraStore) -> None:
    store.put(NS, "a", {})

    store.delete((), "a")
    store.delete(NS, "")

    assert store.get((), "a") is None
    assert store.get(NS, "") is None
    assert keys(store.batch([GetOp((), "a"), SearchOp(()), PutOp((), "a", None)])[1]) == ["a"]


async def test_what_no_item_can_be_is_not_found_in_asyncio_either(server: Server, tenant: str) -> None:
    async with AsyncRemoraStore.from_conn_string(server.endpoint, tenant=tenant, timeout=PATIENCE) as store:
        await store.aput(NS, "a", {})

        found = await asyncio.gather(store.aget((), "a"), store.aget(NS, "a"), store.adelete((), "a"))

    assert [each is not None for each in found] == [False, True, False]


REFUSED: list[tuple[list[Op], str]] = [
    ([PutOp(NS, "k" * 1025, {})], "key has 1,025 bytes"),
    ([GetOp(NS, "k" * 1025)], "key has 1,025 bytes"),
    ([PutOp(("a" * 513,), "k", {})], "namespace[0] has 513 bytes"),
    ([PutOp(NS, "k", {}), PutOp(NS, "k" * 1025, {}), GetOp(NS, "k")], "key of ops[1] has 1,025 bytes"),
    ([SearchOp(NS, limit=-1)], "limit is -1"),
    ([SearchOp(NS, offset=-1)], "offset is -1"),
    ([ListNamespacesOp(offset=-(2**40))], f"offset is -{2**40}"),
    ([SearchOp(NS, {"t": "a" * 1025})], "a text in filter has 1,025 bytes"),
    ([SearchOp(NS, {"t" * 257: 1})], "a name in filter has 257 bytes"),
    ([SearchOp(NS, {f"t{number}": 1 for number in range(65)})], "filter has 65 elements"),
    ([ListNamespacesOp(max_depth=-1)], "max_depth is -1"),
]


@pytest.mark.parametrize(("ops", "told"), REFUSED, ids=[told for _, told in REFUSED])
async def test_what_the_server_refuses_is_told_with_the_names_of_arguments(
    store: RemoraStore, ops: list[Op], told: str
) -> None:
    with pytest.raises(InvalidFieldError) as refused:
        store.batch(ops)
    with pytest.raises(InvalidFieldError) as arefused:
        await store.abatch(ops)

    assert str(refused.value).startswith(f"{told};")
    assert bool(refused.value.request_id) == any(isinstance(op, PutOp) for op in ops)
    assert str(arefused.value) == str(refused.value)
