"""The state of the server's parts, for operators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct


class Done(Struct, frozen=True):
    """How often something was done since the start, and the seconds that it took in all."""

    count: int = 0
    seconds: float = 0.0


class JournalStatus(Struct, frozen=True):
    """The journal: sizes in bytes, what this process wrote, the mean fdatasync in microseconds, and how many records
    wait to be written.
    """

    bytes: int
    segments: int
    records: int
    batches: int
    sync_micros: int
    waiting: int = 0


class EngineStatus(Struct, frozen=True):
    """The engine's use of memory."""

    kernels: str
    conversations: int
    window_bytes: int
    parts: int
    index_bytes: int
    record_partitions: int
    record_bytes: int
    vector_partitions: int
    vector_bytes: int


class EmbeddingStatus(Struct, frozen=True):
    """How many messages wait to be embedded by a model, how many it refused, and how many it embedded per
    second lately.
    """

    pending: int = 0
    refused: int = 0
    per_second: float = 0.0


class StoreStatus(Struct, frozen=True):
    """The store. `failure` is empty while it takes writes; `embeddings` are by the names of the models in use.

    `checkpoints` are DuckDB's; `searches` are those of messages, loads included; `recall_hits` of them found all that
    they needed in memory; `recall_loads` brought messages that a search needed, or waited for, there.
    """

    store_id: str
    format_version: int
    in_memory: bool
    failure: str
    revision: int
    applied_revision: int
    database_bytes: int
    conversations: int
    messages: int
    embeddings: Mapping[str, EmbeddingStatus]
    journal: JournalStatus
    engine: EngineStatus
    checkpoints: Done = Done()
    searches: Done = Done()
    recall_hits: int = 0
    recall_loads: Done = Done()


class StoreHealth(Protocol):
    """Reports the state of a store."""

    def failure(self) -> str:
        """Why the store does not work as it should; empty if it does, or if only the disk is full."""

    def write_failure(self) -> str:
        """Why writes are refused; empty if they are taken. It takes no longer than a look into memory."""

    def background_failure(self) -> str:
        """Why background work is not done now; empty if it is. Requests are answered all the same."""

    def status(self) -> StoreStatus:
        """The state of the store."""


class ModelStatus(Struct, frozen=True):
    """A model that embeds; an empty name if there is none.

    `dimension` is 0 while it is unknown. `provider` is where vectors are made. `failure` says why none are made now,
    without contents of messages, and is empty if they are.
    """

    name: str = ""
    dimension: int = 0
    precision: str = ""
    provider: str = ""
    failure: str = ""


class OverflowStatus(Struct, frozen=True):
    """How many windows could not be moved, or summarised, when it was last tried, and why the last one could not,
    without contents of messages.
    """

    failing: int = 0
    failure: str = ""


class ProcessStatus(Struct, frozen=True):
    """The server's process: versions, when it began to serve (microseconds since 1970, UTC), resident bytes.

    `failures`: which threads failed and are being restarted.
    """

    version: str
    python_version: str
    duckdb_version: str
    grpc_version: str
    start_time: int
    resident_bytes: int
    failures: tuple[str, ...] = ()
