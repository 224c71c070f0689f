"""`remora import` of OpenAI chat messages: what it stores, what it says that it leaves out, and a second import."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode
from tests.client.scripted_server import Failure, ScriptedServer
from tests.patience import PATIENCE

from remora import Remora
from remora.errors import ConversationNotFoundError
from remora.testing import remora_server, remora_tenant  # noqa: F401 - fixtures
from remora.v1.conversation_service_pb2 import AppendMessagesRequest
from remora_server.commands import connecting
from remora_server.commands.chat_lines import LARGEST_GROUP
from remora_server.main import main

TURNS: list[dict[str, Any]] = [
    {"role": "system", "content": "You are terse."},
    {"role": "user", "content": [{"type": "text", "text": "Where is my order?"}]},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "track", "arguments": '{"n": 1}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "in transit"},
]


class Importing:
    """Imports lines as one tenant."""

    def __init__(self, endpoint: str, tenant: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.memory = Remora(endpoint, tenant=tenant, timeout=PATIENCE)
        self._given = ["--endpoint", endpoint, "--tenant", tenant]
        self.file = file
        self._capsys = capsys

    def run(self, lines: list[object], *arguments: str) -> tuple[int, list[str]]:
        """The exit code of an import of these lines, and what it says."""
        texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
        self.file.write_text("\n".join(texts), "utf-8")
        return self.imported(*arguments)

    def imported(self, *arguments: str) -> tuple[int, list[str]]:
        """The same of the file as it is."""
        self._capsys.readouterr()
        code = main(["import", str(self.file), *self._given, *arguments])
        said = self._capsys.readouterr().err.splitlines()
        return code, [line.removeprefix(f"{self.file}: ") for line in said]

    def messages(self, conversation_id: str, user: str | None = None) -> list[dict[str, Any]]:
        conversation = self.memory.conversation(conversation_id, user_id=user)
        return [message.to_openai() for message in conversation.messages(None)]


@pytest.fixture
def importing(
    remora_server: str,  # noqa: F811
    remora_tenant: str,  # noqa: F811
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Importing:
    return Importing(remora_server, remora_tenant, tmp_path / "chat.jsonl", capsys)


def test_a_line_with_messages_is_a_conversation(importing: Importing) -> None:
    code, said = importing.run([{"messages": TURNS}, "", {"id": "own", "messages": TURNS[:2]}])

    assert (code, said) == (0, ["6 messages imported"])
    assert importing.messages("chat-1") == TURNS
    assert importing.messages("own") == TURNS[:2]


def test_lines_with_one_message_each_are_one_conversation(importing: Importing) -> None:
    code, said = importing.run(list(TURNS), "--user", "ana", "--conversation", "support")

    assert (code, said) == (0, ["4 messages imported"])
    assert importing.messages("support", "ana") == TURNS


def test_empty_lines_before_the_first_message_are_passed_over(importing: Importing) -> None:
    code, said = importing.run(["", " ", *TURNS], "--conversation", "support")

    assert (code, said) == (0, ["4 messages imported"])
    assert importing.messages("support") == TURNS


def test_an_id_that_no_conversation_can_have_is_named_and_the_line_names_the_conversation(importing: Importing) -> None:
    ids = [7, "x" * 513, "\ud800", "", None]
    half = "id has half of a surrogate pair at character 0, U+D800"
    decode = ", which UTF-8 cannot hold; replace it, or decode it again"

    code, said = importing.run([{"id": each, "messages": TURNS[:1]} for each in ids])

    assert code == 0
    assert said == [
        "line 1: id is not imported: id is 7 (an int); it must be a str; the conversation is chat-1",
        "line 2: id is not imported: id has 513 bytes; at most 512 are allowed; the conversation is chat-2",
        f"line 3: id is not imported: {half}{decode}; the conversation is chat-3",
        "5 messages imported",
    ]
    assert all(importing.messages(f"chat-{line}") == TURNS[:1] for line in range(1, 6))


def test_a_second_import_adds_nothing_and_puts_what_has_changed_in_its_place(importing: Importing) -> None:
    corrected = [*TURNS[:3], {"role": "assistant", "content": "Corrected."}]
    importing.run([{"messages": TURNS}])

    code, said = importing.run([{"messages": corrected}, {"messages": TURNS[:1]}])

    assert (code, said) == (0, ["1 message imported; 4 were replaced"])
    assert importing.messages("chat-1") == corrected


def test_two_files_add_their_messages_to_one_conversation(importing: Importing) -> None:
    others: list[object] = [{"role": "user", "content": "And tomorrow?"}]
    importing.run(list(TURNS), "--conversation", "support")
    importing.file = importing.file.with_name("later.jsonl")

    code, said = importing.run(others, "--conversation", "support")
    importing.run(others, "--conversation", "support")

    assert (code, said) == (0, ["1 message imported"])
    assert importing.messages("support") == [*TURNS, *others]


def test_what_is_left_out_is_said(importing: Importing) -> None:
    weighed = {**TURNS[0], "weight": 1}

    conversation = {"messages": [weighed, {"content": "?"}, "?"], "tools": []}
    code, said = importing.run([conversation, "no JSON", [1], {"a": 1}, "[" * 100_000])

    assert code == 0
    assert said == [
        "line 1: tools is not imported",
        "line 1, message 1: weight is not imported",
        "line 1, message 2 is skipped: it has no role",
        "line 1, message 3 is skipped: it has no role",
        *(f"line {line} is skipped: it is neither a chat message nor an object with messages" for line in (2, 3, 4, 5)),
        "1 message imported",
    ]
    assert importing.messages("chat-1") == TURNS[:1]


def test_a_role_that_no_model_knows_is_told_with_those_that_a_file_can_have(importing: Importing) -> None:
    code, said = importing.run([{"role": "human", "content": "hello"}, TURNS[0]])

    known = "role is 'human'; it must be user, assistant, system, tool, developer or function"
    assert (code, said) == (0, [f"line 1, message 1 is skipped: {known}", "1 message imported"])


NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize("key", ["sent_time", "timestamp", "created_at"])
@pytest.mark.parametrize(
    ("given", "time"),
    [
        ("2024-05-01T12:00:00Z", NOON),
        ("2024-05-01t14:00:00.250+02:00", NOON + timedelta(milliseconds=250)),
        ("2024-05-01 12:00:00.123456789z", NOON + timedelta(microseconds=123456)),
        (1714564800, NOON),
        (1714564800.5, NOON + timedelta(milliseconds=500)),
    ],
)
def test_a_message_was_sent_when_it_says(importing: Importing, key: str, given: object, time: datetime) -> None:
    code, said = importing.run([{"messages": [{**TURNS[0], key: given}, TURNS[1]]}, {**TURNS[1], key: given}])

    assert (code, said) == (0, ["3 messages imported"])
    first, second = importing.memory.conversation("chat-1").messages(None)
    assert (first.sent_time, second.sent_time) == (time, None)
    assert [message.sent_time for message in importing.memory.conversation("chat").messages(None)] == [time]


NO_TIMES = [
    "yesterday", "2024-05-01", "2024-05-01T12:00:00", "2024-13-01T12:00:00Z", "0001-01-01T00:00:00+01:00", "1714564800",
    1714564800000, 12.5, -1, float("nan"), float("inf"), True, [], {"seconds": 1714564800},
]  # fmt: skip


@pytest.mark.parametrize("given", NO_TIMES)
def test_a_sent_time_that_is_none_is_told_and_its_message_skipped(importing: Importing, given: object) -> None:
    code, said = importing.run([{**TURNS[0], "sent_time": given}, TURNS[1]])

    told = f"line 1, message 1 is skipped: sent_time is {given!r}; it must be a time with its zone, such as "
    assert code == 0
    assert said == [f"{told}2026-11-23T15:39:00Z, or seconds since 1970", "1 message imported"]


@pytest.mark.parametrize("given", NO_TIMES)
@pytest.mark.parametrize("key", ["timestamp", "created_at"])
def test_what_may_be_another_time_is_not_imported(importing: Importing, key: str, given: object) -> None:
    code, said = importing.run([{**TURNS[0], key: given}])

    assert (code, said) == (0, [f"line 1, message 1: {key} is not imported", "1 message imported"])


def test_of_several_times_the_first_that_is_one_is_imported(importing: Importing) -> None:
    other = "2023-01-01T00:00:00Z"
    importing.run([
        {**TURNS[0], "created_at": other, "timestamp": other, "sent_time": NOON.isoformat()},
        {**TURNS[0], "created_at": other, "timestamp": NOON.isoformat(), "sent_time": None},
        {**TURNS[0], "created_at": NOON.isoformat(), "timestamp": 3},
    ])  # fmt: skip

    assert [message.sent_time for message in importing.memory.conversation("chat").messages(None)] == [NOON] * 3


def test_a_time_of_a_whole_conversation_is_not_one_of_its_messages(importing: Importing) -> None:
    code, said = importing.run([{"created_at": 1714564800, "messages": TURNS[:1]}])

    assert (code, said) == (0, ["line 1: created_at is not imported", "1 message imported"])


@pytest.mark.parametrize(("user", "arguments"), [("ana", ["--user", "ana"]), ("default", [])])
def test_a_conversation_of_another_user_is_not_imported_into(
    importing: Importing, user: str, arguments: list[str]
) -> None:
    importing.memory.conversation("taken", user_id="bo").append([{"role": "user", "content": "mine"}])

    code, said = importing.run([TURNS[0], {"id": "taken", "messages": TURNS}, TURNS[1]], *arguments)

    refused = f"remora: conversation 'taken' belongs to user 'bo', not to '{user}': name its owner with --user, "
    assert code == 1
    assert said == [refused + "or give the messages another conversation; 1 message was imported before"]
    assert [message.text for message in importing.memory.conversation("taken").messages(None)] == ["mine"]
    assert importing.memory.conversation("taken", user_id=user).messages(None) == []


def test_an_import_continues_a_conversation_of_its_user(importing: Importing) -> None:
    importing.memory.conversation("own", user_id="bo").append([{"role": "user", "content": "first"}])

    code, said = importing.run([{"id": "own", "messages": TURNS}], "--user", "bo")

    assert (code, said) == (0, ["4 messages imported"])
    assert importing.messages("own", "bo")[1:] == TURNS


@pytest.mark.slow
def test_long_conversations_are_sent_in_parts(importing: Importing) -> None:
    many = [{"role": "user", "content": f"number {number}"} for number in range(2 * LARGEST_GROUP + 1)]
    large = [{"role": "user", "content": str(number) * 900_000} for number in range(6)]

    importing.run([{"id": "many", "messages": many}, {"id": "large", "messages": large}])

    assert importing.messages("many") == many
    assert importing.messages("large") == large


def test_only_the_first_of_many_lines_that_are_left_out_are_shown(importing: Importing) -> None:
    _, said = importing.run([TURNS[0], *["?"] * 30])

    assert len(said) == 22
    assert said[-2] == "10 more lines like these are left out"


@pytest.mark.parametrize(
    "line", [{"kind": "format", "version": 1}, "", "words", "[" * 100_000, [{"role": "user", "content": "hi"}]]
)
def test_what_holds_no_chat_messages_has_its_own_users(importing: Importing, line: object) -> None:
    code, said = importing.run([line], "--user", "ana")

    assert code == 2
    assert said[0].endswith(
        "does not begin with a line of OpenAI chat messages, a message or an object with messages; "
        "an export has its own users and conversations: leave out --user and --conversation"
    )


@pytest.mark.parametrize("answers", [True, False], ids=["a store that fails", "a server that ends"])
def test_an_import_that_fails_on_its_way_is_told_to_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, answers: bool
) -> None:
    monkeypatch.setattr(connecting, "CALL_SECONDS", 0.3)
    file = tmp_path / "chat.jsonl"
    file.write_text(json.dumps(TURNS[0]))
    endpoint = f"unix:{tmp_path}/s"

    def fail(_: AppendMessagesRequest) -> Failure:
        if not answers:
            server._server.stop(None)
        return Failure(StatusCode.UNAVAILABLE, "STORE_FAILED")

    with ScriptedServer(endpoint) as server:
        server.answer("GetConversation", lambda _: Failure(StatusCode.NOT_FOUND, "CONVERSATION_NOT_FOUND"))
        server.answer("AppendMessages", fail)
        code = main(["import", str(file), "--endpoint", endpoint])

    said = capsys.readouterr().err
    why = "it failed" if answers else f"no Remora server answers at {endpoint}: start one with `remora serve`, or name"
    assert (code, said.count("\n")) == (1, 1)
    assert said.startswith(f"remora: {why}")
    assert said.endswith("; run the command again: what it has stored is not stored twice\n")


def test_a_message_that_the_server_would_refuse_is_left_out(importing: Importing) -> None:
    long = {"id": "c1", "type": "function", "function": {"name": "x" * 257, "arguments": "{}"}}
    calling = {"role": "assistant", "content": None, "tool_calls": [long]}

    code, said = importing.run([{"messages": TURNS[:1]}, {"messages": [TURNS[0], calling, TURNS[1]]}])

    assert code == 0
    assert said == [
        "line 2, message 2 is skipped: tool_calls[0].name: has 257 bytes; at most 256 are allowed",
        "3 messages imported",
    ]
    assert importing.messages("chat-2") == [TURNS[0], TURNS[1]]


def test_a_message_larger_than_a_request_is_named(importing: Importing) -> None:
    function = {"name": "track", "arguments": json.dumps({"a": "x" * 900_000})}
    calls = [{"id": f"c{number}", "type": "function", "function": function} for number in range(6)]

    code, said = importing.run([{"messages": [TURNS[0], {"role": "assistant", "content": None, "tool_calls": calls}]}])

    assert code == 1
    assert said[0].startswith(f"remora: {importing.file}: line 1, message 2: the request is larger than ")
    assert said[0].endswith("; 1 message was imported before")


def test_a_message_that_only_the_server_refuses_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text("\n".join(json.dumps(turn) for turn in TURNS))
    endpoint = f"unix:{tmp_path}/s"
    path = "messages[2].tool_calls[0].name"
    metadata, violations = (("field", path),), ((path, "is not taken"),)
    refusal = Failure(StatusCode.INVALID_ARGUMENT, "INVALID_FIELD", metadata, violations)

    with ScriptedServer(endpoint) as server:
        server.answer("GetConversation", lambda _: Failure(StatusCode.NOT_FOUND, "CONVERSATION_NOT_FOUND"))
        server.answer("AppendMessages", lambda _: refusal)
        code = main(["import", str(file), "--endpoint", endpoint])

    assert code == 1
    assert capsys.readouterr().err.startswith(f"remora: {file}: line 3, message 1: ")


def test_a_role_that_no_model_knows_is_left_out(importing: Importing) -> None:
    _, said = importing.run([{"role": "usr", "content": "typo"}, TURNS[0]])

    assert said[0].startswith("line 1, message 1 is skipped: ")
    assert "'usr'" in said[0]
    assert importing.messages("chat") == TURNS[:1]


def test_messages_of_standard_input_are_imported_into_a_conversation_that_is_named(
    importing: Importing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "file", "-")

    def piped(*arguments: str) -> tuple[int, list[str]]:
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(json.dumps(TURNS[0]).encode())))
        return importing.imported(*arguments)

    assert piped() == (2, ["remora: standard input has no name: name the conversation with --conversation"])
    assert piped("--conversation", "c") == (0, ["1 message imported"])
    assert importing.messages("c") == TURNS[:1]
    with pytest.raises(ConversationNotFoundError):
        importing.messages("standard-input")
