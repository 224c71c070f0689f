"""grpc.aio, for the async client."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias, TypeVar

import grpc
import grpc.aio

from remora import _refusals

Channel: TypeAlias = grpc.aio.Channel

Request_contra = TypeVar("Request_contra", contravariant=True)
Response_co = TypeVar("Response_co", covariant=True)
Result = TypeVar("Result")


SummaryWriter: TypeAlias = Callable[[str, str], Awaitable[str]]
"""Writes a summary: given what to do and what to summarise."""


async def written(write: SummaryWriter, instruction: str, text: str) -> str:
    """What a caller's model writes. Raises WrongTypeError for a function that is not async."""
    writing: object = write(instruction, text)
    if not isinstance(writing, Awaitable):
        raise _refusals.wrong_type("the result of write", writing, "awaitable: write is an async function here")
    answer: str = await writing
    return answer


ENDED = (asyncio.CancelledError, grpc.aio.UsageError)
"""What a call ends with, besides an RpcError, where its channel is closed meanwhile."""


def is_cancelled() -> bool:
    """Whether somebody cancels the running task."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


class Method(Protocol[Request_contra, Response_co]):
    """One RPC of a stub."""

    def __call__(self, request: Request_contra, /, *, timeout: float | None) -> Awaitable[Response_co]:
        """Calls it; the reply is awaited."""


_inherited: list[Channel] = []
"""Channels of the parent process; destroying one would wait for a thread that does not exist here."""


def open_channel(
    target: str, options: Sequence[tuple[str, str | int]], credentials: grpc.ChannelCredentials | None
) -> Channel:
    """A channel that connects with its first call, with TLS where there are credentials.

    Raises RuntimeError in a child that was forked while channels were in use: grpc.aio cannot work there.
    """
    if _inherited:
        raise RuntimeError("this process was forked while an event loop used AsyncRemora: use Remora, or fork earlier")
    if credentials is not None:
        return grpc.aio.secure_channel(target, credentials, options=options)
    return grpc.aio.insecure_channel(target, options=options)


def owner() -> object:
    """What a channel belongs to: the running event loop."""
    return asyncio.get_running_loop()


def closes_before_fork(owner: object) -> bool:
    """Whether a fork closes the channel of this owner: all of grpc.aio's must be closed for it to work in the child."""
    return not (isinstance(owner, asyncio.AbstractEventLoop) and owner.is_running())


def inherit(channel: Channel) -> None:
    """Takes over, in a forked child, a channel that was not closed."""
    _inherited.append(channel)


async def in_thread(work: Callable[[], Result]) -> Result:
    """The result of work that blocks; other tasks run meanwhile."""
    return await asyncio.to_thread(work)


async def made_in_thread(make: Callable[[], Result], release: Callable[[Result], None]) -> Result:
    """What a function makes that blocks. It is released where the task that waits for it is cancelled."""
    lock, made = threading.Lock(), list[Result]()
    is_wanted = True

    def work() -> None:
        result = make()
        with lock:
            if is_wanted:
                made.append(result)
                return
        release(result)

    try:
        await asyncio.to_thread(work)
    except asyncio.CancelledError:
        with lock:
            is_wanted = False
        if made:
            await asyncio.shield(asyncio.to_thread(release, made[0]))
        raise
    return made[0]


async def sleep(seconds: float) -> None:
    """Lets other tasks run meanwhile."""
    await asyncio.sleep(seconds)
