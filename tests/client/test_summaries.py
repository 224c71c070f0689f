"""Summaries as the client asks for them, from a real server without a chat model."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from tests.patience import PATIENCE, eventually

from remora import AsyncRemora, Conversation, Remora, Summarize, Trim
from remora.errors import (
    ConversationNotFoundError,
    InvalidFieldError,
    RemoraError,
    SummaryOutdatedError,
    WrongTypeError,
)

SAID = [
    "My sister Ana lives in Lisbon.",
    "The harbour in Lisbon is lovely in May.",
    "Ana works at the harbour.",
    "I take the night train to Lisbon.",
]
HEAD = "CONVERSATION SUMMARY: "


def said(chat: Conversation, *texts: str) -> None:
    chat.append([{"role": "user", "content": text} for text in texts])


def test_older_messages_leave_the_window_for_a_summary_that_contexts_begin_with(memory: Remora) -> None:
    chat = memory.conversation("c", user_id="u", short_term=Summarize(24, 10, keep_messages=1))
    said(chat, *SAID)

    eventually(lambda: chat.window().summary is not None)

    summary = chat.window().summary
    assert summary is not None
    assert (summary.model, summary.covers_through_sequence) == ("extractive", 3)
    assert summary.text
    assert all(line.removeprefix("user: ") in SAID for line in summary.text.splitlines())
    context = chat.context(200, recall=False)
    assert [item.section for item in context.items] == ["summary", "recent"]
    assert context.messages[0] == {"role": "user", "content": HEAD + summary.text}
    assert [message.text for message in chat.messages(view="all")] == SAID


def test_ones_own_model_writes_the_summary(memory: Remora) -> None:
    chat = memory.conversation("c", user_id="u", short_term=Summarize(24, keep_messages=1, by_client=True))
    said(chat, *SAID)
    asked = []

    def llm(instruction: str, text: str) -> str:
        asked.append(instruction)
        return f"{len(text.splitlines())} lines about Ana."

    first = chat.summarize(llm, model="my-model", if_over=True)
    again = chat.summarize(llm, if_over=True)

    assert first is not None
    assert (first.model, first.covers_through_sequence) == ("my-model", 3)
    assert again == first
    assert len(asked) == 1
    assert chat.context(200, recall=False).messages[0]["content"] == HEAD + first.text


def test_what_left_under_an_earlier_policy_is_recalled_and_not_summarised(memory: Remora) -> None:
    chat = memory.conversation("c", user_id="u", short_term=Trim(24, keep_tokens=16))
    said(chat, *SAID)
    eventually(lambda: [message.text for message in chat.messages()], until=SAID[2:].__eq__)
    chat.update(short_term=Summarize(24, keep_messages=1, by_client=True))
    shown = []

    def llm(_instruction: str, text: str) -> str:
        shown.append(text)
        return "Ana works at the harbour."

    summary = chat.summarize(llm)

    assert summary is not None
    assert SAID[2] in shown[0]
    assert not any(text in shown[0] for text in SAID[:2])
    assert [hit.message.text for hit in chat.search("my sister", k=1)] == SAID[:1]


def test_what_changes_while_the_model_writes_is_summarised_again(memory: Remora) -> None:
    chat = memory.conversation("c", user_id="u")
    said(chat, *SAID)
    first, *_ = chat.messages()
    texts = []

    def llm(_instruction: str, text: str) -> str:
        texts.append(text)
        if len(texts) == 1:
            chat.append({"role": "user", "content": "My brother lives in Lisbon.", "id": first.id})
        return "Somebody lives in Lisbon."

    summary = chat.summarize(llm, keep_messages=1)

    assert summary is not None
    assert [("sister" in text, "brother" in text) for text in texts] == [(True, False), (False, True)]


def test_a_summary_that_is_always_outdated_is_given_up(memory: Remora) -> None:
    chat = memory.conversation("c", user_id="u")
    said(chat, *SAID)
    first, *_ = chat.messages()

    def llm(_instruction: str, _text: str) -> str:
        chat.append({"role": "user", "content": "Changed again.", "id": first.id})
        return "Too late."

    with pytest.raises(SummaryOutdatedError):
        chat.summarize(llm, keep_messages=1)
    assert chat.window().summary is None


def test_a_failure_of_the_model_is_the_callers_and_changes_nothing(memory: Remora) -> None:
    chat = memory.conversation("c", user_id="u")
    said(chat, *SAID)

    def llm(_instruction: str, _text: str) -> str:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        chat.summarize(llm, keep_messages=1)
    assert chat.window().first_sequence == 0


@pytest.mark.parametrize(
    ("written", "kind", "sentence"),
    [
        (None, WrongTypeError, "the result of write is None; it must be a str"),
        ("", InvalidFieldError, "the result of write has no text; it must have 1 to 262,144 bytes"),
        (" \n", InvalidFieldError, "the result of write has no text; it must have 1 to 262,144 bytes"),
        (
            "a\ud800",
            InvalidFieldError,
            (
                "the result of write has half of a surrogate pair at character 1, U+D800, which UTF-8 cannot hold; "
                "replace it, or decode it again"
            ),
        ),
        ("x" * 262_145, InvalidFieldError, "the result of write has 262,145 bytes; it must have 1 to 262,144 bytes"),
    ],
)
def test_what_can_be_no_summary_is_refused(
    memory: Remora, written: object, kind: type[RemoraError], sentence: str
) -> None:
    chat = memory.conversation("c", user_id="u")
    said(chat, *SAID)

    with pytest.raises(kind) as raised:
        chat.summarize(lambda _instruction, _text: cast("str", written), keep_messages=1)
    assert str(raised.value) == sentence
    assert chat.window().summary is None


def test_there_is_nothing_to_summarise_in_a_short_conversation(memory: Remora) -> None:
    chat = memory.conversation("c", user_id="u")
    said(chat, SAID[0])

    assert chat.summarize(lambda _instruction, _text: "never asked") is None
    with pytest.raises(ConversationNotFoundError):
        memory.conversation("missing").summarize(lambda _instruction, _text: "never asked")


def test_a_summary_is_replayed_until_a_message_of_its_conversation_is_deleted(memory: Remora) -> None:
    chat = memory.conversation("c", user_id="u")
    said(chat, *SAID)
    chat.summarize(lambda _instruction, _text: "Ana lives in Lisbon.", keep_messages=1)
    context = chat.context(200, recall=False)

    again = memory.receipts.replay(context.receipt_id)
    receipt = memory.receipts.get(context.receipt_id)
    chat.delete_messages(chat.messages(view="all")[0].id)
    later = memory.receipts.replay(context.receipt_id)

    assert (again.identical, again.context) == (True, context)
    assert [(item.section, item.sequence) for item in receipt.items] == [("summary", 0), ("recent", 4)]
    assert [item.section for item in later.erased] == ["summary"]
    assert later.context is not None
    assert "Ana lives in Lisbon" not in str(later.context.messages)


def test_the_async_client_summarises_too(endpoint: str) -> None:
    async def llm(_instruction: str, _text: str) -> str:
        return "Ana lives in Lisbon."

    async def summarised() -> str:
        async with AsyncRemora(endpoint, tenant="async", timeout=PATIENCE) as memory:
            chat = memory.conversation("c", user_id="u")
            await chat.append([{"role": "user", "content": text} for text in SAID])
            summary = await chat.summarize(llm, keep_messages=1)
            return summary.text if summary else ""

    assert asyncio.run(summarised()) == "Ana lives in Lisbon."


def test_the_async_client_says_that_a_summary_is_written_by_an_async_function(endpoint: str) -> None:
    async def summarised() -> None:
        async with AsyncRemora(endpoint, tenant="not async", timeout=PATIENCE) as memory:
            chat = memory.conversation("c", user_id="u")
            await chat.append([{"role": "user", "content": text} for text in SAID])
            await chat.summarize(lambda _instruction, _text: "plain", keep_messages=1)  # type: ignore[arg-type, return-value]

    with pytest.raises(
        WrongTypeError, match=r"^the result of write is 'plain' \(a str\); it must be awaitable: write is an async"
    ):
        asyncio.run(summarised())
