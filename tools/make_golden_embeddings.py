"""Makes tests/engine/golden/embeddings.json: embeddings by all-MiniLM-L6-v2, from a reference without code of ours.

The tokenizer is Hugging Face's `tokenizers`; the forward pass is written out in NumPy, in float64, from the definition
of BERT (Devlin et al. 2018) and of the model's pooling. Run it as

    python tools/make_golden_embeddings.py MODEL_DIR tests/engine/golden/embeddings.json

with numpy and tokenizers installed; MODEL_DIR holds model.safetensors and tokenizer.json.
"""

import base64
import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

Array = NDArray[np.float64]

LAYERS, HEADS, HIDDEN, MAX_TOKENS, EPSILON = 6, 12, 384, 256, 1e-12

TEXTS = (
    "",
    " \t\n",
    "a",
    "hello world",
    "When did Adelheid row to the island with the lighthouse?",
    "I rowed out there on Sunday and it was so quiet, you know?",
    "He said: \"It's 7:45 p.m. on 2023-05-07, isn't it?\" (It was.)",
    "The quick brown fox jumps over the lazy dog. " * 3,
    "Das Mädchen aß Äpfel und trank heiße Schokolade; danach schlief es ein.",
    "Donaudampfschifffahrtsgesellschaftskapitänswitwe",
    "Élodie a reçu sept œuvres d'art naïf à Noël.",
    "我星期天划船去了小岛，那里很安静。",
    "東京タワーは高さ333メートルです。",
    "서울에서 만나요",
    "Привет, как дела? Ёжик в тумане.",
    "مرحبا بالعالم",
    "नमस्ते दुनिया",
    "I love it 😍🎉 so much 👩‍👩‍👧‍👦!",
    "e\u0301cole a\u0308 \u00c5ngstro\u0308m \u0130stanbul",
    "zero\u200bwidth\u00adsoft\u00a0hyphen\x00null\ufffdreplaced",
    "[CLS] is text, and so is [SEP] here",
    "x" * 101 + " " + "y" * 100,
    "https://example.org/a/b?c=d&e=f#g user@example.com 3.14159 $1,000.00",
    "Memory is the diary that we all carry about with us, said Miss Prism. " * 30,
)


def load_tensors(path: Path) -> dict[str, Array]:
    """The float32 tensors of a safetensors file, as float64."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if entry.get("dtype") == "F32":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            values = np.frombuffer(content[begin:end], "<f4").reshape(entry["shape"])
            tensors[name] = values.astype(np.float64)
    return tensors


def load_tokenizer(path: Path) -> Tokenizer:
    """The model's tokenizer, cut at MAX_TOKENS, not padded, special tokens in a text taken as text."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    return tokenizer


def linear(tensors: Mapping[str, Array], name: str, x: Array) -> Array:
    return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]


def layer_norm(tensors: Mapping[str, Array], name: str, x: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPSILON)
    return centred / deviation * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]


def gelu(x: Array) -> Array:
    return 0.5 * x * (1.0 + np.vectorize(math.erf)(x / math.sqrt(2.0)))


def attention(tensors: Mapping[str, Array], layer: str, x: Array) -> Array:
    def heads(part: str) -> Array:
        projected = linear(tensors, f"{layer}.attention.self.{part}", x)
        return projected.reshape(len(x), HEADS, HIDDEN // HEADS).transpose(1, 0, 2)

    scores = heads("query") @ heads("key").transpose(0, 2, 1) / math.sqrt(HIDDEN // HEADS)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    mixed = (weights @ heads("value")).transpose(1, 0, 2).reshape(len(x), HIDDEN)
    return linear(tensors, f"{layer}.attention.output.dense", mixed)


def hidden_states(tensors: Mapping[str, Array], ids: list[int]) -> Array:
    """The last hidden states of one sequence, one row of 384 values per id."""
    x = tensors["embeddings.word_embeddings.weight"][ids]
    x = x + tensors["embeddings.position_embeddings.weight"][: len(ids)]
    x = x + tensors["embeddings.token_type_embeddings.weight"][0]
    x = layer_norm(tensors, "embeddings.LayerNorm", x)
    for layer in (f"encoder.layer.{index}" for index in range(LAYERS)):
        x = layer_norm(tensors, f"{layer}.attention.output.LayerNorm", x + attention(tensors, layer, x))
        inner = gelu(linear(tensors, f"{layer}.intermediate.dense", x))
        outer = linear(tensors, f"{layer}.output.dense", inner)
        x = layer_norm(tensors, f"{layer}.output.LayerNorm", x + outer)
    return x


def embedding(tensors: Mapping[str, Array], ids: list[int]) -> Array:
    mean = hidden_states(tensors, ids).mean(axis=0)
    return mean / np.linalg.norm(mean)


def main(model_dir: str, output: str) -> None:
    tensors = load_tensors(Path(model_dir, "model.safetensors"))
    tokenizer = load_tokenizer(Path(model_dir, "tokenizer.json"))
    cases = []
    for text in TEXTS:
        ids = tokenizer.encode(text).ids
        values = embedding(tensors, ids).astype("<f4").tobytes()
        cases.append({"text": text, "ids": ids, "embedding": base64.b64encode(values).decode()})
    lines = ",\n".join(json.dumps(case) for case in cases)
    Path(output).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
