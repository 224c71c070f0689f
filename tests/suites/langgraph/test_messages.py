"""Updates of lists of messages, as one edit of a conversation, against LangGraph's own reducer."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
)
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from tests.suites.conftest import Server
from tests.suites.langgraph.conftest import patient_client

from remora import Conversation
from remora.errors import MessageNotFoundError
from remora.langgraph.messages import edits_of

UPDATES = 300


@pytest.fixture
def conversation(server: Server, tenant: str) -> Iterator[Conversation]:
    with patient_client(server.endpoint, tenant=tenant) as memory:
        yield memory.create_conversation("c")


def held(conversation: Conversation) -> list[tuple[str, str]]:
    return [(message.id, message.text) for message in conversation.messages(limit=None)]


def shown(messages: list[BaseMessage]) -> list[tuple[str, str]]:
    return [(str(message.id), str(message.content)) for message in messages]


def drawn(choice: random.Random, number: int) -> BaseMessage:
    name = f"m{choice.randrange(8)}"
    draw = choice.random()
    if draw < 0.25:
        return RemoveMessage(id=name)
    if draw < 0.3:
        return RemoveMessage(id=REMOVE_ALL_MESSAGES)
    kind = HumanMessage if draw < 0.7 else AIMessage
    return kind(f"text {number}", id=None if draw > 0.9 else name)


def has_one_of_each_id(update: list[BaseMessage]) -> bool:
    """Whether the reducer would not keep two messages of one id, which no conversation has, or a removal."""
    removed = [at for at, message in enumerate(update) if message.id == REMOVE_ALL_MESSAGES]
    rest = update[removed[-1] + 1 :] if removed else []
    return len({message.id for message in rest}) == len(rest) and not any(
        isinstance(message, RemoveMessage) for message in rest
    )


def test_generated_updates_leave_what_the_reducer_leaves(conversation: Conversation) -> None:
    choice = random.Random(7)
    state: list[BaseMessage] = []
    refused = applied = 0
    while applied + refused < UPDATES:
        update = [drawn(choice, applied * 10 + at) for at in range(choice.randint(1, 4))]
        if not has_one_of_each_id(update):
            continue
        edits = edits_of(update)
        try:
            state = add_messages(state, update)  # type: ignore[assignment, arg-type]
        except ValueError:
            refused += 1
            with pytest.raises(MessageNotFoundError):
                conversation.edit(edits)
        else:
            applied += 1
            conversation.edit(edits)
        assert held(conversation) == shown(state), update
    assert min(refused, applied) > UPDATES // 10


@pytest.mark.parametrize(
    ("start", "stop"), [(0, None), (-2, None), (1, 3), (1, -1), (-3, -1), (4, 2), (0, 99), (-99, None)]
)
def test_keeping_a_slice_keeps_what_the_documents_reducer_keeps(
    conversation: Conversation, start: int, stop: int | None
) -> None:
    conversation.edit(edits_of([HumanMessage(f"text {number}", id=f"m{number}") for number in range(5)]))
    before = held(conversation)

    update = {"type": "keep", "from": start} | ({} if stop is None else {"to": stop})
    conversation.edit(edits_of(update))

    assert held(conversation) == before[start:stop]


@pytest.mark.parametrize("slice_of", [{}, {"form": 1}, {"from": 1, "too": 3}])
def test_a_slice_that_is_misspelt_is_refused(slice_of: dict[str, int]) -> None:
    update: Any = {"type": "keep", **slice_of}

    with pytest.raises(ValueError, match="says no slice: it must be"):
        edits_of(update)


def test_one_message_and_other_forms_are_updates_too(conversation: Conversation) -> None:
    conversation.edit(edits_of(HumanMessage("one", id="m1")))
    conversation.edit(edits_of([("user", "two"), {"role": "assistant", "content": "three"}]))
    conversation.edit(edits_of(RemoveMessage(id="m1")))
    conversation.edit(edits_of([HumanMessageChunk(content="four"), AIMessageChunk(content="five")]))

    assert [text for _, text in held(conversation)] == ["two", "three", "four", "five"]
    assert [message.role for message in conversation.messages()] == ["user", "assistant", "user", "assistant"]


def test_no_update_is_refused_and_an_empty_one_has_no_edits() -> None:
    with pytest.raises(ValueError, match="None"):
        edits_of(None)  # type: ignore[arg-type]
    assert edits_of([]) == []


def test_checkpoints_items_and_updates_need_no_more_than_the_extra_installs() -> None:
    blocked = "import sys; sys.modules['langgraph.graph'] = None"
    code = f"{blocked}; import remora.langgraph, remora.langgraph.messages as used; print(used.REMOVE_ALL_MESSAGES)"

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert printed.stdout.strip() == REMOVE_ALL_MESSAGES
