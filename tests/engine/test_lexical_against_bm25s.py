"""Lexical search against bm25s, an implementation of its own: the same scores and the same order on English messages.

bm25s gets the terms of our analyzer, so that only the ranking is compared. Its `lucene` method has our idf,
ln(1 + (N - df + 0.5) / (df + 0.5)), and leaves out the factor k1 + 1 of every score, which changes no order.
"""

from __future__ import annotations

import json
from pathlib import Path

import bm25s
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.recalled import ranked_by_words

from remora_server._native import analyze

K1, B = 0.9, 0.75
CONVERSATION = Path(__file__).resolve().parents[2] / "demo" / "conversation.json"


def texts_in(value: object) -> list[str]:
    """Every text of several words in a JSON document."""
    if isinstance(value, str):
        return [value] if len(value.split()) > 3 else []
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    return [text for child in children for text in texts_in(child)]


CORPUS = texts_in(json.loads(CONVERSATION.read_text("utf-8")))
WORDS = sorted({word for text in CORPUS for word in text.split()})


def reference(documents: list[str], query: str) -> dict[int, float]:
    """The scores that bm25s gives to the documents that share a term with the query."""
    index = bm25s.BM25(method="lucene", k1=K1, b=B, dtype="float64")
    index.index([analyze(document) for document in documents], show_progress=False)
    terms = [term for term in dict.fromkeys(analyze(query)) if term in index.vocab_dict]
    scores = index.get_scores(terms) if terms else [0.0] * len(documents)
    return {slot: float(score) * (K1 + 1) for slot, score in enumerate(scores) if score > 0}


def assert_agrees(documents: list[str], query: str) -> None:
    hits, expected = ranked_by_words(documents, query), reference(documents, query)

    assert dict(hits) == pytest.approx(expected, rel=1e-5)
    in_their_order = [expected[slot] for slot, _ in hits]
    assert in_their_order == pytest.approx(sorted(in_their_order, reverse=True), rel=1e-5)


def test_the_corpus_is_worth_a_comparison() -> None:
    assert len(CORPUS) > 20
    assert len(WORDS) > 200


@pytest.mark.parametrize("query", CORPUS[::7])
def test_a_message_as_the_query_ranks_the_corpus_as_bm25s_does(query: str) -> None:
    assert_agrees(CORPUS, query)


@given(words=st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))
def test_any_words_of_the_corpus_rank_it_as_bm25s_does(words: list[str]) -> None:
    assert_agrees(CORPUS, " ".join(words))


@given(
    documents=st.lists(
        st.lists(st.sampled_from(WORDS[::9]), min_size=1, max_size=15).map(" ".join).filter(analyze),
        min_size=1,
        max_size=12,
    ),
    words=st.lists(st.sampled_from(WORDS[::9]), min_size=1, max_size=4),
)
def test_any_corpus_of_its_words_is_ranked_as_bm25s_does(documents: list[str], words: list[str]) -> None:
    assert_agrees(documents, " ".join(words))
