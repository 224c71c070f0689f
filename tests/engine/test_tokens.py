"""Token counts and cuts against tiktoken."""

import base64
import hashlib
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import tiktoken
import tiktoken.model
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tiktoken_ext import openai_public  # type: ignore[import-untyped]

from remora_server import _native

ENCODINGS = ["o200k_base", "cl100k_base"]

TEXTS = {
    "empty": "",
    "chat": "Hey! I've been meaning to ask: how's Adelheid's new job? We'll catch up at 7:30, OK?",
    "shouted": "I'LL BE THERE, THEY'RE LATE, IT'S 12345678 O'CLOCK",
    "code": "def f(x):\n\tif x >= 10_000:\n\t\treturn {'a': [x, *xs]}  # TODO\n\n\n    return None\r\n",
    "camel": "parseHTTPResponse XMLHttpRequest iPhone getUserIDs snake_case_name __init__",
    "Chinese": "今天天气很好，我们去公园散步吧。你觉得怎么样？",
    "Japanese and Korean": "カタカナとひらがな、漢字。한국어 문장도 있습니다.",
    "Arabic, Hebrew, Hindi, Thai": "مرحبا بالعالم שלום עולם नमस्ते दुनिया สวัสดีชาวโลก",
    "emoji": "👨‍👩‍👧‍👦🏳️‍🌈🇩🇪👍🏽❤️1️⃣ ok😀😀",
    "controls": "\x00\x01\x1b[0m\x7f\x80\x85\x9f a\x0bb\x0cc",
    "blanks": "a\u00a0b \u1680 c\u2003\u2028d\u2029\u202f\u205f\u3000e \u200b\ufeff",
    "blanks at the end": "x \n  \n   ",
    "blanks before newlines": "  \n \r\n\t x",
    "numbers": "1234567 ٣٤٥٦٧ ½⅓Ⅷ²³ 𝟘𝟙𝟚𝟛",
    "marks": "e\u0301\u0308 \u0301x A\u0301B\u0301c \u20dd",
    "titlecase": "ǅungla ǲ ǄUNGLA ʰʱA",
    "long s": "it'ſ IT'ſ 'ſſ",
    "contractions cut short": "a'l a'v a'r a' 's 'sx ''s x'llama",
    "slashes": "http://a.b/c//d\n/e ./\n\n/",
    "special tokens": "<|endoftext|> <|fim_prefix|><|endofprompt|>",
    "unassigned": "\u0378\ue000\U000e0001\U0010ffff\ufffe",
    "surrogates": "a\ud800b\udfff \ud83d\ude00 \ude00\ud83d",
}

HOSTILE = {
    "letters": "a" * 100_000,
    "random letters": "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz", k=20_000)),
    "base64": base64.b64encode(random.Random(1).randbytes(20_000)).decode(),
    "newlines": "\n" * 100_000,
    "blank lines": " \n" * 20_000,
    "digits": "7" * 20_000,
    "exclamation marks": "!" * 20_000,
    "Chinese": "你" * 20_000,
    "Chinese and capitals": "你B" * 10_000,
    "marks": "a" + "\u0301" * 20_000,
    "families": "👨‍👩‍👧‍👦" * 2_000,
}

PARTS = st.one_of(
    st.characters(),
    st.text(st.sampled_from("aB你ʰǅſ\u0301١٣1½ \t\n\r\x85\xa0\u2028\u3000'!/_\x00😀\u200d\u0378"), max_size=6),
    st.sampled_from(["'s", "'S", "'ſ", "'RE", "'Ve", "'ll", "'l", "<|endoftext|>", " the", " World", "  ", "\r\n"]),
    st.text(st.characters(codec="ascii"), max_size=8),
    st.integers(2, 40).map(" ".__mul__),
)
ANY_TEXT = st.lists(PARTS, max_size=12).map("".join)


def published_ranks(name: str) -> Callable[[str, str], dict[bytes, int]]:
    """A loader of the engine's own vocabulary, refused unless its rank file has the digest that tiktoken expects."""

    def load(_address: str, expected_hash: str) -> dict[bytes, int]:
        tokens = _native.vocabulary(name)
        lines = (b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens))
        assert hashlib.sha256(b"".join(lines)).hexdigest() == expected_hash
        return {token: rank for rank, token in enumerate(tokens)}

    return load


def tiktoken_encoding(name: str) -> tiktoken.Encoding:
    """tiktoken's encoding without a download."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openai_public, "load_tiktoken_bpe", published_ranks(name))
        return tiktoken.Encoding(**openai_public.ENCODING_CONSTRUCTORS[name]())


ORACLES = {name: tiktoken_encoding(name) for name in ENCODINGS}


def expected(name: str, text: str) -> int:
    return len(ORACLES[name].encode(text, disallowed_special=()))


def count(name: str, text: str) -> int:
    [tokens] = _native.count_tokens(name, [text])
    return tokens


def well_formed(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


@pytest.fixture(params=ENCODINGS)
def encoding(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_has_the_count_of_tiktoken(encoding: str, text: str) -> None:
    assert count(encoding, text) == expected(encoding, text)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_run_has_the_count_of_tiktoken(encoding: str, text: str) -> None:
    assert count(encoding, text) == expected(encoding, text)


@given(ANY_TEXT)
@settings(max_examples=examples(1_000), deadline=None)
@example("\ud800\udc00\ud800")
def test_any_text_has_the_count_of_tiktoken(text: str) -> None:
    assert [count(name, text) for name in ENCODINGS] == [expected(name, text) for name in ENCODINGS]


BLOCK, ASSIGNED_END, END = 0x100, 0x34000, 0x110000
"""Behind the second, Unicode assigns hardly any characters; the third is behind all code points."""


@pytest.mark.slow
@pytest.mark.parametrize("step", [pytest.param(BLOCK, marks=pytest.mark.faults), 16 * BLOCK])
@pytest.mark.parametrize("context", ["A{0}B{0}c", "1{0}1!{0}!\n", "\n {0}\n{0}z"])
def test_every_character_has_the_class_that_tiktoken_gives_it(encoding: str, context: str, step: int) -> None:
    starts = [*range(0, ASSIGNED_END, BLOCK), *range(ASSIGNED_END, END, step)]
    blocks = [
        " ".join(context.format(chr(code)) for code in range(start, start + BLOCK))
        for start in starts
        if not 0xD800 <= start < 0xE000
    ]

    counts = _native.count_tokens(encoding, blocks)

    assert len(blocks) == (4344 if step == BLOCK else 1044)
    assert counts == [len(tokens) for tokens in ORACLES[encoding].encode_ordinary_batch(blocks, num_threads=1)]


def test_a_million_blanks_are_counted_where_tiktoken_gives_up(encoding: str) -> None:
    longest = max(len(token) for token in _native.vocabulary(encoding) if not token.strip(b" "))

    assert count(encoding, " " * 1_000_000) == -(-1_000_000 // longest)


def test_texts_are_counted_one_by_one_in_order(encoding: str) -> None:
    texts = list(TEXTS.values())

    assert _native.count_tokens(encoding, texts) == [count(encoding, text) for text in texts]


def test_threads_get_the_counts_that_one_thread_gets(encoding: str) -> None:
    texts = list(TEXTS.values())

    with ThreadPoolExecutor(4) as pool:
        counts = list(pool.map(lambda _: _native.count_tokens(encoding, texts), range(16)))

    assert counts == [_native.count_tokens(encoding, texts)] * 16


@given(ANY_TEXT, st.sampled_from(ENCODINGS), st.integers(0, 30))
@settings(max_examples=examples(300), deadline=None)
def test_a_trimmed_text_is_the_longest_that_fits(text: str, name: str, most: int) -> None:
    text = well_formed(text)
    fitting = range(len(text) + 1)
    start = max(cut for cut in fitting if expected(name, text[:cut]) <= most)
    end = min(cut for cut in fitting if expected(name, text[cut:]) <= most)

    assert _native.trim_tokens(name, text, most) == text[:start]
    assert _native.trim_tokens(name, text, most, keep_end=True) == text[end:]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("keep_end", [False, True])
def test_a_trimmed_hostile_run_keeps_to_its_tokens(encoding: str, text: str, *, keep_end: bool) -> None:
    most = count(encoding, text) // 2

    trimmed = _native.trim_tokens(encoding, text, most, keep_end)

    assert text.endswith(trimmed) if keep_end else text.startswith(trimmed)
    assert most - 2 <= count(encoding, trimmed) <= most


def test_trimming_replaces_lone_surrogates() -> None:
    assert _native.trim_tokens("o200k_base", "a\ud800 \ud83d\ude00", 100) == "a\ufffd 😀"


def test_every_model_of_tiktoken_with_one_of_the_encodings_is_known() -> None:
    models = tiktoken.model.MODEL_TO_ENCODING | tiktoken.model.MODEL_PREFIX_TO_ENCODING
    same_text = {"o200k_harmony": "o200k_base"}
    known = {model: same_text.get(name, name) for model, name in models.items()}
    expected_names = {model: name if name in ENCODINGS else None for model, name in known.items()}

    assert len(models) > 40
    assert {model: _native.encoding_for_model(model) for model in models} == expected_names


@pytest.mark.parametrize("model", ["", "claude-3-opus", "gpt", "o12"])
def test_an_unknown_model_has_no_encoding(model: str) -> None:
    assert _native.encoding_for_model(model) is None


@given(st.lists(st.text(st.characters(), max_size=50), max_size=5))
def test_an_approximate_count_is_a_quarter_of_the_characters_rounded_up(texts: list[str]) -> None:
    assert _native.approximate_tokens(texts) == [-(-len(well_formed(text)) // 4) for text in texts]


@pytest.mark.parametrize("call", [_native.count_tokens, lambda name, texts: _native.trim_tokens(name, texts[0], 1)])
def test_an_unknown_encoding_is_refused(call: Callable[[str, list[str]], object]) -> None:
    with pytest.raises(ValueError, match="unknown encoding"):
        call("p50k_base", ["text"])


def test_a_negative_number_of_tokens_is_refused() -> None:
    with pytest.raises(OverflowError):
        _native.trim_tokens("o200k_base", "text", -1)
