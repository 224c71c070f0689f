"""Spans and log records of any store against a dict that does the same, with restarts where it keeps what it has."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tests.store.asking import Tenant
from tests.store.implementations import IMPLEMENTATIONS, KEEPING
from tests.store.test_traces import get, log, logs, members, ns, save, span, trace, traces, update, write_logs
from tests.store.test_workflows_against_a_dict import SETTINGS

from remora.v1.log_record_pb2 import LogRecord
from remora.v1.span_pb2 import SpanRecord
from remora_server import wire
from remora_server.domain.errors import SpanNotFound

TRACE_IDS = ("t1", "t2", "")
TRACES = st.sampled_from(TRACE_IDS[:2])
NAMES = st.sampled_from(["p1", "p2", "p3"])
USERS = st.sampled_from(["", "sarah", "tom"])
TIMES = st.integers(0, 4)
ATTRIBUTES = st.sampled_from([b"", b'{"a": 1}', b'{"a": 1.0, "b": {"c": [null]}}', b'{"b": "x"}'])
BODIES = st.sampled_from([b"", b'"a word"', b'{"said": "word"}', b"\xff"])


class TraceMachine(RuleBasedStateMachine):
    """Does each thing to the store and to dicts, and compares what both show."""

    implementation: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="remora-model-"))
        self.open()
        self.spans: dict[tuple[str, str], SpanRecord] = {}
        self.logs: dict[tuple[str, str], LogRecord] = {}
        """In the order of writing."""

    def open(self) -> None:
        self.store = IMPLEMENTATIONS[self.implementation](self.directory / "data")
        self.tenant = Tenant(self.store, "acme")

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.directory)

    @rule(of=TRACES, names=st.lists(NAMES, min_size=1, max_size=3), start=TIMES, user=USERS, attributes=ATTRIBUTES)
    def save(self, of: str, names: list[str], start: int, user: str, attributes: bytes) -> None:
        given = [span(name, of, start, user_id=user, attributes=attributes) for name in dict.fromkeys(names)]
        save(self.tenant, *given)
        for one in given:
            self.write(one)

    @rule(of=TRACES, name=NAMES, start=TIMES, attributes=ATTRIBUTES)
    def update(self, of: str, name: str, start: int, attributes: bytes) -> None:
        try:
            update(
                self.tenant, name, "start_time", "attributes", trace_id=of, start_time=ns(start), attributes=attributes
            )
        except SpanNotFound:
            assert (of, name) not in self.spans
        else:
            changed = self.spans[of, name]
            changed.start_time.CopyFrom(ns(start))
            changed.attributes = attributes
            self.write(changed)

    def write(self, written: SpanRecord) -> None:
        self.spans.pop((written.trace_id, written.span_id), None)
        self.spans[written.trace_id, written.span_id] = written

    @rule(of=st.sampled_from(TRACE_IDS), name=NAMES, time=TIMES, user=USERS, body=BODIES)
    def write_log(self, of: str, name: str, time: int, user: str, body: bytes) -> None:
        given = log(name, time, trace_id=of, user_id=user, severity_number=5 * time, body=body)
        write_logs(self.tenant, given)
        self.logs.pop((of, name), None)
        self.logs[of, name] = given

    @rule(before=TIMES)
    def prune(self, before: int) -> None:
        limit = wire.nanos(ns(before))
        old_spans = [key for key, one in self.spans.items() if wire.nanos(one.start_time) < limit]
        old_logs = [key for key, one in self.logs.items() if wire.nanos(one.time) < limit]

        assert self.store.spans.prune(self.tenant.write, limit).deleted_records == len(old_spans)
        assert self.store.log_records.prune(self.tenant.write, limit).deleted_records == len(old_logs)

        for key in old_spans:
            del self.spans[key]
        for key in old_logs:
            del self.logs[key]

    @rule(user=st.sampled_from(["sarah", "tom"]))
    def delete_user(self, user: str) -> None:
        self.store.users.delete(self.tenant.write, user)
        self.spans = {key: one for key, one in self.spans.items() if one.user_id != user}
        self.logs = {key: one for key, one in self.logs.items() if one.user_id != user}

    @precondition(lambda self: self.implementation in KEEPING)
    @rule()
    def restart(self) -> None:
        self.store.close()
        self.open()

    @invariant()
    def spans_are_the_dicts(self) -> None:
        for (of, name), wanted in self.spans.items():
            assert get(self.tenant, name, of) == wanted
        for of in TRACE_IDS[:2]:
            wanted_ids = [one.span_id for one in _by_time(self.spans, "start_time") if one.trace_id == of]
            assert trace(self.tenant, of) == wanted_ids

    @invariant()
    def traces_are_the_dicts(self) -> None:
        assert [(one.trace_id, one.spans) for one in traces(self.tenant)] == self.wanted_traces()
        with_member = {of for (of, _), one in self.spans.items() if b'"a": 1' in one.attributes}
        found = [one.trace_id for one in traces(self.tenant, members=members(b'{"a": 1}'))]
        assert found == [of for of, _ in self.wanted_traces() if of in with_member]

    def wanted_traces(self) -> list[tuple[str, int]]:
        starts: dict[str, list[int]] = {}
        for (of, _), one in self.spans.items():
            starts.setdefault(of, []).append(wire.nanos(one.start_time))
        newest_first = sorted(starts, key=lambda of: (min(starts[of]), of), reverse=True)
        return [(of, len(starts[of])) for of in newest_first]

    @invariant()
    def logs_are_the_dicts(self) -> None:
        wanted = _by_time(self.logs, "time")
        assert logs(self.tenant) == wanted
        assert logs(self.tenant, newest_first=True) == wanted[::-1]
        assert logs(self.tenant, trace_id="t1", min_severity=12) == [
            one for one in wanted if one.trace_id == "t1" and one.severity_number >= 12
        ]
        assert logs(self.tenant, body_contains="word") == [one for one in wanted if b"word" in one.body]


def _by_time(records: dict[tuple[str, str], Any], name: str) -> list[Any]:
    """By time, then in the order of writing."""
    return sorted(records.values(), key=lambda one: wire.nanos(getattr(one, name)))


class OnDisk(TraceMachine):
    implementation = "disk"


class InMemory(TraceMachine):
    implementation = "memory"


class OfTheModel(TraceMachine):
    implementation = "model"


TestOnDisk, TestInMemory, TestOfTheModel = OnDisk.TestCase, InMemory.TestCase, OfTheModel.TestCase
TestOnDisk.settings = TestInMemory.settings = TestOfTheModel.settings = SETTINGS
