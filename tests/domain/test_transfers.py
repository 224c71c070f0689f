"""The plan of an import: what is put, what must be there already, and how the counters move."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from remora_server.domain.conversations import ConversationDraft, Head
from remora_server.domain.errors import InvalidField, RecordConflict
from remora_server.domain.messages import MessageDraft
from remora_server.domain.transfers import ImportedConversation, ImportedMessage, plan_import


class View:
    """A conversation that holds these (sequence, user, id)."""

    def __init__(self, *held: tuple[int, str, str], last_sequence: int = 0, last_time: int = 0) -> None:
        self.held = held
        self.head = Head(
            uid=7,
            user_id="u",
            last_sequence=last_sequence,
            message_count=len(held),
            last_time=last_time,
            update_time=5,
            storage_limit=1,
        )

    def find(self, user_id: str, ids: Sequence[str]) -> list[tuple[int, int] | None]:
        places = {(user, message_id): (sequence, 0) for sequence, user, message_id in self.held}
        return [places.get((user_id, message_id)) for message_id in ids]

    def live(self, _user_id: str | None) -> list[int]:
        return [sequence for sequence, _, _ in self.held]

    def oldest(self, _count: int) -> list[tuple[int, str]]:
        raise AssertionError("nothing is pruned")


def message(sequence: int, message_id: str = "", *, user: str = "u", time: int | None = None) -> ImportedMessage:
    draft = MessageDraft(message_id or f"m{sequence}", "user", "", b"")
    at = sequence * 10 if time is None else time
    return ImportedMessage(f"records[{sequence}].message", draft, user, sequence, at, at)


def conversation(last_sequence: int, last_time: int, update_time: int) -> ImportedConversation:
    return ImportedConversation(
        "records[0].conversation", ConversationDraft("c"), last_sequence, last_time, 1, update_time
    )


def test_messages_go_to_their_places_and_nothing_is_pruned() -> None:
    planned = plan_import(View(), None, [message(3), message(8)])

    assert [(put.sequence, put.id, put.create_time, put.replaces) for put in planned.plan.puts] == [
        (3, "m3", 30, False),
        (8, "m8", 80, False),
    ]
    head = planned.plan.head
    assert (head.uid, head.last_sequence, head.message_count, head.last_time, head.update_time) == (7, 8, 2, 80, 5)
    assert (planned.plan.removals, planned.taken) == ((), ())


def test_counters_only_grow() -> None:
    view = View((9, "u", "m9"), last_sequence=9, last_time=90)

    behind = plan_import(view, conversation(4, 40, 4), [message(2)]).plan.head
    beyond = plan_import(view, conversation(12, 120, 60), []).plan.head

    assert (behind.last_sequence, behind.last_time, behind.update_time) == (9, 90, 5)
    assert (beyond.last_sequence, beyond.last_time, beyond.update_time) == (12, 120, 60)


def test_a_place_that_is_taken_is_to_be_compared() -> None:
    planned = plan_import(View((3, "u", "m3")), None, [message(3), message(4)])

    assert [message.sequence for message in planned.taken] == [3]
    assert [put.sequence for put in planned.plan.puts] == [4]
    assert planned.plan.head.message_count == 2


def test_an_id_that_stands_elsewhere_is_another_message() -> None:
    with pytest.raises(RecordConflict) as refused:
        plan_import(View((3, "u", "m4")), None, [message(4)])
    assert refused.value.metadata == {"field": "records[4].message"}

    assert plan_import(View((3, "v", "m4")), None, [message(4)]).plan.puts, "another user's id is another"


@pytest.mark.parametrize(
    ("messages", "field"),
    [
        ([message(4), message(3)], "records[3].message.message.sequence"),
        ([message(4), message(4, "other")], "records[4].message.message.sequence"),
        ([message(3), message(4, time=29)], "records[4].message.message.create_time"),
        ([message(3, "m"), message(4, "m")], "records[4].message"),
    ],
)
def test_messages_out_of_order_are_refused(messages: list[ImportedMessage], field: str) -> None:
    with pytest.raises(InvalidField) as refused:
        plan_import(View(), None, messages)

    assert refused.value.field == field
