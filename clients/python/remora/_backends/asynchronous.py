"""grpc.aio, as the client's async source uses it."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Protocol, TypeAlias, TypeVar

import grpc.aio

Channel: TypeAlias = grpc.aio.Channel

Request_contra = TypeVar("Request_contra", contravariant=True)
Response_co = TypeVar("Response_co", covariant=True)


class Method(Protocol[Request_contra, Response_co]):
    """One RPC of a stub."""

    def __call__(
        self, request: Request_contra, /, *, timeout: float | None, metadata: tuple[tuple[str, str], ...]
    ) -> Awaitable[Response_co]:
        """Calls it; the reply is awaited."""


def open_channel(target: str, options: Sequence[tuple[str, str | int]]) -> Channel:
    """A channel that connects with its first call."""
    return grpc.aio.insecure_channel(target, options=options)


def owner() -> object:
    """What a channel belongs to: the running event loop."""
    return asyncio.get_running_loop()


async def sleep(seconds: float) -> None:
    """Lets other tasks run meanwhile."""
    await asyncio.sleep(seconds)
