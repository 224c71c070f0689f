"""The encoder against golden vectors, on the model that REMORA_MODEL_DIR names."""

import array
import base64
import ctypes
import itertools
import json
import math
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from remora_server._native import Encoder, ModelError

GOLDEN = Path(__file__).parent / "golden" / "embeddings.json"
LEVELS = ("scalar", "neon", "avx2", "avx512")
DIMENSION = 384
MANY = 10
"""Turns of a thread that asks for one every millisecond: more than it gets from who lets go for a moment."""

Vector = Sequence[float]


@dataclass(frozen=True, slots=True)
class Case:
    text: str
    ids: list[int]
    embedding: Vector


def floats(content: bytes) -> "array.array[float]":
    values = array.array("f", content)
    if sys.byteorder == "big":
        values.byteswap()
    return values


def rows(content: bytes) -> list[Vector]:
    values = floats(content)
    return [values[at : at + DIMENSION] for at in range(0, len(values), DIMENSION)]


def cosine(a: Vector, b: Vector) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b))


@pytest.fixture(scope="module")
def model_dir() -> str:
    directory = os.environ.get("REMORA_MODEL_DIR")
    if not directory:
        pytest.fail("set REMORA_MODEL_DIR to a directory with model.safetensors and tokenizer.json")
    return directory


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    entries = json.loads(GOLDEN.read_text(encoding="utf-8"))
    cases = [Case(e["text"], e["ids"], floats(base64.b64decode(e["embedding"]))) for e in entries]
    assert len(cases) >= 24
    return cases


@pytest.fixture(scope="module")
def encoder(model_dir: str) -> Encoder:
    return Encoder(model_dir)


@pytest.fixture(scope="module")
def int8_encoder(model_dir: str) -> Encoder:
    return Encoder(model_dir, "int8")


def available(model_dir: str) -> list[Encoder]:
    """One encoder for each instruction set of this processor."""
    encoders = []
    for level in LEVELS:
        try:
            encoders.append(Encoder(model_dir, level=level))
        except ValueError:
            assert level != "scalar"
    return encoders


@pytest.mark.slow
def test_embeddings_equal_the_reference_at_every_level(model_dir: str, cases: list[Case]) -> None:
    expected = [value for case in cases for value in case.embedding]
    for encoder in available(model_dir):
        found = floats(encoder.encode([case.text for case in cases]))
        worst = max(abs(a - b) for a, b in zip(found, expected, strict=True))
        assert worst < 1e-5, encoder.level


def test_texts_become_the_ids_of_the_reference(encoder: Encoder, cases: list[Case]) -> None:
    for case in cases:
        assert encoder.token_vectors(case.text)[0] == case.ids, case.text


def test_the_mean_of_the_token_vectors_is_the_embedding(encoder: Encoder, cases: list[Case]) -> None:
    for case in cases:
        ids, states = encoder.token_vectors(case.text)
        mean = [sum(column) / len(ids) for column in zip(*rows(states), strict=True)]
        assert len(rows(states)) == len(ids)
        assert cosine(mean, case.embedding) > 0.99999


def test_int8_stays_near_f32(int8_encoder: Encoder, cases: list[Case]) -> None:
    found = rows(int8_encoder.encode([case.text for case in cases]))
    cosines = [cosine(a, case.embedding) for a, case in zip(found, cases, strict=True)]
    assert min(cosines) > 0.99


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["f32", "int8"])
def test_a_text_has_the_same_embedding_whatever_else_is_in_the_batch(
    model_dir: str, cases: list[Case], precision: str
) -> None:
    encoder = Encoder(model_dir, precision)
    texts = [case.text for case in cases]
    alone = b"".join(encoder.encode([text]) for text in texts)
    assert encoder.encode(texts) == alone
    assert encoder.encode(texts[::-1])[: DIMENSION * 4] == encoder.encode(texts[-1:])


def test_texts_of_every_length_have_unit_embeddings(encoder: Encoder) -> None:
    texts = ["word " * count for count in itertools.chain(range(20), (86, 126, 127, 254, 255, 300))]
    for embedding in rows(encoder.encode(texts)):
        assert math.isclose(math.hypot(*embedding), 1.0, abs_tol=1e-5)


def test_what_is_beyond_the_limit_does_not_count(encoder: Encoder) -> None:
    text = "word " * (encoder.max_tokens - 2)
    assert encoder.encode([text]) == encoder.encode([text + "something else entirely"])


def test_an_empty_list_has_no_embeddings(encoder: Encoder) -> None:
    assert encoder.encode([]) == b""


def test_lone_surrogates_count_as_replacement_characters(encoder: Encoder) -> None:
    assert encoder.encode(["a\ud800b \U0001f600"]) == encoder.encode(["a\ufffdb \U0001f600"])


def test_threads_share_an_encoder(encoder: Encoder, cases: list[Case]) -> None:
    texts = [case.text for case in cases]
    expected = encoder.encode(texts)
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(encoder.encode(texts))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 3


@contextmanager
def ticking() -> Iterator[Callable[[], int]]:
    """How often another thread has been given the interpreter so far.

    Who holds it keeps it until it waits for something: the interval after which it is taken away never passes. So a
    count before and after a call differs only by what the thread did during the call.
    """
    ticks, ended = 0, threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not ended.wait(0.001):
            ticks += 1

    interval = sys.getswitchinterval()
    thread = threading.Thread(target=tick)
    thread.start()
    sys.setswitchinterval(1000.0)
    try:
        yield lambda: ticks
    finally:
        sys.setswitchinterval(interval)
        ended.set()
        thread.join()


def ticks_during(call: Callable[[], object], calls: int) -> int:
    """How often another thread got the interpreter in the best of some calls; MANY are enough."""
    best = 0
    with ticking() as ticks:
        for _ in range(calls):
            time.sleep(0.01)
            before = ticks()
            call()
            best = max(best, ticks() - before)
            if best >= MANY:
                break
    return best


@pytest.mark.slow
@pytest.mark.parametrize("encode", [Encoder.encode, Encoder.encode_with_pieces])
def test_other_threads_run_while_one_encodes(encoder: Encoder, encode: Callable[..., object]) -> None:
    texts = ["word " * 200] * 16
    assert ticks_during(lambda: encode(encoder, texts), calls=50) >= MANY


@pytest.mark.slow
def test_a_call_that_holds_the_interpreter_is_found() -> None:
    usleep = ctypes.PyDLL(None).usleep
    assert ticks_during(lambda: usleep(200_000), calls=5) == 0


@pytest.mark.slow
def test_a_call_that_lets_go_of_the_interpreter_for_a_moment_is_found() -> None:
    usleep = ctypes.PyDLL(None).usleep

    def hold_twice() -> None:
        usleep(100_000)
        time.sleep(0)
        usleep(100_000)

    assert ticks_during(hold_twice, calls=5) < MANY


def test_properties_tell_what_is_in_use(encoder: Encoder, model_dir: str) -> None:
    assert (encoder.dimension, encoder.max_tokens) == (DIMENSION, 256)
    assert encoder.precision == "f32"
    scalar = Encoder(model_dir, "int8", "scalar")
    assert (scalar.precision, scalar.level) == ("f32", "scalar")


def test_unknown_options_are_refused(model_dir: str) -> None:
    with pytest.raises(ValueError, match="precision"):
        Encoder(model_dir, "f16")
    with pytest.raises(ValueError, match="instruction set"):
        Encoder(model_dir, level="sse")


def test_what_is_not_a_list_of_texts_is_refused(encoder: Encoder) -> None:
    with pytest.raises(TypeError):
        encoder.encode([b"bytes"])  # type: ignore[list-item]


def test_a_directory_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"tokenizer\.json"):
        Encoder(str(tmp_path))


def test_a_truncated_model_is_refused(model_dir: str, tmp_path: Path) -> None:
    shutil.copy(Path(model_dir, "tokenizer.json"), tmp_path)
    with Path(model_dir, "model.safetensors").open("rb") as model:
        (tmp_path / "model.safetensors").write_bytes(model.read(100_000))
    with pytest.raises(ModelError, match=r"model\.safetensors"):
        Encoder(str(tmp_path))
