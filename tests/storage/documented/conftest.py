"""The store that tests of the document read."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import grpc
import pytest
from tests.faults.sidecar import Sidecar
from tests.storage.documented.written import MEMORY, Written, read
from tests.storage.formats.make import SETTINGS, TENANTS, Writer, first_half, second_half, settled
from tests.storage.formats.wire import ask
from tests.storage.opening import open_store

from remora_server.storage.database.database import FILE_NAME

LONG = b"long " * (130 << 10)
"""Two of these do not fit in a segment."""


@pytest.fixture(scope="session")
def written() -> Iterator[Written]:
    """A killed store with vectors, word pieces and every change that callers make, in a journal of several segments."""
    with tempfile.TemporaryDirectory(prefix="remora-") as folder:
        sidecar = Sidecar(Path(folder), *SETTINGS)
        sidecar.start()
        try:
            with grpc.insecure_channel(sidecar.endpoint) as channel:
                for tenant in TENANTS:
                    writer = Writer(channel, tenant)
                    first_half(writer)
                    writer.memory(LONG, userId="long")
                    settled(channel)
                    second_half(writer)
                    writer.memory(LONG, userId="long")
                ask(channel, "acme", "SetWorkingMemory", MEMORY)
        finally:
            sidecar.kill()
        yield read(Path(folder, "data"))


@pytest.fixture(scope="session")
def database(written: Written) -> Iterator[duckdb.DuckDBPyConnection]:
    """The database of the store, with all of its journal applied."""
    with tempfile.TemporaryDirectory(prefix="remora-") as folder:
        copied = shutil.copytree(written.data, Path(folder, "data"))
        open_store(copied).close()
        with duckdb.connect(str(copied / FILE_NAME), read_only=True) as connection:
            yield connection
