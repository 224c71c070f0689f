"""An local store of a kind of record that no service has yet: runs in namespaces, read across partitions."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.slices import Measured
from benchmarks.texts import texts

from remora.v1.step_pb2 import STEP_TYPE_TEXT, Step
from remora_server.domain.calls import Read, Write
from remora_server.domain.models import ServedModel, ServedModels
from remora_server.storage.local_store import LocalStore, StoreOptions
from remora_server.storage.records.queries import Condition, RecordsQuery
from remora_server.storage.records.records import Put
from remora_server.storage.schema.kinds import KINDS, Kind, Kinds

RUNS = Kind(
    number=200,
    name="benchmark_runs",
    message=Step,
    partition=["user_id", "conversation_id"],
    key=["id"],
    columns=["agent_id"],
    orders=[["agent_id"]],
)
"""Runs by the leading and the second part of their namespace. `agent_id` is their status."""

TENANT = "benchmark"
BATCH = 1_000
SELDOM = "suspended"
OFTEN = ("running", "completed", "failed")


class RecordStore:
    """`count` runs in a tree of namespaces: `leading` of them with `nested` each. One in `seldom` is suspended."""

    name = "local store"

    def __init__(self, directory: Path, *, count: int, leading: int, nested: int, seldom: int) -> None:
        self._directory = directory
        self._count, self._leading, self._nested, self._seldom = count, leading, nested, seldom
        self._chance = random.Random(count)
        self._store: LocalStore | None = None

    def fill(self) -> None:
        """Store the runs; they are in the database when it returns."""
        store = self._opened()
        runs = [Put(RUNS, 0, run) for run in self._runs()]
        for begin in range(0, len(runs), BATCH):
            store.records.write(Write(TENANT, method="Fill"), runs[begin : begin + BATCH])
        self.close()

    def _runs(self) -> Iterator[Step]:
        texts_of_runs = texts(0, BATCH)
        for number in range(self._count):
            namespace = number % (self._leading * self._nested)
            yield Step(
                user_id=f"namespace-{namespace % self._leading}",
                conversation_id=f"nested-{namespace // self._leading}",
                id=f"run-{number}",
                agent_id=SELDOM if number % self._seldom == 0 else self._chance.choice(OFTEN),
                type=STEP_TYPE_TEXT,
                content=texts_of_runs[number % BATCH],
            )

    def forget(self) -> None:
        """Open the store anew: nothing of it is in memory."""
        self.close()
        self._opened()

    def scans(self, seconds: float, limit: int) -> Measured:
        """Pages of the namespaces below a leading part, drawn at random."""
        return self._drive(seconds, lambda: self._scan(limit))

    def queries(self, seconds: float, limit: int) -> Measured:
        """Pages of what is suspended, in any namespace."""
        return self._drive(seconds, lambda: self._query(limit))

    def _scan(self, limit: int) -> int:
        namespace = RUNS.encode_partition(f"namespace-{self._chance.randrange(self._leading)}")
        return self._found(RecordsQuery(RUNS, prefix=namespace, limit=limit))

    def _query(self, limit: int) -> int:
        return self._found(RecordsQuery(RUNS, where=(Condition("agent_id", "=", SELDOM),), limit=limit))

    def _found(self, query: RecordsQuery) -> int:
        found = len(self._opened().records.query(Read(TENANT), query).records)
        if found != query.limit:
            raise AssertionError(f"{found} records instead of {query.limit}")
        return found

    def _drive(self, seconds: float, call: Callable[[], object]) -> Measured:
        """One call after another, one at least."""
        spans: list[tuple[float, float]] = []
        cpu, deadline = time.process_time(), time.monotonic() + seconds
        while not spans or time.monotonic() < deadline:
            began = time.monotonic()
            call()
            spans.append((began, time.monotonic()))
        return Measured(spans, time.process_time() - cpu)

    def _opened(self) -> LocalStore:
        if self._store is None:
            models = ServedModels(ServedModel("", late=False))
            options = StoreOptions(directory=self._directory)
            self._store = LocalStore(options, count_tokens=_no_counts, models=models, kinds=Kinds(*KINDS, RUNS))
        return self._store

    def close(self) -> None:
        """Apply everything and let the store go."""
        if self._store is not None:
            self._store.close()
            self._store = None


def _no_counts(texts: list[str]) -> list[int]:
    """Tokens of messages, of which this store has none."""
    return [0] * len(texts)
