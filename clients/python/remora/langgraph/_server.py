"""The calls of a saver: a client for threads that block, and one for each event loop, which sends at once what arrives
within one turn of the loop.
"""

import asyncio
import threading
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from remora import AsyncRemora, Remora
from remora._checkpoint_calls import LONG_WORK, Blocking, name_of, new_id
from remora._requests import REQUEST_BYTES
from remora._saved_checkpoints import MOST_AT_ONCE, Missing, Saved, in_requests, in_turns, missing_in_turns, omitted
from remora._status import closed_meanwhile
from remora.errors import DeadlineExceededError, RemoraError, UnavailableError
from remora.v1 import checkpoint_service_pb2 as wire

_SETTLING = 0.05
"""Seconds in which gRPC tells a loop that ends how the calls ended that were cancelled with it."""

T = TypeVar("T")
R = TypeVar("R")


class Done:
    """What is done already, and may be awaited."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield


@dataclass(frozen=True, slots=True)
class Options:
    """How a saver reaches its server."""

    endpoint: str | None
    token: str | None
    tenant: str | None
    timeout: float


class Server:
    """The connections of a saver, which its copies share."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._blocking: Blocking | None = None
        self._loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Concurrent] = weakref.WeakKeyDictionary()

    @property
    def blocking(self) -> "Blocking":
        """The calls of threads that wait for them."""
        with self._lock:
            if self._blocking is None:
                given = self._options
                client = Remora(given.endpoint, token=given.token, tenant=given.tenant, timeout=given.timeout)
                self._blocking = Blocking(client, given.timeout)
            return self._blocking

    @property
    def concurrent(self) -> "Concurrent":
        """The calls of the running event loop."""
        loop = asyncio.get_running_loop()
        with self._lock:
            found = self._loops.get(loop)
            if found is None:
                forget_ended(self._loops)
                given = self._options
                client = AsyncRemora(given.endpoint, token=given.token, tenant=given.tenant, timeout=given.timeout)
                found = self._loops[loop] = Concurrent(client, given.timeout)
            return found

    def close(self) -> None:
        """Closes the connection of threads that block."""
        with self._lock:
            found, self._blocking = self._blocking, None
        if found is not None:
            found.client.close()

    async def aclose(self) -> None:
        """Closes the connection of the running event loop, and that of threads that block."""
        with self._lock:
            found = self._loops.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await found.client.close()
        self.close()


class Concurrent:
    """Calls of one event loop."""

    def __init__(self, client: AsyncRemora, timeout: float) -> None:
        self.client = client
        self._calls = client._calls  # noqa: SLF001 - of this package
        self._timeout = timeout
        self._saves: Tick[Saved, None] = Tick(self._save_all, in_requests)
        self._gets: Tick[wire.CheckpointName, wire.FoundCheckpoint | None] = Tick(self._get_all, _in_hundreds)

    async def save(self, saved: Saved) -> None:
        """Saves a checkpoint or what a task wrote, with what else is saved in this turn of the loop."""
        if saved.size > REQUEST_BYTES:
            for some in in_turns(saved.uploads(new_id)):
                await asyncio.gather(*map(self._upload_part, some))
        await self._saves.add(saved)

    async def get(self, name: wire.CheckpointName) -> wire.FoundCheckpoint | None:
        """A checkpoint with all of its values; None if there is none."""
        found = await self._gets.add(name)
        return None if found is None else await self._completed(found, name)

    async def pages(self, request: wire.ListCheckpointsRequest) -> AsyncIterator[wire.FoundCheckpoint]:
        """Checkpoints, page after page."""
        while True:
            page = await self._calls.read(self._stubs.ListCheckpoints, request)
            for found in page.checkpoints:
                yield await self._completed(found, name_of(found))
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def history(self, request: wire.ListChannelHistoryRequest) -> list[wire.ChannelHistoryStep]:
        """All steps of a history."""
        steps: list[wire.ChannelHistoryStep] = []
        while True:
            page = await self._calls.read(self._stubs.ListChannelHistory, request)
            steps.extend(page.steps)
            if not page.next_page_token:
                break
            request.page_token = page.next_page_token
        await self._fill(found for step in steps for found in omitted(step, request.name))
        return steps

    async def write(self, method: Callable[[Any], Any], request: Any) -> Any:  # noqa: ANN401 - any write of the service
        """A write that goes through whole threads."""
        return await self._calls.write(method(self._stubs), request, self._timeout * LONG_WORK)

    @property
    def _stubs(self) -> Any:  # noqa: ANN401 - the generated stub, whose calls may be awaited
        return self._calls.stubs.checkpoints

    async def _save_all(self, several: Sequence[Saved]) -> Sequence[None]:
        request = wire.SaveCheckpointsRequest()
        for saved in several:
            saved.add_to(request)
        response = await self._calls.call(self._stubs.SaveCheckpoints, request)
        self._calls.revision.advance(response.revision)
        return [None] * len(several)

    async def _get_all(self, several: Sequence[wire.CheckpointName]) -> Sequence[wire.FoundCheckpoint | None]:
        found: list[wire.FoundCheckpoint | None] = []
        while len(found) < len(several):
            request = wire.GetCheckpointsRequest(names=several[len(found) :])
            response = await self._calls.read(self._stubs.GetCheckpoints, request)
            found.extend(each if each.checkpoint.id else None for each in response.checkpoints)
        return found

    async def _upload_part(self, part: wire.UploadCheckpointPartRequest) -> None:
        await self._calls.call(self._stubs.UploadCheckpointPart, part, self._timeout * LONG_WORK)

    async def _completed(self, found: wire.FoundCheckpoint, name: wire.CheckpointName) -> wire.FoundCheckpoint:
        await self._fill(omitted(found, name))
        return found

    async def _fill(self, omitted_values: Iterable[tuple[wire.Value, wire.ReadCheckpointValueRequest]]) -> None:
        for some in missing_in_turns(omitted_values):
            for missing, part in zip(some, await asyncio.gather(*map(self._read_part, some)), strict=True):
                missing.add(part)

    async def _read_part(self, missing: Missing) -> Any:  # noqa: ANN401 - the reply, through the generated stub
        return await self._calls.read(self._stubs.ReadCheckpointValue, missing.request, self._timeout * LONG_WORK)


class Tick(Generic[T, R]):
    """Gathers what is asked for within one turn of an event loop, and asks for it at once."""

    def __init__(
        self, ask: Callable[[Sequence[T]], Any], divide: Callable[[Sequence[T]], Iterable[Sequence[T]]]
    ) -> None:
        self._ask, self._divide = ask, divide
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def add(self, asked: T) -> R:
        """The answer to one."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[R] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._send)
        self._waiting.append((asked, answer))
        return await answer

    def _send(self) -> None:
        waiting, self._waiting = self._waiting, []
        begin = 0
        for group in self._divide([asked for asked, _ in waiting]):
            answers = [answer for _, answer in waiting[begin : begin + len(group)]]
            begin += len(group)
            task = asyncio.get_running_loop().create_task(self._answer(group, answers))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            task.add_done_callback(partial(_ended, answers))

    async def _answer(self, group: Sequence[T], answers: Sequence[asyncio.Future[R]]) -> None:
        try:
            for answer, found in zip(answers, await settled(self._ask(group)), strict=True):
                if not answer.done():
                    answer.set_result(found)
        except RemoraError as error:
            if len(group) == 1 or not may_be_of_one(error):
                fail(error, answers)
            else:
                for asked, answer in zip(group, answers, strict=True):
                    await self._answer([asked], [answer])
        except Exception as error:  # noqa: BLE001 - it is raised where the answers are awaited
            fail(error, answers)


def may_be_of_one(error: Exception) -> bool:
    """Whether one of several that were asked for at once may be to blame: the others need not fail with it.

    Where the server is not reached, or has no time or room, each would only wait as long again.
    """
    passes = isinstance(error, RemoraError) and error.retry_delay is not None
    return not passes and not isinstance(error, UnavailableError | DeadlineExceededError)


async def settled(call: Awaitable[T]) -> T:
    """The result of a call that only the end of its loop, or of its connection, cancels.

    gRPC still tells the loop how the call ended. If the loop is closed by then, the process's next loop gets an error.
    """
    try:
        return await call
    except asyncio.CancelledError:
        await asyncio.sleep(_SETTLING)
        raise


def _ended(answers: Sequence[asyncio.Future[Any]], _: asyncio.Task[None]) -> None:
    fail_closed(answers)


def forget_ended(loops: MutableMapping[asyncio.AbstractEventLoop, Any]) -> None:
    """Forgets what belongs to event loops that have ended, and keeps them from being collected."""
    for ended in [loop for loop in loops if loop.is_closed()]:
        del loops[ended]


def fail_closed(answers: Iterable[asyncio.Future[Any]]) -> None:
    """Fails what nobody answers any more: the connection was closed, which cancels the calls in progress."""
    fail(closed_meanwhile(), answers)


def fail(error: Exception, answers: Iterable[asyncio.Future[Any]]) -> None:
    """Tells those who still wait that it failed."""
    for answer in answers:
        if not answer.done():
            answer.set_exception(error)


def _in_hundreds(several: Sequence[T]) -> Iterable[Sequence[T]]:
    return (several[begin : begin + MOST_AT_ONCE] for begin in range(0, len(several), MOST_AT_ONCE))
