"""A local store in this process, of steps in nested namespaces: no RPC lists what is below a namespace of any kind."""

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
from remora_server.storage.records.queries import RecordsQuery
from remora_server.storage.records.records import Put
from remora_server.storage.schema.kinds import KINDS, Kind, Kinds

STEPS = Kind(
    number=200,
    name="benchmark_steps",
    message=Step,
    partition=["user_id", "conversation_id"],
    key=["id"],
)
"""Steps by the leading and the second part of their namespace."""

TENANT = "benchmark"
BATCH = 1_000


class RecordStore:
    """`count` steps in a tree of namespaces: `leading` of them with `nested` each."""

    name = "local store"

    def __init__(self, directory: Path, *, count: int, leading: int, nested: int) -> None:
        self._directory = directory
        self._count, self._leading, self._nested = count, leading, nested
        self._chance = random.Random(count)
        self._store: LocalStore | None = None

    def fill(self) -> None:
        """Store the steps; they are in the database when it returns."""
        store = self._opened()
        puts = [Put(STEPS, 0, step) for step in self._steps()]
        for begin in range(0, len(puts), BATCH):
            store.records.write(Write(TENANT, method="Fill"), puts[begin : begin + BATCH])
        self.close()

    def _steps(self) -> Iterator[Step]:
        texts_of_steps = texts(0, BATCH)
        for number in range(self._count):
            namespace = number % (self._leading * self._nested)
            yield Step(
                user_id=f"namespace-{namespace % self._leading}",
                conversation_id=f"nested-{namespace // self._leading}",
                id=f"step-{number}",
                type=STEP_TYPE_TEXT,
                content=texts_of_steps[number % BATCH],
            )

    def forget(self) -> None:
        """Open the store anew: nothing of it is in memory."""
        self.close()
        self._opened()

    def scans(self, seconds: float, limit: int) -> Measured:
        """Pages of the namespaces below a leading part, drawn at random."""
        return self._drive(seconds, lambda: self._scan(limit))

    def _scan(self, limit: int) -> int:
        namespace = STEPS.encode_partition(f"namespace-{self._chance.randrange(self._leading)}")
        query = RecordsQuery(STEPS, prefix=namespace, limit=limit)
        found = len(self._opened().records.query(Read(TENANT), query).records)
        if found != limit:
            raise AssertionError(f"{found} records instead of {limit}")
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
            self._store = LocalStore(options, count_tokens=_no_counts, models=models, kinds=Kinds(*KINDS, STEPS))
        return self._store

    def close(self) -> None:
        """Apply everything and let the store go."""
        if self._store is not None:
            self._store.close()
            self._store = None


def _no_counts(texts: list[str]) -> list[int]:
    """Tokens of messages, of which this store has none."""
    return [0] * len(texts)
