"""How a client calls: the channel, deadlines, retries, request ids and the revision that reads must see."""
# ruff: noqa: ASYNC109 - the deadline is sent to the server, which gives up at it, too

import itertools
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn, Protocol, TypeVar, cast

import grpc

from remora import _forks
from remora._async.stubs import AsyncStubs
from remora._backends import asynchronous as backend
from remora._bounds import OF_CLIENT, Timeout
from remora._identified import identified
from remora._local_server import LocalServer
from remora._retry import pause_before_retry
from remora._revision import LatestRevision
from remora._status import closed_meanwhile, to_exception, was_sent
from remora.address import require_own_default
from remora.errors import (
    ClientClosedError,
    ConnectionFailedError,
    DeadlineExceededError,
    FailedCall,
    GrpcError,
    ModelUnreachableError,
    RemoraError,
    RevisionUnknownError,
)
from remora.tls import Tls, channel_options, require_tcp
from remora.v1.calls_pb2 import Origin

OPTIONS: tuple[tuple[str, str | int], ...] = (
    ("grpc.default_authority", "localhost"),  # over a Unix socket the default is the escaped path
    ("grpc.use_local_subchannel_pool", 1),  # a forked child would find its parent's connection in the shared one
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),  # a server may be set to take larger messages
)

LARGEST_PAGE = 1000
LONGEST_SECONDS = 1e9
"""gRPC takes a deadline of some centuries for one that has passed."""


def page_size(limit: int | None) -> int:
    """The size of the pages of which at most `limit` items are taken."""
    return LARGEST_PAGE if limit is None else min(limit, LARGEST_PAGE)


class Read(Protocol):
    """A request that can wait for a revision."""

    min_revision: int


class Write(Protocol):
    """A request that can be made idempotent."""

    request_id: str

    @property
    def origin(self) -> Origin:
        """Who made it."""


EMBEDDING_SECONDS = 0.03
"""What a write may take longer for each text that the server embeds: several times what the built-in model needs."""


class Written(Protocol):
    """The reply to a write."""

    revision: int


class List(Read, Protocol):
    """A request for one page."""

    page_token: str


class Page(Protocol):
    """One page."""

    next_page_token: str


Request = TypeVar("Request")
Response = TypeVar("Response")
ReadRequest = TypeVar("ReadRequest", bound=Read)
WriteRequest = TypeVar("WriteRequest", bound=Write)
WriteResponse = TypeVar("WriteResponse", bound=Written)
ListRequest = TypeVar("ListRequest", bound=List)
ListResponse = TypeVar("ListResponse", bound=Page)
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class _Connection:
    channel: backend.Channel
    stubs: AsyncStubs
    owner: object


class AsyncCalls:
    """The calls of one client, over a channel that is opened by the first call and again after a fork."""

    def __init__(
        self,
        endpoint: str,
        *,
        tls: Tls | None,
        metadata: Sequence[tuple[str, str]],
        origin: Origin,
        default_timeout: float,
    ) -> None:
        require_tcp(endpoint, tls)
        self.endpoint = endpoint
        self._tls = tls
        self.revision = LatestRevision()
        self.metadata = metadata
        """What every call of a connection that is made from now on sends."""
        self._origin = origin
        self._default_timeout = default_timeout
        self.server: LocalServer | None = None
        """The server that was started for these calls: it stays as long as they are made."""
        self._connection: _Connection | None = None
        self._closed = False
        _forks.track(self)

    def __reduce__(self) -> NoReturn:
        """Raises TypeError: the connection belongs to this process."""
        raise TypeError("a client can be neither pickled nor copied: make another where it is needed")

    @property
    def stubs(self) -> AsyncStubs:
        """The stubs over this process's channel.

        Raises ClientClosedError once the client is closed, PermissionError if the default socket's directory is another
        user's.
        """
        if self._closed:
            raise ClientClosedError(
                "the client is closed; make another", code=grpc.StatusCode.FAILED_PRECONDITION, reason="CLIENT_CLOSED"
            )
        connection = self._connection
        if connection is None or connection.owner is not backend.owner():
            connection = self._connection = self._connect()
        return connection.stubs

    def _connect(self) -> _Connection:
        require_own_default(self.endpoint)
        credentials = None if self._tls is None else self._tls.credentials()
        channel = backend.open_channel(self.endpoint, channel_options(OPTIONS, self._tls), credentials)
        return _Connection(channel, AsyncStubs(identified(channel, tuple(self.metadata))), backend.owner())

    def prepare_fork(self) -> None:
        """Closes a channel that the child cannot use, unless a call is in progress on it."""
        connection = self._connection
        if connection is not None and backend.closes_before_fork(connection.owner):
            self._connection = None

    def reset_after_fork(self) -> None:
        """Leaves the parent's channel alone; the next call opens one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            backend.inherit(connection.channel)

    async def close(self) -> None:
        """Closes the channel and cancels calls in progress. Closing again does nothing."""
        self._closed = True
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.channel.close()

    async def read(
        self, method: backend.Method[ReadRequest, Response], request: ReadRequest, timeout: Timeout = OF_CLIENT
    ) -> Response:
        """The reply, which shows at least what this client has written."""
        request.min_revision = request.min_revision or self.revision.value
        return await self.call(method, request, timeout)

    async def write(
        self,
        method: backend.Method[WriteRequest, WriteResponse],
        request: WriteRequest,
        timeout: Timeout = OF_CLIENT,
        request_id: str | None = None,
    ) -> WriteResponse:
        """The reply; the request takes effect once, however often it is sent with its request id."""
        request.request_id = request_id or uuid.uuid4().hex
        request.origin.CopyFrom(self._origin)
        try:
            response = await self.call(method, request, timeout)
        except RemoraError as failure:
            failure.request_id = request.request_id
            raise
        self.revision.advance(response.revision)
        return response

    async def collect(
        self,
        method: backend.Method[ListRequest, ListResponse],
        request: ListRequest,
        items: Callable[[ListResponse], Sequence[Item]],
        *,
        limit: int | None,
        timeout: Timeout = OF_CLIENT,
    ) -> list[Sequence[Item]]:
        """Pages until there are `limit` items or no more. Each page has the timeout."""
        pages: list[Sequence[Item]] = []
        while True:
            response = await self.read(method, request, timeout)
            pages.append(items(response))
            if not response.next_page_token or (limit is not None and sum(map(len, pages)) >= limit):
                return pages
            request.page_token = response.next_page_token

    async def items(
        self,
        method: backend.Method[ListRequest, ListResponse],
        request: ListRequest,
        items: Callable[[ListResponse], Sequence[Item]],
        *,
        limit: int | None,
        timeout: Timeout = OF_CLIENT,
    ) -> list[Item]:
        """The first `limit` items of a list (None: all). Each page has the timeout."""
        pages = await self.collect(method, request, items, limit=limit, timeout=timeout)
        return list(itertools.chain.from_iterable(pages))[:limit]

    def time_to_embed(self, count: int, timeout: Timeout) -> Timeout:
        """The timeout of a write of so many texts, which the server embeds before it answers.

        It is the client's, and more for each text but the first. One that is given stays.
        """
        if timeout is not OF_CLIENT or count < 2:
            return timeout
        return self._default_timeout + (count - 1) * EMBEDDING_SECONDS

    async def call(
        self, method: backend.Method[Request, Response], request: Request, timeout: Timeout = OF_CLIENT
    ) -> Response:
        """The reply to an idempotent request, retried within the deadline while the failure may pass."""
        allowed = self._default_timeout if timeout is OF_CLIENT else timeout
        began = time.monotonic()
        deadline = began + allowed
        previous: RemoraError | None = None
        sent = False
        attempt = 0
        while True:
            try:
                return await method(request, timeout=min(deadline - time.monotonic(), LONGEST_SECONDS))
            except backend.ENDED:
                if self._closed and not backend.is_cancelled():
                    raise closed_meanwhile() from None
                raise
            except grpc.RpcError as error:
                sent = sent or was_sent(error)
                failure = self._failure(error, previous, allowed)
                now = time.monotonic()
                pause = pause_before_retry(failure, attempt, now - began, deadline - now)
                if pause is None:
                    if isinstance(failure, RevisionUnknownError):
                        self.revision.forget()
                    failure.sent = sent
                    raise failure from GrpcError(cast("FailedCall", error))
            previous, attempt = failure, attempt + 1
            await backend.sleep(pause)

    def _failure(self, error: grpc.RpcError, previous: RemoraError | None, allowed: float) -> RemoraError:
        if self._closed and cast("FailedCall", error).code() is grpc.StatusCode.CANCELLED:
            return closed_meanwhile()
        failure = to_exception(error, self.endpoint, allowed, tls=self._tls is not None)
        passing = (ConnectionFailedError, ModelUnreachableError)
        if isinstance(failure, DeadlineExceededError) and isinstance(previous, passing):
            return previous  # the deadline passed during a reconnect, or a retry of the model
        if isinstance(failure, ConnectionFailedError) and not failure.tls_fault and previous and _is_of_tls(previous):
            return previous  # a name has several addresses, and gRPC tells of the one that it tried last
        return failure


def _is_of_tls(failure: RemoraError) -> bool:
    return isinstance(failure, ConnectionFailedError) and failure.tls_fault is not None
