"""Which requests were committed lately, so that a repeat gets the first outcome and writes nothing.

Memory has the requests since the start. Those of the hour before are loaded after it, so that no start waits for them.
Until then, their hashes, which the start reads, distinguish a new request from a repeat. Only a repeat is looked up in
the database.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Iterator
from typing import TypeAlias

from remora_server import failpoints
from remora_server._native import Core
from remora_server.domain.calls import Write
from remora_server.domain.errors import MemoryExhausted
from remora_server.storage.commit.clock import wall_clock
from remora_server.storage.commit.deadlines import require_time
from remora_server.storage.database import arrow
from remora_server.storage.database.database import Database
from remora_server.supervision import LongLived

FoundRequest: TypeAlias = tuple[int, bool]
"""The revision of a request's first commit, and whether it had the same method and payload."""

REMEMBERED_MICROS = 3_600_000_000
PAGE_REVISIONS = 4096
"""How many revisions are searched for requests at a time. Calls are answered between two pages."""


class RequestIds:
    """The requests of a store that was opened with this revision in its database."""

    def __init__(self, core: Core, database: Database, reach: int) -> None:
        """Reads all requests to load once. Raises StoreDamaged, on which a start repairs the database."""
        self._core = core
        self._database = database
        self._reach = reach
        self._since = wall_clock() - REMEMBERED_MICROS
        [(first, _)] = database.rows(
            "SELECT min(revision), bit_xor(hash(fingerprint)) FROM requests WHERE time >= ?", [self._since]
        )
        self._hashes = self._read_hashes()
        """Of the requests that are to be loaded, in order; None if there is no memory for them."""
        self._loaded = reach if first is None else first - 1
        """The revision up to which they are loaded."""
        self._stopping = threading.Event()
        self._thread = LongLived("request-ids", self._load)

    def start(self) -> None:
        """Begin to load what the database knows."""
        self._thread.start()

    def close(self) -> None:
        """Stop loading."""
        self._thread.end()
        self._stopping.set()
        self._thread.join()

    def failure(self) -> str:
        """Why requests are not loaded now; empty if they are, or need not be."""
        return self._thread.failure

    def find(self, write: Write) -> FoundRequest | None:
        """The first commit of a request, None if there is none.

        Raises DeadlineExceeded if the database must be asked and there is no time for that.
        """
        hashes = self._hashes  # Read them first: they are dropped once all is loaded.
        is_loaded = self._core.has_loaded_requests()
        found = self.find_in_memory(write)
        if found is not None or is_loaded:
            return found
        require_time(write.deadline)
        return self._find_stored(write) if hashes is None or self._is_among(hashes, write) else None

    def find_in_memory(self, write: Write) -> FoundRequest | None:
        """The first commit of a request, if that was loaded or came since the start."""
        return self._core.find_request(write.tenant_id, write.request_id, write.fingerprint)

    def _read_hashes(self) -> memoryview[int] | None:
        query = "SELECT hash(tenant_id, request_id) AS hash FROM requests WHERE time >= $since ORDER BY hash"
        try:
            return self._database.snapshot(
                lambda cursor: arrow.numbers(cursor.sql(query, params={"since": self._since}))
            )
        except MemoryExhausted:
            return None

    def _is_among(self, hashes: memoryview[int], write: Write) -> bool:
        [(wanted,)] = self._database.rows("SELECT hash(?, ?)", [write.tenant_id, write.request_id])
        at = bisect_left(hashes, wanted)
        return at < len(hashes) and hashes[at] == wanted

    def _find_stored(self, write: Write) -> FoundRequest | None:
        rows = self._database.rows(
            "SELECT revision, fingerprint FROM requests WHERE request_id = ? AND tenant_id = ? AND time >= ?"
            " ORDER BY revision DESC LIMIT 1",
            [write.request_id, write.tenant_id, self._since],
        )
        return next(((revision, fingerprint == write.fingerprint) for revision, fingerprint in rows), None)

    def _load(self) -> None:
        for page in self._pages():
            if self._stopping.is_set():
                return
            failpoints.hit("requests_loading")
            self._core.load_requests(page)
        self._core.end_load_of_requests()
        self._hashes = None
        self._thread.end()

    def _pages(self) -> Iterator[list[tuple[str, str, bytes, int, int]]]:
        """The requests of the last hour, in the order of revisions, from behind the last page that was taken."""
        while self._loaded < self._reach:
            end = min(self._loaded + PAGE_REVISIONS, self._reach)
            now = wall_clock()
            yield self._database.rows(
                "SELECT tenant_id, request_id, fingerprint, revision, greatest(0, ? - time) FROM requests"
                " WHERE revision > ? AND revision <= ? AND time >= ? ORDER BY revision",
                [now, self._loaded, end, self._since],
            )
            self._loaded = end
