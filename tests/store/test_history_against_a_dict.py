"""History entries, their steps and events of any store against a dict that does the same, with restarts where it keeps
what it has.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.store.asking import Tenant
from tests.store.implementations import IMPLEMENTATIONS, KEEPING
from tests.store.test_history import entry, listed, save, save_steps, step, step_ids, steps, update
from tests.store.test_workflows import add, at, event, events
from tests.store.test_workflows_against_a_dict import SETTINGS

from remora.v1.history_entry_pb2 import HistoryEntry
from remora_server.domain.errors import EntryStepNotFound, HistoryEntryExists, HistoryEntryNotFound
from remora_server.domain.workflows import PartName

NAMES = ("h1", "h2", "h3")
ENTRIES = st.sampled_from(NAMES)
USERS = st.sampled_from(["", "sarah", "tom"])
AGENTS = ("a", "b")
TIMES = st.integers(0, 4)
STEPS = st.sampled_from(["p1", "p2", "p3"])
INDEXES = st.integers(0, 2)
CONTENTS = st.binary(max_size=4)


class HistoryMachine(RuleBasedStateMachine):
    """Does each thing to the store and to dicts, and compares what both show."""

    implementation: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="remora-model-"))
        self.open()
        self.entries: dict[str, HistoryEntry] = {}
        """In the order of writing."""
        self.steps: dict[tuple[str, str], tuple[int, bytes]] = {}
        """The index and the content, in the order of adding."""
        self.events: dict[tuple[str, str], str] = {}
        """The user, in the order of adding."""

    def open(self) -> None:
        self.store = IMPLEMENTATIONS[self.implementation](self.directory / "data")
        self.tenant = Tenant(self.store, "acme")

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.directory)

    @rule(name=ENTRIES, agent=st.sampled_from(AGENTS), user=USERS, started=TIMES, given=CONTENTS)
    def save(self, name: str, agent: str, user: str, started: int, given: bytes) -> None:
        before = self.entries.get(name)
        try:
            save(self.tenant, name, agent, user_id=user, start_time=at(started), create_time=at(started), input=given)
        except HistoryEntryExists:
            assert before is not None
            assert before.user_id != user
            return
        assert before is None or before.user_id == user
        self.write(
            HistoryEntry(
                id=name, agent_id=agent, user_id=user, start_time=at(started), create_time=at(started), input=given
            )
        )

    @rule(name=ENTRIES, started=TIMES, output=CONTENTS)
    def update(self, name: str, started: int, output: bytes) -> None:
        try:
            update(self.tenant, name, "output", "start_time", start_time=at(started), output=output)
        except HistoryEntryNotFound:
            assert name not in self.entries
        else:
            changed = self.entries[name]
            changed.start_time.CopyFrom(at(started))
            changed.output = output
            self.write(changed)

    def write(self, written: HistoryEntry) -> None:
        self.entries.pop(written.id, None)
        self.entries[written.id] = written

    @rule(name=ENTRIES)
    def delete(self, name: str) -> None:
        outcome = self.store.history_entries.delete(self.tenant.write, name)
        assert outcome.deleted == (name in self.entries)
        if outcome.deleted:
            self.drop(name)
            self.events = {key: value for key, value in self.events.items() if key[0] != name}

    def drop(self, name: str) -> None:
        del self.entries[name]
        self.steps = {key: value for key, value in self.steps.items() if key[0] != name}

    @rule(name=ENTRIES, parts=st.lists(st.tuples(STEPS, INDEXES, CONTENTS), min_size=1, max_size=3))
    def save_steps(self, name: str, parts: list[tuple[str, int, bytes]]) -> None:
        try:
            save_steps(self.tenant, *(step(part, index, name, content=content) for part, index, content in parts))
        except HistoryEntryNotFound:
            assert name not in self.entries
        else:
            assert name in self.entries
            last: dict[str, tuple[int, bytes]] = {}
            for part, index, content in parts:  # what one request saves twice is in the place of the last
                last.pop(part, None)
                last[part] = (index, content)
            self.steps.update({(name, part): each for part, each in last.items()})

    @rule(name=ENTRIES, part=STEPS, content=CONTENTS)
    def update_step(self, name: str, part: str, content: bytes) -> None:
        try:
            wanted = step(part, entry_id=name, content=content)
            self.store.entry_steps.update(self.tenant.write, wanted, frozenset({"content"}))
        except EntryStepNotFound:
            assert (name, part) not in self.steps
        else:
            self.steps[name, part] = (self.steps[name, part][0], content)

    @rule(name=ENTRIES, part=STEPS)
    def delete_step(self, name: str, part: str) -> None:
        outcome = self.store.entry_steps.delete(self.tenant.write, PartName(part, name))
        assert outcome.deleted == (self.steps.pop((name, part), None) is not None)

    @rule(name=ENTRIES, part=STEPS)
    def add_event(self, name: str, part: str) -> None:
        add(self.tenant, event(part, 1, name, start_time=at(1)))
        self.events.setdefault((name, part), self.entries[name].user_id if name in self.entries else "")

    @rule(user=st.sampled_from(["sarah", "tom"]))
    def delete_user(self, user: str) -> None:
        self.store.users.delete(self.tenant.write, user)
        gone = [name for name, one in self.entries.items() if one.user_id == user]
        self.events = {
            key: value for key, value in self.events.items() if value != user and not (value == "" and key[0] in gone)
        }
        for name in gone:
            self.drop(name)

    @precondition(lambda self: self.implementation in KEEPING)
    @rule()
    def restart(self) -> None:
        self.store.close()
        self.open()

    @invariant()
    def entries_are_the_dicts(self) -> None:
        for name, wanted in self.entries.items():
            found = entry(self.tenant, name)
            found.ClearField("update_time")
            assert found == wanted

    @invariant()
    def lists_are_the_dicts(self) -> None:
        order = {name: place for place, name in enumerate(self.entries)}

        def place(name: str) -> tuple[int, int]:
            return self.entries[name].start_time.ToMicroseconds(), order[name]

        newest_first = sorted(self.entries, key=place, reverse=True)
        assert listed(self.tenant) == newest_first
        for agent in AGENTS:
            wanted = [name for name in newest_first if self.entries[name].agent_id == agent]
            assert listed(self.tenant, agent_id=agent) == wanted

    @invariant()
    def parts_are_the_dicts(self) -> None:
        for name in NAMES:
            own = [(index, part) for (entry_id, part), (index, _) in self.steps.items() if entry_id == name]
            assert step_ids(self.tenant, name) == [part for _, part in sorted(own, key=lambda each: each[0])]
            for found in steps(self.tenant, name):
                assert found.content == self.steps[name, found.id][1]
            assert [one.id for one in events(self.tenant, name)] == [part for of, part in self.events if of == name]


class OnDisk(HistoryMachine):
    implementation = "disk"


class InMemory(HistoryMachine):
    implementation = "memory"


class OfTheModel(HistoryMachine):
    implementation = "model"


TestOnDisk, TestInMemory, TestOfTheModel = OnDisk.TestCase, InMemory.TestCase, OfTheModel.TestCase
TestOnDisk.settings = TestInMemory.settings = TestOfTheModel.settings = SETTINGS
