"""Makes the calls of LangGraph's checkpointers that a benchmark asks for: `langgraph_savers.py ENGINE PLACE`.

It runs with LangGraph's packages, and reads questions from its input as lines of JSON: {"load": ..., "seconds": ...}.
The answers have the times between which each call ran.
"""

from __future__ import annotations

import asyncio
import json
import random
import string
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.base.id import uuid6

CONCURRENT, MESSAGES, TURNS = 20, 12, 500
LONG, SHORT = 134, 104
"""Characters of a message: twelve long ones are 3.9 KB as LangGraph serialises them, two short ones 0.59 KB."""
LETTERS = string.ascii_letters + string.digits + "+-"
"""64: a text of them drawn at random has 6 bits a character and no more to compress."""
HEALTH = "/grpc.health.v1.Health/Check"
_RANDOM = random.Random(1)

Span: TypeAlias = tuple[float, float]


def _message(number: int, characters: int) -> BaseMessage:
    kind = AIMessage if number % 2 else HumanMessage
    return kind("".join(_RANDOM.choices(LETTERS, k=characters)), id=f"{_RANDOM.getrandbits(128):032x}")


class Thread:
    """A thread of a graph with one channel. Each checkpoint that is put is the child of the one before."""

    def __init__(self, saver: BaseCheckpointSaver[Any], thread_id: str) -> None:
        self._saver = saver
        self._newest: RunnableConfig = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
        self._named = self._newest
        self._version: Any = None
        self._step = -1

    def next_put(self, messages: list[BaseMessage]) -> Callable[[], Awaitable[object]]:
        """The call that saves the next checkpoint."""
        self._version = self._saver.get_next_version(self._version, None)
        self._step += 1
        versions = {"messages": self._version}
        checkpoint = Checkpoint(
            v=4,
            id=str(uuid6(clock_seq=self._step)),
            ts=time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime()),
            channel_values={"messages": messages},
            channel_versions=versions,
            versions_seen={"agent": dict(versions)},
            updated_channels=["messages"],
        )
        metadata = CheckpointMetadata(source="loop", step=self._step, parents={})

        async def put() -> None:
            self._newest = await self._saver.aput(self._newest, checkpoint, metadata, versions)

        return put

    async def get(self) -> None:
        """Gets the newest checkpoint."""
        found = await self._saver.aget_tuple(self._named)
        if found is None or len(found.checkpoint["channel_values"]["messages"]) != MESSAGES:
            raise RuntimeError(f"the newest checkpoint is not there: {found}")


class Caller:
    """The calls on a saver."""

    def __init__(self, saver: BaseCheckpointSaver[Any], empty: Callable[[], Awaitable[object]] | None) -> None:
        self._saver = saver
        self._threads = [Thread(saver, f"thread {number}") for number in range(CONCURRENT)]
        self._messages = [_message(number, LONG) for number in range(MESSAGES)]
        self._loads: dict[str, tuple[int, Callable[[Thread], Callable[[], Awaitable[object]]]]] = {
            "aput": (1, self._next_put),
            "aget_tuple": (1, lambda thread: thread.get),
            "20 aput": (CONCURRENT, self._next_put),
            "20 aget_tuple": (CONCURRENT, lambda thread: thread.get),
        }
        if empty is not None:
            self._loads["empty RPC"] = (1, lambda _: empty)

    async def fill(self) -> None:
        """A checkpoint in each thread."""
        await asyncio.gather(*(self._next_put(thread)() for thread in self._threads))

    async def measured(self, load: str, seconds: float) -> list[Span]:
        """When each call began and ended. What it saves is made before."""
        if load == "turns":
            return [await _timed(self._turns())]
        count, call = self._loads[load]
        spans: list[Span] = []
        end = time.perf_counter() + seconds
        while not spans or spans[-1][1] < end:
            calls = [call(thread) for thread in self._threads[:count]]
            spans += await asyncio.gather(*(_timed(one()) for one in calls))
        return spans

    def _next_put(self, thread: Thread) -> Callable[[], Awaitable[object]]:
        return thread.next_put([*self._messages[:-1], _message(1, LONG)])

    async def _turns(self) -> None:
        """A thread whose every turn adds a question and an answer."""
        thread = Thread(self._saver, "turns")
        messages: list[BaseMessage] = []
        for turn in range(TURNS):
            messages += [_message(2 * turn, SHORT), _message(2 * turn + 1, SHORT)]
            await thread.next_put(messages)()


async def _timed(call: Awaitable[object]) -> Span:
    began = time.perf_counter()
    await call
    return began, time.perf_counter()


@asynccontextmanager
async def _opened(engine: str, place: str) -> AsyncIterator[Caller]:
    if engine == "remora":
        async with _remora(place) as caller:
            yield caller
    elif engine == "async_sqlite":
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver  # noqa: PLC0415 - only one engine's is needed

        async with AsyncSqliteSaver.from_conn_string(_database(place)) as saver:
            yield Caller(saver, None)
    else:
        from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: PLC0415 - as above

        with SqliteSaver.from_conn_string(_database(place)) as blocking:
            yield Caller(_awaitable(blocking), None)


@asynccontextmanager
async def _remora(endpoint: str) -> AsyncIterator[Caller]:
    from remora.langgraph import RemoraSaver  # noqa: PLC0415 - only one engine's packages are needed

    async with RemoraSaver(endpoint, timeout=60.0) as saver:
        # The saver's own client and connection make the empty RPC, too.
        calls: Any = saver._server.concurrent.client._calls  # noqa: SLF001
        calls.stubs  # noqa: B018 - makes the connection
        check = calls._connection.channel.unary_unary(HEALTH)  # noqa: SLF001
        yield Caller(saver, lambda: calls.call(check, b""))


def _awaitable(blocking: Any) -> Any:  # noqa: ANN401 - SqliteSaver
    """A saver whose coroutines block."""

    async def aput(*given: Any) -> RunnableConfig:  # noqa: ANN401 - as LangGraph's
        return blocking.put(*given)  # type: ignore[no-any-return]

    async def aget_tuple(config: RunnableConfig) -> Any:  # noqa: ANN401 - as LangGraph's
        return blocking.get_tuple(config)

    blocking.aput, blocking.aget_tuple = aput, aget_tuple
    return blocking


def _database(place: str) -> str:
    return str(Path(place) / "checkpoints.db")


async def main() -> None:
    async with _opened(sys.argv[1], sys.argv[2]) as caller:
        await caller.fill()
        for line in sys.stdin:
            question = json.loads(line)
            spans = await caller.measured(question["load"], question["seconds"])
            print(json.dumps({"spans": spans, "rpcs": 0}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
