"""Calls that the network may hold for ever, each in a thread of its own.

A caller that waits for one stops waiting when its time is up, whatever the network does.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import partial
from typing import Generic, TypeVar

from remora_server import failpoints
from remora_server.locking import Level, new_lock
from remora_server.supervision import run_apart

T = TypeVar("T")


class FlightFailed(Exception):
    """A call was not made, or its thread ended. The text says why."""


class Flights(Generic[T]):
    """Makes calls and waits for them. Safe to share between threads."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = new_lock(Level.LEAF)
        self._flights: set[Future[T]] = set()
        self._closed = False

    def wait(self, call: Callable[[], T], timeout: float) -> T:
        """What a call returns or raises within `timeout` seconds. Raises TimeoutError, FlightFailed."""
        flight: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise FlightFailed("the server stops")
            self._flights.add(flight)
        run_apart(self._name, partial(_fly, flight, call))
        try:
            return flight.result(timeout)
        finally:
            with self._lock:
                self._flights.discard(flight)

    def close(self) -> None:
        """End every wait, and refuse further calls."""
        with self._lock:
            self._closed, flights = True, list(self._flights)
        for flight in flights:
            with suppress(InvalidStateError):
                flight.set_exception(FlightFailed("the server stops"))


def _fly(flight: Future[T], call: Callable[[], T]) -> None:
    # If nobody waits any more, the future is done already.
    try:
        failpoints.hit("endpoint_request")
        made = call()
    except Exception as error:  # noqa: BLE001 - it is raised again where the flight is waited for
        with suppress(InvalidStateError):
            flight.set_exception(error)
    except BaseException as error:
        with suppress(InvalidStateError):
            flight.set_exception(FlightFailed(f"the request's thread ended: {type(error).__name__}"))
        raise
    else:
        with suppress(InvalidStateError):
            flight.set_result(made)
