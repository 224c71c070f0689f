"""A server that ceases to answer, or to be asked: a relay before it passes on so many bytes, and then nothing."""

from __future__ import annotations

import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingUnixStreamServer

READ_BYTES = 1 << 12
NO_BOUND = 1 << 62


class _Relay(ThreadingUnixStreamServer):
    """Passes on what callers of a path say to a server, and what it says: so many bytes of each connection."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, path: str, target: str, *, asked: int, answered: int) -> None:
        self.target, self.asked, self.answered = target, asked, answered
        self.ended = threading.Event()
        super().__init__(path, _Connection)


class _Connection(BaseRequestHandler):
    server: _Relay

    def handle(self) -> None:
        with socket.socket(socket.AF_UNIX) as target:
            target.connect(self.server.target)
            threading.Thread(target=_pass_on, args=(self.request, target, self.server.asked), daemon=True).start()
            _pass_on(target, self.request, self.server.answered)
            self.server.ended.wait()


def _pass_on(source: socket.socket, sink: socket.socket, count: int) -> None:
    with suppress(OSError):  # one of the two is gone
        while count and (part := source.recv(min(count, READ_BYTES))):
            sink.sendall(part)
            count -= len(part)


@contextmanager
def stalling(endpoint: str, *, asked: int = NO_BOUND, answered: int = NO_BOUND) -> Iterator[str]:
    """Where the server of a Unix socket is asked, and answers, so many bytes of each connection, and no further."""
    with tempfile.TemporaryDirectory(prefix="remora-") as directory:
        path = str(Path(directory) / "relay")
        with _Relay(path, endpoint.removeprefix("unix:"), asked=asked, answered=answered) as relay:
            serving = threading.Thread(target=relay.serve_forever, args=(0.05,))
            serving.start()
            try:
                yield f"unix:{path}"
            finally:
                relay.ended.set()
                relay.shutdown()
                serving.join()
