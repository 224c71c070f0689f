"""Vectors of the local store: what is in memory of them, and what a load reads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.store.asking import Tenant, count_tokens
from tests.store.test_vectors import count, ids, is_, near, packed, put, vector

from remora_server.domain.calls import Read
from remora_server.domain.errors import DeadlineExceeded, VectorsTooLarge
from remora_server.domain.vectors import VectorQuery, VectorScope
from remora_server.storage.local_store import LocalStore, StoreOptions

DIMENSION = 256
PASSED = 0.0
"""A deadline that is over."""


@contextmanager
def opened(directory: Path, vector_bytes: int = 256 << 20) -> Iterator[tuple[LocalStore, Tenant]]:
    options = StoreOptions(directory, segment_bytes=16 << 20, vector_bytes=vector_bytes)
    store = LocalStore(options, count_tokens=count_tokens)
    try:
        yield store, Tenant(store.bundle(), "acme")
    finally:
        store.close()


def fill(tenant: Tenant, name: str, size: int = 100) -> VectorScope:
    scope = VectorScope(name)
    values = [1.0] * DIMENSION
    put(tenant, *(vector(f"{number:03}", values, scope, {"n": number}) for number in range(size)), scope=scope)
    return scope


def found(tenant: Tenant, scope: VectorScope) -> int:
    return len(near(tenant, [1.0] * DIMENSION, k=1_000, scope=scope))


def test_memory_is_bounded_and_what_left_it_is_found_again(tmp_path: Path) -> None:
    bound = 300 << 10
    with opened(tmp_path / "data", bound) as (store, tenant):
        scopes = [fill(tenant, name) for name in ("a", "b", "c")]

        for scope in (*scopes, *scopes):
            assert found(tenant, scope) == 100
            assert store.core.statistics().vector_bytes <= bound


def test_vectors_that_do_not_fit_are_refused_and_leave_nothing(tmp_path: Path) -> None:
    with opened(tmp_path / "data", 64 << 10) as (store, tenant):
        scope = fill(tenant, "a")

        for _attempt in range(2):
            with pytest.raises(VectorsTooLarge) as refused:
                found(tenant, scope)
            assert refused.value.metadata["setting"] == "vector_bytes"
        assert store.core.statistics().vector_parts == 0
        assert count(tenant, scope=scope) == 100


def test_what_is_in_memory_needs_no_database(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as (_, tenant):
        scope = fill(tenant, "a")
        query = VectorQuery(packed([1.0] * DIMENSION))
        hurried = Read("acme", deadline=PASSED)
        with pytest.raises(DeadlineExceeded):
            tenant.store.vectors.search(hurried, scope, query)

        found(tenant, scope)

        assert len(tenant.store.vectors.search(hurried, scope, query).hits) == 10


def test_what_is_written_during_a_load_is_found_after_it(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as (_, tenant):
        scope = fill(tenant, "a", 1)
        done = threading.Event()

        def search() -> None:
            while not done.is_set():
                found(tenant, scope)

        with ThreadPoolExecutor(2) as pool:
            searches = [pool.submit(search) for _ in range(2)]
            for number in range(1, 40):
                put(tenant, vector(f"{number:03}", [1.0] * DIMENSION, scope), scope=scope)
                assert found(tenant, scope) == number + 1
            done.set()
            for each in searches:
                each.result()


def test_a_restart_finds_what_was_acknowledged(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as (_, tenant):
        put(tenant, vector("a"), vector("b", attributes={"k": 1}))
        assert ids(tenant) == ["a", "b"]
        tenant.store.vectors.delete(tenant.write, VectorScope("books"), ["a"])

    with opened(tmp_path / "data") as (_, tenant):
        assert ids(tenant) == ["b"]
        assert ids(tenant, is_("k", 1)) == ["b"]
