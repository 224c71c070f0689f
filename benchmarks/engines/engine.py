"""What a system under measurement can do."""

from __future__ import annotations

from typing import Protocol

from benchmarks.slices import Measured


class Unavailable(Exception):
    """The system is not installed here; the message says what is missing."""


class Engine(Protocol):
    """A system that keeps messages. `start` raises Unavailable; `append` and `list50` load it for so many seconds."""

    name: str

    def start(self) -> None: ...

    def append(self, clients: int, seconds: float) -> Measured:
        """Durable appends of one message of 500 bytes, each client to a conversation of its own."""

    def list50(self, clients: int, seconds: float) -> Measured:
        """Reads of the newest 50 messages, each client of a conversation of its own."""

    def stop(self) -> None: ...
