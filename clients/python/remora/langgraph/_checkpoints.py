"""LangGraph's checkpoints as the contract has them, and back. Makes no calls."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    PendingWrite,
    get_checkpoint_id,
    get_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from remora._bounds import utf8
from remora._saved_checkpoints import NO_VERSION, Saved, set_version, version_of, with_unversioned
from remora.v1 import checkpoint_service_pb2 as wire
from remora.v1.checkpoint_pb2 import ChannelVersion

_OWN_FIELDS = frozenset({"id", "channel_values", "channel_versions"})
"""What the contract has fields for; the rest of a checkpoint is opaque."""

_LONGEST_PATH = 4_096
"""Bytes of the path of a task, which only orders writes: that of tasks in tasks in tasks may be longer."""

_INTEGERS = range(-(2**63), 2**63)

Names: TypeAlias = tuple[str, str, str]
"""A thread, a namespace and a checkpoint."""
NO_THREAD = 'a checkpoint is kept under a thread: the config needs {"configurable": {"thread_id": …}}'


def names(config: RunnableConfig) -> Names:
    """Which checkpoint a config names. Raises ValueError if it names no thread, TypeError if it is no config.

    Raises InvalidFieldError for a name that UTF-8 cannot hold.
    """
    configurable = _configurable(config)
    if configurable.get("thread_id") is None:
        raise ValueError(NO_THREAD)
    return (
        utf8(str(configurable["thread_id"]), "thread_id"),
        utf8(str(configurable.get("checkpoint_ns") or ""), "checkpoint_ns"),
        utf8(str(get_checkpoint_id(config) or ""), "checkpoint_id"),
    )


def _configurable(config: RunnableConfig) -> Mapping[str, Any]:
    """Raises TypeError for what is no config."""
    if not isinstance(config, Mapping):
        raise TypeError(f'config is {config!r}; it must be a dict, such as {{"configurable": {{"thread_id": "trip"}}}}')
    configurable = config.get("configurable") or {}
    if not isinstance(configurable, Mapping):
        raise TypeError(f"configurable is {configurable!r}; it must be a dict")
    return configurable


def require_text(given: object, what: str) -> str:
    """A text. Raises TypeError for anything else."""
    if not isinstance(given, str):
        raise TypeError(f"{what} is {given!r}; it must be a str")
    return given


def require_number(given: object, what: str) -> None:
    """Raises TypeError for what is neither a whole number nor None."""
    if given is not None and (isinstance(given, bool) or not isinstance(given, int)):
        raise TypeError(f"{what} is {given!r}; it must be a whole number")


def name(config: RunnableConfig) -> wire.CheckpointName:
    """The same for a request."""
    thread_id, checkpoint_ns, checkpoint_id = names(config)
    return wire.CheckpointName(thread_id=thread_id, checkpoint_ns=checkpoint_ns, checkpoint_id=checkpoint_id)


def config_of(thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> RunnableConfig:
    """The config that names a checkpoint."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": checkpoint_ns, "checkpoint_id": checkpoint_id}}


class Codec:
    """Turns checkpoints into messages and back, with one serializer."""

    def __init__(self, serde: SerializerProtocol) -> None:
        self._serde = serde

    def saved_checkpoint(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Saved:
        """A checkpoint with the values that are new in it: all, if nobody says which, and those without a version."""
        thread_id, checkpoint_ns, parent_id = names(config)
        kept = get_checkpoint_metadata(config, metadata)
        saved = Saved(wire.CheckpointDraft())
        draft = cast("wire.CheckpointDraft", saved.draft)
        given = draft.checkpoint
        given.thread_id, given.checkpoint_ns, given.id, given.parent_id = (
            thread_id,
            checkpoint_ns,
            require_text(checkpoint["id"], "checkpoint['id']"),
            parent_id,
        )
        given.user_id, given.run_id = _text(kept, "user_id"), _text(kept, "run_id")
        given.metadata = to_json(kept, "the metadata of a checkpoint")
        rest = {key: value for key, value in checkpoint.items() if key not in _OWN_FIELDS}
        given.type, given.data = _dumped(self._serde, rest)
        values = checkpoint["channel_values"]
        new = new_versions or values
        for channel, version in with_unversioned(checkpoint["channel_versions"], values).items():
            told = given.channels.add(channel=require_text(channel, "a channel"))
            _set_version(told, version)
            if channel not in new and version != NO_VERSION:
                continue
            if channel in values:
                value = draft.values.add(channel=channel).value
                value.type, value.data = _dumped(self._serde, values[channel])
                saved.values.append(value)
            else:
                told.empty = True
        return saved

    def saved_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> Saved:
        """What a task wrote."""
        path = utf8(require_text(task_path, "task_path"), "task_path").encode()[:_LONGEST_PATH].decode(errors="ignore")
        saved = Saved(task=wire.TaskWrites(name=name(config), task_id=require_text(task_id, "task_id"), task_path=path))
        task = cast("wire.TaskWrites", saved.task)
        task.replace = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        task.user_id = _text(get_checkpoint_metadata(config, {}), "user_id")
        for position, (channel, value) in enumerate(writes):
            write = task.writes.add(
                channel=require_text(channel, "a channel"), index=WRITES_IDX_MAP.get(channel, position)
            )
            write.value.type, write.value.data = _dumped(self._serde, value)
            saved.values.append(write.value)
        return saved

    def tuple(self, found: wire.FoundCheckpoint) -> CheckpointTuple:
        """A checkpoint that was found, all of whose values are there."""
        given = found.checkpoint
        parent = config_of(given.thread_id, given.checkpoint_ns, given.parent_id) if given.parent_id else None
        versions = ((each.channel, version_of(each.version)) for each in given.channels)
        checkpoint = {
            **self._serde.loads_typed((given.type, given.data)),
            "id": given.id,
            "channel_versions": {channel: version for channel, version in versions if version != NO_VERSION},
            "channel_values": {each.channel: self._value(each.value) for each in found.values},
        }
        return CheckpointTuple(
            config_of(given.thread_id, given.checkpoint_ns, given.id),
            cast("Checkpoint", checkpoint),
            json.loads(given.metadata) if given.metadata else {},
            parent,
            [self._write(write) for write in found.writes],
        )

    def history(
        self, channels: Sequence[str], steps: Iterable[wire.ChannelHistoryStep]
    ) -> Mapping[str, DeltaChannelHistory]:
        """The history of channels from its steps, the nearest first."""
        found: dict[str, DeltaChannelHistory] = {channel: {"writes": []} for channel in channels}
        for step in steps:
            for write in reversed(step.writes):
                found[write.channel]["writes"].append(self._write(write))
            for each in step.values:
                found[each.channel]["seed"] = self._value(each.value)
        for history in found.values():
            history["writes"].reverse()
        return found

    def _write(self, write: wire.PendingWrite) -> PendingWrite:
        return write.task_id, write.channel, self._value(write.value)

    def _value(self, value: wire.Value) -> Any:  # noqa: ANN401 - whatever was saved
        return self._serde.loads_typed((value.type, value.data))


def _set_version(told: ChannelVersion, version: object) -> None:
    """Raises TypeError for what is no version."""
    if isinstance(version, bool) or not isinstance(version, str | int | float) or _is_too_long(version):
        raise TypeError(
            f"the version of channel {told.channel!r} is {version!r}; it must be a str, a float or an int of 64 bits"
        )
    set_version(told.version, version)


def _is_too_long(version: str | float) -> bool:
    return isinstance(version, int) and version not in _INTEGERS


def _dumped(serde: SerializerProtocol, value: object) -> tuple[str, bytes]:
    """A value as a serializer has it: of a bytearray, LangGraph's gives the bytearray itself."""
    kind, data = serde.dumps_typed(value)
    return kind, bytes(data)


def list_request(
    config: RunnableConfig | None,
    filter_: Mapping[str, Any] | None,
    before: RunnableConfig | None,
    limit: int | None,
) -> wire.ListCheckpointsRequest:
    """The request for the first page of a list. Raises ValueError for a config that names no thread."""
    if not isinstance(filter_ or {}, Mapping):
        raise TypeError(f"filter is {filter_!r}; it must be a dict of members of the metadata")
    request = wire.ListCheckpointsRequest(metadata=to_json(filter_, "a filter") if filter_ else b"")
    configurable = _configurable(config) if config else {}
    if config:
        request.thread_id = names(config)[0]
    if configurable.get("checkpoint_ns") is not None:
        request.checkpoint_ns = utf8(str(configurable["checkpoint_ns"]), "checkpoint_ns")
    if config is not None:
        request.checkpoint_id = names(config)[2] if "configurable" in config else ""
    if before is not None:
        request.before_id = utf8(str(get_checkpoint_id(before) or ""), "before")
    if limit is not None:
        request.page_size = min(limit, 1_000)
    return request


def to_json(members: Mapping[str, Any], what: str) -> bytes:
    """Members as JSON. Raises TypeError, which names the one that JSON does not have."""
    try:
        return json.dumps(members, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        for key, value in members.items():
            try:
                json.dumps({key: value}, allow_nan=False)
            except (TypeError, ValueError, RecursionError):
                raise TypeError(f"{what} must be JSON, and {key!r} is not: {error}") from error
        raise


def _text(metadata: Mapping[str, Any], key: str) -> str:
    """A member as the text that the server finds it by; empty if there is none."""
    value = metadata.get(key)
    return "" if value is None else utf8(str(value), key)
