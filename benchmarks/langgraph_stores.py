"""Makes the calls of LangGraph's stores that a benchmark asks for: `langgraph_stores.py ENGINE PLACE`.

It runs with LangGraph's packages, and reads questions from its input as lines of JSON: {"load": ..., "seconds": ...}.
The answers have the times between which each call ran.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

from langgraph.store.base import BaseStore, PutOp

DIMENSION, USERS, BATCH = 384, 100, 500
SMALL, LARGE = 10_000, 100_000
_RANDOM = random.Random(1)
_VECTORS = [[_RANDOM.gauss(0, 1) for _ in range(DIMENSION)] for _ in range(2_000)]


def embed(texts: list[str]) -> list[list[float]]:
    """Vectors by the numbers at the ends of texts: making them takes no time worth measuring."""
    return [_VECTORS[int(text.rsplit(" ", 1)[1]) % len(_VECTORS)] for text in texts]


INDEX: Any = {"dims": DIMENSION, "embed": embed, "fields": ["content"], "text_fields": ["content"]}


def _opened(engine: str, place: str, size: int, opened: ExitStack) -> BaseStore:
    if engine == "remora":
        from remora.langgraph import RemoraStore  # noqa: PLC0415 - only one engine's packages are needed

        return RemoraStore(place, index=INDEX, tenant=f"of-{size}", timeout=60.0)
    from langgraph.store.sqlite import SqliteStore  # noqa: PLC0415 - as above

    store = opened.enter_context(SqliteStore.from_conn_string(str(Path(place) / f"{size}.db"), index=INDEX))
    store.conn.execute("PRAGMA journal_mode=WAL")
    store.setup()
    return store


def _namespace(number: int) -> tuple[str, ...]:
    return ("users", f"u{number % USERS}", "memories")


def _value(number: int) -> dict[str, Any]:
    kind = "fact" if number % 3 else "preference"
    return {"kind": kind, "score": number % 1_000, "content": f"{'what was said ' * 10}{number}"}


class Stores:
    """A store of each size, and the calls on them."""

    def __init__(self, engine: str, place: str, opened: ExitStack) -> None:
        self._stores = {size: _opened(engine, place, size, opened) for size in (SMALL, LARGE)}
        self._count = 0
        self.loads: dict[str, Callable[[int], object]] = {
            "put": self._put,
            "search by vector": lambda turn: self._stores[SMALL].search(("users",), query=f"query {turn}"),
            "filtered search": lambda _: self._stores[LARGE].search(("users",), filter={"score": {"$gte": 990}}),
        }

    def fill(self, size: int) -> None:
        """So many items; only the fewer ones have vectors."""
        for begin in range(0, size, BATCH):
            index: Literal[False] | None = None if size == SMALL else False
            ops = [
                PutOp(_namespace(number), f"k{number}", _value(number), index) for number in range(begin, begin + BATCH)
            ]
            self._stores[size].batch(ops)

    def _put(self, _: int) -> None:
        self._count += 1
        self._stores[SMALL].put(_namespace(self._count), f"new {self._count}", _value(self._count))


def _timed(call: Callable[[int], object], seconds: float) -> list[tuple[float, float]]:
    spans: list[tuple[float, float]] = []
    end = time.perf_counter() + seconds
    while not spans or spans[-1][1] < end:
        began = time.perf_counter()
        call(len(spans))
        spans.append((began, time.perf_counter()))
    return spans


def main() -> None:
    with ExitStack() as opened:
        _answer(Stores(sys.argv[1], sys.argv[2], opened))


def _answer(stores: Stores) -> None:
    for line in sys.stdin:
        question = json.loads(line)
        load = question["load"]
        if load.startswith("fill "):
            began = time.perf_counter()
            stores.fill(int(load.removeprefix("fill ")))
            spans = [(began, time.perf_counter())]
        else:
            spans = _timed(stores.loads[load], question["seconds"])
        print(json.dumps({"spans": spans, "rpcs": 0}), flush=True)


if __name__ == "__main__":
    main()
