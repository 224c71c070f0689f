"""`print(context)`: what a person sees of it."""

from __future__ import annotations

from datetime import UTC, datetime
from textwrap import dedent

from remora import Context, Image, Media, Message
from remora.v1 import memory_service_pb2 as pb

SENT = datetime(2026, 5, 4, tzinfo=UTC)

HALF = "1 half of a tool call, without its result or its call"


def item(message: Message, section: str, tokens: int, reason: str, **fields: object) -> pb.Item:
    wire = {"message": message.to_proto(), "section": f"SECTION_{section}", "tokens": tokens, "reason": reason}
    return pb.Item(**{**wire, **fields})  # type: ignore[arg-type]


def shown(*items: pb.Item, **fields: object) -> str:
    reply = {"items": items, "tokens_used": 1234, "overhead_tokens": 21, "exact": True}
    return str(Context.from_proto(pb.AssembleContextResponse(**{**reply, **fields}), 4000))  # type: ignore[arg-type]


def test_a_person_sees_every_section_with_costs_and_reasons() -> None:
    call = {"id": "x", "type": "function", "function": {"name": "ferries", "arguments": "{}"}}
    text = shown(
        item(Message("system", "Be brief."), "SYSTEM", 6, "the newest system message"),
        item(Message("user", "I like\nElba.", name="Ann", sent_time=SENT), "RECALLED", 9, "number 1", score=1.25),
        item(Message("user", "word " * 40), "RECENT", 1183, "newest", partial=True),
        item(Message.of({"role": "assistant", "content": None, "tool_calls": [call]}), "RECENT", 15, "newest"),
        earlier=Message("user", "quoted").to_proto(),
    )

    expected = """\
        context: 1,234 of 4,000 tokens, exact
        system:
              6  system: Be brief.                                             the newest system message
        recalled, in one message of the role user:
              9  2026-05-04 Ann: I like Elba.                                  number 1, score 1.250
        recent:
          1,183  user: word word word word word word word word word word wor…  newest, truncated
             15  assistant: [calls ferries]                                    newest
             21  around the messages"""
    assert text == dedent(expected)


def test_a_person_sees_facts_without_a_speaker() -> None:
    text = shown(
        item(Message("user", "Offices close at 6."), "STATIC_FACTS", 8, "holds for all"),
        item(Message("user", "The user likes tea."), "FACTS", 7, "number 1", score=0.5),
        memory=Message("user", "listed").to_proto(),
    )

    expected = """\
        context: 1,234 of 4,000 tokens, exact
        static facts, in one message of the role user:
              8  Offices close at 6.                                           holds for all
        facts, in one message of the role user:
              7  The user likes tea.                                           number 1, score 0.500
             21  around the messages"""
    assert text == dedent(expected)


def test_a_person_sees_what_is_not_in_and_what_is_not_counted() -> None:
    text = shown(
        item(Message("user", "Look.", id="m7"), "RECENT", 5, "newest", uncounted=["audio", "file"]),
        left_out=1200,
        unrelated=3,
        unanswered=1,
        exact=False,
        index=pb.IndexState(words_only=True, words_only_reason=pb.WORDS_ONLY_REASON_NO_MODEL),
    )

    assert text.splitlines()[0] == "context: 1,234 of 4,000 tokens, not exact"
    assert text.splitlines()[-3:] == [
        f"not in: 1,200 did not fit; 3 found, but are not relevant to the query; {HALF}",
        "not counted: audio, file in message m7",
        "searched by words only: no_model",
    ]


def test_a_person_sees_media_and_that_an_encoding_estimates() -> None:
    seen = Message("user", "Look.", media=Media((Image(640, 480), Image()), ("audio",)))

    text = shown(item(seen, "RECENT", 5, "newest"), exact=False)

    assert "user: Look. [image of 640x480] [image of unknown size] [aud…" in text
    assert text.splitlines()[-1] == "not exact: the encoding estimates how many tokens a text has"


def test_what_somebody_says_does_not_control_a_persons_terminal() -> None:
    message = Message("user", "\x1b[2JHello\a \u202eolleh", name="A\x1bB")
    text = shown(item(message, "RECENT", 9, "newest"))

    assert "A␛B: ␛[2JHello␇ <U+202E>olleh" in text
    assert text.replace("\n", "").isprintable()
