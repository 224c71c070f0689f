"""How far one call of a filtered list looks."""

from __future__ import annotations

import pytest

from remora.v1.conversation_service_pb2 import ListMessagesResponse
from remora.v1.message_pb2 import Message
from remora.v1.scalar_pb2 import Scalar
from remora_server.domain.filters import Condition, Filter, Operator
from remora_server.domain.messages import MessagePage, MessageQuery
from remora_server.storage.nouns.filtered_messages import MOST_SCANNED, SCANNED_AT_ONCE, filtered_page

WANTED: Filter = Condition("wanted", Operator.PRESENT, ())


def message(sequence: int, *, wanted: bool) -> Message:
    return Message(sequence=sequence, attributes={"wanted": Scalar(boolean=True)} if wanted else {})


class Messages:
    """The messages of a conversation, some of them wanted, and how many were looked at."""

    def __init__(self, count: int, wanted: set[int]) -> None:
        self.count = count
        self.wanted = wanted
        self.scanned = 0

    def listed(self, query: MessageQuery) -> MessagePage:
        first, end = (query.after_sequence or 0) + 1, query.before_sequence or self.count + 1
        every = range(first, end)
        held = every[-query.limit :] if query.newest else every[: query.limit]
        self.scanned += len(held)
        reply = ListMessagesResponse(messages=[message(each, wanted=each in self.wanted) for each in held])
        return MessagePage(reply.SerializeToString(), len(held), held[0], held[-1], len(held) < len(every), 1, 1)

    def page(self, query: MessageQuery) -> tuple[list[int], MessagePage]:
        page = filtered_page(query, WANTED, self.listed)
        return [each.sequence for each in ListMessagesResponse.FromString(page.encoded).messages], page


@pytest.mark.parametrize("newest", [True, False])
def test_a_call_ends_after_so_many_messages_and_the_next_one_goes_on(newest: bool) -> None:
    count = 2 * MOST_SCANNED + 5
    messages = Messages(count, {1 if newest else count})

    empty, first = messages.page(MessageQuery("c", newest=newest))
    after, before = (None, first.first_sequence) if newest else (first.last_sequence, None)
    rest, second = messages.page(MessageQuery("c", newest=newest, after_sequence=after, before_sequence=before))

    assert (empty, first.more) == ([], True)
    assert messages.scanned == 2 * MOST_SCANNED
    assert (rest, second.more) == ([], True)
    assert (second.first_sequence if newest else second.last_sequence) == (6 if newest else count - 5)


def test_a_page_that_is_full_ends_the_call() -> None:
    messages = Messages(5 * SCANNED_AT_ONCE, set(range(1, 5 * SCANNED_AT_ONCE + 1)))

    found, page = messages.page(MessageQuery("c", limit=10))

    assert found == list(range(5 * SCANNED_AT_ONCE - 9, 5 * SCANNED_AT_ONCE + 1))
    assert (messages.scanned, page.more, page.first_sequence) == (SCANNED_AT_ONCE, True, found[0])


def test_a_list_that_was_looked_through_says_that_nothing_follows() -> None:
    messages = Messages(SCANNED_AT_ONCE + 7, {3, 1_003})

    found, page = messages.page(MessageQuery("c", newest=False))

    assert (found, page.more) == ([3, 1_003], False)
