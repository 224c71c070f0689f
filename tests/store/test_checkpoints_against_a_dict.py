"""Checkpoints of any store against dicts that do the same, with restarts where it keeps what it has."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.examples import examples
from tests.store.asking import Tenant
from tests.store.checkpoint_model import ThreadRows
from tests.store.implementations import IMPLEMENTATIONS, KEEPING

from remora.v1.checkpoint_pb2 import ChannelVersion, Checkpoint, Version
from remora.v1.checkpoint_service_pb2 import FoundCheckpoint, ListChannelHistoryResponse, ListCheckpointsResponse
from remora_server.domain.checkpoints import (
    ChannelQuery,
    CheckpointDraft,
    CheckpointName,
    CheckpointQuery,
    PartDraft,
    TaskDraft,
    UploadName,
    ValueDraft,
    WriteDraft,
)
from remora_server.domain.errors import UploadIncomplete, UploadNamed
from remora_server.storage.nouns import channel_values

THREADS = st.sampled_from(["t1", "t2"])
NAMESPACES = st.sampled_from(["", "sub", "call:1"])
IDS = st.sampled_from(["1", "2", "3", "4", "5"])
USERS = st.sampled_from(["", "sarah", "tom"])
RUNS = st.sampled_from(["", "r1", "r2"])
CHANNELS = ("a", "b")
VERSIONS = st.integers(1, 4)
METADATA = st.sampled_from(
    [
        b"",
        b'{"parents": {"": "1"}}',
        b'{"parents": {"": "2"}, "counters_since_delta_snapshot": {"a": [1, 1]}}',
        b'{"counters_since_delta_snapshot": {"b": [2, 1]}}',
    ]
)
LINES = b"".join(b"line %03d of a long text that grows and shrinks\n" % number for number in range(60))


@pytest.fixture(scope="module", autouse=True)
def short_strides() -> Iterator[None]:
    """Few checkpoints have all that a chain of differences may have."""
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(channel_values, "STRIDE", 2)
        patching.setattr(channel_values, "GREATEST_DEPTH", 4)
        yield


@st.composite
def values(draw: st.DrawFn) -> bytes:
    """Values that resemble each other: some lines of one text, behind a count."""
    first, last = sorted(draw(st.lists(st.integers(0, 60), min_size=2, max_size=2)))
    lines = LINES.splitlines(keepends=True)[first:last]
    return bytes([len(lines)]) + b"".join(lines) + draw(st.binary(max_size=3))


class CheckpointMachine(RuleBasedStateMachine):
    """Does each thing to the store and to dicts, and compares what both show."""

    implementation: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="remora-model-"))
        self.open()
        self.rows = ThreadRows()

    def open(self) -> None:
        self.store = IMPLEMENTATIONS[self.implementation](self.directory / "data")
        self.tenant = Tenant(self.store, "acme")

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.directory)

    @rule(
        thread=THREADS,
        ns=NAMESPACES,
        checkpoint_id=IDS,
        parent=IDS,
        user=USERS,
        run=RUNS,
        metadata=METADATA,
        versions=st.tuples(VERSIONS, VERSIONS),
        given=st.dictionaries(st.sampled_from(CHANNELS), st.none() | values()),
        uploaded=st.booleans(),
    )
    def save(  # noqa: PLR0917 - drawn
        self,
        thread: str,
        ns: str,
        checkpoint_id: str,
        parent: str,
        user: str,
        run: str,
        metadata: bytes,
        versions: tuple[int, int],
        given: dict[str, bytes | None],
        uploaded: bool,
    ) -> None:
        checkpoint = Checkpoint(
            thread_id=thread,
            checkpoint_ns=ns,
            id=checkpoint_id,
            parent_id=parent if parent < checkpoint_id else "",
            user_id=user,
            run_id=run,
            metadata=metadata,
        )
        for channel, version in zip(CHANNELS, versions, strict=True):
            empty = channel in given and given[channel] is None
            checkpoint.channels.append(ChannelVersion(channel=channel, version=Version(integer=version), empty=empty))
        drafts = {name: ValueDraft("json", data) for name, data in given.items() if data is not None}
        if uploaded and "a" in drafts:
            drafts["a"] = ValueDraft("bytes", b"", UploadName("u", 1))
        draft = CheckpointDraft(CheckpointName(thread, ns, checkpoint_id), checkpoint.SerializeToString(), drafts, user)
        self._save([draft], [])

    @rule(
        thread=THREADS,
        ns=NAMESPACES,
        checkpoint_id=IDS,
        task=st.sampled_from(["k1", "k2"]),
        path=st.sampled_from(["", "p", "o"]),
        indexes=st.lists(st.integers(-2, 2), min_size=1, max_size=3),
        replace=st.booleans(),
        user=USERS,
    )
    def write(  # noqa: PLR0917 - drawn
        self,
        thread: str,
        ns: str,
        checkpoint_id: str,
        task: str,
        path: str,
        indexes: list[int],
        replace: bool,
        user: str,
    ) -> None:
        writes = tuple(
            WriteDraft(CHANNELS[index % 2], index, ValueDraft("json", b"%d %d" % (index, place)))
            for place, index in enumerate(indexes)
        )
        name = CheckpointName(thread, ns, checkpoint_id)
        self._save([], [TaskDraft(name, task, path, writes, replace, user)])

    def _save(self, checkpoints: list[CheckpointDraft], tasks: list[TaskDraft]) -> None:
        refused = False
        try:
            self.rows.save(checkpoints, tasks, 0, 1)
        except UploadIncomplete:
            refused = True
        try:
            self.store.checkpoints.save(self.tenant.write, checkpoints, tasks)
        except UploadIncomplete:
            assert refused
        else:
            assert not refused

    @rule(thread=THREADS, ns=NAMESPACES, user=USERS, data=st.binary(min_size=200, max_size=201))
    def upload(self, thread: str, ns: str, user: str, data: bytes) -> None:
        part = PartDraft(thread, ns, "u", 0, data, user)
        refused = False
        try:
            self.rows.upload(part)
        except UploadNamed:
            refused = True
        try:
            self.store.checkpoints.upload(self.tenant.write, part)
        except UploadNamed:
            assert refused
        else:
            assert not refused

    @rule(thread=THREADS)
    def delete(self, thread: str) -> None:
        self.rows.delete(thread)
        self.store.threads.delete(self.tenant.write, thread)

    @rule(run=RUNS.filter(bool))
    def delete_run(self, run: str) -> None:
        gone = self.rows.delete_runs([run])
        assert self.store.threads.delete_runs(self.tenant.write, [run]).deleted_records == gone

    @rule(thread=THREADS, keep_latest=st.booleans())
    def prune(self, thread: str, keep_latest: bool) -> None:
        gone = self.rows.prune(thread, keep_latest=keep_latest)
        outcome = self.store.threads.prune(self.tenant.write, [thread], keep_latest=keep_latest)
        assert outcome.deleted_records == gone

    @rule(source=THREADS)
    def copy(self, source: str) -> None:
        """To a thread that then has nothing else."""
        self.rows.delete("copy")
        self.store.threads.delete(self.tenant.write, "copy")
        copied = self.rows.copy(source, "copy")
        assert self.store.threads.copy(self.tenant.write, source, "copy").imported_records == copied

    @rule(user=USERS.filter(bool))
    def forget(self, user: str) -> None:
        self.rows.forget(user)
        self.store.users.delete(self.tenant.write, user)

    @precondition(lambda self: self.implementation in KEEPING)
    @rule()
    def reopen(self) -> None:
        self.store.close()
        self.open()

    @invariant()
    def shows_the_same(self) -> None:
        wanted = [contents.found(checkpoint) for contents, checkpoint in self.rows.listed()]
        page = self.store.checkpoints.list(self.tenant.read, CheckpointQuery(limit=1_000))
        found = list(ListCheckpointsResponse.FromString(page.encoded).checkpoints)
        assert sorted(map(plain, found), key=str) == sorted(map(plain, wanted), key=str)
        assert [each.checkpoint.id for each in found] == [each.checkpoint.id for each in wanted]

    @rule(thread=THREADS, ns=NAMESPACES, checkpoint_id=IDS)
    def history(self, thread: str, ns: str, checkpoint_id: str) -> None:
        query = ChannelQuery(CheckpointName(thread, ns, checkpoint_id), CHANNELS)
        page = self.store.checkpoints.history(self.tenant.read, query)
        model = Tenant(IMPLEMENTATIONS["model"](Path()), "acme")
        model.store.checkpoints._noun._books.tenant("acme").threads = self.rows  # type: ignore[attr-defined]
        wanted = model.store.checkpoints.history(model.read, query)
        found, told = map(ListChannelHistoryResponse.FromString, (page.encoded, wanted.encoded))
        for step in (*found.steps, *told.steps):
            for value in step.values:
                value.value.ClearField("size")
            for channel in step.channels:
                channel.ClearField("fork")
        assert [str(step) for step in found.steps] == [str(step) for step in told.steps]


def plain(found: FoundCheckpoint) -> str:
    """Without what the model cannot know."""
    copied = FoundCheckpoint()
    copied.CopyFrom(found)
    copied.checkpoint.ClearField("create_time")
    for channel in copied.checkpoint.channels:
        channel.ClearField("fork")
    return str(copied)


SETTINGS = settings(
    max_examples=examples(12),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


class OnDisk(CheckpointMachine):
    implementation = "disk"


class InMemory(CheckpointMachine):
    implementation = "memory"


TestOnDisk = OnDisk.TestCase
TestInMemory = InMemory.TestCase
TestOnDisk.settings = TestInMemory.settings = SETTINGS
