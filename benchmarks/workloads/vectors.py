"""Vectors: what a batch and a search cost beside SQLite, as VoltAgent's adapters use it, and beside numpy in memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from benchmarks.engines.remora import Remora
from benchmarks.engines.voltagent_shape import Item, Vector, VoltagentShape
from benchmarks.interleaving import Bench, Cell, measure
from benchmarks.report import show
from benchmarks.slices import Figure, Measured, Row, latency
from numpy.typing import NDArray

from remora.v1 import vector_pb2
from remora.v1.filter_pb2 import OPERATOR_EQ, Condition, Filter
from remora.v1.scalar_pb2 import Scalar
from remora.v1.vector_service_pb2 import ClearCollectionRequest, SearchVectorsRequest, UpsertVectorsRequest
from remora.v1.vector_service_pb2_grpc import VectorServiceStub

DIMENSION, BATCH, K, THRESHOLD = 384, 1_000, 5, 0.7
CENTRES, SPREAD = 200, 0.05
"""Vectors are scattered about so many centres of unit length: by SPREAD in each dimension."""
USERS = 100
"""A filter on one of them lets one vector in so many pass."""
SIZES = (10_000, 100_000)
STORED, FRESH = "stored", "fresh"
CALL_SECONDS = 60.0
BUDGET = 60.0
"""Seconds, where the machine is not quiet."""

Matrix = NDArray[np.float32]


def scattered(count: int, seed: int) -> Matrix:
    """So many vectors."""
    random = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(CENTRES, DIMENSION))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    around = centres[random.integers(CENTRES, size=count)]
    return (around + random.normal(scale=SPREAD, size=(count, DIMENSION))).astype(np.float32)


class Remote:
    """A server with collections of each size."""

    name = "Remora"

    def __init__(self, bench: Bench) -> None:
        self._server = Remora(bench.directory / "vectors", bench.load)
        self._server.start()
        self._channel = self._server.channel()
        self._stub = VectorServiceStub(self._channel)
        self._queries = [one.tobytes() for one in scattered(64, 2)]

    def fill(self, size: int) -> None:
        """Store so many vectors, and have them searched once."""
        vectors = scattered(size, 1)
        for begin in range(0, size, BATCH):
            self._stub.UpsertVectors(_batch(f"{STORED}-{size}", vectors, begin), timeout=CALL_SECONDS)
        self._stub.SearchVectors(self._search(size, 0), timeout=CALL_SECONDS)

    def store(self, seconds: float) -> Measured:
        """Batches under new ids, in a collection that is cleared before."""
        self._stub.ClearCollection(ClearCollectionRequest(collection_id=FRESH), timeout=CALL_SECONDS)
        vectors = scattered(10 * BATCH, 3)
        requests = [_batch(FRESH, vectors, begin) for begin in range(0, len(vectors), BATCH)]
        return _timed(seconds, lambda turn: self._stub.UpsertVectors(requests[turn % 10], timeout=CALL_SECONDS))

    def search(self, size: int, *, filtered: bool) -> Callable[[float], Measured]:
        """Searches of one client."""
        requests = [self._search(size, number, filtered=filtered) for number in range(64)]
        return lambda seconds: _timed(
            seconds, lambda turn: self._stub.SearchVectors(requests[turn % 64], timeout=CALL_SECONDS)
        )

    def _search(self, size: int, number: int, *, filtered: bool = False) -> SearchVectorsRequest:
        of_user = Condition(key="user", operator=OPERATOR_EQ, values=[Scalar(text=f"u{number % USERS}")])
        return SearchVectorsRequest(
            collection_id=f"{STORED}-{size}",
            vector=self._queries[number],
            k=K,
            threshold=THRESHOLD,
            filter=Filter(condition=of_user) if filtered else None,
        )

    def close(self) -> None:
        self._channel.close()
        self._server.stop()


def _batch(collection: str, vectors: Matrix, begin: int) -> UpsertVectorsRequest:
    rows = [
        vector_pb2.Vector(
            id=f"v{number}",
            values=vectors[number].tobytes(),
            metadata=b'{"userId":"u%d"}' % (number % USERS),
            attributes={"user": Scalar(text=f"u{number % USERS}")},
        )
        for number in range(begin, begin + BATCH)
    ]
    return UpsertVectorsRequest(collection_id=collection, vectors=rows)


class Sqlite:
    """Vectors in SQLite, all of which a search reads."""

    name = "SQLite, read whole"

    def __init__(self, bench: Bench) -> None:
        self._directory, self._count = bench.directory, 0
        self._queries = scattered(64, 2)
        self._stored = self._opened()
        self._stored.store(_items(scattered(SIZES[0], 1), 0, SIZES[0]))

    def _opened(self) -> VoltagentShape:
        self._count += 1
        return VoltagentShape(self._directory / f"vectors-{self._count}.db")

    def store(self, seconds: float) -> Measured:
        fresh, vectors = self._opened(), scattered(10 * BATCH, 3)

        def one(turn: int) -> None:
            begin = turn % 10 * BATCH
            fresh.store(replace(item, id=f"{turn}-{item.id}") for item in _items(vectors, begin, begin + BATCH))

        measured = _timed(seconds, one)
        fresh.close()
        return measured

    def search(self, seconds: float) -> Measured:
        return _timed(seconds, lambda turn: self._stored.search(self._queries[turn % 64], limit=K, threshold=THRESHOLD))


def _items(vectors: Matrix, begin: int, end: int) -> list[Item]:
    return [Item(f"v{number}", vectors[number], {"userId": f"u{number % USERS}"}, "") for number in range(begin, end)]


class Numpy:
    """A matrix in the process of its caller: one product, then the best."""

    name = "numpy, in memory"

    def search(self, size: int) -> Callable[[float], Measured]:
        vectors = scattered(size, 1)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        queries = scattered(64, 2)
        return lambda seconds: _timed(seconds, lambda turn: _best(vectors, queries[turn % 64]))


def _best(vectors: Matrix, query: Vector) -> Sequence[int]:
    scores = (1 + vectors @ (query / np.linalg.norm(query))) / 2
    best = np.argpartition(-scores, K)[:K]
    found = best[scores[best] >= THRESHOLD]
    return list(found[np.argsort(-scores[found])])


def _timed(seconds: float, call: Callable[[int], object]) -> Measured:
    """Calls of one client, for so long; the CPU time is that of this process."""
    cpu, deadline = time.process_time(), time.monotonic() + seconds
    spans: list[tuple[float, float]] = []
    while (began := time.monotonic()) < deadline or not spans:
        call(len(spans))
        spans.append((began, time.monotonic()))
    return Measured(spans, time.process_time() - cpu)


def run(bench: Bench) -> dict[str, Figure]:
    """Measure and show; the figures by name."""
    bench = replace(bench, budget=min(bench.budget, BUDGET))
    remora, sqlite, numpy = Remote(bench), Sqlite(bench), Numpy()
    for size in SIZES:
        remora.fill(size)
    cells = [
        Cell(remora.name, "store", remora.store),
        Cell(sqlite.name, "store", sqlite.store),
        Cell(sqlite.name, _load(SIZES[0]), sqlite.search),
        *(Cell(numpy.name, _load(size), numpy.search(size)) for size in SIZES),
        *(
            Cell(remora.name, _load(size, filtered=filtered), remora.search(size, filtered=filtered))
            for size in SIZES
            for filtered in (False, True)
        ),
    ]
    rows = measure(bench, cells, "vectors")
    remora.close()
    show(bench.console, f"vectors of {DIMENSION} dimensions: batches of {BATCH:,}, searches for the best {K}", rows)
    return figures({(row.engine, row.load): row for row in rows})


def _load(size: int, *, filtered: bool = False) -> str:
    return f"search at {size:,}{', filtered' if filtered else ''}"


def figures(rows: dict[tuple[str, str], Row]) -> dict[str, Figure]:
    """The medians of searches, and times over those of the others."""
    median = latency(0.5)
    small, large = map(_load, SIZES)
    own = {load: row for (engine, load), row in rows.items() if engine == Remote.name}
    return {
        "vector_store_batch_over_sqlite": own["store"].over(rows[Sqlite.name, "store"], median),
        "vector_search_10k_over_sqlite": own[small].over(rows[Sqlite.name, small], median),
        "vector_search_10k_over_numpy": own[small].over(rows[Numpy.name, small], median),
        "vector_search_100k_over_numpy": own[large].over(rows[Numpy.name, large], median),
        "vector_search_100k_filtered_over_unfiltered": own[_load(SIZES[1], filtered=True)].over(own[large], median),
        "vector_store_batch_ms": own["store"].figure(median).times(1e3),
        "vector_search_p50_ms_at_10k": own[small].figure(median).times(1e3),
        "vector_search_p50_ms_at_100k": own[large].figure(median).times(1e3),
    }
