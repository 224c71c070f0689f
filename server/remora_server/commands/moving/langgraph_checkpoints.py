"""The checkpoints of LangGraph's SqliteSaver, which are cut into the values of their channels.

A checkpoint is one encoded map there. Its values are cut out of it without being decoded, and only values that its
parent does not have are sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec
from msgspec import Raw, Struct
from rich.console import Console

from remora import Remora
from remora._checkpoint_calls import Blocking
from remora._saved_checkpoints import Saved, in_requests, set_version, with_unversioned
from remora.errors import InvalidFieldError
from remora.v1 import checkpoint_service_pb2 as wire
from remora.v1.checkpoint_pb2 import ChannelVersion, Checkpoint
from remora_server.commands.connecting import CALL_SECONDS
from remora_server.commands.failures import CommandFailed
from remora_server.commands.moving.records import Copied, differences, require_equal
from remora_server.commands.moving.sqlite_file import TOO_DEEP, Row, SqliteFile
from remora_server.commands.numbers import counted
from remora_server.commands.output import diagnostics, noting_silence, progress_of_rows
from remora_server.commands.reported import Reported

OWNER = "LangGraph's SqliteSaver"
CHECKPOINTS, WRITES = "checkpoints", "writes"
PLACE = ("thread_id", "checkpoint_ns", "checkpoint_id")
TABLES = {
    CHECKPOINTS: (*PLACE, "parent_checkpoint_id", "type", "checkpoint", "metadata"),
    WRITES: (*PLACE, "task_id", "idx", "channel", "type", "value"),
}
AT_ONCE = 20
"""Checkpoints that are held in memory, whole."""
_OF_PLACE = "WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
_BY_PLACE = "ORDER BY thread_id, checkpoint_ns, checkpoint_id"
_ORPHANS = """AS own WHERE NOT EXISTS (SELECT 1 FROM checkpoints AS whole WHERE whole.thread_id = own.thread_id
    AND whole.checkpoint_ns = own.checkpoint_ns AND whole.checkpoint_id = own.checkpoint_id)"""

_DECODERS: Mapping[str, Any] = {"json": msgspec.json, "msgpack": msgspec.msgpack}


class Cut(Struct, frozen=True):
    """A checkpoint of the file: its message, the encoded values of its channels, and its writes."""

    row: Row
    message: Checkpoint
    values: Mapping[str, bytes]
    writes: Sequence[wire.PendingWrite]

    @property
    def name(self) -> wire.CheckpointName:
        """What names it."""
        given = self.message
        return wire.CheckpointName(thread_id=given.thread_id, checkpoint_ns=given.checkpoint_ns, checkpoint_id=given.id)

    @property
    def described(self) -> str:
        """Where it stands, and which it is."""
        return f"{self.row.place} (checkpoint {self.message.id!r} of thread {self.message.thread_id!r})"

    def saved(self, parent: Cut | None) -> Saved:
        """What saves it, where Remora has the parent."""
        draft = wire.CheckpointDraft(checkpoint=self.message)
        saved = Saved(draft)
        has = {} if parent is None else {each.channel: each for each in parent.message.channels}
        for told in draft.checkpoint.channels:
            channel, value = told.channel, self.values.get(told.channel)
            if parent is not None and told == has.get(channel) and value == parent.values.get(channel):
                told.empty = False
            elif value is not None:
                given = draft.values.add(channel=channel).value
                given.type, given.data = self.message.type, value
                saved.values.append(given)
        return saved

    def saved_writes(self) -> Iterator[Saved]:
        """What saves the writes of its tasks."""
        tasks: dict[tuple[str, str], Saved] = {}
        for write in self.writes:
            saved = tasks.get((write.task_path, write.task_id))
            if saved is None:
                task = wire.TaskWrites(name=self.name, task_id=write.task_id, task_path=write.task_path)
                task.user_id = self.message.user_id
                saved = tasks[write.task_path, write.task_id] = Saved(task=task)
            if saved.task is not None:
                given = saved.task.writes.add(channel=write.channel, index=write.index, value=write.value)
                saved.values.append(given.value)
        yield from tasks.values()

    def differences(self, found: wire.FoundCheckpoint | None) -> list[str]:
        """What differs between the server and the file."""
        if found is None:
            return ["Remora has no such checkpoint"]
        there = Checkpoint()
        there.CopyFrom(found.checkpoint)
        there.ClearField("create_time")
        for told in there.channels:
            told.ClearField("fork")
        values = {each.channel: (each.value.type, each.value.data) for each in found.values}
        expected = {channel: (self.message.type, value) for channel, value in self.values.items()}
        other = [each for each in sorted({*values, *expected}) if values.get(each) != expected.get(each)]
        return [
            *(f"Remora has another {name}" for name in differences(self.message, there)),
            *(f"Remora has another value of channel {channel!r}" for channel in other),
            *(["Remora does not have all of its writes"] if self.lacks_writes(found) else []),
        ]

    def lacks_writes(self, found: wire.FoundCheckpoint) -> bool:
        """Whether some of its writes are missing. More writes are no difference: a waiting thread may have gone on."""
        return not set(map(_write, self.writes)) <= set(map(_write, found.writes))


class CheckpointFile(Struct, frozen=True):
    """The checkpoints of a file, by namespace, the oldest first."""

    file: SqliteFile

    def checkpoints(self) -> Iterator[Cut]:
        """All of them. Raises CommandFailed for one that cannot be cut."""
        return map(self._cut, self.file.rows(CHECKPOINTS, _BY_PLACE))

    def with_parents(self) -> Iterator[tuple[Cut, Cut | None]]:
        """All of them, each with its parent, if that comes before it."""
        previous: Cut | None = None
        for own in self.checkpoints():
            yield own, self._parent_of(own, previous)
            previous = own

    def _parent_of(self, own: Cut, previous: Cut | None) -> Cut | None:
        given = own.message
        if not given.parent_id or given.parent_id >= given.id:
            return None
        place = (given.thread_id, given.checkpoint_ns, given.parent_id)
        if previous is not None and _place(previous.message) == place:
            return previous
        return next(map(self._cut, self.file.rows(CHECKPOINTS, _OF_PLACE, place)), None)

    def _cut(self, row: Row) -> Cut:
        message = Checkpoint(
            thread_id=row.text("thread_id"),
            checkpoint_ns=row.text("checkpoint_ns"),
            id=row.text("checkpoint_id"),
            parent_id=row.optional_text("parent_checkpoint_id"),
            metadata=b"" if row.values["metadata"] is None else row.data("metadata"),
        )
        members = _members(row, "metadata", msgspec.json, message.metadata or b"{}")
        message.user_id, message.run_id = (_text(members, key) for key in ("user_id", "run_id"))
        coder = _coder(row)
        parts = _members(row, "checkpoint", coder, row.data("checkpoint"))
        versions = _part(row, coder, parts, "channel_versions", dict[str, str | int | float])
        values = _part(row, coder, parts, "channel_values", dict[str, Raw])
        if _part(row, coder, parts, "id", str) != message.id:
            raise row.fault("checkpoint", "has another id than the row")
        message.type, message.data = row.text("type"), coder.encode(parts)
        for channel, version in with_unversioned(versions, values).items():
            message.channels.append(_version(row, channel, version, is_empty=channel not in values))
        return Cut(row, message, {channel: bytes(value) for channel, value in values.items()}, self._writes(row))

    def _writes(self, row: Row) -> list[wire.PendingWrite]:
        place = tuple(row.text(column) for column in PLACE)
        return [pending(each) for each in self.file.rows(WRITES, f"{_OF_PLACE} ORDER BY rowid", place)]

    def orphans(self) -> int:
        """How many writes belong to checkpoints that the file does not have."""
        return sum(1 for _ in self.file.rows(WRITES, _ORPHANS))


def pending(row: Row) -> wire.PendingWrite:
    """A write of a task."""
    return wire.PendingWrite(
        task_id=row.text("task_id"),
        task_path=row.optional_text("task_path"),
        channel=row.text("channel"),
        index=row.integer("idx"),
        value=wire.Value(type=row.text("type"), data=row.data("value")),
    )


def copy(client: Remora, file: SqliteFile) -> str:
    """Check, copy and compare the checkpoints of a file. Returns the report's lines. Raises CommandFailed."""
    file.require(OWNER, TABLES)
    checkpoints = CheckpointFile(file)
    copied, report = Copied(sum(1 for _ in checkpoints.checkpoints())), Reported(file.name)
    with progress_of_rows() as progress:
        copying = _Copying(Blocking(client, CALL_SECONDS), file.name, copied, report, progress.console)
        task = progress.add_task("copying", total=copied.given)
        pairs = checkpoints.with_parents()
        while several := list(islice(pairs, AT_ONCE)):
            copying.take(several)
            progress.advance(task, len(several))
    require_equal(copied, report, "checkpoint")
    if orphans := checkpoints.orphans():
        left = counted(
            orphans,
            "write of a checkpoint that is not in the file is",
            "writes of checkpoints that are not in the file are",
        )
        diagnostics().print(f"{left} left out")
    return copied.told("checkpoint")


class _Copying(Struct):
    """Copies some checkpoints after others, and compares what the server has then."""

    calls: Blocking
    name: str
    copied: Copied
    report: Reported
    console: Console

    def take(self, several: Sequence[tuple[Cut, Cut | None]]) -> None:
        """Save the checkpoints that the server does not have. Those that it has stay as they are."""
        found = self._found([own for own, _ in several])
        for (own, _), there in zip(several, found, strict=True):
            if there is not None and own.differences(there):
                self.copied.differing.add(own.row.place)
        saved = [
            (own, each)
            for (own, parent), there in zip(several, found, strict=True)
            for each in self._saved(own, parent, there)
        ]
        places = {id(each): own.described for own, each in saved}
        self._save([each for _, each in saved], places)
        self.copied.new += found.count(None)
        self._compare([own for own, _ in several])

    def _saved(self, own: Cut, parent: Cut | None, there: wire.FoundCheckpoint | None) -> Iterator[Saved]:
        if there is None:
            is_same = parent is not None and parent.row.place not in self.copied.differing
            yield own.saved(parent if is_same else None)
        if there is None or own.lacks_writes(there):
            yield from own.saved_writes()

    def _save(self, several: Sequence[Saved], places: Mapping[int, str]) -> None:
        for some in in_requests(several):
            drafts = [each for each in some if each.draft is not None]
            tasks = [each for each in some if each.task is not None]
            try:
                with noting_silence(self.console):
                    self.calls.save_all(some)
            except InvalidFieldError as error:
                kind, _, rest = error.metadata.get("field", "").partition("[")
                refused = (tasks if kind == "writes" else drafts)[int(rest.partition("]")[0] or 0)]
                why = " ".join(str(error).split())
                raise CommandFailed(
                    f"{self.name}: {places[id(refused)]}: {why}; "
                    f"{counted(self.copied.new, 'checkpoint was', 'checkpoints were')} copied before"
                ) from error

    def _compare(self, several: Sequence[Cut]) -> None:
        for own, there in zip(several, self._found(several), strict=True):
            self.copied.differing.discard(own.row.place)
            for difference in own.differences(there):
                self.copied.differing.add(own.row.place)
                self.report(f"{own.described}: {difference}")

    def _found(self, several: Iterable[Cut]) -> list[wire.FoundCheckpoint | None]:
        with noting_silence(self.console):
            return self.calls.get_all([own.name for own in several])


def _place(given: Checkpoint) -> tuple[str, str, str]:
    return given.thread_id, given.checkpoint_ns, given.id


def _write(given: wire.PendingWrite) -> tuple[object, ...]:
    value = given.value
    return given.task_path, given.task_id, given.index, given.channel, value.type, value.data


def _coder(row: Row) -> Any:  # noqa: ANN401 - a module of msgspec
    """What reads and writes a checkpoint's map."""
    kind = row.text("type")
    if kind not in _DECODERS:
        raise row.fault("type", f"is {kind!r}: only json and msgpack can be copied, and no pickle is opened")
    return _DECODERS[kind]


def _members(row: Row, column: str, coder: Any, data: bytes) -> dict[str, Raw]:  # noqa: ANN401 - a module of msgspec
    try:
        members: dict[str, Raw] = coder.decode(data, type=dict[str, Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise row.fault(column, f"is not a map: {error}") from error
    except RecursionError as error:
        raise row.fault(column, TOO_DEEP) from error
    return members


def _part(row: Row, coder: Any, parts: dict[str, Raw], name: str, type_: Any) -> Any:  # noqa: ANN401 - what `type_` says
    """Take out of a checkpoint a part that has its own field in the contract."""
    if name not in parts:
        raise row.fault("checkpoint", f"has no {name}")
    try:
        return coder.decode(parts.pop(name), type=type_)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise row.fault("checkpoint", f"has {name} that are not understood: {error}") from error


def _version(row: Row, channel: str, version: str | float, *, is_empty: bool) -> ChannelVersion:
    told = ChannelVersion(channel=channel, empty=is_empty)
    try:
        set_version(told.version, version)
    except ValueError as error:
        raise row.fault("checkpoint", f"has a version of channel {channel!r} that is too large: {version}") from error
    return told


def _text(members: Mapping[str, Raw], key: str) -> str:
    """A member as the text that the server finds it by, as RemoraSaver makes it; empty if there is none."""
    value = msgspec.json.decode(members[key]) if key in members else None
    return "" if value is None else str(value)
