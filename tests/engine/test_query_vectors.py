"""The vectors of queries that are kept: under their texts, and not without bound."""

from __future__ import annotations

from remora_server.domain.search import TextVector
from remora_server.engine.query_vectors import KEPT, LONGEST, QueryVectors


def vector(text: str) -> TextVector:
    return TextVector(text.encode())


def test_a_vector_is_kept_under_its_text() -> None:
    vectors = QueryVectors()
    vectors.keep("tea", vector("tea"))
    vectors.keep("Tea", vector("Tea"))
    assert (vectors.get("tea"), vectors.get("Tea"), vectors.get("tea ")) == (vector("tea"), vector("Tea"), None)


def test_what_was_asked_for_longest_ago_gives_way() -> None:
    vectors = QueryVectors()
    for number in range(KEPT):
        vectors.keep(f"text {number}", vector(f"text {number}"))
    assert vectors.get("text 0") == vector("text 0")
    vectors.keep("one more", vector("one more"))
    assert vectors.get("text 1") is None
    assert all(vectors.get(f"text {number}") for number in (0, *range(2, KEPT)))
    assert vectors.get("one more") == vector("one more")


def test_a_long_text_is_not_kept() -> None:
    vectors = QueryVectors()
    for length in (LONGEST, LONGEST + 1):
        vectors.keep("x" * length, vector("x"))
    assert vectors.get("x" * LONGEST) == vector("x")
    assert vectors.get("x" * (LONGEST + 1)) is None
