"""Checkpoints of graphs: the state of a thread after each step, and what tasks wrote since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from remora_server.domain.calls import Outcome, Read, Write


class CheckpointName(Struct, frozen=True):
    """A checkpoint of a thread in a namespace; without an id in a read, the one with the greatest."""

    thread_id: str
    checkpoint_ns: str = ""
    checkpoint_id: str = ""


class UploadName(Struct, frozen=True):
    """A complete upload and the number of its parts."""

    id: str
    parts: int


class ValueDraft(Struct, frozen=True):
    """A serialised value as its caller gives it, with its bytes or the upload that has them."""

    type: str
    data: bytes
    upload: UploadName | None = None


class CheckpointDraft(Struct, frozen=True):
    """A checkpoint as its caller gives it, in wire form, with the new values of its channels."""

    name: CheckpointName
    body: bytes
    values: Mapping[str, ValueDraft] = {}
    user_id: str = ""


class WriteDraft(Struct, frozen=True):
    """One write of a task."""

    channel: str
    index: int
    value: ValueDraft


class TaskDraft(Struct, frozen=True):
    """The writes of a task. Unless they `replace`, existing writes stay."""

    name: CheckpointName
    task_id: str
    task_path: str
    writes: tuple[WriteDraft, ...]
    replace: bool = False
    user_id: str = ""


class PartDraft(Struct, frozen=True):
    """A part of an upload."""

    thread_id: str
    checkpoint_ns: str
    upload_id: str
    index: int
    data: bytes
    user_id: str = ""


class CheckpointPosition(Struct, frozen=True, array_like=True):
    """A checkpoint's position in a list: its id, its revision, and its index within that revision."""

    id: str
    revision: int = 0
    ordinal: int = 0


class CheckpointQuery(Struct, frozen=True):
    """Which checkpoints to list, the greatest id first. `members`: digests of the members that the metadata must have,
    by `domain.json_members`.
    """

    thread_id: str = ""
    checkpoint_ns: str | None = None
    checkpoint_id: str = ""
    before_id: str = ""
    members: tuple[str, ...] = ()
    user_id: str = ""
    run_id: str = ""
    limit: int = 100
    after: CheckpointPosition | None = None


class CheckpointPage(Struct, frozen=True):
    """A page as a list in wire form: entries of field 1. `following`: where the next begins; None at the end."""

    encoded: bytes
    following: CheckpointPosition | None
    revision: int


class HistoryPosition(Struct, frozen=True, array_like=True):
    """Where a history continues: at an ancestor, for the channels that have no value so far."""

    checkpoint_id: str
    channels: tuple[str, ...]


class ChannelQuery(Struct, frozen=True):
    """Which history to list: that of some channels before a checkpoint."""

    name: CheckpointName
    channels: tuple[str, ...]
    limit: int = 100
    after: HistoryPosition | None = None


class ChannelHistory(Struct, frozen=True):
    """A page of a history: its steps as entries of field 1, and where the next page begins; None at the end."""

    encoded: bytes
    following: HistoryPosition | None
    revision: int


class ChannelValueName(Struct, frozen=True):
    """The value of a channel. `version` is as it is stored."""

    thread_id: str
    checkpoint_ns: str
    channel: str
    version: str
    fork: int = 0


class WriteValueName(Struct, frozen=True):
    """The value of a write."""

    thread_id: str
    checkpoint_ns: str
    checkpoint_id: str
    task_id: str
    index: int


class ValuePart(Struct, frozen=True):
    """Some bytes of a value, its type, the size of the whole in bytes, the revision that stored it and the one that
    this read shows.
    """

    type: str
    data: bytes
    size: int
    value_revision: int
    revision: int


class ThreadQuery(Struct, frozen=True):
    """Which threads to list, by id. `updated_before`: only threads without a checkpoint since then."""

    user_id: str = ""
    updated_before: int | None = None
    after: str = ""
    limit: int = 100


class ThreadSummary(Struct, frozen=True):
    """A thread, and when its first and its last checkpoint were stored."""

    id: str
    checkpoints: int
    create_time: int
    update_time: int


class CheckpointStore(Protocol):
    """Keeps checkpoints: see `domain.store`."""

    def save(self, write: Write, checkpoints: Sequence[CheckpointDraft], tasks: Sequence[TaskDraft]) -> Outcome:
        """Add or replace, all or none. Raises UploadIncomplete."""

    def get(self, read: Read, names: Sequence[CheckpointName]) -> tuple[bytes, int]:
        """The checkpoints of the first names, as many as a reply holds, as entries of field 1; empty entries for
        missing ones.
        """

    def list(self, read: Read, query: CheckpointQuery) -> CheckpointPage:
        """A page of checkpoints."""

    def history(self, read: Read, query: ChannelQuery) -> ChannelHistory:
        """The values of channels in the ancestors of a checkpoint, the nearest first."""

    def upload(self, write: Write, part: PartDraft) -> Outcome:
        """Store a part of a value that a later write names, within an hour. Raises UploadNamed."""

    def read_value(self, read: Read, name: ChannelValueName | WriteValueName, offset: int) -> ValuePart:
        """Bytes of a value, as many as a reply holds. Raises CheckpointValueNotFound."""


class ThreadStore(Protocol):
    """Keeps threads: see `domain.store`. Deletions count checkpoints in `deleted_records`, and say if anything went."""

    def list(self, read: Read, query: ThreadQuery) -> tuple[Sequence[ThreadSummary], int]:
        """Threads, and the revision that they show."""

    def delete(self, write: Write, thread_id: str) -> Outcome:
        """Delete everything of a thread."""

    def delete_runs(self, write: Write, run_ids: Sequence[str]) -> Outcome:
        """Delete the checkpoints of runs, except those from which others are rebuilt."""

    def copy(self, write: Write, source: str, target: str) -> Outcome:
        """Add everything of a thread to another; `imported_records`."""

    def prune(self, write: Write, thread_ids: Sequence[str], *, keep_latest: bool) -> Outcome:
        """Delete old checkpoints, or all."""


def stored_version(version: str | int | float) -> str:
    """A version as it is stored. Versions of different types have different texts."""
    if isinstance(version, str):
        return f"#{version}" if version.startswith("#") else version
    return f"#{version!r}"


DELTA_COUNTERS = "counters_since_delta_snapshot"
"""The member of a checkpoint's metadata whose own members are channels that are kept as their writes, since LangGraph
last stored their value.
"""
