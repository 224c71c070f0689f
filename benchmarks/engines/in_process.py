"""A database in the process of its caller: no server, no socket. Clients are threads that share one connection."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.engines.server import PREFILLED, TEXTS
from benchmarks.slices import Measured
from benchmarks.texts import texts


class InProcess(ABC):
    """Calls of a database, one at a time, timed with the wait for the calls of other threads."""

    name: str

    def __init__(self, directory: Path) -> None:
        self.directory = directory / self.name
        self._lock = threading.Lock()
        self._filled: set[int] = set()

    def start(self) -> None:
        self.directory.mkdir(parents=True)
        self.open()

    @abstractmethod
    def open(self) -> None:
        """Open the database and make its tables."""

    @abstractmethod
    def insert(self, client: int, text: str) -> None:
        """One durable append."""

    @abstractmethod
    def newest(self, client: int) -> list[tuple[object, ...]]:
        """The newest 50 messages."""

    def append(self, clients: int, seconds: float) -> Measured:
        lists = [texts(client, TEXTS) for client in range(clients)]
        return self._drive(clients, seconds, lambda client, turn: self.insert(client, lists[client][turn % TEXTS]))

    def list50(self, clients: int, seconds: float) -> Measured:
        for client in set(range(clients)) - self._filled:
            for text in (texts(client, TEXTS) * PREFILLED)[:PREFILLED]:
                self.insert(client, text)
            self._filled.add(client)
        return self._drive(clients, seconds, lambda client, _turn: self.newest(client))

    def _drive(self, clients: int, seconds: float, call: Callable[[int, int], object]) -> Measured:
        cpu, deadline = time.process_time(), time.monotonic() + seconds

        def client_of(client: int) -> list[tuple[float, float]]:
            spans: list[tuple[float, float]] = []
            while (began := time.monotonic()) < deadline:
                with self._lock:
                    call(client, len(spans))
                spans.append((began, time.monotonic()))
            return spans

        with ThreadPoolExecutor(clients) as pool:
            spans = [span for own in pool.map(client_of, range(clients)) for span in own]
        return Measured(spans, time.process_time() - cpu)

    @abstractmethod
    def stop(self) -> None:
        """Close it."""
