"""A channel whose calls say who makes them."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, cast

Metadata = Sequence[tuple[str, str]]
Channel = TypeVar("Channel")


class _Rpc(Protocol):
    """One RPC of a channel. Those of grpc.aio have `__call__` alone."""

    __call__: Callable[..., object]
    with_call: Callable[..., object]
    future: Callable[..., object]


class _Opened(Protocol):
    unary_unary: Callable[..., _Rpc]
    unary_stream: Callable[..., _Rpc]


def identified(channel: Channel, metadata: Metadata) -> Channel:
    """The channel as generated stubs use it: calls send `metadata` before their own."""
    return cast("Channel", _Identified(cast("_Opened", channel), tuple(metadata)))


class _Identified:
    def __init__(self, channel: _Opened, metadata: Metadata) -> None:
        self._channel = channel
        self._metadata = metadata

    def unary_unary(self, *path: object, **codec: object) -> "_Identifying":
        return _Identifying(self._channel.unary_unary(*path, **codec), self._metadata)

    def unary_stream(self, *path: object, **codec: object) -> "_Identifying":
        return _Identifying(self._channel.unary_stream(*path, **codec), self._metadata)


class _Identifying:
    """An RPC that sends metadata of its own."""

    def __init__(self, rpc: _Rpc, metadata: Metadata) -> None:
        self._rpc = rpc
        self._metadata = metadata

    def __call__(self, request: object, *, metadata: Metadata | None = None, **options: object) -> object:
        return self._rpc(request, metadata=(*self._metadata, *(metadata or ())), **options)

    def with_call(self, request: object, *, metadata: Metadata | None = None, **options: object) -> object:
        return self._rpc.with_call(request, metadata=(*self._metadata, *(metadata or ())), **options)

    def future(self, request: object, *, metadata: Metadata | None = None, **options: object) -> object:
        return self._rpc.future(request, metadata=(*self._metadata, *(metadata or ())), **options)
