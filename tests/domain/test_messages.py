"""The plans of message writes, against lists that do the same thing plainly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from itertools import count, tee

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora_server.domain.conversations import Head
from remora_server.domain.errors import MessageNotFound
from remora_server.domain.messages import (
    Append,
    Edit,
    Keep,
    MessageDraft,
    Plan,
    Remove,
    Replace,
    plan_append,
    plan_clear,
    plan_delete,
    plan_edit,
)

NOW = 1_700_000_000_000_000


def draft(message_id: str = "", text: str = "") -> MessageDraft:
    return MessageDraft(id=message_id, role="user", text=text, body=text.encode())


@dataclass
class Kept:
    """A conversation as a plain list of (sequence, user, id, text, create_time); applies plans and checks them."""

    storage_limit: int | None = None
    messages: list[tuple[int, str, str, str, int]] = field(default_factory=list)
    last_sequence: int = 0
    last_time: int = 0
    update_time: int = 0

    @property
    def head(self) -> Head:
        return Head(
            uid=1,
            user_id="sarah",
            last_sequence=self.last_sequence,
            message_count=len(self.messages),
            last_time=self.last_time,
            update_time=self.update_time,
            storage_limit=self.storage_limit,
        )

    def find(self, user_id: str, ids: Sequence[str]) -> list[tuple[int, int] | None]:
        places = {message[2]: (message[0], message[4]) for message in self.messages if message[1] == user_id}
        return [places.get(message_id) for message_id in ids]

    def live(self, user_id: str | None) -> list[int]:
        return [message[0] for message in self.messages if user_id in (None, message[1])]

    def oldest(self, number: int) -> list[tuple[int, str]]:
        return [(message[0], message[1]) for message in self.messages[:number]]

    def apply(self, plan: Plan) -> None:
        for removal in plan.removals:
            gone = self.live(removal.user_id) if removal.sequences is None else removal.sequences
            assert set(gone) <= set(self.live(removal.user_id)), "only what is there is removed"
            self.messages = [message for message in self.messages if message[0] not in set(gone)]
        for put in plan.puts:
            row = (put.sequence, put.user_id, put.id, put.draft.text, put.create_time)
            places = [message[0] for message in self.messages]
            if put.replaces:
                self.messages[places.index(put.sequence)] = row
            else:
                assert put.sequence > self.last_sequence, "sequences only grow"
                self.messages.append(row)
        self.messages.sort()
        assert plan.head.message_count == len(self.messages)
        assert plan.head.last_sequence >= self.last_sequence
        assert plan.head.last_time >= self.last_time
        self.last_sequence, self.last_time = plan.head.last_sequence, plan.head.last_time
        self.update_time = plan.head.update_time

    def shown(self, user_id: str) -> list[tuple[str, str]]:
        return [(message[2], message[3]) for message in self.messages if message[1] == user_id]


ids = st.sampled_from(["", "a", "b", "c", "d"])
texts = st.text(max_size=3)
drafts = st.builds(draft, ids, texts)
known_ids = ids.filter(bool)
positions = st.none() | st.integers(-4, 4)
edits = st.one_of(
    st.builds(Append, drafts),
    st.builds(Replace, st.builds(draft, known_ids, texts)),
    st.builds(Remove, known_ids),
    st.builds(Keep, positions, positions),
)


def new_id(numbers: Iterator[int]) -> str:
    return f"new-{next(numbers)}"


def upsert(listed: list[tuple[str, str]], message: MessageDraft, new_id: str) -> None:
    message_id = message.id or new_id
    for position, (known, _) in enumerate(listed):
        if known == message_id:
            listed[position] = (message_id, message.text)
            return
    listed.append((message_id, message.text))


@given(st.lists(st.tuples(st.sampled_from(["sarah", "tom"]), st.lists(drafts, max_size=6)), max_size=6))
def test_appends_do_what_a_list_with_upserts_does(batches: list[tuple[str, list[MessageDraft]]]) -> None:
    kept, numbers = Kept(), count()
    model: dict[str, list[tuple[str, str]]] = {"sarah": [], "tom": []}
    for user, batch in batches:
        start = next(numbers) * 100
        made, expected = count(start), count(start)

        plan = plan_append(kept, user, batch, NOW, partial(new_id, made))
        kept.apply(plan)

        for message in batch:
            upsert(model[user], message, "" if message.id else f"new-{next(expected)}")
        assert kept.shown(user) == model[user]
        assert [placed.id for placed in plan.placed] == [
            message.id or placed.id for message, placed in zip(batch, plan.placed, strict=True)
        ]


@given(st.integers(1, 5), st.lists(st.lists(drafts, min_size=1, max_size=8), max_size=5))
def test_a_storage_limit_keeps_the_newest(limit: int, batches: list[list[MessageDraft]]) -> None:
    kept, numbers = Kept(storage_limit=limit), count()
    model: list[tuple[str, str]] = []
    for batch in batches:
        start = next(numbers) * 100
        made, expected = count(start), count(start)
        before = len(kept.messages)

        plan = plan_append(kept, "sarah", batch, NOW, partial(new_id, made))
        kept.apply(plan)

        for message in batch:
            upsert(model, message, "" if message.id else f"new-{next(expected)}")
        added, model = len(model) - before, model[-limit:]
        assert kept.shown("sarah") == model
        assert plan.pruned == before + added - len(model)


def edited(listed: list[tuple[str, str]], edit: Edit, new_ids: Iterator[str]) -> list[tuple[str, str]]:
    match edit:
        case Append(message):
            upsert(listed, message, "" if message.id else next(new_ids))
        case Replace(message):
            return [(known, message.text if known == message.id else text) for known, text in listed]
        case Remove(message_id):
            return [entry for entry in listed if entry[0] != message_id]
        case Keep(start, stop):
            return listed[start:stop]
    return listed


@given(st.lists(drafts, max_size=6), st.lists(edits, max_size=8))
def test_edits_do_what_a_list_does(start: list[MessageDraft], changes: list[Edit]) -> None:
    kept = Kept()
    model: list[tuple[str, str]] = []
    made, expected = (f"new-{n}" for n in count()), (f"new-{n}" for n in count())
    kept.apply(plan_append(kept, "sarah", start, NOW, lambda: next(made)))
    for message in start:
        upsert(model, message, "" if message.id else next(expected))
    kept.apply(plan_append(kept, "tom", [draft("a", "another user's")], NOW, str))

    plan = plan_edit(kept, "sarah", changes, NOW, lambda: next(made), allow_missing=True)
    before = kept.live("sarah")
    kept.apply(plan)

    for change in changes:
        model = edited(model, change, expected)
    assert kept.shown("sarah") == model
    assert kept.shown("tom") == [("a", "another user's")]
    assert plan.removed == len(set(before) - set(kept.live("sarah")))


@given(st.lists(drafts, max_size=6), st.lists(edits, max_size=8), st.integers(1, 6))
def test_edits_under_a_storage_limit_keep_the_newest(
    start: list[MessageDraft], changes: list[Edit], limit: int
) -> None:
    made = count()
    kept = Kept()
    kept.apply(plan_append(kept, "sarah", start, NOW, partial(new_id, made)))
    kept.apply(plan_append(kept, "tom", [draft("a", "another user's")], NOW, str))
    limited = deepcopy(kept)
    limited.storage_limit = limit
    fresh, again = tee(made)

    kept.apply(plan_edit(kept, "sarah", changes, NOW, partial(new_id, fresh), allow_missing=True))
    plan = plan_edit(limited, "sarah", changes, NOW, partial(new_id, again), allow_missing=True)
    limited.apply(plan)

    assert limited.messages == kept.messages[-limit:]
    assert plan.pruned == len(kept.messages) - len(limited.messages)


@pytest.mark.parametrize(
    ("edit", "path"),
    [(Replace(draft("x")), "edits[1].replace.id"), (Remove("x"), "edits[1].remove")],
)
def test_an_edit_of_what_is_not_there_names_its_place(edit: Edit, path: str) -> None:
    with pytest.raises(MessageNotFound) as caught:
        plan_edit(Kept(), "sarah", [Append(draft("a")), edit], NOW, str, allow_missing=False)

    assert caught.value.metadata == {"field": path, "message_id": "x"}


def test_a_replaced_message_keeps_its_place_and_create_time() -> None:
    kept = Kept()
    kept.apply(plan_append(kept, "sarah", [draft("a", "one"), draft("b", "two")], NOW, str))

    plan = plan_append(kept, "sarah", [draft("a", "changed")], NOW + 5, str)

    [put] = plan.puts
    assert (put.sequence, put.create_time, put.update_time, put.replaces) == (1, NOW, NOW + 5, True)


def test_time_never_goes_back_within_a_conversation() -> None:
    kept = Kept()
    kept.apply(plan_append(kept, "sarah", [draft("a")], NOW, str))

    plan = plan_append(kept, "sarah", [draft("b")], NOW - 3_600_000_000, str)

    assert plan.puts[0].create_time == NOW


def test_deleting_passes_over_unknown_ids() -> None:
    kept = Kept()
    kept.apply(plan_append(kept, "sarah", [draft("a"), draft("b")], NOW, str))

    plan = plan_delete(kept, "sarah", ["b", "missing", "b"], NOW)
    kept.apply(plan)

    assert plan.removed == 1
    assert kept.shown("sarah") == [("a", "")]


def test_clearing_leaves_other_users_messages() -> None:
    kept = Kept()
    kept.apply(plan_append(kept, "sarah", [draft("a")], NOW, str))
    kept.apply(plan_append(kept, "tom", [draft("a")], NOW, str))

    kept.apply(plan_clear(kept, "sarah", NOW))

    assert kept.shown("sarah") == []
    assert kept.shown("tom") == [("a", "")]


def test_a_plan_that_changes_nothing_says_so() -> None:
    assert not plan_delete(Kept(), "sarah", ["a"], NOW).changes_messages
    assert not plan_clear(Kept(), "sarah", NOW).changes_messages
