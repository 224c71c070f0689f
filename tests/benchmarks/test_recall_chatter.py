"""Small talk beside a set: as much as is asked for, spread over its time, the same at each run."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from benchmarks.recall_chatter import SPAN, chatter
from benchmarks.recall_sets import Talk

from remora import Message

MAY, JUNE = datetime(2022, 5, 1, tzinfo=UTC), datetime(2022, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize(("count", "lengths"), [(0, []), (1, [1]), (200, [100, 100]), (250, [100, 100, 50])])
def test_there_are_so_many_messages_in_conversations_of_a_hundred(count: int, lengths: list[int]) -> None:
    assert [len(talk.messages) for talk in chatter(count, [])] == lengths


def test_conversations_lie_in_the_time_of_the_set() -> None:
    times = [talk.messages[0].sent_time for talk in chatter(300, [Talk("s", [said(MAY), said(None), said(JUNE)])])]
    assert all(time is not None and MAY <= time < JUNE for time in times)
    assert times == sorted(set(times), key=str)
    assert chatter(1, [Talk("s", [said(None)])])[0].messages[0].sent_time == SPAN[0]


def said(when: datetime | None) -> Message:
    return Message("user", "Hi", sent_time=when)


def test_it_is_the_same_each_time_and_says_many_things() -> None:
    talks = chatter(5_000, [])

    assert talks == chatter(5_000, [])
    texts = [message.text for talk in talks for message in talk.messages]
    assert len(set(texts)) > 3_000
    assert not any("{" in text for text in texts)
    assert all(len({message.name for message in talk.messages}) == 2 for talk in talks)
