"""`remora import --from voltagent`: what is copied of a file, what is refused, and what differs afterwards.

The files have the schema of @voltagent/libsql 2; the suite of @remora/voltagent copies files of its own adapter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.commands.moving import Moving

from remora import Message
from remora.testing import remora_server, remora_tenant  # noqa: F401 - fixtures
from remora.v1 import workflow_pb2
from remora.v1.transfer_service_pb2 import Record

SCHEMA = """
CREATE TABLE voltagent_memory_users (id TEXT PRIMARY KEY, metadata TEXT, created_at TEXT DEFAULT CURRENT_TIMESTAMP,
    updated_at TEXT DEFAULT CURRENT_TIMESTAMP);
CREATE TABLE voltagent_memory_conversations (id TEXT PRIMARY KEY, resource_id TEXT NOT NULL, user_id TEXT NOT NULL,
    title TEXT NOT NULL, metadata TEXT NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
CREATE TABLE voltagent_memory_messages (conversation_id TEXT NOT NULL, message_id TEXT NOT NULL, user_id TEXT NOT NULL,
    role TEXT NOT NULL, parts TEXT, content TEXT, metadata TEXT, format_version INTEGER DEFAULT 2,
    created_at TEXT NOT NULL, PRIMARY KEY (conversation_id, message_id));
CREATE TABLE voltagent_memory_workflow_states (id TEXT PRIMARY KEY, workflow_id TEXT NOT NULL,
    workflow_name TEXT NOT NULL, status TEXT NOT NULL, input TEXT, context TEXT, workflow_state TEXT, suspension TEXT,
    events TEXT, output TEXT, cancellation TEXT, user_id TEXT, conversation_id TEXT, metadata TEXT,
    created_at TEXT NOT NULL, updated_at TEXT NOT NULL);
CREATE TABLE voltagent_memory_steps (id TEXT PRIMARY KEY, conversation_id TEXT NOT NULL, user_id TEXT NOT NULL,
    agent_id TEXT NOT NULL, agent_name TEXT, operation_id TEXT, step_index INTEGER NOT NULL, type TEXT NOT NULL,
    role TEXT NOT NULL, content TEXT, arguments TEXT, result TEXT, usage TEXT, sub_agent_id TEXT, sub_agent_name TEXT,
    created_at TEXT NOT NULL);
"""
BEFORE_UTC = "0001-01-01T00:00:00+14:00"
MARCH, APRIL = "2026-03-01T10:00:00.000Z", "2026-04-01T10:00:00.125Z"
TABLE = "voltagent_memory"


class VoltAgent(Moving):
    """A file of an agent's memory."""

    source = "voltagent"
    schema = SCHEMA

    def add(self, table: str, given: dict[str, object], columns: dict[str, object]) -> None:
        self.insert(f"{TABLE}_{table}", **{"created_at": MARCH, **given, **columns})

    def put_conversation(self, conversation_id: str, **columns: object) -> None:
        given = {"id": conversation_id, "resource_id": "agent", "user_id": "ana", "title": "Trips", "metadata": "{}"}
        self.add("conversations", {**given, "updated_at": APRIL}, columns)

    def put_message(self, conversation_id: str, message_id: str, text: str, **columns: object) -> None:
        parts = json.dumps([{"type": "text", "text": text}])
        given = {"conversation_id": conversation_id, "message_id": message_id, "user_id": "ana", "role": "user"}
        self.add("messages", {**given, "parts": parts}, columns)

    def put_step(self, step_id: str, **columns: object) -> None:
        given = {"id": step_id, "conversation_id": "c", "user_id": "ana", "agent_id": "agent", "operation_id": "op"}
        self.add("steps", {**given, "step_index": 0, "type": "text", "role": "assistant"}, columns)

    def put_state(self, run_id: str, **columns: object) -> None:
        given = {"id": run_id, "workflow_id": "w", "workflow_name": "Book", "status": "running", "updated_at": APRIL}
        self.add("workflow_states", {**given}, columns)

    def records(self, kind: str) -> list[Any]:
        """All records of a kind that the tenant has."""
        found: Iterator[Record] = iter(self.memory.export_records().records)
        return [getattr(record, kind) for record in found if record.WhichOneof("kind") == kind]

    def texts(self, conversation_id: str) -> list[str]:
        return [each.text for each in self.memory.conversation(conversation_id, user_id="ana").messages(None)]


@pytest.fixture
def file(
    remora_server: str,  # noqa: F811
    remora_tenant: str,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> VoltAgent:
    return VoltAgent(remora_server, remora_tenant, tmp_path / "memory.db", capsys)


def all_copied(count: int) -> tuple[int, list[str]]:
    return 0, [f"{count} record{'s' if count != 1 else ''} copied; all are as in the file"]


def time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_a_conversation_comes_with_its_messages_in_their_order(file: VoltAgent) -> None:
    file.put_conversation("c", metadata='{ "a": 1e400 }')
    file.put_message("c", "late", "third", created_at=APRIL)
    file.put_message("c", "b", "first")
    file.put_message("c", "a", "second", metadata='{"k": [1]}', role="assistant")

    assert file.run() == all_copied(4)

    [own] = [each.conversation for each in file.records("conversation")]
    assert (own.id, own.user_id, own.resource_id, own.title) == ("c", "ana", "agent", "Trips")
    assert own.metadata == b'{ "a": 1e400 }'
    assert (own.create_time.ToDatetime(UTC), own.update_time.ToDatetime(UTC)) == (time(MARCH), time(APRIL))
    messages = [each.message for each in file.records("message")]
    assert [(each.id, each.text, each.role) for each in messages] == [
        ("b", "first", "user"),
        ("a", "second", "assistant"),
        ("late", "third", "user"),
    ]
    assert json.loads(messages[0].parts) == {"parts": [{"type": "text", "text": "first"}]}
    assert messages[1].metadata == b'{"k": [1]}'
    assert messages[2].create_time.ToDatetime(UTC) == time(APRIL)


def test_what_the_agents_append_afterwards_follows(file: VoltAgent) -> None:
    file.put_conversation("c")
    file.put_message("c", "m", "before")
    file.run()

    file.memory.conversation("c", user_id="ana").append(Message("user", "after"))

    assert file.texts("c") == ["before", "after"]
    assert file.run() == (0, ["0 records copied, 2 were there already; all are as in the file"])


def test_working_memories_are_taken_out_of_the_metadata(file: VoltAgent) -> None:
    file.put_conversation("c", metadata='{"big":12345678901234567890, "workingMemory":"# Trip\\n- Lisbon"}')
    file.put_conversation("empty", metadata='{"workingMemory":""}')
    file.insert(f"{TABLE}_users", id="ana", metadata='{"workingMemory":"Prefers \\ud83d trains."}', updated_at=APRIL)
    file.insert(f"{TABLE}_users", id="tom", metadata=None)

    assert file.run() == all_copied(4)

    assert [each.conversation.metadata for each in file.records("conversation")] == [
        b'{"big":12345678901234567890}',
        b"",
    ]
    memories = {each.scope.conversation_id or each.scope.user_id: each for each in file.records("working_memory")}
    assert {owner: each.content.decode() for owner, each in memories.items()} == {
        "c": "# Trip\n- Lisbon",
        "ana": "Prefers � trains.",
    }
    assert memories["ana"].update_time.ToDatetime(UTC) == time(APRIL)


def test_steps_come_with_their_conversation(file: VoltAgent) -> None:
    file.put_conversation("c")
    file.put_step("s1", content="thinking", usage='{"totalTokens":3}')
    file.put_step("s2", step_index=1, type="tool_call", arguments='{"to": "Lisbon"}', sub_agent_id="sub")
    file.put_step("s3", step_index=2, type="thought")

    assert file.run() == all_copied(4)

    first, second, third = file.records("step")
    assert (first.content, first.usage, first.type) == ("thinking", b'{"totalTokens":3}', 1)
    assert (second.step_index, second.arguments, second.sub_agent_id, second.type) == (1, b'{"to": "Lisbon"}', "sub", 2)
    assert (third.type, third.other_type) == (4, "thought")


def test_states_of_workflows_are_runs(file: VoltAgent) -> None:
    suspension = {"suspendedAt": APRIL, "reason": "approval", "stepIndex": 2, "checkpoint": {"x": 1}}
    file.put_state("run", status="suspended", suspension=json.dumps(suspension), context='[["tenant","t"]]', input="0")
    file.put_state("gone", status="cancelled", cancellation=json.dumps({"cancelledAt": MARCH}), context="{}")
    file.put_state("odd", status="paused")

    assert file.run() == all_copied(3)

    runs = {each.id: each for each in file.records("workflow_run")}
    own = runs["run"]
    assert (own.workflow_name, own.input, own.context, own.user_id) == ("Book", b"0", b'[["tenant","t"]]', "")
    assert (own.suspension.reason, own.suspension.step_index, json.loads(own.suspension.checkpoint)) == (
        "approval",
        2,
        {"x": 1},
    )
    assert not own.suspension.HasField("last_event_sequence")
    assert own.suspension.suspend_time.ToDatetime(UTC) == time(APRIL)
    assert (own.create_time.ToDatetime(UTC), own.update_time.ToDatetime(UTC)) == (time(MARCH), time(APRIL))
    assert runs["gone"].cancellation.cancel_time.ToDatetime(UTC) == time(MARCH)
    assert runs["gone"].context == b""
    assert runs["gone"].end_time.ToDatetime(UTC) == time(APRIL)
    assert not own.HasField("end_time")
    assert (runs["odd"].status, runs["odd"].other_status) == (workflow_pb2.WORKFLOW_STATUS_OTHER, "paused")


def test_messages_of_older_files_have_their_content(file: VoltAgent) -> None:
    file.put_conversation("c")
    file.put_message("c", "text", "", parts=None, content='"as JSON"')
    file.put_message("c", "plain", "", parts=None, content="as it is")
    file.put_message("c", "list", "", parts=None, content='[{"type":"text","text":"a"},{"type":"text","text":"b"}]')
    file.put_message("c", "deep", "", parts=None, content="[" * 100_000)
    file.put_message("c", "none", "", parts=None)
    file.execute(f"DROP TABLE {TABLE}_steps")

    assert file.run() == all_copied(6)
    assert file.texts("c") == ["as JSON", "as it is", "a b", "[" * 100_000, ""]


def test_what_deleted_conversations_left_is_not_copied(file: VoltAgent) -> None:
    file.put_message("deleted", "m", "still there")
    file.put_step("s", conversation_id="deleted")

    assert file.run() == (
        0,
        [
            "1 message of a deleted conversation is left out",
            "1 step of a deleted conversation is left out",
            *all_copied(0)[1],
        ],
    )


def test_a_second_import_copies_what_is_missing(file: VoltAgent) -> None:
    file.put_conversation("c", metadata='{"workingMemory":"w"}')
    file.put_message("c", "1", "first")
    file.run()
    file.put_message("c", "2", "second", created_at=APRIL)
    file.put_step("s")

    assert file.run() == (0, ["2 records copied, 3 were there already; all are as in the file"])
    assert file.texts("c") == ["first", "second"]


def test_what_differs_is_named_and_left_as_it_is(file: VoltAgent) -> None:
    file.put_conversation("c")
    for number in range(3):
        file.put_message("c", str(number), f"text {number}")
    file.put_state("run")
    file.run()
    file.execute(f"UPDATE {TABLE}_messages SET parts = '[]' WHERE message_id = '1'")
    file.execute(f"UPDATE {TABLE}_workflow_states SET status = 'completed'")
    file.put_message("c", "3", "text 3", created_at=APRIL)

    code, said = file.run()

    assert code == 1
    assert said == [
        "table voltagent_memory_messages, row 2 (message '1'): Remora has another parts, text",
        "table voltagent_memory_workflow_states, row 1 (workflow run 'run'): Remora has another end_time, status",
        "remora: 2 of 6 records are not in Remora as in the file",
    ]
    assert file.texts("c") == ["text 0", "text 1", "text 2", "text 3"]


def test_a_conversation_of_another_user_gets_nothing(file: VoltAgent) -> None:
    file.memory.create_conversation("c", user_id="tom")
    file.put_conversation("c")
    file.put_message("c", "m", "ana's")

    code, said = file.run()

    assert code == 1
    assert said[0].startswith("table voltagent_memory_conversations, row 1 (conversation 'c'): Remora has another")
    assert "user_id" in said[0]
    assert said[1] == "table voltagent_memory_messages, row 1 (message 'm'): it is not in Remora"
    assert file.records("message") == []


@pytest.mark.parametrize(
    ("table", "column", "value", "why"),
    [
        ("conversations", "metadata", "[]", "is not a JSON object"),
        ("conversations", "metadata", '{"workingMemory":3}', "has a workingMemory that is not a text"),
        ("conversations", "created_at", "soon", "is not a time: 'soon'"),
        ("messages", "parts", "[", "is not JSON: Expecting value: line 1 column 2 (char 1)"),
        ("messages", "parts", "{}", "is not a list"),
        ("messages", "metadata", '{"n":NaN}', "is not JSON: NaN is not a number of JSON"),
        ("steps", "step_index", 1 << 40, f"has a step_index that is not understood: {1 << 40}"),
        ("workflow_states", "context", "[[null,1]]", "has an entry whose key is not a text, such as a symbol"),
        ("workflow_states", "context", '{"a":1}', "is not a list of entries"),
        ("workflow_states", "suspension", '{"suspendedAt":"?"}', "has a time that cannot be read: '?'"),
        (
            "workflow_states",
            "suspension",
            f'{{"suspendedAt":"{BEFORE_UTC}"}}',
            f"has a time that cannot be read: '{BEFORE_UTC}'",
        ),
        ("workflow_states", "suspension", '{"stepIndex":"2"}', "has a step_index that is not understood: '2'"),
    ],
)
def test_a_file_with_a_wrong_row_is_not_copied(
    file: VoltAgent, table: str, column: str, value: object, why: str
) -> None:
    file.put_conversation("c")
    file.put_message("c", "m", "text")
    file.put_step("s")
    file.put_state("run")
    file.execute(f"UPDATE {TABLE}_{table} SET {column} = ?", [value])

    assert file.run() == (1, [f"remora: table {TABLE}_{table}, row 1: {column} {why}; nothing was copied"])
    assert list(file.memory.export_records().records) == []


def test_a_row_that_remora_does_not_take_is_named(file: VoltAgent) -> None:
    file.put_conversation("c")
    file.put_message("c", "m", "text", role="r" * 100)

    code, [said] = file.run()

    assert code == 1
    assert said.startswith("remora: table voltagent_memory_messages, row 1 (message 'm'): ")
    assert "role" in said
    assert said.endswith("; 0 records were copied before")


def test_tables_may_have_another_prefix(file: VoltAgent) -> None:
    file.put_conversation("c")
    for table in ("users", "conversations", "messages", "workflow_states", "steps"):
        file.execute(f'ALTER TABLE {TABLE}_{table} RENAME TO "my ""own""_{table}"')

    assert file.run("--table-prefix", 'my "own"') == all_copied(1)
    code, [said] = file.run()
    assert code == 1
    assert said.startswith("remora: {file} has no table voltagent_memory_users: it is not a file of VoltAgent's ")
    assert said.endswith(", or its tablePrefix is another (--table-prefix)")
    assert file.run_with(["import", str(file.file), "--from", "langgraph-store", "--table-prefix", "x"]) == (
        2,
        ["remora: --table-prefix is for --from voltagent"],
    )
