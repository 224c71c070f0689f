"""Histories trimmed to budgets: by langchain-core and Remora's engine in this process, and by calls of a server."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Protocol

import grpc
from benchmarks.slices import Measured
from benchmarks.texts import texts
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage, trim_messages
from langchain_core.messages.utils import count_tokens_approximately

from remora.trimming import trim_request
from remora.v1.text_service_pb2 import CountTokensRequest, TrimMessagesRequest
from remora.v1.text_service_pb2_grpc import TextServiceStub
from remora_server.domain import trimming
from remora_server.domain.costs import REPLY_PRIMING, Counting
from remora_server.domain.tokens import O200K_BASE
from remora_server.domain.trimming import TrimOptions
from remora_server.engine.tokens import NativeTokenCounter
from remora_server.rpc.handlers.trimming import RequestHistory

MESSAGES = 1_000
SHARES = (0.1, 0.5, 0.9)
"""The budgets, as shares of what the whole history costs."""
TIMEOUT = 30.0


def history(size: int) -> list[BaseMessage]:
    """Turns of a user, a call of a tool, its result and an answer, each with a text of so many characters."""
    written = iter(texts(1, MESSAGES, size))
    turns = zip(written, written, written, written, strict=True)
    return [message for number, turn in enumerate(turns) for message in _turn(f"call-{number}", *turn)]


def _turn(call_id: str, asked: str, query: str, found: str, answered: str) -> Sequence[BaseMessage]:
    call = {"name": "search", "args": {"query": query}, "id": call_id}
    return (
        HumanMessage(asked),
        AIMessage("", tool_calls=[call]),
        ToolMessage(found, tool_call_id=call_id),
        AIMessage(answered),
    )


class Trimmer(Protocol):
    """Trims a history to one budget after the other, for so many seconds."""

    name: str

    def trim(self, seconds: float) -> Measured: ...


class LangChain:
    """trim_messages with its approximate counter."""

    name = "langchain-core"

    def __init__(self, messages: list[BaseMessage]) -> None:
        self._messages = messages
        tokens = count_tokens_approximately(messages)
        self._budgets = cycle(int(share * tokens) for share in SHARES)

    def trim(self, seconds: float) -> Measured:
        return _driven(self._trim, seconds)

    def _trim(self) -> int:
        budget, counter = next(self._budgets), count_tokens_approximately
        return len(trim_messages(self._messages, max_tokens=budget, token_counter=counter, start_on="human"))


class Engine:
    """What the server does with messages that it has in wire form, counted in o200k_base."""

    name = "remora's engine"

    def __init__(self, messages: list[BaseMessage]) -> None:
        self._counting = Counting(NativeTokenCounter())
        request = trim_request(messages, 1, None, {})
        self._messages, self._encoded = request.messages, request.SerializeToString()
        tokens = sum(self._history().costs(0, len(messages))) + REPLY_PRIMING
        self._budgets = cycle(int(share * tokens) for share in SHARES)

    def _history(self) -> RequestHistory:
        counter = NativeTokenCounter()
        return RequestHistory(self._messages, counter.encoded_messages(O200K_BASE, self._encoded), self._counting)

    def trim(self, seconds: float) -> Measured:
        return _driven(self._trim, seconds)

    def _trim(self) -> int:
        options = TrimOptions(next(self._budgets), start_on=frozenset({"user"}))
        return len(trimming.trim(self._history(), options).kept)


class Calls:
    """TextService.TrimMessages through the generated stub, with requests that are made before."""

    name = "remora's call"

    def __init__(self, messages: list[BaseMessage], endpoint: str) -> None:
        self._channel = grpc.insecure_channel(endpoint)
        self._stub = TextServiceStub(self._channel)
        request = trim_request(messages, 1, None, {"start_on": "user"})
        tokens = self._stub.CountTokens(CountTokensRequest(messages=request.messages), timeout=TIMEOUT).total
        self._requests = cycle([self._with_budget(request, int(share * tokens)) for share in SHARES])

    def _with_budget(self, request: TrimMessagesRequest, max_tokens: int) -> TrimMessagesRequest:
        limited = TrimMessagesRequest(max_tokens=max_tokens)
        limited.MergeFrom(request)
        limited.max_tokens = max_tokens
        return limited

    def trim(self, seconds: float) -> Measured:
        return _driven(self._trim, seconds)

    def _trim(self) -> int:
        return len(self._stub.TrimMessages(next(self._requests), timeout=TIMEOUT).kept)

    def close(self) -> None:
        """Closes the connection."""
        self._channel.close()


def _driven(operation: Callable[[], int], seconds: float) -> Measured:
    """The operation again and again, as often with each budget."""
    spans = []
    began, cpu = time.perf_counter(), time.process_time()
    while time.perf_counter() - began < seconds:
        for _ in SHARES:
            start = time.perf_counter()
            if not 0 < operation() < MESSAGES:
                raise RuntimeError("a history was trimmed to nothing, or not at all")
            spans.append((start, time.perf_counter()))
    return Measured(spans, time.process_time() - cpu)
