"""Every lock has its level: what threads wait for is made by `remora_server.locking` alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVER = Path(__file__).resolve().parents[2] / "server" / "remora_server"
MAKERS = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Barrier"}
LOCKING = "locking.py"
OTHERS = {
    "engine/endpoint_embedder.py": "a semaphore that is tried, never waited for",
    "storage/recall/index.py": "another one",
    "rpc/transport/grpcio_transport.py": "another one",
    "storage/commit/locks.py": "the type of a lock that it is given",
}


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
