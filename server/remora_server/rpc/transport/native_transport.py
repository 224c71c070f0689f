"""The transport of the Rust module: one thread carries all calls and answers quick ones, others answer the rest."""

from __future__ import annotations

import contextlib
import errno
import logging
import math
import os
import socket
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import TypeAlias

from google.rpc.status_pb2 import Status
from msgspec import Struct

from remora_server import _native, failpoints
from remora_server.domain.errors import (
    CallMalformed,
    CompressionUnknown,
    DeadlineExceeded,
    MessageTooLarge,
    MethodUnknown,
    Overloaded,
    PeerOverloaded,
    ServerStopping,
    SlowReader,
    StoreFailed,
)
from remora_server.domain.publication import Publication
from remora_server.rpc.calls import NO_TIME, Call, traceparent
from remora_server.rpc.errors import logged_status, to_status
from remora_server.rpc.identity import AUTHORIZATION, TENANT, Caller, Identity
from remora_server.rpc.methods import Method
from remora_server.rpc.reflection import REFLECTION_PATHS, Reflection
from remora_server.rpc.streams import Subscription
from remora_server.rpc.transport.tls import Tls
from remora_server.rpc.transport.transports import MethodCalls, ServerOptions
from remora_server.supervision import LongLived

Failure: TypeAlias = tuple[int, str, bytes]
"""A code, a message and the encoded status with the details."""
Answers: TypeAlias = "Callable[[bytes, Caller, float | None, str], object]"
"""Called by the Rust module: see `_native.Transport.start`. They raise nothing, because nobody would see it."""

Pages: TypeAlias = "Callable[[str], tuple[int, str, bytes] | None]"
"""Makes the page of a path: its status, content type and body; None if there is none."""

BOUNDS = (*_native.Transport.bounds(), math.inf)
"""The bounds of the histogram of durations, in seconds."""

NOWHERE = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
"""The errors for a kind of address that this machine does not support."""

logger = logging.getLogger(__name__)


class NativeTransport:
    """Answers through the Rust module's transport.

    With a publication, a write is answered when its revision is published, and no thread waits for that.
    """

    def __init__(
        self, options: ServerOptions, identity: Identity, tls: Tls | None = None, *, threads_named: str = ""
    ) -> None:
        """With `tls`, TCP ports use TLS. `threads_named` is the prefix of its threads' names."""
        self._tls = tls
        self._identity = identity
        self._threads_named = threads_named
        self._threads = options.threads
        self._options = options
        self._sockets: list[_SocketFile] = []
        self._serving: LongLived | None = None
        self._workers: list[LongLived] = []
        self._native = _native.Transport(
            room=options.threads + options.waiting,
            connections=options.connections,
            peer_connections=options.peer_connections,
            receive_limit_bytes=options.receive_limit_bytes,
            default_timeout=options.default_timeout,
            request_bytes=options.passing_bytes,
            reply_bytes=options.passing_bytes,
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

    def start(
        self,
        methods: Sequence[Method],
        reflection: Reflection,
        publication: Publication | None,
        pages: Pages | None = None,
    ) -> None:
        """See `Transport`. With pages, they are served over HTTP/1.1 on the TCP ports as well."""
        reflected = [(path, "each", partial(_reflect, reflection)) for path in REFLECTION_PATHS]
        self._native.start(
            methods=[*(self._listed(method, waits_for_disk=publication is None) for method in methods), *reflected],
            identify=partial(_identify, self._identity),
            report=logger.error,
            refusals={name: _failure(to_status(error)) for name, error in self._refusals().items()},
            publication=publication,
            connected=_log_peer if logger.isEnabledFor(logging.DEBUG) else None,
            pages=pages,
            tls=self._tls,
            larger=dict(self._larger(methods)),
        )
        named = self._threads_named
        self._serving = LongLived(f"{named}transport", self._serve)
        self._workers = [LongLived(f"{named}worker-{number}", self._work) for number in range(self._threads)]
        for thread in (self._serving, *self._workers):
            thread.start()

    def _refusals(self) -> dict[str, Exception]:
        """The RPCs that the Rust module answers by itself."""
        return {
            "overloaded": Overloaded(),
            "peer_overloaded": PeerOverloaded(),
            "deadline_exceeded": DeadlineExceeded(),
            "not_published": StoreFailed(),
            "internal": RuntimeError(),
            "stopping": ServerStopping(),
            "slow_reader": SlowReader(),
            "malformed": CallMalformed(),
            "too_large": MessageTooLarge(self._options.receive_limit_bytes),
            "unknown_compression": CompressionUnknown(),
            "unknown_method": MethodUnknown(),
        }

    def _larger(self, methods: Iterable[Method]) -> Iterator[tuple[str, tuple[int, Failure]]]:
        """The methods that receive more than others: their paths, how much, and the answer to what is longer."""
        for method in methods:
            longest = self._options.longest(method)
            if longest > self._options.receive_limit_bytes:
                yield method.path, (longest, _failure(to_status(MessageTooLarge(longest))))

    def _listed(self, method: Method, *, waits_for_disk: bool) -> tuple[str, str, Answers]:
        """A method's path, how its calls are answered, and by what."""
        if method.streams:
            return method.path, "stream", _Streamed(method, self._native.subscription)
        return method.path, "quick" if method.is_quick else "pool", _Served(method, waits_for_disk)

    def _serve(self) -> None:
        failpoints.hit("transport_run")
        self._native.run()

    def _work(self) -> None:
        failpoints.hit("worker_run")
        self._native.work()

    def calls(self) -> list[MethodCalls]:
        return [
            MethodCalls(
                path,
                ended={code: count for code, count in enumerate(ended) if count},
                within=list(zip(BOUNDS, accumulate(buckets), strict=True)),
                seconds=seconds,
                under_way=under_way,
                waiting=waiting,
            )
            for path, ended, buckets, seconds, under_way, waiting in self._native.calls()
        ]

    def failure(self) -> str:
        threads = [self._serving, *self._workers]
        return next((thread.failure for thread in threads if thread is not None and thread.failure), "")

    def forget_callers(self) -> None:
        self._native.forget_callers()

    def stop(self, grace: float) -> None:
        if self._serving is not None:
            for thread in (self._serving, *self._workers):
                thread.end()
            self._native.stop(grace)
            self._serving.join()
        self._native.close()
        for worker in self._workers:
            worker.join()
        for file in self._sockets:
            file.remove()


class _SocketFile(Struct, frozen=True):
    """The file of a Unix socket, distinguished from one that replaced it."""

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


def _log_peer(user: int, group: int, process: int) -> None:
    names = {"peer_uid": user, "peer_gid": group, "peer_pid": process}
    logger.debug("connected over a Unix socket", extra=names)


def _identify(identity: Identity, authorization: str, tenant: str, names: Sequence[str] | None) -> Caller | Failure:
    """The caller of a call, or why it is refused."""
    try:
        return identity.caller(((AUTHORIZATION, authorization), (TENANT, tenant)), names)
    except BaseException as error:  # noqa: BLE001 - see Answers
        return _failure(logged_status(error, "identify"))


class _Served(Struct, frozen=True):
    """A method as the Rust module calls it."""

    method: Method
    waits_for_disk: bool

    def __call__(
        self, encoded: bytes, caller: Caller, timeout: float | None, trace: str
    ) -> tuple[bytes, int] | Failure | None:
        """The reply and the revision that it waits for, a status, or None if the handler would have to wait."""
        call = _call(self.method, caller, timeout, trace, waits_for_disk=self.waits_for_disk)
        try:
            return self.method.answer(call, encoded)
        except DeadlineExceeded as error:
            return None if timeout is None else _failure(to_status(error))
        except BaseException as error:  # noqa: BLE001 - see Answers
            return _failure(logged_status(error, self.method.name))


class _Streamed(Struct, frozen=True):
    """A method that streams as the Rust module calls it."""

    method: Method
    subscription: Callable[[], _native.Subscription]

    def __call__(
        self, encoded: bytes, caller: Caller, timeout: float | None, trace: str
    ) -> tuple[_Pulled | _Pushed, _native.Subscription | None] | Failure:
        """The source of the messages and, for pushed ones, their sink; or the status if there are none."""
        try:
            stream = self.method.open(_call(self.method, caller, timeout, trace, waits_for_disk=True), encoded)
            if not isinstance(stream, Subscription):
                return _Pulled(stream, self.method.name), None
            source = _Pushed(stream, self.method.name)
            return source, self._pushed(source)
        except BaseException as error:  # noqa: BLE001 - see Answers
            return _failure(logged_status(error, self.method.name))

    def _pushed(self, source: _Pushed) -> _native.Subscription:
        """Connect the source with the sink. If that fails, the source is closed."""
        try:
            pushed = self.subscription()
            source.subscription.attach(_Sink(pushed, self.method.name))
        except BaseException:
            source.close()
            raise
        return pushed


class _Pulled(Struct, frozen=True):
    """A stream whose messages are asked for."""

    messages: Generator[bytes, None, None]
    method: str

    def next(self) -> bytes | Failure | None:
        """The next message; None at the end."""
        try:
            failpoints.hit("stream_pulled")
            return next(self.messages, None)
        except BaseException as error:  # noqa: BLE001 - see Answers
            return _failure(logged_status(error, self.method))

    def close(self) -> None:
        _finish(self.messages.close, self.method)


class _Pushed(Struct, frozen=True):
    """A stream whose messages are pushed."""

    subscription: Subscription
    method: str

    def close(self) -> None:
        _finish(self.subscription.ended, self.method)


class _Sink(Struct, frozen=True):
    """`rpc.streams.Sink` of the Rust module."""

    pushed: _native.Subscription
    method: str

    def push(self, message: bytes) -> bool:
        return self.pushed.push(message)

    def close(self, failure: Exception | None) -> None:
        self.pushed.close(None if failure is None else _failure(logged_status(failure, self.method)))


def _finish(close: Callable[[], None], method: str) -> None:
    try:
        close()
    except BaseException:
        logger.exception("a stream cannot be closed", extra={"method": method})


def _call(method: Method, caller: Caller, timeout: float | None, trace: str, *, waits_for_disk: bool) -> Call:
    return Call(
        method=method.name,
        tenant_id=caller.tenant_id,
        deadline=NO_TIME if timeout is None else time.monotonic() + timeout,
        traceparent=traceparent(trace),
        is_operator=caller.is_operator,
        waits_for_disk=waits_for_disk,
    )


def _reflect(
    reflection: Reflection, encoded: bytes, _caller: Caller, _timeout: float | None, _trace: str
) -> tuple[bytes, int] | Failure:
    try:
        return reflection.answer(encoded), 0
    except BaseException as error:  # noqa: BLE001 - see Answers
        return _failure(logged_status(error, "reflect"))


def _failure(status: Status) -> Failure:
    return status.code, status.message, status.SerializeToString()
