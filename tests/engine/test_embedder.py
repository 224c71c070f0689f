"""The local model as the domain sees it."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from pathlib import Path
from typing import cast

import pytest

from remora_server._native import BackgroundEncoder, Encoder, EncoderClosed, EncoderPanicked
from remora_server.domain.search import TextVector
from remora_server.engine import encoder
from remora_server.engine.encoder import BackgroundEmbedder, LocalEmbedder, load_embedder
from remora_server.engine.model_files import SHA256, ModelFilesError
from remora_server.engine.processors import Priority

MODEL_DIR = Path(os.environ["REMORA_MODEL_DIR"])


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    loaded = load_embedder(MODEL_DIR)
    assert loaded is not None
    return loaded


def test_a_vector_does_not_depend_on_what_is_embedded_with_it(embedder: LocalEmbedder) -> None:
    texts = ["I like tea", "", "x" * 2000]
    together = embedder.embed(texts)
    assert together == [embedder.embed([text])[0] for text in texts]
    assert {len(vector.values) for vector in together} == {4 * embedder.dimension}
    assert {vector.pieces for vector in together} == {None}
    assert embedder.embed([]) == []


def test_a_late_model_makes_the_same_vectors_and_word_pieces(embedder: LocalEmbedder) -> None:
    texts = ["I like tea", "What is it?", ""]
    late = load_embedder(MODEL_DIR, late=True)
    assert late is not None
    made = late.embed(texts)
    assert [vector.values for vector in made] == [vector.values for vector in embedder.embed(texts)]
    sizes = [len(vector.pieces or b"") for vector in made]
    assert sizes == [2 * 130, 4 * 130, 0]  # like, tea; all of "what is it ?" because all is silent
    assert late.embed(texts[:1]) == made[:1]


def test_a_text_that_comes_again_is_not_encoded_again() -> None:
    class Counting:
        dimension, precision, level = 1, "f32", "scalar"
        calls = 0

        def encode(self, texts: list[str]) -> bytes:
            self.calls += 1
            return b"".join(text.encode()[:4].ljust(4) for text in texts)

    encoder = Counting()
    embedder = LocalEmbedder(encoder)  # type: ignore[arg-type]
    assert embedder.embed_query("tea", None) == embedder.embed_query("tea", None) == TextVector(b"tea ")
    assert encoder.calls == 1
    assert embedder.embed(["tea", "milk"]) == [TextVector(b"tea "), TextVector(b"milk")]


def test_the_name_says_how_vectors_are_made(embedder: LocalEmbedder) -> None:
    int8 = LocalEmbedder(Encoder(str(MODEL_DIR), "int8"))
    assert (embedder.model, embedder.precision) == ("all-MiniLM-L6-v2/f32", "f32")
    assert int8.model == f"all-MiniLM-L6-v2/{int8.precision}"
    forced = load_embedder(MODEL_DIR, "int8", "scalar")
    assert forced is not None
    assert (forced.model, forced.kernels) == ("all-MiniLM-L6-v2/f32", "scalar")


def test_without_files_there_is_no_model(tmp_path: Path) -> None:
    assert load_embedder(tmp_path / "nowhere") is None
    shutil.copy(MODEL_DIR / "tokenizer.json", tmp_path)
    assert load_embedder(tmp_path) is None


def test_other_files_than_the_models_are_refused(tmp_path: Path) -> None:
    for name in SHA256:
        (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(ModelFilesError, match="install the model again"):
        load_embedder(tmp_path)


def test_unknown_options_are_refused() -> None:
    with pytest.raises(ValueError, match="precision"):
        load_embedder(MODEL_DIR, "f16")


@pytest.mark.parametrize("late", [True, False])
def test_a_model_in_the_background_makes_the_same(late: bool) -> None:
    texts = ["I like tea", "", "What is it? " * 100]
    own = load_embedder(MODEL_DIR, late=late)
    assert own is not None
    background = own.in_background(Priority.IDLE)
    assert background.embed(texts) == own.embed(texts)
    assert background.embed([]) == []
    background.close()


def test_a_model_in_the_background_is_closed_while_it_works(embedder: LocalEmbedder) -> None:
    background = embedder.in_background(Priority.IDLE)
    closing = threading.Timer(0.1, background.close)
    closing.start()
    with pytest.raises(EncoderClosed):
        background.embed(["word " * 300] * 20_000)
    closing.join()
    with pytest.raises(EncoderClosed):
        background.embed(["tea"])


class PanickingEncoder:
    """Stands for a background encoder that panics with some words, or with all texts; makes a byte of every text."""

    thread_id, dimension = -1, 1

    def __init__(self, *words: str) -> None:
        self.words = words

    def encode(self, texts: list[str]) -> bytes:
        if any(word in text for text in texts for word in self.words):
            raise EncoderPanicked
        return b"".join(text.encode()[:4].ljust(4) for text in texts)

    def encode_with_pieces(self, texts: list[str]) -> tuple[bytes, list[bytes]]:
        return self.encode(texts), [text.encode() for text in texts]


class OncePanickingEncoder(PanickingEncoder):
    """Panics with some words, or all texts, but only the first time."""

    def encode(self, texts: list[str]) -> bytes:
        try:
            return super().encode(texts)
        except EncoderPanicked:
            self.words = ("\0",)
            raise


def panicking(*words: str, late: bool = False) -> BackgroundEmbedder:
    return BackgroundEmbedder(cast("BackgroundEncoder", PanickingEncoder(*words)), Priority.IDLE, late=late)


@pytest.mark.parametrize("late", [True, False])
@pytest.mark.parametrize("bad", [[3], [0, 6], [2, 3, 4], list(range(7))])
def test_a_text_that_the_model_panics_with_costs_no_other_its_vector(
    bad: list[int], late: bool, caplog: pytest.LogCaptureFixture
) -> None:
    texts = [f"{'bad' if place in bad else 'good'} {place}" for place in range(7)]
    with caplog.at_level(logging.WARNING, logger=encoder.__name__):
        made = panicking("bad", late=late).embed(texts)
    well = panicking(late=late).embed(texts)
    refused = TextVector(b"", b"" if late else None)
    assert made == [refused if place in bad else well[place] for place in range(7)]
    assert len(caplog.records) == len(bad)
    assert "bad" not in caplog.text


@pytest.mark.parametrize("texts", [["one"], ["one", "two"]])
def test_a_panic_that_no_text_causes_costs_no_text_its_vector(texts: list[str]) -> None:
    background = BackgroundEmbedder(cast("BackgroundEncoder", OncePanickingEncoder("")), Priority.IDLE, late=False)
    assert background.embed(texts) == panicking().embed(texts)


def test_a_model_that_panics_with_everything_refuses_nothing() -> None:
    with pytest.raises(EncoderPanicked):
        panicking("").embed(["one", "two"])
