"""Lexical search against BM25's formula and PyStemmer's stems, and against hostile text."""

import math
import re
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st

from remora_server._native import LexicalSegment, analyze

K1, B = 0.9, 0.75
LONGEST_WORD = 128

STEMMER = Stemmer.Stemmer("english")
WORDS = re.compile(r"[a-z0-9]+")
IRREGULAR_SOURCE = Path(__file__).parents[2] / "rust" / "lexical" / "src" / "irregular.rs"


def irregular_words() -> dict[str, str]:
    """Each irregular form with its word, as the engine's own list has them: a line for each word, then its forms."""
    lines = IRREGULAR_SOURCE.read_text("utf-8").partition('"\\\n')[2].partition('"')[0].splitlines()
    return {form: word for word, *forms in map(str.split, lines) for form in forms}


IRREGULAR = irregular_words()


def stem(word: str) -> str:
    """The stem of the word that this is an irregular form of, or else its own."""
    found: str = STEMMER.stemWord(IRREGULAR.get(word, word))
    return found


MESSAGES = [
    "Adelheid rowed to the island with her brother on Sunday, and it was so quiet.",
    "I'm running a race again in spring, which hasn't been good for my well-being.",
    "Order ORD-1234 shipped on 2023-05-07; the invoice is INV-99 (v1.2.3).",
    "The university's organization of an evening charity race added three runners.",
    "Rosalind painted the harbour at night. Painting is what she does in winters!",
    "What are you running from? Running, running, running...",
    "ok",
    "",
    "The and of it",
]
QUESTIONS = [
    "When did Adelheid row to the island?",
    "running runners race",
    "ORD-1234",
    "what was painted in the evening",
    "organizing universities",
    "the of and",
    "nothing of the sort occurs: zyzzyva",
]


def reference_terms(text: str) -> list[str]:
    """Lower-case ASCII words without stop words, stemmed; a stop word is one that analyzes to nothing."""
    return [stem(word) for word in WORDS.findall(text.lower()) if analyze(word)]


def reference_scores(documents: list[str], query: str) -> dict[int, float]:
    """BM25 by its formula for every document that shares a term with the query."""
    terms = [Counter(reference_terms(document)) for document in documents]
    lengths = [counts.total() for counts in terms]
    average = sum(lengths) / len(lengths)
    scores: defaultdict[int, float] = defaultdict(float)
    for term in set(reference_terms(query)):
        df = sum(term in counts for counts in terms)
        idf = math.log(1 + (len(terms) - df + 0.5) / (df + 0.5))
        for slot, counts in enumerate(terms):
            if tf := counts[term]:
                scores[slot] += idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * lengths[slot] / average))
    return dict(scores)


def indexed(documents: list[str]) -> LexicalSegment:
    segment = LexicalSegment()
    for slot, document in enumerate(documents):
        segment.upsert(slot, document)
    return segment


def assert_agrees(documents: list[str], query: str) -> None:
    hits = indexed(documents).search(query, len(documents))

    assert dict(hits) == pytest.approx(reference_scores(documents, query), rel=1e-5, abs=1e-5)
    assert hits == sorted(hits, key=lambda hit: (-hit[1], hit[0]))


@pytest.mark.parametrize("question", QUESTIONS)
def test_english_messages_score_as_the_formula_says(question: str) -> None:
    assert_agrees(MESSAGES, question)


ENGLISH = st.lists(
    st.sampled_from("tea teas milk running run runs ran organization the of lake lakes 7 v2 painting painted".split()),
    max_size=12,
).map(" ".join)


@given(documents=st.lists(ENGLISH, min_size=1, max_size=8), query=ENGLISH)
def test_any_english_messages_score_as_the_formula_says(documents: list[str], query: str) -> None:
    assert_agrees(documents, query)


@given(text=st.text(st.characters(max_codepoint=127), max_size=LONGEST_WORD))
def test_any_ascii_text_has_the_reference_s_terms(text: str) -> None:
    assert analyze(text) == reference_terms(text)


SUFFIXES = "s es ed ing edly eed eedly ingly y ly ational ization biliti iviti ative ful ness ement ion tion ogist logi"


@given(
    beginning=st.text("aeioubcdlmnprstwxyz0", min_size=1, max_size=7),
    suffixes=st.lists(st.sampled_from(SUFFIXES.split()), max_size=3),
)
def test_invented_words_have_snowball_s_stems(beginning: str, suffixes: list[str]) -> None:
    word = "".join([beginning, *suffixes])

    assert analyze(word) in ([stem(word)], [])


@pytest.mark.parametrize(
    "word",
    "generously university universal universe organize organs evening outing proceeding dying skies news pasted added "
    "emergency internally interval lateral later succeeded archaeologist herring agreed hoping happily 1990s".split(),
)
def test_snowball_s_special_words_have_its_stems(word: str) -> None:
    assert analyze(word) == [stem(word)]


def test_stop_words_and_the_pieces_of_contractions_are_left_out() -> None:
    assert analyze("Who's the one that I wasn't with? They'd've said it’s you, don't I?") == ["one", "say"]


@pytest.mark.parametrize("code", ["ORD-1234", "INV-99", "2023-05-07", "v1.2.3"])
def test_a_code_finds_its_message_first(code: str) -> None:
    assert indexed(MESSAGES).search(code, 1)[0][0] == 2


@pytest.mark.parametrize(
    ("message", "question"),
    [
        ("Wir treffen uns in der Schloßstraße bei Müllers", "schlossstrasse"),
        ("El cumpleaños de José es mañana", "cumpleanos jose"),
        ("我下周要去北京出差", "去北京做什么？"),
        ("私の猫の名前はタマです", "猫は何という名前ですか"),
        ("다음 주에 서울에서 만나요", "서울 여행"),
        ("ฉันชอบกินข้าวผัด", "ข้าวผัด"),
        ("سافرتُ إلى القاهرة", "القاهره"),
        ("Ещё чаю, пожалуйста", "еще чаю"),
    ],
)
def test_other_languages_find_their_messages(message: str, question: str) -> None:
    segment = indexed([*MESSAGES, message])

    assert [slot for slot, _ in segment.search(question, 1)] == [len(MESSAGES)]


@given(
    changes=st.lists(st.tuples(st.integers(0, 6), st.one_of(st.none(), ENGLISH)), max_size=30),
    query=ENGLISH,
)
def test_a_changed_segment_answers_as_one_built_afresh(changes: list[tuple[int, str | None]], query: str) -> None:
    changed, model = LexicalSegment(), dict[int, str]()
    for slot, text in changes:
        if text is None:
            assert changed.remove(slot) == (model.pop(slot, None) is not None)
        else:
            changed.upsert(slot, text)
            model[slot] = text
    fresh = LexicalSegment()
    for slot, text in model.items():
        fresh.upsert(slot, text)

    assert len(changed) == len(model)
    assert changed.search(query, 7) == fresh.search(query, 7)


def test_at_most_k_hits_come_back_and_ties_go_by_slot() -> None:
    segment = indexed(["green tea"] * 5)

    assert [slot for slot, _ in segment.search("tea", 3)] == [0, 1, 2]
    assert segment.search("tea", 0) == []


def test_a_slot_too_high_to_be_dense_is_refused() -> None:
    with pytest.raises(ValueError, match="slot"):
        LexicalSegment().upsert(1 << 24, "tea")


@pytest.mark.parametrize(
    "text",
    [
        "x" * (1 << 20),
        "e" + "\u0301" * (1 << 19),
        "ก" + "\u0e48" * (1 << 18),
        "\u0301\u0323" * (1 << 18),
        "क" + "\u094d\u093c" * (1 << 18),
        "\0" * (1 << 20),
        "\ufdfa" * (1 << 12),
        "\u200d" * (1 << 18),
        "'" * (1 << 20),
        "a'" * (1 << 19),
    ],
    ids=["word", "accents", "thai marks", "bare marks", "viramas", "nul", "ligatures", "joiners", "quotes", "letters"],
)
def test_hostile_text_gives_bounded_terms_and_stays_searchable(text: str) -> None:
    segment = indexed(["plain tea", text])

    assert all(len(term.encode()) <= LONGEST_WORD for term in set(analyze(text)))
    assert segment.search(text + " tea", 2)
    assert len(segment) == 2


def test_nul_divides_words() -> None:
    assert analyze("green\0tea") == ["green", "tea"]


def test_a_lone_surrogate_is_refused_as_python_refuses_it() -> None:
    with pytest.raises(UnicodeEncodeError):
        analyze("\ud800")


@given(text=st.text(max_size=80))
def test_any_text_finds_itself(text: str) -> None:
    segment = indexed(["plain tea", text])

    assert {slot for slot, _ in segment.search(text, 2)} >= ({1} if analyze(text) else set())


def test_threads_may_change_and_search_one_segment() -> None:
    segment = LexicalSegment()

    def work(thread: int) -> None:
        for slot in range(thread * 200, thread * 200 + 200):
            segment.upsert(slot, f"message {slot} about tea")
            assert segment.search(f"tea {slot}", 1)[0][0] == slot
            if slot % 2:
                segment.remove(slot)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))

    assert len(segment) == 400
