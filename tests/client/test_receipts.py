"""Receipts as the client gives them, from a real server."""

from __future__ import annotations

import asyncio

import pytest
from tests.patience import PATIENCE

from remora import AsyncRemora, Conversation, Remora
from remora.errors import ReceiptNotFoundError


@pytest.fixture
def chat(memory: Remora) -> Conversation:
    chat = memory.conversation("trip", user_id="sarah")
    chat.append({"role": "user", "content": "Which train goes to Lisbon?"})
    chat.append({"role": "assistant", "content": "The night train."})
    chat.append({"role": "user", "content": "And back?"})
    return chat


def test_a_receipt_says_what_a_context_was_made_of(memory: Remora, chat: Conversation) -> None:
    context = chat.context(200, query="Lisbon")

    receipt = memory.receipts.get(context.receipt_id)

    assert (receipt.user_id, receipt.conversation_id, receipt.query) == ("sarah", "trip", "Lisbon")
    assert (receipt.max_tokens, receipt.tokens_used) == (200, context.tokens_used)
    assert [(item.section, item.tokens) for item in receipt.items] == [
        (item.section, item.tokens) for item in context.items
    ]
    assert "context of trip" in str(receipt)


def test_what_was_replaced_since_is_replayed_as_it_was(memory: Remora, chat: Conversation) -> None:
    context = chat.context(200)
    [first, *_] = chat.messages()
    chat.append({"role": "user", "content": "Which boat goes to Lisbon?", "id": first.id})

    replay = memory.receipts.replay(context.receipt_id)

    assert replay.identical
    assert replay.context == context
    assert replay.context is not None
    assert replay.context.messages[0]["content"] == "Which train goes to Lisbon?"
    assert chat.messages()[0].text == "Which boat goes to Lisbon?"


def test_what_was_erased_since_is_left_out_and_named(memory: Remora, chat: Conversation) -> None:
    found = chat.search("Lisbon")
    chat.delete_messages(found[0].message.id)

    replay = memory.receipts.replay(found.receipt_id)

    assert replay.search is not None
    assert not replay.identical
    assert [item.message_id for item in replay.erased] == [found[0].message.id]
    assert found[0].message.id not in [hit.message.id for hit in replay.search]


def test_what_was_asked_for_is_not_known_where_it_was_erased(memory: Remora, chat: Conversation) -> None:
    context = chat.context(200, query="Lisbon")
    chat.delete()

    receipt, replay = memory.receipts.get(context.receipt_id), memory.receipts.replay(context.receipt_id)

    assert (receipt.request, receipt.query, receipt.max_tokens) == (None, "", None)
    assert f"{context.tokens_used} tokens, " in str(receipt)
    assert replay.context is not None
    assert replay.context.max_tokens is None
    assert str(replay.context).startswith(f"context: {context.tokens_used} tokens, exact; the budget was erased\n")


def test_a_difference_says_what_came_in(memory: Remora, chat: Conversation) -> None:
    before = chat.context(200)
    chat.append({"role": "assistant", "content": "On Sunday."})
    after = chat.context(200)

    found = memory.receipts.diff(before.receipt_id, after.receipt_id)

    assert [change.after.message_id for change in found.came_in if change.after] == [after.items[-1].message.id]
    assert (found.went_out, found.unchanged) == ((), 3)
    *_, came_in, unchanged = str(found).splitlines()
    assert came_in.count("one of the newest messages") == 1
    assert unchanged == "3 unchanged"


def test_what_somebody_asks_does_not_control_a_persons_terminal(memory: Remora, chat: Conversation) -> None:
    receipts = [chat.context(200, query=query).receipt_id for query in ("\x1b[2JLisbon\a", "\u202eLisbon")]

    first = str(memory.receipts.get(receipts[0]))
    difference = str(memory.receipts.diff(*receipts))

    assert "asked: ␛[2JLisbon␇" in first
    assert first.replace("\n", "").isprintable()
    assert difference.replace("\n", "").isprintable()


def test_receipts_are_listed_by_user_and_conversation(memory: Remora, chat: Conversation) -> None:
    receipts = [chat.context(200).receipt_id, chat.search("train").receipt_id, memory.search_all_users("x").receipt_id]

    assert [found.id for found in memory.receipts.list_receipts()] == receipts[::-1]
    assert [found.id for found in memory.receipts.list_receipts(conversation_id="trip", limit=1)] == [receipts[1]]
    assert memory.receipts.list_receipts(user_id="tom") == []


def test_a_receipt_of_another_user_is_not_found(memory: Remora, chat: Conversation) -> None:
    receipt = chat.context(200).receipt_id

    with pytest.raises(ReceiptNotFoundError):
        memory.receipts.replay(receipt, user_id="tom")


def test_the_async_client_replays_too(endpoint: str) -> None:
    async def replayed() -> bool:
        async with AsyncRemora(endpoint, tenant="async", timeout=PATIENCE) as memory:
            chat = memory.conversation("c", user_id="u")
            await chat.append({"role": "user", "content": "hello"})
            context = await chat.context(100)
            return (await memory.receipts.replay(context.receipt_id)).context == context

    assert asyncio.run(replayed())
