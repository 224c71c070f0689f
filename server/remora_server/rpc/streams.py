"""Streams of events: a handler returns a Subscription, and other threads push messages into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from google.protobuf.message import Message

from remora_server.domain.errors import SlowReader
from remora_server.locking import Level, new_lock

EARLY_MESSAGES, EARLY_BYTES = 256, 256 << 10
"""How many messages a subscription takes before its transport has taken it on, and how much of them: one message may be
larger.
"""


class Sink(Protocol):
    """Where a transport takes the messages of a subscription. Any thread may call it; it waits for nothing."""

    def push(self, message: bytes) -> bool:
        """Take a message; False where the stream has ended."""

    def close(self, failure: Exception | None) -> None:
        """End the stream behind what was taken."""


class Subscription:
    """A stream of messages that any thread pushes when there are some; no thread waits for them.

    A bounded number waits for the reader. One that lets more wait is told so, RESOURCE_EXHAUSTED with the reason
    SLOW_READER, and misses what waits: it asks anew from where it was.
    """

    def __init__(self, on_end: Callable[[], None]) -> None:
        """`on_end` is called once when nothing is taken any more: the stream was closed, its reader is gone or too
        slow, its deadline passed or the server stops.
        """
        self._on_end = on_end
        self._lock = new_lock(Level.LEAF)
        self._early: list[bytes] = []
        self._early_bytes = 0
        self._sink: Sink | None = None
        self._end: tuple[Exception | None] | None = None

    def push(self, message: Message | bytes) -> bool:
        """Send a message behind the others. False where the stream has ended: there is no use in more."""
        encoded = message if isinstance(message, bytes) else message.SerializeToString()
        with self._lock:
            if self._sink is not None:
                return self._sink.push(encoded)
            if self._end is None and not self._has_room(encoded):
                self._end = (SlowReader(),)
            if self._end is not None:
                return False
            self._early.append(encoded)
            self._early_bytes += len(encoded)
            return True

    def _has_room(self, encoded: bytes) -> bool:
        fits = self._early_bytes + len(encoded) <= EARLY_BYTES or not self._early
        return fits and len(self._early) < EARLY_MESSAGES

    def close(self, failure: Exception | None = None) -> None:
        """End the stream behind what was pushed: well, or with an error of the domain."""
        with self._lock:
            if self._end is None:
                self._end = (failure,)
                if self._sink is not None:
                    self._sink.close(failure)

    def attach(self, sink: Sink) -> None:
        """For the transport: everything goes there from now on, what was pushed before first."""
        with self._lock:
            for encoded in self._early:
                sink.push(encoded)
            self._early.clear()
            self._sink = sink
            if self._end is not None:
                sink.close(*self._end)

    def ended(self) -> None:
        """For the transport: nothing is taken any more."""
        self._on_end()
