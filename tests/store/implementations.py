"""The stores that the contract is tried on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.store.asking import count_tokens
from tests.store.model import open_model

from remora_server.domain.models import ServedModels
from remora_server.domain.store import Store
from remora_server.storage.local_store import StoreOptions, open_store


def local(directory: Path | None, window_bytes: int) -> Store:
    """The local store, with so much room for conversations in memory."""
    options = StoreOptions(directory, segment_bytes=16 << 20, window_bytes=window_bytes)
    return open_store(options, count_tokens=count_tokens, models=ServedModels())


IMPLEMENTATIONS: Mapping[str, Callable[[Path], Store]] = {
    "disk": lambda directory: local(directory, window_bytes=1),
    "memory": lambda _: local(None, window_bytes=20_000),
    "model": lambda _: open_model(count_tokens),
}
"""Each opens one in a directory that is not there yet, or that it filled. On disk, no conversation stays in memory."""
KEEPING = frozenset({"disk"})
"""Those that are the same when they are opened again."""
