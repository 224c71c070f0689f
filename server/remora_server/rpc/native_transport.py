"""The transport of the Rust module: one thread carries all calls and answers quick ones, others answer the rest."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from google.protobuf.message import DecodeError
from google.rpc.status_pb2 import Status
from grpc_reflection.v1alpha import reflection_pb2
from msgspec import Struct

from remora_server import _native
from remora_server.domain.errors import DeadlineExceeded, InvalidField, Overloaded, RemoraError, StoreFailed
from remora_server.domain.publication import Publication
from remora_server.rpc.calls import NO_TIME, Call, traceparent
from remora_server.rpc.errors import logged_status, to_status
from remora_server.rpc.health import REFLECTION, Reflection
from remora_server.rpc.identity import AUTHORIZATION, TENANT, Caller, Identity
from remora_server.rpc.methods import Method
from remora_server.rpc.transports import ServerOptions

Failure: TypeAlias = tuple[int, str, bytes]
"""A code, a message and the encoded status with the details."""
Answers: TypeAlias = "Callable[[bytes, Caller, float | None, str], tuple[bytes, int] | Failure | None]"

NOWHERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""What an address fails with whose kind this machine does not have."""

logger = logging.getLogger(__name__)


class NativeTransport:
    """Answers through the Rust module's transport.

    With a publication, a write is answered when its revision is published, and no thread waits for that.
    """

    def __init__(self, options: ServerOptions, identity: Identity) -> None:
        self._identity = identity
        self._threads = options.threads
        self._sockets: list[_SocketFile] = []
        self._running: list[threading.Thread] = []
        self._native = _native.Transport(
            room=options.threads + options.waiting,
            connections=options.connections,
            receive_limit_bytes=options.receive_limit_bytes,
            default_timeout=options.default_timeout,
        )

    def bind_unix(self, path: str) -> None:
        self._native.bind_unix(path)
        self._sockets.append(_SocketFile.at(path))

    def bind_tcp(self, host: str, port: int) -> int:
        """Take the port of every address of the host that this machine has."""
        taken, missing = False, OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
        for address in _addresses(host):
            try:
                port = self._native.bind_tcp(address, port)
            except OSError as error:
                if error.errno not in NOWHERE:
                    raise
                missing = error
            else:
                taken = True
        if not taken:
            raise missing
        return port

    def say(self, service: str, serving: bool) -> None:
        self._native.set_health(service, serving)

    def start(self, methods: Sequence[Method], reflection: Reflection, publication: Publication | None) -> None:
        reflected = (f"/{REFLECTION.full_name}/ServerReflectionInfo", "each", partial(_reflect, reflection))
        self._native.start(
            methods=[*(_Served(method, publication is None).listed() for method in methods), reflected],
            identify=partial(_identify, self._identity),
            report=logger.error,
            overloaded=_failure(to_status(Overloaded())),
            deadline_exceeded=_failure(to_status(DeadlineExceeded())),
            not_published=_failure(to_status(StoreFailed())),
            publication=publication,
        )
        self._run("transport", self._native.run)
        for number in range(self._threads):
            self._run(f"worker-{number}", self._native.work)

    def _run(self, name: str, work: Callable[[], None]) -> None:
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._running.append(thread)
        thread.start()

    def stop(self, grace: float) -> None:
        if self._running:
            self._native.stop(grace)
        for thread in self._running:
            thread.join()
        self._native.close()
        for file in self._sockets:
            file.remove()


class _SocketFile(Struct, frozen=True):
    """The file of a Unix socket, told from another that took its place."""

    path: Path
    inode: int

    @classmethod
    def at(cls, path: str) -> _SocketFile:
        return cls(Path(path), Path(path).stat().st_ino)

    def remove(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            if self.path.stat().st_ino == self.inode:
                self.path.unlink()


def _addresses(host: str) -> list[str]:
    """The addresses of a host, each once. Raises OSError."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _identify(identity: Identity, authorization: str, tenant: str) -> Caller | Failure:
    """The caller of a call, or why it is refused."""
    try:
        return identity.caller(((AUTHORIZATION, authorization), (TENANT, tenant)))
    except RemoraError as error:
        return _failure(to_status(error))


class _Served(Struct, frozen=True):
    """A method as the Rust module calls it."""

    method: Method
    waits_for_disk: bool

    def listed(self) -> tuple[str, str, Answers]:
        """Its path, how its calls are answered, and itself."""
        return self.method.path, "quick" if self.method.is_quick else "pool", self

    def __call__(
        self, encoded: bytes, caller: Caller, timeout: float | None, trace: str
    ) -> tuple[bytes, int] | Failure | None:
        """The reply and the revision that it waits for, why there is none, or None where no time is not enough."""
        deadline = NO_TIME if timeout is None else time.monotonic() + timeout
        call = Call(
            method=self.method.name,
            tenant_id=caller.tenant_id,
            deadline=deadline,
            traceparent=traceparent(trace),
            is_operator=caller.is_operator,
            waits_for_disk=self.waits_for_disk,
        )
        try:
            return self.method.answer(call, encoded)
        except DeadlineExceeded as error:
            return None if timeout is None else _failure(to_status(error))
        except Exception as error:  # noqa: BLE001 - the one place of this transport where any failure becomes a status
            return _failure(logged_status(error, self.method.name))


def _reflect(
    reflection: Reflection, encoded: bytes, _caller: Caller, _timeout: float | None, _trace: str
) -> tuple[bytes, int] | Failure:
    try:
        request = reflection_pb2.ServerReflectionRequest.FromString(encoded)
    except DecodeError:
        return _failure(to_status(InvalidField("request", "cannot be decoded as a ServerReflectionRequest")))
    return reflection.answer(request).SerializeToString(), 0


def _failure(status: Status) -> Failure:
    return status.code, status.message, status.SerializeToString()
