"""Every lock has its level: what threads wait for is made by `remora_server.locking` alone."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from remora_server.locking import Level

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / "server" / "remora_server"
MAKERS = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Barrier"}
MADE = {
    "locking.py": Counter(Lock=3, Condition=1, BoundedSemaphore=1),
    # Semaphores that are tried, never waited for.
    "engine/endpoint_embedder.py": Counter(Semaphore=1),
    "storage/recall/index.py": Counter(Semaphore=1),
    "rpc/transport/grpcio_transport.py": Counter(BoundedSemaphore=1),
}
"""What each module makes."""

SECTION = re.compile(r"^## Locks$(.*?)^## ", re.MULTILINE | re.DOTALL)
"""What the map says of locks."""
ROW = re.compile(r"^\| ([a-z, ]+) \|", re.MULTILINE)
"""The levels of a row of its table."""
ORDERED = re.compile(r"`(rust/[\w/]+\.rs)`")
"""The files in which the engine's locks have their order."""
OF_A_CRATE = re.compile(r"^//! Locks\b", re.MULTILINE)


def made_in(source: str) -> Iterator[str]:
    """The primitives of `threading` that a module makes, or imports by their own names."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="threading"), attr=name)) if name in MAKERS:
                yield name
            case ast.ImportFrom(module="threading", names=names):
                yield from (alias.name for alias in names if alias.name in MAKERS)


@pytest.mark.slow
def test_locks_are_made_with_their_level() -> None:
    made = {path.relative_to(SERVER).as_posix(): Counter(made_in(path.read_text())) for path in SERVER.rglob("*.py")}

    assert {name: found for name, found in made.items() if found} == MADE


def section_on_locks() -> str:
    found = SECTION.search((ROOT / "ARCHITECTURE.md").read_text("utf-8"))
    assert found
    return found[1]


def test_the_map_has_the_levels_in_their_order() -> None:
    _head, *rows = ROW.findall(section_on_locks())

    levels = [level.strip() for row in rows for level in re.split(", then |, ", row)]
    assert [level.upper().replace(" ", "_") for level in levels] == [level.name for level in Level]


def test_the_order_of_the_engines_locks_is_where_the_map_says() -> None:
    sources = (ROOT / "rust").rglob("*.rs")
    documented = {str(path.relative_to(ROOT)) for path in sources if OF_A_CRATE.search(path.read_text("utf-8"))}

    assert len(documented) > 4
    assert set(ORDERED.findall(section_on_locks())) == documented
