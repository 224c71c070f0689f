"""`remora import --from langgraph-checkpoints`: what is copied of a file, what is refused, and what differs afterwards.

The files have the schema of langgraph-checkpoint-sqlite 3; tests/suites/langgraph copies files of its own classes.
"""

from __future__ import annotations

import json
import pickle
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.commands.moving import Moving
from tests.examples import examples

from remora._checkpoint_calls import Blocking
from remora.testing import remora_server, remora_tenant  # noqa: F401 - fixtures
from remora.v1 import checkpoint_service_pb2 as wire
from remora.v1.checkpoint_pb2 import Checkpoint

SCHEMA = """
CREATE TABLE checkpoints (
    thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
    parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
);
CREATE TABLE writes (
    thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
    task_id TEXT NOT NULL, task_path TEXT NOT NULL DEFAULT '', idx INTEGER NOT NULL,
    channel TEXT NOT NULL, type TEXT, value BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
);
"""
EXTENSION = msgspec.msgpack.Ext(2, b"not decoded by anybody")
PACK = msgspec.msgpack.encode
OPENED = "only json and msgpack can be copied, and no pickle is opened"


class Checkpoints(Moving):
    """A file of checkpoints."""

    source = "langgraph-checkpoints"
    schema = SCHEMA

    def put(
        self,
        checkpoint_id: str,
        values: Mapping[str, tuple[object, object]],
        parent: str | None = None,
        **columns: object,
    ) -> None:
        """A checkpoint with the version and the value of each channel; a value of `...` is none."""
        checkpoint = {
            "v": 4,
            "id": checkpoint_id,
            "ts": "2026-03-01T10:00:00+00:00",
            "channel_values": {channel: value for channel, (_, value) in values.items() if value is not ...},
            "channel_versions": {channel: version for channel, (version, _) in values.items()},
            "versions_seen": {"__input__": {}},
        }
        given = {"thread_id": "t", "checkpoint_id": checkpoint_id, "parent_checkpoint_id": parent, "type": "msgpack"}
        body = {"checkpoint": PACK(checkpoint), "metadata": json.dumps({"user_id": "ana", "step": 1}).encode()}
        self.insert("checkpoints", **{**given, **body, **columns})

    def put_write(self, checkpoint_id: str, index: int, content: object, **columns: object) -> None:
        given = {"thread_id": "t", "checkpoint_id": checkpoint_id, "task_id": "task", "idx": index, "channel": "out"}
        self.insert("writes", **{**given, "type": "msgpack", "value": PACK(content), **columns})

    @property
    def calls(self) -> Blocking:
        return Blocking(self.memory, 60.0)

    def found(self, checkpoint_id: str, thread: str = "t") -> wire.FoundCheckpoint:
        found = self.calls.get(wire.CheckpointName(thread_id=thread, checkpoint_id=checkpoint_id))
        assert found is not None
        return found

    def values(self, checkpoint_id: str, thread: str = "t") -> dict[str, Any]:
        found = self.found(checkpoint_id, thread)
        return {each.channel: msgspec.msgpack.decode(each.value.data) for each in found.values}


@pytest.fixture
def file(
    remora_server: str,  # noqa: F811
    remora_tenant: str,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Checkpoints:
    return Checkpoints(remora_server, remora_tenant, tmp_path / "checkpoints.sqlite", capsys)


def all_copied(count: int) -> tuple[int, list[str]]:
    return 0, [f"{count} checkpoint{'s' if count != 1 else ''} copied; all are as in the file"]


def test_a_checkpoint_is_cut_into_its_channels(file: Checkpoints) -> None:
    file.put("1", {"messages": ("01", [EXTENSION, {"n": 1}]), "gone": (2, ...), "number": (0.5, None)})

    assert file.run() == all_copied(1)

    found = file.found("1")
    assert file.values("1") == {"messages": [EXTENSION, {"n": 1}], "number": None}
    assert {each.channel: each.empty for each in found.checkpoint.channels} == {
        "messages": False,
        "gone": True,
        "number": False,
    }
    assert msgspec.msgpack.decode(found.checkpoint.data) == {
        "v": 4,
        "ts": "2026-03-01T10:00:00+00:00",
        "versions_seen": {"__input__": {}},
    }
    assert found.checkpoint.user_id == "ana"
    assert json.loads(found.checkpoint.metadata) == {"user_id": "ana", "step": 1}


@pytest.mark.slow
def test_values_that_the_parent_has_are_sent_once(file: Checkpoints) -> None:
    text = "x" * 200_000
    file.put("1", {"long": (1, text), "count": (1, 1)})
    for number in range(2, 60):
        file.put(str(number).zfill(2), {"long": (1, text), "count": (number, number)}, str(number - 1).zfill(2))

    assert file.run() == all_copied(59)

    assert file.values("59") == {"long": text, "count": 59}
    records = file.memory.export_records().records
    assert sum(len(record.channel_blob.data) for record in records) < 2 * len(text) + 10_000


def test_branches_with_equal_versions_keep_their_own_values(file: Checkpoints) -> None:
    file.put("1", {"n": (1, "root")})
    file.put("2", {"n": (2, "left")}, "1")
    file.put("3", {"n": (2, "right")}, "1")
    file.put("4", {"n": (2, "left")}, "2")
    file.put("5", {"n": (2, "right")}, "3")
    file.put("6", {"n": (2, ...)}, "5")

    assert file.run() == all_copied(6)
    assert [file.values(str(number)) for number in (4, 5, 6)] == [{"n": "left"}, {"n": "right"}, {}]


VALUES = st.sampled_from(["x", "y", ..., [1, {"k": None}]])
STATES = st.dictionaries(st.sampled_from("abc"), st.tuples(st.sampled_from([1, 2, "1", 1.5]), VALUES))


@pytest.mark.slow
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), states=st.lists(STATES, min_size=1, max_size=8))
def test_any_tree_of_checkpoints_is_read_as_it_was(
    file: Checkpoints, data: st.DataObject, states: list[dict[str, tuple[object, object]]]
) -> None:
    thread = uuid.uuid4().hex
    file.execute("DELETE FROM checkpoints")
    for number, state in enumerate(states):
        parent = data.draw(st.one_of(st.none(), st.integers(0, number)))
        file.put(str(number), state, None if parent is None else str(parent), thread_id=thread)

    assert file.run() == all_copied(len(states))

    for number, state in enumerate(states):
        expected = {channel: value for channel, (_, value) in state.items() if value is not ...}
        assert file.values(str(number), thread) == expected


def test_a_checkpoint_whose_parent_is_gone_is_whole(file: Checkpoints) -> None:
    file.put("2", {"n": (1, "kept")}, "1")

    assert file.run() == all_copied(1)
    assert file.values("2") == {"n": "kept"}
    assert file.found("2").checkpoint.parent_id == "1"


def test_json_of_older_files_is_copied(file: Checkpoints) -> None:
    body = json.dumps({"id": "1", "v": 1, "channel_values": {"n": {"lc": 1}}, "channel_versions": {"n": 3}}).encode()
    file.put("1", {}, type="json", checkpoint=body)
    file.execute("ALTER TABLE writes DROP COLUMN task_path")
    file.put_write("1", 0, "pending")

    assert file.run() == all_copied(1)
    [value] = file.found("1").values
    assert (value.value.type, json.loads(value.value.data)) == ("json", {"lc": 1})


def test_pending_writes_come_with_their_checkpoint(file: Checkpoints) -> None:
    file.put("1", {})
    file.put_write("1", 1, "second")
    file.put_write("1", 0, "first", type="pickle", value=pickle.dumps("stays closed"))
    file.put_write("1", -3, "interrupt", task_id="other", task_path="~0")
    file.put_write("unknown", 0, "of no checkpoint")

    assert file.run() == (
        0,
        ["1 write of a checkpoint that is not in the file is left out", *all_copied(1)[1]],
    )
    writes = file.found("1").writes
    assert [(each.task_path, each.task_id, each.index) for each in writes] == [
        ("", "task", 0),
        ("", "task", 1),
        ("~0", "other", -3),
    ]
    assert writes[0].value.type == "pickle"


@pytest.mark.slow
def test_values_of_many_mebibytes_are_uploaded(file: Checkpoints) -> None:
    long = "".join(f"{number:08}" for number in range(600_000))
    file.put("1", {"long": (1, long)})
    file.put_write("1", 0, long)

    assert file.run() == all_copied(1)
    assert file.values("1") == {"long": long}


def test_a_second_import_copies_what_is_missing(file: Checkpoints) -> None:
    file.put("1", {"n": (1, "a")})
    file.put_write("1", 0, "first")
    file.run()
    file.put("2", {"n": (1, "a")}, "1")
    file.put_write("1", 1, "second")

    assert file.run() == (0, ["1 checkpoint copied, 1 was there already; all are as in the file"])
    assert len(file.found("1").writes) == 2


def test_what_differs_is_named_and_left_as_it_is(file: Checkpoints) -> None:
    file.put("1", {"n": (1, "a")})
    file.put("2", {"n": (1, "a")}, "1")
    draft = wire.CheckpointDraft(checkpoint=Checkpoint(thread_id="t", id="1", type="msgpack", data=b"\x80"))
    draft.checkpoint.channels.add(channel="n").version.integer = 1
    draft.values.add(channel="n").value.MergeFrom(wire.Value(type="msgpack", data=PACK("other")))
    file.calls.client._calls.write(
        file.calls.client._calls.stubs.checkpoints.SaveCheckpoints, wire.SaveCheckpointsRequest(checkpoints=[draft])
    )

    code, said = file.run()

    assert code == 1
    named = "table checkpoints, row 1 (checkpoint '1' of thread 't'): Remora has another"
    assert said == [
        f"{named} data",
        f"{named} metadata",
        f"{named} user_id",
        f"{named} value of channel 'n'",
        "remora: 1 of 2 checkpoints is not in Remora as in the file",
    ]
    assert file.values("1") == {"n": "other"}
    assert file.values("2") == {"n": "a"}


def test_a_write_that_is_another_one_is_named(file: Checkpoints) -> None:
    file.put("1", {})
    file.put_write("1", 0, "first")
    file.run()
    file.execute("UPDATE writes SET value = ?", [PACK("changed")])

    code, said = file.run()

    assert code == 1
    assert said[0].endswith("(checkpoint '1' of thread 't'): Remora does not have all of its writes")


def test_a_value_without_a_version_is_copied(file: Checkpoints) -> None:
    body = PACK({"id": "1", "channel_values": {"n": 1, "stray": 2}, "channel_versions": {"n": 1}})
    file.put("1", {}, checkpoint=body)

    code, said = file.run()

    assert (code, said) == (0, ["1 checkpoint copied; all are as in the file"])
    assert file.values("1") == {"n": 1, "stray": 2}


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        ({"type": "pickle"}, "type is 'pickle': only json and msgpack can be copied, and no pickle is opened"),
        (
            {"type": "msgpack+aes"},
            "type is 'msgpack+aes': only json and msgpack can be copied, and no pickle is opened",
        ),
        ({"type": None}, "type is not a text"),
        ({"checkpoint": PACK([1])}, "checkpoint is not a map: Expected `object`, got `array`"),
        ({"checkpoint": PACK({"id": "2"})[:-1]}, "checkpoint is not a map: Input data was truncated"),
        ({"checkpoint": PACK({"id": "2"})}, "checkpoint has no channel_versions"),
        (
            {"checkpoint": PACK({"id": "3", "channel_values": {}, "channel_versions": {}})},
            "checkpoint has another id than the row",
        ),
        (
            {"checkpoint": PACK({"id": "2", "channel_values": {}, "channel_versions": {"n": 1 << 63}})},
            f"checkpoint has a version of channel 'n' that is too large: {1 << 63}",
        ),
        ({"metadata": b"{"}, "metadata is not a map: Input data was truncated"),
        ({"metadata": b'{"a":' + b"[" * 100_000}, "metadata is nested too deeply"),
        ({"checkpoint": b"\x81\xa1a" + b"\x91" * 100_000}, "checkpoint is nested too deeply"),
    ],
)
def test_a_file_with_a_wrong_row_is_not_copied(file: Checkpoints, columns: dict[str, object], why: str) -> None:
    file.put("1", {})
    file.put("2", {}, None, **columns)

    assert file.run() == (1, [f"remora: table checkpoints, row 2: {why}; nothing was copied"])
    assert list(file.memory.export_records().records) == []


def test_a_wrong_write_is_named(file: Checkpoints) -> None:
    file.put("1", {})
    file.insert(
        "writes", thread_id="t", checkpoint_id="1", task_id="task", idx="first", channel="c", type="null", value=b""
    )

    assert file.run() == (1, ["remora: table writes, row 1: idx is not an integer; nothing was copied"])


def test_a_row_that_remora_does_not_take_is_named(file: Checkpoints) -> None:
    file.put("1", {})
    file.put("2", {}, metadata=json.dumps({"long": "x" * 300_000}).encode())

    code, [said] = file.run()

    assert code == 1
    assert said.startswith("remora: table checkpoints, row 2 (checkpoint '2' of thread 't'): ")
    assert "metadata" in said
    assert said.endswith("; 0 checkpoints were copied before")


def test_another_file_is_refused(file: Checkpoints) -> None:
    file.execute("ALTER TABLE writes RENAME COLUMN idx TO position")
    assert file.run() == (
        1,
        [
            "remora: {file}: table writes has no column idx: LangGraph's SqliteSaver makes others".replace(
                "{file}: ", ""
            )
        ],
    )
    file.execute("DROP TABLE writes")
    assert file.run() == (1, ["remora: {file} has no table writes: it is not a file of LangGraph's SqliteSaver"])
