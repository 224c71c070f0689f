"""Callers of a Remora server in this process: the Python client, and grpcio's generated stub making the same calls."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol, TypeAlias

import grpc
import grpc.aio
from benchmarks.engines.server import TEXTS
from benchmarks.slices import Measured
from benchmarks.texts import texts

from remora import AsyncRemora, Remora
from remora.v1.conversation_pb2 import Conversation
from remora.v1.conversation_service_pb2 import AppendMessagesRequest, ListMessagesRequest
from remora.v1.conversation_service_pb2_grpc import ConversationServiceStub
from remora.v1.message_pb2 import Message

TIMEOUT = 2.0
APPENDED = "appended"
"""The conversation that appends go to."""
WRITTEN = texts(0, TEXTS)

Span: TypeAlias = tuple[float, float]


class ReadMessage(Protocol):
    """What is read of every listed message."""

    @property
    def role(self) -> str: ...

    @property
    def id(self) -> str: ...

    @property
    def text(self) -> str: ...


class Caller(Protocol):
    """Appends one message of 500 bytes at a time, or lists the newest 50, for so many seconds."""

    name: str

    def append(self, seconds: float) -> Measured: ...

    def list50(self, seconds: float) -> Measured: ...

    def close(self) -> None: ...


class Stub:
    """The generated stub."""

    name = "stub"

    def __init__(self, endpoint: str, conversation_id: str, user_id: str) -> None:
        self._channel = grpc.insecure_channel(endpoint)
        self._stub = ConversationServiceStub(self._channel)
        self._conversation_id, self._user_id = conversation_id, user_id

    def append(self, seconds: float) -> Measured:
        return _driven(self._append, seconds)

    def _append(self, text: str) -> None:
        response = self._stub.AppendMessages(_append_request(self._user_id, text), timeout=TIMEOUT)
        _require(len([message.id for message in response.messages]), 1)

    def list50(self, seconds: float) -> Measured:
        return _driven(self._list50, seconds)

    def _list50(self, _text: str) -> None:
        request = _list_request(self._conversation_id, self._user_id)
        _require(_read(self._stub.ListMessages(request, timeout=TIMEOUT).messages), 50)

    def close(self) -> None:
        self._channel.close()


class Client:
    """The client."""

    name = "client"

    def __init__(self, endpoint: str, conversation_id: str, user_id: str) -> None:
        self._client = Remora(endpoint, timeout=TIMEOUT)
        self._appended = self._client.conversation(APPENDED, user_id=user_id)
        self._listed = self._client.conversation(conversation_id, user_id=user_id)

    def append(self, seconds: float) -> Measured:
        return _driven(self._append, seconds)

    def _append(self, text: str) -> None:
        _require(len(self._appended.append({"role": "user", "content": text}).ids), 1)

    def list50(self, seconds: float) -> Measured:
        return _driven(self._list50, seconds)

    def _list50(self, _text: str) -> None:
        _require(_read(self._listed.messages(50)), 50)

    def close(self) -> None:
        self._client.close()


class AsyncStub:
    """The generated stub over grpc.aio."""

    name = "stub, asyncio"

    def __init__(self, endpoint: str, conversation_id: str, user_id: str) -> None:
        self._runner = asyncio.Runner()
        self._runner.run(self._connect(endpoint))
        self._conversation_id, self._user_id = conversation_id, user_id

    async def _connect(self, endpoint: str) -> None:
        self._channel = grpc.aio.insecure_channel(endpoint)
        self._stub = ConversationServiceStub(self._channel)

    def append(self, seconds: float) -> Measured:
        return self._runner.run(_awaited(self._append, seconds))

    async def _append(self, text: str) -> None:
        response = await self._stub.AppendMessages(_append_request(self._user_id, text), timeout=TIMEOUT)
        _require(len([message.id for message in response.messages]), 1)

    def list50(self, seconds: float) -> Measured:
        return self._runner.run(_awaited(self._list50, seconds))

    async def _list50(self, _text: str) -> None:
        request = _list_request(self._conversation_id, self._user_id)
        _require(_read((await self._stub.ListMessages(request, timeout=TIMEOUT)).messages), 50)

    def close(self) -> None:
        self._runner.run(self._channel.close())
        self._runner.close()


class AsyncClient:
    """The client for asyncio."""

    name = "client, asyncio"

    def __init__(self, endpoint: str, conversation_id: str, user_id: str) -> None:
        self._runner = asyncio.Runner()
        self._client = AsyncRemora(endpoint, timeout=TIMEOUT)
        self._appended = self._client.conversation(APPENDED, user_id=user_id)
        self._listed = self._client.conversation(conversation_id, user_id=user_id)

    def append(self, seconds: float) -> Measured:
        return self._runner.run(_awaited(self._append, seconds))

    async def _append(self, text: str) -> None:
        _require(len((await self._appended.append({"role": "user", "content": text})).ids), 1)

    def list50(self, seconds: float) -> Measured:
        return self._runner.run(_awaited(self._list50, seconds))

    async def _list50(self, _text: str) -> None:
        _require(_read(await self._listed.messages(50)), 50)

    def close(self) -> None:
        self._runner.run(self._client.close())
        self._runner.close()


def _append_request(user_id: str, text: str) -> AppendMessagesRequest:
    """What the client sends."""
    return AppendMessagesRequest(
        conversation_id=APPENDED,
        user_id=user_id,
        messages=[Message(role="user", text=text)],
        create_if_missing=Conversation(user_id=user_id),
        request_id=uuid.uuid4().hex,
    )


def _list_request(conversation_id: str, user_id: str) -> ListMessagesRequest:
    return ListMessagesRequest(conversation_id=conversation_id, user_id=user_id, page_size=50)


def _read(messages: Iterable[ReadMessage]) -> int:
    """Read role, id and text of every message; how many there are."""
    return len([(message.role, message.id, message.text) for message in messages])


def _require(found: int, expected: int) -> None:
    if found != expected:
        raise RuntimeError(f"{found} messages instead of {expected}")


def _driven(call: Callable[[str], None], seconds: float) -> Measured:
    cpu, deadline, spans = time.process_time(), time.monotonic() + seconds, list[Span]()
    while (began := time.monotonic()) < deadline:
        call(WRITTEN[len(spans) % TEXTS])
        spans.append((began, time.monotonic()))
    return Measured(spans, time.process_time() - cpu)


async def _awaited(call: Callable[[str], Awaitable[None]], seconds: float) -> Measured:
    cpu, deadline, spans = time.process_time(), time.monotonic() + seconds, list[Span]()
    while (began := time.monotonic()) < deadline:
        await call(WRITTEN[len(spans) % TEXTS])
        spans.append((began, time.monotonic()))
    return Measured(spans, time.process_time() - cpu)
