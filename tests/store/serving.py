"""The model behind a real server: what is served of it must not need consecutive revisions."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.store.model import open_model

from remora_server import application
from remora_server.domain.tokens import O200K_BASE
from remora_server.embedding_models import NO_EMBEDDERS
from remora_server.engine.receipt_book import ReceiptBook
from remora_server.engine.tokens import NativeTokenCounter
from remora_server.rpc.health import Condition
from remora_server.rpc.identity import Identity
from remora_server.rpc.server import Server
from remora_server.rpc.transport.listeners import UnixListener
from remora_server.rpc.transport.transports import ServerOptions


@contextmanager
def serving_the_model(transport: str = "native") -> Iterator[str]:
    """The endpoint of a server over an empty model, without an embedder."""
    tokens = NativeTokenCounter()
    store = open_model(partial(tokens.count, O200K_BASE))
    with tempfile.TemporaryDirectory(prefix="remora-") as directory:
        server = Server(ServerOptions(transport=transport), Identity())
        (endpoint,) = server.bind([UnixListener(Path(directory) / "s")])
        receipts = ReceiptBook(store.receipts, days=30)
        receipts.start()
        handlers = application._handlers(store, NO_EMBEDDERS, tokens, receipts)
        server.start(handlers, NO_EMBEDDERS.dimension_of, Condition, store.publication)
        try:
            yield endpoint
        finally:
            server.stop(1.0)
            receipts.close()
