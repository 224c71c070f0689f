"""Streams of events: a handler returns a Subscription, and other threads push messages into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from google.protobuf.message import Message

from remora_server.domain.errors import SlowReader
from remora_server.locking import Level, new_lock

EARLY_MESSAGES, EARLY_BYTES = 256, 256 << 10
"""How many messages, and how many bytes, a subscription takes before its transport has accepted it. One message may be
larger.
"""


class Sink(Protocol):
    """Where a transport takes the messages of a subscription. Any thread may call it. It never waits."""

    def push(self, message: bytes) -> bool:
        """Take a message; False if the stream has ended."""

    def close(self, failure: Exception | None) -> None:
        """End the stream after the messages that were taken."""


class Subscription:
    """A stream of messages that any thread may push. No thread waits for them.

    A bounded number waits for the reader. A reader that lets more wait is ended with RESOURCE_EXHAUSTED and the reason
    SLOW_READER, and misses the waiting messages: it asks again from where it was.
    """

    def __init__(self, on_end: Callable[[], None]) -> None:
        """`on_end` is called once when no more messages are taken: the stream was closed, its reader is gone or too
        slow, its deadline passed or the server stops.
        """
        self._on_end = on_end
        self._lock = new_lock(Level.LEAF)
        self._early: list[bytes] = []
        self._early_bytes = 0
        self._sink: Sink | None = None
        self._end: tuple[Exception | None] | None = None

    def push(self, message: Message | bytes) -> bool:
        """Send a message after the others. False if the stream has ended, and no more are needed."""
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
        """End the stream after the pushed messages, with OK or with an error of the domain."""
        with self._lock:
            if self._end is None:
                self._end = (failure,)
                if self._sink is not None:
                    self._sink.close(failure)

    def attach(self, sink: Sink) -> None:
        """For the transport: send all messages there from now on, beginning with those that wait."""
        with self._lock:
            for encoded in self._early:
                sink.push(encoded)
            self._early.clear()
            self._sink = sink
            if self._end is not None:
                sink.close(*self._end)

    def ended(self) -> None:
        """For the transport: take no more messages."""
        self._on_end()
