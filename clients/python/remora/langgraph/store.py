"""LangGraph's long-term memory in Remora: a store of JSON values under keys in namespaces."""

import asyncio
import concurrent.futures
import logging
import threading
import weakref
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Self, TypeAlias, cast

from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore, GetOp, IndexConfig, Op, Result, TTLConfig, ensure_embeddings
from langgraph.store.base.batch import AsyncBatchedBaseStore

from remora import AsyncRemora, Remora
from remora._status import closed_meanwhile
from remora.errors import InvalidFieldError, ModelUnreachableError, RemoraError
from remora.langgraph._embedding import Embedder
from remora.langgraph._operations import (
    Batch,
    Index,
    Vectors,
    check_ttl,
    check_user_label,
    joined,
    refuse_one_text,
    sweep_seconds,
)
from remora.langgraph._server import Done, fail, fail_closed, forget_ended, may_be_of_one, settled
from remora.v1 import store_service_pb2 as wire

SWEEP_MINUTES = 5.0
"""Between two sweeps, where nothing else is said."""

logger = logging.getLogger(__name__)

_Asked: TypeAlias = tuple[list[Op], "asyncio.Future[list[Result]]"]
"""Operations that are asked for together, and where their results go."""


class _Memory:
    """What both stores have: how they reach the server, and how they index and expire items."""

    supports_ttl = True

    def _configure(
        self,
        endpoint: str | None,
        index: IndexConfig | None,
        ttl: TTLConfig | None,
        *,
        user_label: int | None,
        token: str | None,
        tenant: str | None,
        timeout: float,
    ) -> None:
        check_ttl(ttl)
        check_user_label(user_label)
        self.index_config = index
        self.ttl_config = ttl
        self.embeddings: Embeddings | None = None
        self._index = Index(index) if index else None
        self._embedder: Embedder | None = None
        if self._index is not None and not self._index.is_server_side:
            self.embeddings = ensure_embeddings(cast("Any", index)["embed"])
            self._embedder = Embedder(self._index, self.embeddings)
        self._user_label = user_label
        self._reached = {"endpoint": endpoint, "token": token, "tenant": tenant, "timeout": timeout}

    def _batch(self, ops: Iterable[Op], callers: Sequence[int] = ()) -> Batch:
        omits_expired = (self.ttl_config or {}).get("omit_expired", False)
        return Batch.of(ops, self._index, self._user_label, sees_expired=not omits_expired, callers=callers)

    def _sweep_seconds(self, minutes: float | None) -> float:
        configured = sweep_seconds((self.ttl_config or {}).get("sweep_interval_minutes"))
        return sweep_seconds(minutes) or configured or 60 * SWEEP_MINUTES


class RemoraStore(_Memory, BaseStore):
    """Keeps LangGraph's items in Remora, for agents that run in threads and for those of asyncio.

    All operations of a `batch`, and all that coroutines ask for within one turn of their event loop, are one round
    trip; more than 3 MiB, or writes with a read whose `limit` is above 1,000, are several. A put returns when the item
    is on disk. Searches are exact, with and without vectors. What has expired is seen until it is swept; with
    `omit_expired` of the ttl, it is not.

    The items of a namespace whose label at `user_label` names a user are that user's: they are deleted with the user.

    Calls fail with LangGraph's errors where an operation is not valid, else with those of `remora.errors`.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        user_label: int | None = None,
        token: str | None = None,
        tenant: str | None = None,
        timeout: float = 10.0,
    ) -> None:
        """Does not connect yet.

        `endpoint` is `unix:/path` or `host:port`; if None, $REMORA_ENDPOINT, else the usual address of this machine.
        `index` says which texts are embedded, and by what: without `embed`, or with `"remora"`, by the server's own
        model. `token` authenticates; `tenant` names the tenant if the server requires no token. `timeout` is each
        call's deadline in seconds.
        """
        super().__init__()
        self._configure(endpoint, index, ttl, user_label=user_label, token=token, tenant=tenant, timeout=timeout)
        self._lock = threading.Lock()
        self._client: Remora | None = None
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Tick] = weakref.WeakKeyDictionary()
        self._sweeper: _Sweeper | None = None

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str | None = None,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        user_label: int | None = None,
        token: str | None = None,
        tenant: str | None = None,
        timeout: float = 10.0,
    ) -> Self:
        """A store that `with` or `async with` closes. The arguments are those of the constructor."""
        return cls(
            conn_string, index=index, ttl=ttl, user_label=user_label, token=token, tenant=tenant, timeout=timeout
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def setup(self) -> Done:
        """Does nothing, as the server needs no setup; it may be awaited."""
        return Done()

    def close(self) -> None:
        """Stops the sweeper, and closes the connection that threads use."""
        self.stop_ttl_sweeper()
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    async def aclose(self) -> None:
        """Closes the connection of the running event loop, and that of threads."""
        with self._lock:
            tick = self._loops.pop(asyncio.get_running_loop(), None)
        if tick is not None:
            await tick.client.close()
        await asyncio.to_thread(self.close)  # the sweeper may be within a call

    @property
    def _blocking(self) -> Remora:
        with self._lock:
            if self._client is None:
                self._client = Remora(**cast("Any", self._reached))
            return self._client

    @property
    def _concurrent(self) -> "_Tick":
        loop = asyncio.get_running_loop()
        with self._lock:
            tick = self._loops.get(loop)
            if tick is None:
                forget_ended(self._loops)
                tick = self._loops[loop] = _Tick(AsyncRemora(**cast("Any", self._reached)), self)
            return tick

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Runs operations: first the reads, then the writes, all or none."""
        batch = self._batch(ops)
        found: dict[int, Result] = {}
        for held, request in batch.requests(*self._vectors(batch)):
            response = self._execute(batch, held, request)
            found.update(batch.results(held, response))
            for rest in batch.rests(held, response):
                found[rest.index] = joined(found[rest.index], self._all(rest.op))
        return [found.get(at) for at in range(len(batch.ops))]

    def _all(self, op: Op) -> Result:
        """What one read finds, page after page."""
        found: Result = None
        rest: Op | None = op
        while rest is not None:
            batch = self._batch([rest])
            [(held, request)] = batch.requests(*self._vectors(batch))
            response = self._execute(batch, held, request)
            [(_, page)] = batch.results(held, response)
            found = joined(found, page)
            rest = next((each.op for each in batch.rests(held, response)), None)
        return found

    def _vectors(self, batch: Batch) -> tuple[Vectors, Vectors]:
        return self._embedder.of(batch) if self._embedder else ({}, {})

    def _execute(
        self, batch: Batch, held: Sequence[int], request: wire.ExecuteOperationsRequest
    ) -> wire.ExecuteOperationsResponse:
        calls = self._blocking._calls  # noqa: SLF001 - of this package
        request.min_revision = calls.revision.value
        send: Any = calls.write if _writes(request) else calls.read
        try:
            response: wire.ExecuteOperationsResponse = send(calls.stubs.store.ExecuteOperations, request)
        except InvalidFieldError as error:
            raise batch.told(error, held) from error.__cause__
        return response

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same, in one round trip with what else is asked for in this turn of the event loop."""
        given = list(ops)
        self._batch(given)  # what is not valid fails alone
        return await self._concurrent.run(given) if given else []

    def delete_namespace(self, namespace_prefix: tuple[str, ...]) -> None:
        """Deletes all items of the namespaces that begin with these labels."""
        refuse_one_text(namespace_prefix)
        calls = self._blocking._calls  # noqa: SLF001 - of this package
        request = wire.DeleteNamespacesRequest(namespace_prefix=namespace_prefix)
        calls.write(calls.stubs.store.DeleteNamespaces, request)

    async def adelete_namespace(self, namespace_prefix: tuple[str, ...]) -> None:
        """The same for an event loop."""
        await _delete_namespace(self._concurrent.client, namespace_prefix)

    def sweep_ttl(self) -> int:
        """Deletes what has expired, and says how many items that were. The server does so by itself, too."""
        calls = self._blocking._calls  # noqa: SLF001 - of this package
        return int(calls.write(calls.stubs.store.DeleteExpiredItems, wire.DeleteExpiredItemsRequest()).deleted_items)

    async def asweep_ttl(self) -> int:
        """The same for an event loop."""
        return await _sweep(self._concurrent.client)

    def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> concurrent.futures.Future[None]:
        """Sweeps in a thread, until it is stopped or the future is cancelled. Without a `ttl`, it does nothing."""
        if not self.ttl_config:
            nothing: concurrent.futures.Future[None] = concurrent.futures.Future()
            nothing.set_result(None)
            return nothing
        if self._sweeper is None or not self._sweeper.is_alive():
            self._sweeper = _Sweeper(self, self._sweep_seconds(sweep_interval_minutes))
            self._sweeper.start()
        return self._sweeper.future()

    def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:
        """Ends the thread that sweeps; False if it has not ended within so many seconds."""
        if self._sweeper is None:
            return True
        self._sweeper.stopping.set()
        self._sweeper.join(timeout)
        return not self._sweeper.is_alive()


class AsyncRemoraStore(_Memory, AsyncBatchedBaseStore):
    """The same for one event loop, as LangGraph's own asynchronous stores are.

    Threads may call its synchronous methods, the loop's own thread may not.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        user_label: int | None = None,
        token: str | None = None,
        tenant: str | None = None,
        timeout: float = 10.0,
    ) -> None:
        """The arguments are those of `RemoraStore`. Needs a running event loop, and does not connect yet."""
        super().__init__()
        self._configure(endpoint, index, ttl, user_label=user_label, token=token, tenant=tenant, timeout=timeout)
        self._client = AsyncRemora(**cast("Any", self._reached))
        self._timeout = timeout
        self._closing = False
        self._sweeping: asyncio.Task[None] | None = None

    @classmethod
    @asynccontextmanager
    async def from_conn_string(
        cls,
        conn_string: str | None = None,
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        user_label: int | None = None,
        token: str | None = None,
        tenant: str | None = None,
        timeout: float = 10.0,  # noqa: ASYNC109 - of every call
    ) -> AsyncIterator[Self]:
        """A store that is closed behind the `async with`. The arguments are those of the constructor."""
        async with cls(
            conn_string, index=index, ttl=ttl, user_label=user_label, token=token, tenant=tenant, timeout=timeout
        ) as store:
            yield store

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def setup(self) -> None:
        """Does nothing, as the server needs no setup."""

    async def aclose(self) -> None:
        """Stops the sweeper, and closes the connection: what is under way, or waits for its turn, fails."""
        await self.stop_ttl_sweeper()
        self._closing = True
        await self._client.close()
        if self._task is not None:
            await self._await_turn()
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _await_turn(self) -> None:
        """Waits until all that was asked for before was answered, but for no longer than a call may take."""
        self._ensure_task()
        last: asyncio.Future[None] = self._loop.create_future()
        self._aqueue.put_nowait((last, GetOp((), "")))
        await asyncio.wait([last], timeout=self._timeout)
        if last.done():
            last.exception()  # that of those before it, which they are told

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Runs operations in one round trip: first the reads, then the writes, all or none."""
        try:
            return await _run(self._client, self, ops)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._closing and task is not None and not task.cancelling():
                raise closed_meanwhile() from None
            raise

    async def adelete_namespace(self, namespace_prefix: tuple[str, ...]) -> None:
        """Deletes all items of the namespaces that begin with these labels."""
        await _delete_namespace(self._client, namespace_prefix)

    async def sweep_ttl(self) -> int:
        """Deletes what has expired, and says how many items that were. The server does so by itself, too."""
        return await _sweep(self._client)

    async def start_ttl_sweeper(self, sweep_interval_minutes: float | None = None) -> asyncio.Task[None]:
        """Sweeps in a task, until it is stopped or cancelled. Without a `ttl`, it does nothing."""
        if self._sweeping is None or self._sweeping.done():
            seconds = self._sweep_seconds(sweep_interval_minutes) if self.ttl_config else None
            self._sweeping = asyncio.create_task(self._sweep_always(seconds))
        return self._sweeping

    async def _sweep_always(self, seconds: float | None) -> None:
        while seconds is not None:
            await asyncio.sleep(seconds)
            try:
                await self.sweep_ttl()
            except RemoraError:
                logger.exception("expired items were not swept")

    async def stop_ttl_sweeper(self, timeout: float | None = None) -> bool:  # noqa: ASYNC109 - LangGraph's
        """Ends the task that sweeps; False if it has not ended within so many seconds."""
        if self._sweeping is None:
            return True
        self._sweeping.cancel()
        done, _ = await asyncio.wait([self._sweeping], timeout=timeout)
        return bool(done)


class _Tick:
    """The operations that arrive within one turn of an event loop: they are sent together."""

    def __init__(self, client: AsyncRemora, store: RemoraStore) -> None:
        self.client = client
        self._store = weakref.ref(store)
        self._waiting: list[_Asked] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self, ops: list[Op]) -> list[Result]:
        """The results of some operations."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[Result]] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._send)
        self._waiting.append((ops, answer))
        return await answer

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, []
        task = asyncio.get_running_loop().create_task(self._answer(waiting))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: fail_closed(answer for _, answer in waiting))

    async def _answer(self, waiting: Sequence[_Asked], vectors: tuple[Vectors, Vectors] | None = None) -> None:
        ops = [op for ops, _ in waiting for op in ops]
        callers = [number for number, (ops, _) in enumerate(waiting) for _ in ops]
        try:
            made = vectors or await self._vectors(ops)
        except Exception as error:  # noqa: BLE001 - whoever asked is told
            await self._embed_each(waiting, error)
            return
        try:
            results = await self._results(ops, made, callers)
        except ModelUnreachableError as error:
            await self._answer_without_model(waiting, error)
            return
        except Exception as error:  # noqa: BLE001 - whoever asked is told
            await self._answer_each(waiting, error)
            return
        begin = 0
        for ops, answer in waiting:
            if not answer.done():
                answer.set_result(results[begin : begin + len(ops)])
            begin += len(ops)

    async def _answer_each(self, waiting: Sequence[_Asked], error: Exception) -> None:
        """One of them may be to blame: the others need not fail with it."""
        if len(waiting) > 1 and may_be_of_one(error):
            for each in waiting:
                await self._answer([each])
        else:
            fail(error, (answer for _, answer in waiting))

    async def _answer_without_model(self, waiting: Sequence[_Asked], error: ModelUnreachableError) -> None:
        """The server's model is away, for all that need it: each would only wait as long again. The others do not."""
        index = self._found()._index  # noqa: SLF001 - of this module
        others = [(ops, answer) for ops, answer in waiting if index and not any(map(index.embeds, ops))]
        if len(others) == len(waiting):
            fail(error, (answer for _, answer in others))
            return
        left = {answer for _, answer in others}
        fail(error, (answer for _, answer in waiting if answer not in left))
        if others:
            await self._answer(others)

    async def _embed_each(self, waiting: Sequence[_Asked], error: Exception) -> None:
        """One text may be to blame, or the index's own model is away: each is tried by itself, all at the same time."""
        if len(waiting) == 1:
            fail(error, [waiting[0][1]])
            return
        made = await asyncio.gather(*(self._vectors(ops) for ops, _ in waiting), return_exceptions=True)
        for each, vectors in zip(waiting, made, strict=True):
            if isinstance(vectors, BaseException):
                fail(vectors if isinstance(vectors, Exception) else error, [each[1]])
            else:
                await self._answer([each], vectors)

    async def _results(self, ops: list[Op], vectors: tuple[Vectors, Vectors], callers: Sequence[int]) -> list[Result]:
        return await settled(_run(self.client, self._found(), ops, vectors, callers))

    async def _vectors(self, ops: list[Op]) -> tuple[Vectors, Vectors]:
        store = self._found()
        return await _vectors(store, store._batch(ops))  # noqa: SLF001 - of this module

    def _found(self) -> RemoraStore:
        store = self._store()
        if store is None:
            raise RuntimeError("the store is gone")
        return store


async def _run(
    client: AsyncRemora,
    store: _Memory,
    ops: Iterable[Op],
    vectors: tuple[Vectors, Vectors] | None = None,
    callers: Sequence[int] = (),
) -> list[Result]:
    batch = store._batch(ops, callers)  # noqa: SLF001 - of this module
    found: dict[int, Result] = {}
    for held, request in batch.requests(*(vectors or await _vectors(store, batch))):
        response = await _execute(client, batch, held, request)
        found.update(batch.results(held, response))
        for rest in batch.rests(held, response):
            found[rest.index] = joined(found[rest.index], await _all(client, store, rest.op))
    return [found.get(at) for at in range(len(batch.ops))]


async def _all(client: AsyncRemora, store: _Memory, op: Op) -> Result:
    """What one read finds, page after page."""
    found: Result = None
    rest: Op | None = op
    while rest is not None:
        batch = store._batch([rest])  # noqa: SLF001 - of this module
        [(held, request)] = batch.requests(*await _vectors(store, batch))
        response = await _execute(client, batch, held, request)
        [(_, page)] = batch.results(held, response)
        found = joined(found, page)
        rest = next((each.op for each in batch.rests(held, response)), None)
    return found


async def _vectors(store: _Memory, batch: Batch) -> tuple[Vectors, Vectors]:
    embedder = store._embedder  # noqa: SLF001 - of this module
    return await embedder.aof(batch) if embedder else ({}, {})


async def _execute(
    client: AsyncRemora, batch: Batch, held: Sequence[int], request: wire.ExecuteOperationsRequest
) -> wire.ExecuteOperationsResponse:
    calls = client._calls  # noqa: SLF001 - of this package
    request.min_revision = calls.revision.value
    send: Any = calls.write if _writes(request) else calls.read
    try:
        response: wire.ExecuteOperationsResponse = await send(calls.stubs.store.ExecuteOperations, request)
    except InvalidFieldError as error:
        raise batch.told(error, held) from error.__cause__
    return response


async def _delete_namespace(client: AsyncRemora, namespace_prefix: tuple[str, ...]) -> None:
    refuse_one_text(namespace_prefix)
    calls = client._calls  # noqa: SLF001 - of this package
    request = wire.DeleteNamespacesRequest(namespace_prefix=namespace_prefix)
    await calls.write(cast("Any", calls.stubs.store.DeleteNamespaces), request)


async def _sweep(client: AsyncRemora) -> int:
    calls = client._calls  # noqa: SLF001 - of this package
    method = cast("Any", calls.stubs.store.DeleteExpiredItems)
    response: Any = await calls.write(method, wire.DeleteExpiredItemsRequest())
    return int(response.deleted_items)


def _writes(request: wire.ExecuteOperationsRequest) -> bool:
    return any(each.WhichOneof("kind") in ("put", "delete") for each in request.operations)


class _Sweeper(threading.Thread):
    """Sweeps now and then, until it is stopped or nobody has the store any more."""

    def __init__(self, store: RemoraStore, seconds: float) -> None:
        super().__init__(daemon=True, name="ttl-sweeper")
        self.stopping = threading.Event()
        self._ended: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._store = weakref.ref(store)
        self._seconds = seconds

    def future(self) -> concurrent.futures.Future[None]:
        """Done when the thread ends; cancelled, it ends the thread."""
        self._ended.add_done_callback(lambda _: self.stopping.set())
        return self._ended

    def run(self) -> None:
        while not self.stopping.wait(self._seconds):
            store = self._store()
            if store is None:
                break
            try:
                store.sweep_ttl()
            except RemoraError:
                logger.exception("expired items were not swept")
            del store
        if not self._ended.cancelled():
            self._ended.set_result(None)
