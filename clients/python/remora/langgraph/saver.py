"""LangGraph's checkpoints in Remora."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from remora._bounds import utf8
from remora._saved_checkpoints import Saved
from remora.langgraph import _checkpoints as checkpoints
from remora.langgraph._checkpoints import Codec
from remora.langgraph._conversations import Conversations
from remora.langgraph._server import Done, Options, Server
from remora.v1 import checkpoint_service_pb2 as wire

STRATEGIES = {
    "keep_latest": wire.PRUNE_STRATEGY_KEEP_LATEST,
    "delete": wire.PRUNE_STRATEGY_DELETE,
}


class RemoraSaver(BaseCheckpointSaver[str]):
    """Keeps the checkpoints of LangGraph's graphs in Remora, for graphs that run in threads and for those of asyncio.

    A channel's value is stored once for each version, as its difference from the one before. A put and a get are one
    round trip each; what coroutines save or get within one turn of their event loop is one round trip together. A put
    returns when the checkpoint is on disk.

    `user_id` and `run_id` of a config's `configurable` or `metadata` say whose a checkpoint is and which run made it:
    it is deleted with the user, and by `delete_for_runs`.

    With `messages`, the name of a channel, the thread's messages are also in the conversation of the thread's id, for
    searches, contexts and timelines: those of the newest checkpoint of the root graph. They are sent in the background
    after the checkpoint was saved. What fails is logged, and tried again with the next checkpoint.

    Calls fail with the errors of `remora.errors`.
    """

    def __init__(
        self,
        endpoint: str | None = None,
        *,
        serde: SerializerProtocol | None = None,
        token: str | None = None,
        tenant: str | None = None,
        timeout: float = 10.0,
        messages: str | None = None,
    ) -> None:
        """Does not connect yet.

        `endpoint` is `unix:/path` or `host:port`; if None, $REMORA_ENDPOINT, else the usual address of this machine.
        `token` authenticates; `tenant` names the tenant if the server requires no token. `timeout` is each call's
        deadline in seconds; calls that go through whole threads have six times as long. `messages` is the channel whose
        messages are also sent to conversations; None: none is.
        """
        if serde is not None and not hasattr(serde, "dumps_typed") and not hasattr(serde, "dumps"):
            raise TypeError(f"serde is {serde!r}; it must be a serializer, with dumps_typed and loads_typed")
        super().__init__(serde=serde)
        if messages is not None and (not messages or not isinstance(messages, str)):
            raise TypeError(f"messages is {messages!r}; it must be the name of a channel, such as 'messages'")
        self._server = Server(Options(endpoint, token, tenant, timeout))
        self._conversations = None if messages is None else Conversations(self._server, messages)

    @classmethod
    def from_conn_string(
        cls,
        conn_string: str | None = None,
        *,
        serde: SerializerProtocol | None = None,
        token: str | None = None,
        tenant: str | None = None,
        timeout: float = 10.0,
        messages: str | None = None,
    ) -> Self:
        """A saver that `with` or `async with` closes. The arguments are those of the constructor."""
        return cls(conn_string, serde=serde, token=token, tenant=tenant, timeout=timeout, messages=messages)

    def setup(self) -> Done:
        """Does nothing, as the server needs no setup; it may be awaited."""
        return Done()

    def close(self) -> None:
        """Closes the connection that threads use, after messages that are under way were sent."""
        if self._conversations is not None:
            self._conversations.close()
        self._server.close()

    async def aclose(self) -> None:
        """Closes the connection of the running event loop, and that of threads, after messages were sent."""
        if self._conversations is not None:
            await asyncio.to_thread(self._conversations.close)
        await self._server.aclose()

    def flush_messages(self) -> None:
        """Waits until the messages of the checkpoints that were saved are in their conversations, or failed to be."""
        if self._conversations is not None:
            self._conversations.wait()

    async def aflush_messages(self) -> None:
        """The same as `flush_messages`."""
        await asyncio.to_thread(self.flush_messages)

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

    def get_next_version(self, current: str | float | None, channel: None) -> str:  # noqa: ARG002 - LangGraph's
        """The version after another one, as LangGraph's own savers make it: of two branches, different ones."""
        number = 0 if current is None else int(str(current).split(".", maxsplit=1)[0])
        return f"{number + 1:032}.{random.random():016}"  # noqa: S311 - no secret

    @property
    def _codec(self) -> Codec:
        """With the serializer of now: LangGraph may replace it in a copy."""
        return Codec(self.serde)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a config names, or the newest of its namespace; None if there is none."""
        found = self._server.blocking.get(checkpoints.name(config))
        return None if found is None else self._codec.tuple(found)

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that a config names, or the newest of its namespace; None if there is none."""
        found = await self._server.concurrent.get(checkpoints.name(config))
        return None if found is None else self._codec.tuple(found)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, the newest first: those of a thread, or (without a config, or with an empty one) of all threads.

        Another config that names no thread is refused: it would show those of others. A `filter` has members that the
        metadata must have with equal values.
        """
        checkpoints.require_number(limit, "limit")
        if limit is not None and limit <= 0:
            return
        request, codec = checkpoints.list_request(config, filter, before, limit), self._codec
        for found in itertools.islice(self._server.blocking.pages(request), limit):
            yield codec.tuple(found)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """The same as `list`."""
        checkpoints.require_number(limit, "limit")
        if limit is not None and limit <= 0:
            return
        request, codec = checkpoints.list_request(config, filter, before, limit), self._codec
        count = 0
        async for found in self._server.concurrent.pages(request):
            yield codec.tuple(found)
            count += 1
            if count == limit:
                return

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Saves a checkpoint, with the values of the channels that are in `new_versions`; if that is empty, with all.

        The values of channels that have no version are saved, too.
        """
        saved = self._codec.saved_checkpoint(config, checkpoint, metadata, new_versions)
        self._server.blocking.save(saved)
        self._offer(saved, checkpoint, new_versions)
        return _saved_config(config, checkpoint)

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Saves a checkpoint, with the values of the channels that are in `new_versions`; if that is empty, with all.

        The values of channels that have no version are saved, too.
        """
        saved = self._codec.saved_checkpoint(config, checkpoint, metadata, new_versions)
        await self._server.concurrent.save(saved)
        self._offer(saved, checkpoint, new_versions)
        return _saved_config(config, checkpoint)

    def _offer(self, saved: Saved, checkpoint: Checkpoint, new_versions: ChannelVersions) -> None:
        if self._conversations is not None:
            self._conversations.offer(cast("wire.CheckpointDraft", saved.draft).checkpoint, checkpoint, new_versions)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Saves what a task wrote since a checkpoint, which need not be saved yet."""
        if writes:
            self._server.blocking.save(self._codec.saved_writes(config, writes, task_id, task_path))

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Saves what a task wrote since a checkpoint, which need not be saved yet."""
        if writes:
            await self._server.concurrent.save(self._codec.saved_writes(config, writes, task_id, task_path))

    def delete_thread(self, thread_id: str) -> None:
        """Deletes everything of a thread; with `messages`, its conversation, too."""
        request = wire.DeleteThreadRequest(thread_id=_thread(thread_id, "thread_id"))
        if self._conversations is not None:
            self._conversations.delete(request.thread_id).result()
        self._server.blocking.write(lambda stubs: stubs.DeleteThread, request)

    async def adelete_thread(self, thread_id: str) -> None:
        """Deletes everything of a thread; with `messages`, its conversation, too."""
        request = wire.DeleteThreadRequest(thread_id=_thread(thread_id, "thread_id"))
        if self._conversations is not None:
            await asyncio.wrap_future(self._conversations.delete(request.thread_id))
        await self._server.concurrent.write(lambda stubs: stubs.DeleteThread, request)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints of runs, with their writes.

        Those stay from which a DeltaChannel of a checkpoint of another run is rebuilt.
        """
        for some in _in_thousands(run_ids, "run_ids"):
            self._server.blocking.write(lambda stubs: stubs.DeleteRuns, wire.DeleteRunsRequest(run_ids=some))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Deletes the checkpoints of runs, with their writes: see `delete_for_runs`."""
        for some in _in_thousands(run_ids, "run_ids"):
            await self._server.concurrent.write(lambda stubs: stubs.DeleteRuns, wire.DeleteRunsRequest(run_ids=some))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies everything of a thread to another, which also keeps what it had."""
        request = _copy_request(source_thread_id, target_thread_id)
        if request is not None:
            self._server.blocking.write(lambda stubs: stubs.CopyThread, request)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copies everything of a thread to another, which also keeps what it had."""
        request = _copy_request(source_thread_id, target_thread_id)
        if request is not None:
            await self._server.concurrent.write(lambda stubs: stubs.CopyThread, request)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Deletes old checkpoints of threads.

        `keep_latest` keeps the newest of each namespace, with its writes and without a parent, and as many of its
        ancestors as its DeltaChannels are rebuilt from; the namespaces of a subgraph's call go with the checkpoint that
        made the call. `delete` deletes all.
        """
        chosen = _strategy(strategy)
        for some in _in_thousands(thread_ids, "thread_ids"):
            request = wire.PruneThreadsRequest(thread_ids=some, strategy=chosen)
            self._server.blocking.write(lambda stubs: stubs.PruneThreads, request)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Deletes old checkpoints of threads: see `prune`."""
        chosen = _strategy(strategy)
        for some in _in_thousands(thread_ids, "thread_ids"):
            request = wire.PruneThreadsRequest(thread_ids=some, strategy=chosen)
            await self._server.concurrent.write(lambda stubs: stubs.PruneThreads, request)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What the ancestors of a checkpoint wrote to channels, and the value from which that starts."""
        if not channels:
            return {}
        steps = self._server.blocking.history(_history_request(config, channels))
        return self._codec.history(channels, steps)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """What the ancestors of a checkpoint wrote to channels, and the value from which that starts."""
        if not channels:
            return {}
        steps = await self._server.concurrent.history(_history_request(config, channels))
        return self._codec.history(channels, steps)


def _saved_config(config: RunnableConfig, checkpoint: Checkpoint) -> RunnableConfig:
    thread_id, checkpoint_ns, _ = checkpoints.names(config)
    return checkpoints.config_of(thread_id, checkpoint_ns, checkpoint["id"])


def _thread(thread_id: object, what: str) -> str:
    """The id of a thread, which may be a number. Raises TypeError for None, which names no thread."""
    if thread_id is None:
        raise TypeError(f"{what} is None; it must be the id of a thread")
    return utf8(str(thread_id), what)


def _in_thousands(ids: Sequence[str], what: str) -> Iterator[Sequence[str]]:
    """Ids, as many at a time as one request takes. Raises TypeError for a single text, and for what are no ids."""
    if isinstance(ids, str):
        raise TypeError(f"{what} is a list of ids, not a str: [{ids!r}]")
    if not isinstance(ids, Iterable):
        raise TypeError(f"{what} is {ids!r}; it must be a list of ids")
    texts = [_id(each, f"{what}[{place}]") for place, each in enumerate(ids)]
    return (texts[begin : begin + 1_000] for begin in range(0, len(texts), 1_000))


def _id(given: object, what: str) -> str:
    if given is None:
        raise TypeError(f"{what} is None; it must be an id")
    return utf8(str(given), what)


def _strategy(name: str) -> "wire.PruneStrategy.ValueType":
    if name not in STRATEGIES:
        raise ValueError(f"{name!r} is not a strategy to prune by: {' or '.join(map(repr, STRATEGIES))}")
    return STRATEGIES[name]


def _copy_request(source_thread_id: str, target_thread_id: str) -> wire.CopyThreadRequest | None:
    """None where a thread is to be copied to itself: it has everything."""
    source = _thread(source_thread_id, "source_thread_id")
    target = _thread(target_thread_id, "target_thread_id")
    return None if source == target else wire.CopyThreadRequest(source_thread_id=source, target_thread_id=target)


def _history_request(config: RunnableConfig, channels: Sequence[str]) -> wire.ListChannelHistoryRequest:
    """Raises TypeError for a single text, whose letters would be taken for channels."""
    if isinstance(channels, str):
        raise TypeError(f"channels is {channels!r}; it must be a list of channels: [{channels!r}]")
    return wire.ListChannelHistoryRequest(name=checkpoints.name(config), channels=channels, page_size=1_000)
