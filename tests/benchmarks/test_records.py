"""The records that the benchmarks put, get and list."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from benchmarks.engines import record_calls as calls
from benchmarks.engines.fastapi_sqlite import http_gets, http_puts
from benchmarks.engines.remora_records import RemoraRecords
from benchmarks.engines.server import Calls
from benchmarks.loading import NUMBER_PLACE, Driven, Load
from benchmarks.slices import Measured
from benchmarks.workloads.records_stored import COLD_GETS, Stored
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from google.protobuf.unknown_fields import UnknownFieldSet

USERS = ["one", "other"]


def decoded(made: Calls) -> list[dict[str, Any]]:
    """The requests as what the method takes, each with the fields that it sets."""
    service, _, method = made.path.removeprefix("/").partition("/")
    message = GetMessageClass(Default().FindServiceByName(service).FindMethodByName(method).input_type)
    return [set_fields(message.FromString(request)) for request in made.requests]


def set_fields(message: Message) -> dict[str, Any]:
    assert len(UnknownFieldSet(message)) == 0
    return {
        field.name: set_fields(value) if isinstance(value, Message) else value for field, value in message.ListFields()
    }


def test_a_put_stores_600_bytes_and_has_a_request_id_of_its_own() -> None:
    made = calls.puts(USERS)

    requests = decoded(made)
    assert made.path.endswith("/SetWorkingMemory")
    assert [request["scope"] for request in requests] == [{"user_id": user} for user in USERS]
    assert {len(request["content"]) for request in requests} == {calls.RECORD_BYTES}
    assert all(NUMBER_PLACE in request["request_id"] for request in requests)
    assert all(NUMBER_PLACE.encode() in request["content"] for request in requests)


@pytest.mark.parametrize(
    ("made", "method", "request_"),
    [
        (calls.gets(["u"]), "GetWorkingMemory", {"scope": {"user_id": "u"}}),
        (calls.gets_of_conversations(["c"]), "GetWorkingMemory", {"scope": {"conversation_id": "c"}}),
        (calls.conversation_gets(["c"]), "GetConversation", {"conversation_id": "c"}),
        (calls.newest_messages("c", 50), "ListMessages", {"conversation_id": "c", "page_size": 50}),
        (calls.newest_steps("c", 10), "ListSteps", {"conversation_id": "c", "limit": 10}),
        (calls.steps_of_operations("c", ["o"]), "ListSteps", {"conversation_id": "c", "operation_id": "o"}),
    ],
)
def test_a_read_is_what_its_method_takes(made: Calls, method: str, request_: dict[str, object]) -> None:
    assert made.path.endswith(f"/{method}")
    assert decoded(made) == [request_]


def test_the_other_server_stores_the_same_contents_under_the_same_users() -> None:
    puts = [request.decode().partition("\r\n\r\n") for request in http_puts(USERS).requests]

    assert [head.splitlines()[0] for head, _, _ in puts] == [
        f"PUT /users/{user}/working-memory HTTP/1.1" for user in USERS
    ]
    assert [head.splitlines()[-1] for head, _, _ in puts] == [f"Content-Length: {len(body)}" for _, _, body in puts]
    assert [json.loads(body)["content"].encode() for _, _, body in puts] == [
        request["content"] for request in decoded(calls.puts(USERS))
    ]
    assert http_gets(["u"]).requests == [b"GET /users/u/working-memory HTTP/1.1\r\nHost: localhost\r\n\r\n"]


class Refusing(Load):
    """A load of which half of the second run's calls are refused; it keeps how many each run was asked for."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def run(
        self,
        socket: Path,
        wire: str,
        path: str,
        requests: Sequence[Sequence[bytes]],
        *,
        seconds: float,
        streams: int,
        rate: float = 0.0,
        turns: int = 0,
    ) -> Driven:
        self.asked.append(len(requests) * turns)
        refused = self.asked[-1] // 2 if len(self.asked) == 2 else 0
        answered = [(0.0, 1.0)] * (self.asked[-1] - refused)
        return Driven(answered, [(0.0, 1.0)] * refused, 0, 0.0, len(self.asked) * 1_000_000)


class Unstarted(RemoraRecords):
    """A server that is not there; it keeps its restarts and which records were asked for since the last one."""

    def __init__(self, directory: Path, load: Load) -> None:
        super().__init__(directory, load)
        self.caught_up = 0
        self.restarts = 0
        self.asked: list[bytes] = []

    def start(self) -> None:
        pass

    def applied(self) -> None:
        self.caught_up += 1

    def checkpointed(self) -> None:
        pass

    def check_user(self, user: str) -> None:
        self.asked += calls.gets([user]).requests

    def restart(self) -> None:
        self.restarts += 1
        self.asked.clear()

    def call(self, seconds: float, *clients: Calls, turns: int = 0, settle: bool = False) -> Measured:
        assert turns == 1
        self.asked += clients[0].requests
        return Measured([(0.0, 1.0)], 0.0)


def test_records_are_stored_until_there_are_enough_and_those_in_doubt_are_not_asked_for(tmp_path: Path) -> None:
    load = Refusing()
    server = Unstarted(tmp_path, load)

    users = server.fill_users(50_000)

    assert load.asked == [20_000, 20_000, 20_000]
    assert server.caught_up == 1
    assert len(users) == len(set(users)) == 40_000
    assert (users[0], users[-1]) == (f"stored-{1_000_000:016}", f"stored-{3_019_999:016}")


def test_a_cold_get_asks_for_no_record_twice_between_two_starts(tmp_path: Path) -> None:
    server = Unstarted(tmp_path, Refusing())
    stored = Stored(server, 5 * COLD_GETS)
    stored.fill()

    for _ in range(9):
        stored.cold_gets(1.0)
        assert len(server.asked) == len(set(server.asked)) >= COLD_GETS

    assert server.restarts == 3
