"""Calls that are given next to no time, and calls that are taken back."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from tests.faults.changed_server import WAITING
from tests.network.honest import OPTIONS, append, honest, reason
from tests.network.target import TRANSPORTS, WAITS, Target, has_room_for, serving
from tests.patience import PATIENCE, eventually

from remora.v1 import conversation_service_pb2 as pb
from remora.v1 import conversation_service_pb2_grpc

Stub = conversation_service_pb2_grpc.ConversationServiceStub

THREADS, WAITING_CALLS = 4, 28
SLOW_DISK = {"REMORA_JOURNAL_FAILPOINTS": "before_sync=delay:8"}
"""A deadline passes, and a call is taken back, while its write is on its way to the disk."""

CALLERS, PARTS = 8, 3


@pytest.fixture(params=TRANSPORTS)
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    arguments = ("--threads", str(THREADS), "--waiting-calls", str(WAITING_CALLS))
    with serving(*arguments, "--transport", request.param, changes=WAITS, failpoints=SLOW_DISK) as target:
        yield target


@pytest.fixture
def stub(target: Target) -> Iterator[Stub]:
    with grpc.insecure_channel(target.endpoint, options=OPTIONS) as channel:
        yield Stub(channel)


def stored_texts(stub: Stub, conversation: str) -> list[str]:
    """All texts of a conversation, in order."""
    texts: list[str] = []
    request = pb.ListMessagesRequest(
        conversation_id=conversation, page_size=1000, page_order=pb.PAGE_ORDER_OLDEST_FIRST
    )
    while True:
        page = stub.ListMessages(request, timeout=PATIENCE)
        texts += [one.text for one in page.messages]
        if not page.next_page_token:
            return texts
        request.page_token = page.next_page_token


def parts(name: str) -> list[str]:
    return [f"{name}/{part}" for part in range(PARTS)]


class Caller:
    """Makes calls with deadlines of 1 to 50 ms, one after the other: appends of several messages, reads, counts."""

    def __init__(self, stub: Stub, number: int, calls: int) -> None:
        self.conversation = f"hurried-{number}"
        self.written: list[str] = []
        self.unknown: set[str] = set()
        self.expired = 0
        self._stub, self._calls, self._random = stub, calls, random.Random(number)

    def run(self) -> None:
        """However fast the machine is, one call has time enough, and one has not: its write takes 8 ms."""
        while not self.written:
            self._call("append", "first", PATIENCE)
        self._call("append", "hopeless", 0.001)
        for number in range(self._calls):
            kind = self._random.choice(["append", "append", "list", "count"])
            self._call(kind, f"n{number}", self._random.uniform(0.001, 0.05))

    def _call(self, kind: str, name: str, timeout: float) -> None:
        try:
            self._ask(kind, name, timeout)
        except grpc.RpcError as error:
            self._failed(error, kind, name)
        else:
            if kind == "append":
                self.written.append(name)

    def _ask(self, kind: str, name: str, timeout: float) -> None:
        if kind == "append":
            self._stub.AppendMessages(append(self.conversation, parts(name)), timeout=timeout)
        elif kind == "list":
            self._stub.ListMessages(pb.ListMessagesRequest(conversation_id=self.conversation), timeout=timeout)
        else:
            self._stub.CountConversations(pb.CountConversationsRequest(), timeout=timeout)

    def _failed(self, error: grpc.RpcError, kind: str, name: str) -> None:
        """Nothing is known of a write whose deadline passed. What a slow machine refuses is not written."""
        if reason(error) == "OVERLOADED":
            return
        if error.code() != grpc.StatusCode.DEADLINE_EXCEEDED:
            raise error
        self.expired += 1
        if kind == "append":
            self.unknown.add(name)

    def check(self, stored: list[str]) -> None:
        """Writes are whole and in order, each once; of those without an answer, any."""
        whole = [text.partition("/")[0] for text in stored[::PARTS]]
        assert stored == [part for name in whole for part in parts(name)]
        assert [name for name in whole if name not in self.unknown] == self.written
        assert len(set(whole)) == len(whole)


def hurry(target: Target, calls: int) -> None:
    """So many calls of each caller; then all that was written is whole and there is as much room as before."""
    with grpc.insecure_channel(target.endpoint, options=OPTIONS) as channel:
        stub = Stub(channel)
        callers = [Caller(stub, number, calls) for number in range(CALLERS)]
        with honest(target.endpoint), target.grows_at_most(64), ThreadPoolExecutor(CALLERS) as pool:
            for done in [pool.submit(caller.run) for caller in callers]:
                done.result()

        for caller in callers:
            caller.check(stored_texts(stub, caller.conversation))
    assert all(caller.expired for caller in callers)
    eventually(lambda: has_room_for(target, THREADS + WAITING_CALLS))


@pytest.mark.slow
def test_every_call_in_a_hurry_ends_and_leaves_its_room(target: Target) -> None:
    hurry(target, 60)


@pytest.mark.faults
def test_thousands_of_calls_in_a_hurry_end_and_leave_their_room(target: Target) -> None:
    hurry(target, 1000)


@pytest.mark.slow
def test_the_check_of_room_finds_a_place_that_is_taken(target: Target) -> None:
    assert not has_room_for(target, THREADS + WAITING_CALLS - 1, seconds=3.0)


def cancelled_at_random(stub: Stub, requests: list[pb.AppendMessagesRequest], within: float) -> int:
    """Makes the calls and takes each back within so many seconds; how many were."""
    chance = random.Random(1)
    taken_back = 0
    for request in requests:
        call = stub.AppendMessages.future(request, timeout=PATIENCE)
        time.sleep(chance.uniform(0, within))
        taken_back += call.cancel()
    return taken_back


def cancelled_while_written(stub: Stub) -> list[pb.AppendMessagesRequest]:
    """Calls some of which were taken back, and some of these written: they are given longer until that is so."""
    requests: list[pb.AppendMessagesRequest] = []
    answered, within = 0, 0.012
    while True:
        asked = [append("taken-back", parts(f"n{len(requests) + number}"), str(uuid.uuid4())) for number in range(100)]
        answered += len(asked) - cancelled_at_random(stub, asked, within)
        requests += asked
        stored = set(stored_texts(stub, "taken-back"))
        if answered < sum(request.messages[0].text in stored for request in requests):
            return requests
        within *= 1.5


@pytest.mark.slow
def test_a_repeat_after_a_cancellation_makes_one_write(target: Target, stub: Stub) -> None:
    stub.AppendMessages(append("taken-back", ["first"]), timeout=PATIENCE)
    with honest(target.endpoint):
        requests = cancelled_while_written(stub)
        replies = [stub.AppendMessages(request, timeout=PATIENCE) for request in requests]

    stored = stored_texts(stub, "taken-back")
    wanted = {"first": 1} | {part: 1 for number in range(len(requests)) for part in parts(f"n{number}")}
    assert {text: stored.count(text) for text in stored} == wanted
    for request, reply in zip(requests, replies, strict=True):
        first = reply.messages[0].sequence
        assert stored[first - 1 : first - 1 + PARTS] == [message.text for message in request.messages]
    eventually(lambda: has_room_for(target, THREADS + WAITING_CALLS))


@pytest.mark.slow
def test_calls_that_wait_and_are_taken_back_leave_their_room(target: Target, stub: Stub) -> None:
    waiting = pb.CountConversationsRequest(user_id=WAITING)
    for _ in range(10):
        calls = [stub.CountConversations.future(waiting, timeout=2) for _ in range(THREADS + WAITING_CALLS + 10)]
        time.sleep(0.02)
        for call in calls:
            call.cancel()
    with honest(target.endpoint):
        pass

    # Those that a thread was at end with their deadlines.
    eventually(lambda: has_room_for(target, THREADS + WAITING_CALLS))
