"""A server over a real store, in this process."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from remora_server import application
from remora_server.domain.models import ServedModels
from remora_server.domain.store import Store
from remora_server.embedding_models import NO_EMBEDDERS
from remora_server.engine.receipt_book import ReceiptBook
from remora_server.engine.tokens import NativeTokenCounter
from remora_server.rpc.health import Condition
from remora_server.rpc.identity import Identity
from remora_server.rpc.server import Server
from remora_server.rpc.transport.listeners import TcpListener, UnixListener
from remora_server.rpc.transport.tls import Tls
from remora_server.rpc.transport.transports import ServerOptions
from remora_server.storage.local_store import StoreOptions, open_store

THREADS = 2


class Serving:
    """A server over a real store, on a Unix socket and a port."""

    def __init__(
        self,
        directory: Path,
        identity: Identity | None = None,
        tls: Tls | None = None,
        options: ServerOptions = ServerOptions(threads=THREADS),  # noqa: B008 - it is frozen
        opened: Store | None = None,
    ) -> None:
        """Serve a new store in the directory, or one that is open; it is closed at the end."""
        tokens = NativeTokenCounter()
        count = partial(application._count_tokens, tokens)
        store = opened or open_store(
            StoreOptions(directory=directory / "data"), count_tokens=count, models=ServedModels()
        )
        self.store = store
        self.server = Server(options, identity or Identity(), tls=tls)
        self.endpoints = self.server.bind([UnixListener(directory / "s"), TcpListener("127.0.0.1", 0)])
        handlers = application._handlers(store, NO_EMBEDDERS, tokens, ReceiptBook(store.receipts, days=0))
        self.server.start(handlers, NO_EMBEDDERS.dimension_of, Condition, store.publication)

    def close(self) -> None:
        self.server.stop(1.0)
        self.store.close()
