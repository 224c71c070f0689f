"""`print` of messages, of facts and of what a search found: what a person sees of them."""

from __future__ import annotations

from datetime import UTC, datetime

from remora import (
    ExtractedFacts,
    Fact,
    FactSearchResult,
    Image,
    Media,
    MemoryItem,
    Message,
    Messages,
    Remora,
    SearchResult,
    Vector,
)
from remora.memory_items import MemoryItemSearchResult
from remora.v1 import memory_service_pb2 as pb
from remora.v1 import vector_service_pb2
from remora.vectors import VectorSearchResult

SENT = datetime(2026, 5, 4, 9, 30, tzinfo=UTC)
TOOL = {"id": "x", "type": "function", "function": {"name": "ferries", "arguments": "{}"}}


def hit(message: Message, score: float) -> pb.Hit:
    return pb.Hit(message=message.to_proto(), conversation_id="trip", score=score)


def test_messages_are_a_line_each_with_when_who_and_the_beginning_of_the_text() -> None:
    messages = Messages(
        [
            Message("user", "I like\n  Elba.", name="Ann", sent_time=SENT),
            Message("user", "word " * 40, sent_time=SENT, media=Media((Image(640, 480),))),
            Message.of({"role": "assistant", "content": None, "tool_calls": [TOOL]}),
        ]
    )

    assert str(messages).splitlines() == [
        "2026-05-04 09:30  Ann: I like Elba.",
        "2026-05-04 09:30  user: word word word word word word word word word word wor…",
        "assistant: [calls ferries]",
    ]
    assert str(Messages()) == "no messages"


def test_a_result_is_a_line_for_each_hit_with_its_rank_and_score() -> None:
    hits = [hit(Message("user", "I like Elba.", name="Ann", sent_time=SENT), 1.25), hit(Message("user", "Elba"), 0.5)]

    result = SearchResult.from_proto(pb.SearchMessagesResponse(hits=hits))

    assert str(result).splitlines() == ["  1  1.250  2026-05-04 09:30  Ann: I like Elba.", "  2  0.500  user: Elba"]
    assert str(result[0]) == "1.250  2026-05-04 09:30  Ann: I like Elba."


def test_a_result_says_that_nothing_was_found_and_why_words_alone_counted() -> None:
    index = pb.IndexState(words_only=True, words_only_reason=pb.WORDS_ONLY_REASON_NO_MODEL)

    result = SearchResult.from_proto(pb.SearchMessagesResponse(index=index))

    assert str(result).splitlines() == ["nothing was found", "searched by words only: no_model"]


def test_what_somebody_says_does_not_control_a_persons_terminal() -> None:
    message = Message("user", "\x1b[2JHello\a \u202eolleh", name="A\x1bB")

    shown = [str(Messages([message])), str(SearchResult.from_proto(pb.SearchMessagesResponse(hits=[hit(message, 1)])))]

    for text in shown:
        assert "A␛B: ␛[2JHello␇ <U+202E>olleh" in text
        assert text.isprintable()


def test_messages_of_a_conversation_are_printed_so_and_are_a_list(memory: Remora) -> None:
    chat = memory.conversation("trip", user_id="ann")
    chat.append({"role": "user", "content": "I like Elba.", "sent_time": SENT})

    messages = chat.messages()

    assert str(messages) == "2026-05-04 09:30  user: I like Elba."
    assert isinstance(messages, list)
    assert repr(messages) == repr(list(messages))
    assert repr(messages[0]).startswith("Message(role='user', text='I like Elba.'")


def test_a_fact_is_a_line_with_how_sure_it_is_and_when_it_holds() -> None:
    lived = Fact("user", "lives in", "Bonn", text="user lives in\nBonn\x1b", valid_from=SENT, valid_to=SENT)

    assert str(lived) == "user lives in␊Bonn␛  (confidence 1.00, since 2026-05-04, until 2026-05-04)"
    assert str(Fact("user", "likes", "tea", confidence=0.856)) == "user likes tea  (confidence 0.86)"


def test_extracted_facts_are_a_line_each_with_what_ended_and_why_patterns_found_them() -> None:
    tea, rain = Fact("user", "likes", "tea"), Fact("user", "likes", "rain")

    assert str(ExtractedFacts([tea], [rain], "no answer\x07")).splitlines() == [
        "user likes tea  (confidence 1.00)",
        "ended: user likes rain  (confidence 1.00)",
        "found by patterns: no answer␇",
    ]
    assert str(ExtractedFacts()) == "no facts"
    assert repr(ExtractedFacts([tea])) == repr([tea])


def test_found_facts_are_a_line_each_with_rank_and_score() -> None:
    hit = pb.FactHit(fact=Fact("user", "likes", "tea").to_proto(), score=0.5)
    words_only = pb.SearchFactsResponse(hits=[hit], index=pb.IndexState(words_only=True))

    assert str(FactSearchResult.from_proto(words_only)).splitlines() == [
        "  1  0.500  user likes tea  (confidence 1.00)",
        "searched by words only",
    ]
    assert str(FactSearchResult.from_proto(pb.SearchFactsResponse())) == "nothing was found"


def test_found_items_and_vectors_are_a_line_each_with_rank_and_score() -> None:
    item = pb.MemoryItemHit(item=MemoryItem("likes\n tea\x1b").to_proto(), score=0.5)
    vector = vector_service_pb2.VectorHit(vector=Vector("visa\x07", [1.0], content="word " * 40).to_proto(), score=0.75)

    items = MemoryItemSearchResult.from_proto(pb.SearchMemoryItemsResponse(hits=[item]))
    vectors = VectorSearchResult.from_proto(vector_service_pb2.SearchVectorsResponse(hits=[vector]))

    assert str(items) == "  1  0.500  likes tea␛"
    assert str(vectors) == f"  1  0.750  visa␇  {'word ' * 11}word…"
    assert str(MemoryItemSearchResult.from_proto(pb.SearchMemoryItemsResponse())) == "nothing was found"
