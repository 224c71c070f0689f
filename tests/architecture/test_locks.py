"""Every lock has its level: what threads wait for is made by `remora_server.locking` alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from remora_server.locking import Level

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / "server" / "remora_server"
MAKERS = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Barrier"}
LOCKING = "locking.py"
OTHERS = {
    "engine/endpoint_embedder.py": "a semaphore that is tried, never waited for",
    "storage/recall/index.py": "another one",
    "rpc/transport/grpcio_transport.py": "another one",
    "storage/commit/locks.py": "the type of a lock that it is given",
}

SECTION = re.compile(r"^## Locks$(.*?)^## ", re.MULTILINE | re.DOTALL)
"""What the map says of locks."""
ROW = re.compile(r"^\| ([a-z, ]+) \|", re.MULTILINE)
"""The levels of a row of its table."""
ORDERED = re.compile(r"`(rust/[\w/]+\.rs)`")
"""The files in which the engine's locks have their order."""
OF_A_CRATE = re.compile(r"^//! Locks\b", re.MULTILINE)


def made_in(source: str) -> Iterator[str]:
    """The primitives of `threading` that a module names."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "threading":
            yield from {node.attr} & MAKERS
        elif isinstance(node, ast.ImportFrom) and node.module == "threading":
            yield from {alias.name for alias in node.names} & MAKERS


@pytest.mark.slow
def test_locks_are_made_with_their_level() -> None:
    modules = {path.relative_to(SERVER).as_posix(): set(made_in(path.read_text())) for path in SERVER.rglob("*.py")}

    assert modules[LOCKING] == {"Lock", "Condition", "BoundedSemaphore"}
    assert {name for name, made in modules.items() if made} == {LOCKING, *OTHERS}


def section_on_locks() -> str:
    found = SECTION.search((ROOT / "ARCHITECTURE.md").read_text("utf-8"))
    assert found
    return found[1]


def test_the_map_has_the_levels_in_their_order() -> None:
    _head, *rows = ROW.findall(section_on_locks())

    levels = [level.strip() for row in rows for level in re.split(", then |, ", row)]
    assert [level.upper().replace(" ", "_") for level in levels] == [level.name for level in Level]


def test_the_order_of_the_engines_locks_is_where_the_map_says() -> None:
    files = ORDERED.findall(section_on_locks())

    assert len(files) > 4
    assert [file for file in files if not OF_A_CRATE.search((ROOT / file).read_text("utf-8"))] == []
