"""Recall in other languages than English: words are found, and the rules do no harm where they are silent.

The conversations were written for these tests: messages as [speaker, time, text], questions with the places of the
messages that answer them, and words with the place of the message that has them in another spelling.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.patience import PATIENCE, eventually

from remora import Conversation, Message, Remora
from remora.search import SearchOptions, Weights
from remora.testing import serve

FOLDER = Path(__file__).with_name("languages")
LANGUAGES = sorted(file.stem for file in FOLDER.glob("*.json"))
DEPTH = 10
NO_ENGLISH = Weights(speaker=0, temporal=0, date=0, named=0)
NO_RULES = Weights(**NO_ENGLISH, answer=0, next=0, passage=0, session=0, nearby=0)


def read(language: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / f"{language}.json").read_text("utf-8"))
    return content


@pytest.fixture(scope="module")
def chats() -> Iterator[dict[str, Conversation]]:
    """All conversations, embedded."""
    with (
        serve("--model-dir", os.environ["REMORA_MODEL_DIR"]) as endpoint,
        Remora(endpoint, timeout=PATIENCE) as memory,
    ):
        chats = {language: memory.conversation(language, user_id=language) for language in LANGUAGES}
        for language, chat in chats.items():
            chat.append(
                [
                    Message("user", text, id=str(place), name=speaker, sent_time=_time(time))
                    for place, (speaker, time, text) in enumerate(read(language)["messages"])
                ]
            )
        for chat in chats.values():
            eventually(lambda chat=chat: chat.search("?", k=1, index_wait=60.0).index.pending == 0)  # type: ignore[misc]
        yield chats


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def found(chat: Conversation, language: str, options: SearchOptions) -> tuple[float, float]:
    """Of the ten first hits: the share of the evidence, and one over the rank of its first; summed over questions."""
    share = inverse_ranks = 0.0
    for question, places in read(language)["questions"]:
        evidence = {str(place) for place in places}
        hits = [hit.message.id for hit in chat.search(question, **options)]
        share += len(evidence.intersection(hits)) / len(evidence)
        inverse_ranks += next((1 / rank for rank, found in enumerate(hits, 1) if found in evidence), 0.0)
    return share, inverse_ranks


def test_there_are_conversations_in_five_languages() -> None:
    assert LANGUAGES == ["ar", "de", "es", "ja", "zh"]
    for language in LANGUAGES:
        assert len(read(language)["messages"]) >= 60
        assert len(read(language)["questions"]) >= 15


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("profile", ["hybrid", "hybrid_late"])
def test_rules_do_no_harm(chats: dict[str, Conversation], language: str, profile: Any) -> None:  # noqa: ANN401
    chat = chats[language]
    share, inverse_ranks = found(chat, language, SearchOptions(profile=profile, k=DEPTH))
    for fewer in (NO_ENGLISH, NO_RULES):
        without = found(chat, language, SearchOptions(profile=profile, k=DEPTH, weights=fewer))
        assert share >= without[0], fewer
        assert inverse_ranks >= without[1], fewer
    assert share >= len(read(language)["questions"]) / 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_words_are_found_in_any_spelling(chats: dict[str, Conversation], language: str) -> None:
    for word, place in read(language)["words"]:
        hits = chats[language].search(word, profile="lexical", k=1)
        assert [hit.message.id for hit in hits] == [str(place)], word
