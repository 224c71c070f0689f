"""A store that a server wrote, and the changes in its journal as the document reads them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from tests.storage.documented.reader import Journal, Record

from remora_server.storage.v1 import record_pb2

REQUEST_ID = "a request of these tests"
MEMORY = {"scope": {"userId": "sarah"}, "content": "AAEC", "requestId": REQUEST_ID}
"""The last request."""


class Change(Struct, frozen=True):
    """A change, the record that it is in, that one's revision, and its position there."""

    record: record_pb2.Record
    revision: int
    ordinal: int
    name: str
    content: Any


class Written(Struct, frozen=True):
    """A data directory that nobody uses, and its journal."""

    data: Path
    store_id: bytes
    journal: Journal

    def changes(self, name: str) -> list[Change]:
        """Those of a name. There are some."""
        found = [change for change in changes(self.journal.records) if change.name == name]
        assert found
        return found


def read(data: Path) -> Written:
    store_id = bytes.fromhex(json.loads((data / "FORMAT").read_text())["store_id"])
    return Written(data, store_id, Journal(data / "journal", store_id))


def changes(records: Sequence[Record]) -> Iterator[Change]:
    """Every change of some records, in order."""
    for each in records:
        record = record_pb2.Record.FromString(each.payload)
        for ordinal, change in enumerate(record.changes):
            name = change.WhichOneof("kind")
            assert name is not None
            yield Change(record, each.revision, ordinal, name, getattr(change, name))
