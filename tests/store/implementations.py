"""The stores that the contract is tried on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from tests.store.asking import count_tokens
from tests.store.model import open_model

from remora_server.domain.models import ServedModels
from remora_server.domain.store import Store
from remora_server.storage.embedded import StoreOptions, open_store


def embedded(directory: Path | None) -> Store:
    """The embedded store, with windows that do not hold what the tests store."""
    options = StoreOptions(directory, segment_bytes=16 << 20, window_bytes=20_000)
    return open_store(options, count_tokens=count_tokens, models=ServedModels())


IMPLEMENTATIONS: Mapping[str, Callable[[Path], Store]] = {
    "disk": embedded,
    "memory": lambda _: embedded(None),
    "model": lambda _: open_model(count_tokens),
}
"""Each opens one in a directory that is not there yet."""
KEEPING = frozenset({"disk"})
"""Those that are the same when they are opened again."""
