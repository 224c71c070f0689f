"""A wall clock that is set back and forward under a server: order, times and requests are as if it had not been."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tests.faults.preloading import SetClock
from tests.faults.served_store import ServedStore
from tests.patience import PATIENCE, eventually

from remora.v1 import conversation_service_pb2 as pb
from remora.v1.conversation_pb2 import Conversation
from remora.v1.message_pb2 import Message

pytestmark = pytest.mark.slow

MINUTE, HOUR = 60, 3600


class Store(ServedStore):
    """A server whose wall clock can be set."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.clock = SetClock(directory)
        self.sidecar.preloaded = self.clock.variables

    def say(self, text: str, request_id: str) -> pb.AppendMessagesResponse:
        """Append a message by a request that is remembered."""
        request = pb.AppendMessagesRequest(
            conversation_id="held",
            messages=[Message(role="user", text=text)],
            create_if_missing=Conversation(user_id="sarah"),
            request_id=request_id,
        )
        return self.memory.stubs.conversations.AppendMessages(request, timeout=PATIENCE)

    def times(self) -> list[datetime]:
        """When each message was made, by the server's clock, in the order of the conversation."""
        request = pb.ListMessagesRequest(
            conversation_id="held", page_size=1_000, page_order=pb.PageOrder.PAGE_ORDER_OLDEST_FIRST
        )
        found = self.memory.stubs.conversations.ListMessages(request, timeout=PATIENCE)
        return [moment(message.create_time) for message in found.messages]

    def update_time(self) -> datetime:
        """When the conversation was changed."""
        request = pb.GetConversationRequest(conversation_id="held")
        found = self.memory.stubs.conversations.GetConversation(request, timeout=PATIENCE)
        return moment(found.conversation.update_time)

    def restart(self) -> None:
        """Kill it once everything is in the database, and start it."""
        eventually(self.applied)
        self.sidecar.kill()
        self.sidecar.start()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path)
    yield opened
    opened.close()


def moment(stamp: Timestamp) -> datetime:
    return stamp.ToDatetime(tzinfo=UTC)


def seconds_from_now(stamp: datetime) -> float:
    return (stamp - datetime.now(UTC)).total_seconds()


def test_the_clock_of_a_server_can_be_set(store: Store) -> None:
    store.clock.set(-HOUR)
    store.sidecar.start()
    store.say("earlier", "r1")
    assert seconds_from_now(store.times()[0]) == pytest.approx(-HOUR, abs=10 * MINUTE)

    store.clock.set(2 * HOUR)
    store.say("later", "r2")
    assert seconds_from_now(store.times()[1]) == pytest.approx(2 * HOUR, abs=10 * MINUTE)


def test_while_it_runs_a_clock_that_is_set_back_changes_no_order_and_forgets_no_request(store: Store) -> None:
    store.sidecar.start()
    first = store.say("one", "r1")
    before = store.update_time()

    store.clock.set(-HOUR)
    second = store.say("two", "r2")

    assert store.listed() == ["one", "two"]
    assert store.times() == sorted(store.times())
    assert store.update_time() > before
    assert seconds_from_now(store.times()[1]) == pytest.approx(0, abs=10 * MINUTE), "time goes on as it was"
    assert [store.say("one", "r1"), store.say("two", "r2")] == [first, second], "both are known"
    store.clock.set(0)
    store.say("three", "r3")
    assert store.listed() == ["one", "two", "three"]
    assert store.times() == sorted(store.times())


def test_while_it_runs_a_clock_that_is_set_forward_forgets_no_request(store: Store) -> None:
    store.sidecar.start()
    first = store.say("one", "r1")

    store.clock.set(2 * HOUR)
    second = store.say("two", "r2")

    assert [store.say("one", "r1"), store.say("two", "r2")] == [first, second]
    store.clock.set(0)
    store.say("three", "r3")
    assert store.listed() == ["one", "two", "three"]
    assert store.times() == sorted(store.times())


def test_a_server_that_starts_with_an_earlier_clock_keeps_order_and_requests(store: Store) -> None:
    store.sidecar.start()
    first = store.say("one", "r1")
    before = store.update_time()

    store.clock.set(-HOUR)
    store.restart()
    assert store.say("one", "r1") == first
    second = store.say("two", "r2")
    assert second.messages[0].sequence > first.messages[0].sequence

    assert store.listed() == ["one", "two"]
    assert store.times() == sorted(store.times())
    assert store.update_time() >= before
    store.clock.set(0)
    store.restart()
    assert [store.say("one", "r1"), store.say("two", "r2")] == [first, second]
    assert store.listed() == ["one", "two"]


def test_a_request_is_forgotten_when_an_hour_lies_between_it_and_a_start(store: Store) -> None:
    store.sidecar.start()
    store.say("one", "r1")

    store.clock.set(HOUR - 10 * MINUTE)
    store.restart()
    store.say("one", "r1")
    assert store.listed() == ["one"]

    store.clock.set(2 * HOUR)
    store.restart()
    store.say("one", "r1")
    assert store.listed() == ["one", "one"]
    assert store.times() == sorted(store.times())


def test_a_server_that_trusts_its_wall_clock_is_found_out(store: Store) -> None:
    store.sidecar.changes = ("trust_the_wall_clock",)
    store.sidecar.start()
    store.say("one", "r1")
    before = store.update_time()

    store.clock.set(-HOUR)
    store.say("two", "r2")

    assert store.update_time() == before, "no time has passed"
