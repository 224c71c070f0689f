"""Lexical search against BM25's formula and PyStemmer's stems, and against hostile text."""

import math
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest
import Stemmer
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.recalled import ranked_by_words

from remora_server._native import analyze

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


def assert_agrees(documents: list[str], query: str) -> None:
    hits = ranked_by_words(documents, query)

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
    assert ranked_by_words(MESSAGES, code)[0][0] == 2


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
    assert ranked_by_words([*MESSAGES, message], question)[0][0] == len(MESSAGES)


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
    assert all(len(term.encode()) <= LONGEST_WORD for term in set(analyze(text)))
    assert ranked_by_words(["plain tea", text], text + " tea")


def test_nul_divides_words() -> None:
    assert analyze("green\0tea") == ["green", "tea"]


def test_a_lone_surrogate_is_refused_as_python_refuses_it() -> None:
    with pytest.raises(UnicodeEncodeError):
        analyze("\ud800")


@given(text=st.text(max_size=80))
def test_any_text_finds_itself(text: str) -> None:
    assert dict(ranked_by_words(["plain tea", text], text)).keys() >= ({1} if analyze(text) else set())
