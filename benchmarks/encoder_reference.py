"""The encoder beside onnxruntime on one thread, in CPU time, interleaved in one run.

    python benchmarks/encoder_reference.py MODEL_DIR TEXTS.json [--out FIGURES.json]

MODEL_DIR holds model.safetensors and tokenizer.json. TEXTS.json is `{"queries": [...], "texts": [...]}`: queries are
encoded one at a time, texts in batches. onnxruntime, given the graph that PyTorch's export of the model has and all of
its own optimisations, gets ids; the encoder gets texts. Wants numpy, onnx, onnxruntime and tokenizers.
"""

import argparse
import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, save_model
from onnxruntime.quantization import QuantType, quantize_dynamic
from tokenizers import Tokenizer

from remora_server._native import Encoder

LAYERS, HEADS, HIDDEN, MAX_TOKENS, EPSILON = 6, 12, 384, 256, 1e-12
HEAD = HIDDEN // HEADS
BATCHES = (8, 32)
PRECISIONS = {"f32": "fp32", "int8": "int8"}
"""What the encoder calls them, and the figures."""

Embeddings = NDArray[np.float32]


@dataclass(slots=True)
class Graph:
    """An ONNX graph under construction; every method appends nodes and returns the name of their output."""

    tensors: dict[str, NDArray[np.float32]]
    nodes: list[NodeProto] = field(default_factory=list)
    constants: dict[str, TensorProto] = field(default_factory=dict)

    def node(self, kind: str, *inputs: str, **attributes: object) -> str:
        output = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def constant(self, value: object, dtype: type = np.float32) -> str:
        array = np.asarray(value, dtype)
        name = f"constant_{len(self.constants)}"
        self.constants[name] = numpy_helper.from_array(array, name)
        return name

    def linear(self, x: str, name: str) -> str:
        weight = self.constant(self.tensors[f"{name}.weight"].T)
        return self.node("Add", self.node("MatMul", x, weight), self.constant(self.tensors[f"{name}.bias"]))

    def layer_norm(self, x: str, name: str) -> str:
        weight, bias = (self.constant(self.tensors[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self.node("LayerNormalization", x, weight, bias, epsilon=EPSILON, axis=-1)

    def gelu(self, x: str) -> str:
        erf = self.node("Erf", self.node("Div", x, self.constant(math.sqrt(2.0))))
        product = self.node("Mul", x, self.node("Add", erf, self.constant(1.0)))
        return self.node("Mul", product, self.constant(0.5))

    def embeddings(self) -> str:
        words = self.constant(self.tensors["embeddings.word_embeddings.weight"])
        places = self.tensors["embeddings.position_embeddings.weight"]
        places = self.constant(places + self.tensors["embeddings.token_type_embeddings.weight"][0])
        length = self.node("Slice", self.node("Shape", "ids"), *(self.constant([n], np.int64) for n in (1, 2)))
        place = self.node("Slice", places, self.constant([0], np.int64), length, self.constant([0], np.int64))
        total = self.node("Add", self.node("Gather", words, "ids"), place)
        return self.layer_norm(total, "embeddings.LayerNorm")

    def heads(self, x: str, name: str, order: Sequence[int]) -> str:
        shape = self.constant([0, 0, HEADS, HEAD], np.int64)
        return self.node("Transpose", self.node("Reshape", self.linear(x, name), shape), perm=order)

    def attention(self, x: str, layer: str, mask: str) -> str:
        query = self.heads(x, f"{layer}.attention.self.query", (0, 2, 1, 3))
        key = self.heads(x, f"{layer}.attention.self.key", (0, 2, 3, 1))
        value = self.heads(x, f"{layer}.attention.self.value", (0, 2, 1, 3))
        scores = self.node("Div", self.node("MatMul", query, key), self.constant(math.sqrt(HEAD)))
        weights = self.node("Softmax", self.node("Add", scores, mask), axis=-1)
        mixed = self.node("Transpose", self.node("MatMul", weights, value), perm=(0, 2, 1, 3))
        joined = self.node("Reshape", mixed, self.constant([0, 0, HIDDEN], np.int64))
        return self.linear(joined, f"{layer}.attention.output.dense")

    def layer(self, x: str, layer: str, mask: str) -> str:
        x = self.node("Add", self.attention(x, layer, mask), x)
        x = self.layer_norm(x, f"{layer}.attention.output.LayerNorm")
        inner = self.gelu(self.linear(x, f"{layer}.intermediate.dense"))
        x = self.node("Add", self.linear(inner, f"{layer}.output.dense"), x)
        return self.layer_norm(x, f"{layer}.output.LayerNorm")

    def hidden_states(self) -> str:
        real = self.node("Cast", "mask", to=TensorProto.FLOAT)
        wide = self.node("Unsqueeze", real, self.constant([1, 2], np.int64))
        mask = self.node("Mul", self.node("Sub", self.constant(1.0), wide), self.constant(-10000.0))
        x = self.embeddings()
        for index in range(LAYERS):
            x = self.layer(x, f"encoder.layer.{index}", mask)
        return x

    def model(self) -> ModelProto:
        output = self.hidden_states()
        inputs = [helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "length"]) for n in ("ids", "mask")]
        outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, ["batch", "length", HIDDEN])]
        graph = helper.make_graph(self.nodes, "minilm", inputs, outputs, list(self.constants.values()))
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def load_tensors(path: Path) -> dict[str, NDArray[np.float32]]:
    """The float32 tensors of a safetensors file."""
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    tensors = {}
    for name, entry in json.loads(content[8:start]).items():
        if entry.get("dtype") == "F32":
            begin, end = (start + offset for offset in entry["data_offsets"])
            tensors[name] = np.frombuffer(content[begin:end], "<f4").reshape(entry["shape"])
    return tensors


class Reference:
    """onnxruntime on one thread: texts sorted by length, padded to the longest of their batch, mean pooling."""

    def __init__(self, graph: Path, tokenizer: Tokenizer) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        self._session = onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        self._tokenizer = tokenizer

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        return [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]

    def encode(self, sequences: Sequence[list[int]], batch: int) -> Embeddings:
        order = sorted(range(len(sequences)), key=lambda index: len(sequences[index]))
        embeddings = np.empty((len(sequences), HIDDEN), np.float32)
        for at in range(0, len(order), batch):
            members = order[at : at + batch]
            embeddings[members] = self._pass([sequences[index] for index in members])
        return embeddings

    def _pass(self, sequences: Sequence[list[int]]) -> Embeddings:
        longest = max(map(len, sequences))
        ids = np.array([sequence + [0] * (longest - len(sequence)) for sequence in sequences], np.int64)
        mask = np.array([[1] * len(s) + [0] * (longest - len(s)) for s in sequences], np.int64)
        (states,) = self._session.run(None, {"ids": ids, "mask": mask})
        sums = np.einsum("btd,bt->bd", states, mask.astype(np.float32))
        return sums / np.linalg.norm(sums, axis=1, keepdims=True)


def write_graphs(model_dir: Path, folder: Path) -> tuple[Path, Path]:
    """The graph in f32 and, by onnxruntime's own tool, in int8 per channel."""
    f32, int8 = folder / "f32.onnx", folder / "int8.onnx"
    save_model(Graph(load_tensors(model_dir / "model.safetensors")).model(), f32)
    quantize_dynamic(f32, int8, per_channel=True, weight_type=QuantType.QInt8)
    return f32, int8


def cpu_seconds(run: Callable[[], object]) -> float:
    begin = time.process_time()
    run()
    return time.process_time() - begin


@dataclass(slots=True)
class Times:
    """Median CPU seconds of a query and of all texts, ours and the reference's in its better batch size."""

    query: tuple[float, float]
    batch: tuple[float, float]
    texts: int

    def figures(self, precision: str) -> dict[str, float]:
        """Ours over the reference: the time of a query, and the rate in batches."""
        return {
            f"encode_query_{precision}_over_onnxruntime": self.query[0] / self.query[1],
            f"encode_batch_rate_{precision}_over_onnxruntime": self.batch[1] / self.batch[0],
        }

    def show(self) -> None:
        ours, theirs = (seconds * 1e3 for seconds in self.query)
        print(f"  query {ours:.2f} ms, onnxruntime {theirs:.2f} ms: {ours / theirs:.2f} of it")
        ours, theirs = (self.texts / seconds for seconds in self.batch)
        print(f"  batch {ours:.0f}/s, onnxruntime {theirs:.0f}/s: {ours / theirs:.2f} times", flush=True)


def compare(ours: Encoder, reference: Reference, queries: Sequence[str], texts: Sequence[str], rounds: int) -> Times:
    """Times of both, in turn."""
    query_ids, text_ids = reference.ids(queries), reference.ids(texts)
    found = np.frombuffer(ours.encode(list(texts)), "<f4").reshape(-1, HIDDEN)
    cosines = (found * reference.encode(text_ids, 32)).sum(axis=1)
    print(f"{ours.precision} {ours.level}: cosine to onnxruntime's {cosines.mean():.5f}, at least {cosines.min():.5f}")
    times: dict[str, list[float]] = {}
    for _ in range(rounds):
        for query, ids in zip(queries, query_ids, strict=True):
            times.setdefault("query ours", []).append(cpu_seconds(lambda q=query: ours.encode([q])))
            times.setdefault("query reference", []).append(cpu_seconds(lambda i=ids: reference.encode([i], 1)))
        times.setdefault("batch ours", []).append(cpu_seconds(lambda: ours.encode(list(texts))))
        for batch in BATCHES:
            seconds = cpu_seconds(lambda b=batch: reference.encode(text_ids, b))
            times.setdefault(f"batch reference {batch}", []).append(seconds)
    median = {name: statistics.median(values) for name, values in times.items()}
    batches = min(median[f"batch reference {batch}"] for batch in BATCHES)
    return Times((median["query ours"], median["query reference"]), (median["batch ours"], batches), len(texts))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model_dir", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path, help="write the figures there, as JSON")
    parser.add_argument("--level", help="instruction set of the encoder; the best by default")
    arguments = parser.parse_args()
    content = json.loads(arguments.texts.read_text(encoding="utf-8"))
    tokenizer = Tokenizer.from_file(str(arguments.model_dir / "tokenizer.json"))
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        graphs = write_graphs(arguments.model_dir, Path(folder))
        for (precision, name), graph in zip(PRECISIONS.items(), graphs, strict=True):
            encoder = Encoder(str(arguments.model_dir), precision, arguments.level)
            reference = Reference(graph, tokenizer)
            times = compare(encoder, reference, content["queries"], content["texts"], arguments.rounds)
            times.show()
            figures |= times.figures(name)
    if arguments.out:
        arguments.out.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
