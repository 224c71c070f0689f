"""Plain grpc, for the sync client."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias, TypeVar

import grpc

Channel: TypeAlias = grpc.Channel

Request_contra = TypeVar("Request_contra", contravariant=True)
Response_co = TypeVar("Response_co", covariant=True)
Result = TypeVar("Result")


SummaryWriter: TypeAlias = Callable[[str, str], str]
"""Writes a summary: given what to do and what to summarise."""


def written(write: SummaryWriter, instruction: str, text: str) -> str:
    """What a caller's model writes."""
    return write(instruction, text)


ENDED = (ValueError,)
"""What a call ends with, besides an RpcError, where its channel is closed meanwhile."""


def is_cancelled() -> bool:
    """Whether somebody cancels the running task: there is none."""
    return False


class Method(Protocol[Request_contra, Response_co]):
    """One RPC of a stub."""

    def __call__(self, request: Request_contra, /, *, timeout: float | None) -> Response_co:
        """Calls it."""


def open_channel(
    target: str, options: Sequence[tuple[str, str | int]], credentials: grpc.ChannelCredentials | None
) -> Channel:
    """A channel that connects with its first call, with TLS where there are credentials."""
    if credentials is not None:
        return grpc.secure_channel(target, credentials, options=options)
    return grpc.insecure_channel(target, options=options)


def owner() -> object:
    """What a channel belongs to: any thread may use it."""
    return None


def closes_before_fork(owner: object) -> bool:  # noqa: ARG001 - the same for every owner
    """Whether a fork closes the channel of this owner: the parent's threads may be using it."""
    return False


def inherit(channel: Channel) -> None:
    """Takes over, in a forked child, a channel that was not closed: it is dropped; the parent's stays open."""
    del channel


def in_thread(work: Callable[[], Result]) -> Result:
    """The result of work that blocks, as the caller does."""
    return work()


def made_in_thread(make: Callable[[], Result], release: Callable[[Result], None]) -> Result:  # noqa: ARG001 - not cancelled
    """What a function makes that blocks, as the caller does."""
    return make()


def sleep(seconds: float) -> None:
    """Blocks the thread."""
    time.sleep(seconds)
