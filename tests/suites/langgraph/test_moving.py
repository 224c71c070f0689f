"""`remora import --from`: what LangGraph's own SQLite classes wrote is read through Remora's as they read it."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore
from tests.faults.sidecar import ROOT
from tests.suites.conftest import Server

from remora.langgraph import RemoraStore

NS = ("users", "ana", "memories")
TEXTS = {"tea": "aab", "coffee": "bbc", "milk": "ccd", "water": "abd"}


class WithoutExtensions(sqlite3.Connection):
    """A connection for stores that only write: many builds of Python cannot load the extension that searches."""

    def enable_load_extension(self, *_: object) -> None:
        pass

    def load_extension(self, *_: object, **__: object) -> None:
        pass


def embed(texts: list[str]) -> list[list[float]]:
    """How often each of four letters is in a text."""
    return [[float(text.count(letter)) for letter in "abcd"] for text in texts]


INDEX: Any = {"dims": 4, "embed": embed, "fields": ["text"], "text_fields": ["text"]}


def imported(server: Server, tenant: str, file: Path, source: str) -> str:
    """What an import of a file says, which must do all that it has to."""
    command = [str(ROOT / ".venv" / "bin" / "python"), "-m", "remora_server.main", "import", str(file)]
    options = ["--from", source, "--endpoint", server.endpoint, "--tenant", tenant]
    packages = f"{ROOT / 'server'}:{ROOT / 'clients' / 'python'}"
    ran = subprocess.run(
        [*command, *options],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": packages},
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stderr


@pytest.fixture
def store_file(tmp_path: Path) -> Iterator[tuple[Path, SqliteStore]]:
    """A file with items, and the store that wrote it, still open."""
    file = tmp_path / "store.sqlite"
    with closing(
        sqlite3.connect(file, isolation_level=None, check_same_thread=False, factory=WithoutExtensions)
    ) as own:
        store = SqliteStore(own, index=INDEX, ttl={"default_ttl": 60.0})
        store.setup()
        for key, text in TEXTS.items():
            store.put(NS, key, {"text": text, "n": len(text)})
        store.put(("plain",), "søt", {"deep": {"list": [1, None, 2.5]}}, index=False, ttl=None)
        store.put(NS, "tea", {"text": "aaad", "n": 9})
        yield file, store


def test_items_are_read_as_before(server: Server, tenant: str, store_file: tuple[Path, SqliteStore]) -> None:
    file, before = store_file
    imported(server, tenant, file, "langgraph-store")

    with RemoraStore(server.endpoint, tenant=tenant) as after:
        assert after.list_namespaces() == before.list_namespaces()
        for namespace, key in [*((NS, key) for key in TEXTS), (("plain",), "søt")]:
            old, new = before.get(namespace, key, refresh_ttl=False), after.get(namespace, key, refresh_ttl=False)
            assert old is not None
            assert new is not None
            assert new.value == old.value
            assert new.created_at.replace(tzinfo=None) == old.created_at.replace(tzinfo=None)
        found = after.search(("users",), filter={"n": {"$gt": 3}})
        assert [item.key for item in found] == ["tea"]


def test_searches_by_meaning_find_them_with_their_own_vectors(
    server: Server, tenant: str, store_file: tuple[Path, SqliteStore]
) -> None:
    file, _ = store_file
    imported(server, tenant, file, "langgraph-store")
    memory = InMemoryStore(index=INDEX)
    for key, text in {**TEXTS, "tea": "aaad"}.items():
        memory.put(NS, key, {"text": text})

    with RemoraStore(server.endpoint, tenant=tenant, index=INDEX) as after:
        expected, found = memory.search(NS, query="aab"), after.search(NS, query="aab")

    assert [item.key for item in found] == [item.key for item in expected]
    assert [item.score for item in found] == pytest.approx([item.score for item in expected], abs=1e-6)


def test_items_that_were_read_and_refreshed_since_are_the_same(
    server: Server, tenant: str, store_file: tuple[Path, SqliteStore]
) -> None:
    file, _ = store_file
    imported(server, tenant, file, "langgraph-store")
    with RemoraStore(server.endpoint, tenant=tenant) as after:
        after.get(NS, "coffee")

    assert imported(server, tenant, file, "langgraph-store") == (
        "0 items copied, 5 were there already; all are as in the file\n"
    )
