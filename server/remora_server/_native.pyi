"""Types of the Rust engine, one section per module of the crate."""

from collections.abc import Sequence
from typing import Self, final

from typing_extensions import Buffer

# lexical

@final
class LexicalSegment:
    """A BM25 index (k1 0.9, b 0.75) of documents in slots, changed in place; safe to share between threads."""

    def __init__(self) -> None: ...
    def upsert(self, slot: int, text: str) -> None:
        """Put a text in a slot (0 to 2**24 - 1; ValueError above), in place of the one that was there."""

    def remove(self, slot: int) -> bool:
        """Empty a slot; return whether it held a document."""

    def search(self, query: str, k: int) -> list[tuple[int, float]]:
        """Return at most k slots that share a term with the query, best first, with their scores; ties by slot."""

    def bytes(self) -> int:
        """Return an estimate of the memory held."""

    def __len__(self) -> int: ...

def analyze(text: str) -> list[str]:
    """Return the terms of a text in its order, repeats included: folded, stemmed, without English stop words."""

# index

class VectorError(ValueError):
    """A vector is refused, here because its bytes do not divide into values; a subclass says any other reason."""

class ZeroVectorError(VectorError):
    """All values are zero: the vector has no direction, thus no cosine."""

class NotFiniteVectorError(VectorError):
    """A value is infinite or not a number."""

class VectorDimensionError(VectorError):
    """A vector has `actual` values where the segment holds `expected`."""

    expected: int
    actual: int

@final
class VectorSegment:
    """Exact cosine search over vectors in slots, changed in place; safe to share between threads.

    A vector is a buffer of f32, or bytes of little-endian f32; TypeError for anything else. Scores have the same bits
    at every instruction set. Other threads of the interpreter run during each call.
    """

    def __new__(cls, dim: int, level: str | None = None) -> Self:
        """Make an empty segment for vectors of `dim` (1 to 65,536) values.

        `level` forces an instruction set, one of `available_kernels()`; ValueError for any other.
        """

    @property
    def dim(self) -> int:
        """The number of values in a vector."""

    @property
    def level(self) -> str:
        """The instruction set that searches."""

    def upsert(self, slot: int, vector: Buffer) -> None:
        """Put a vector in a slot (0 to 2**24 - 1; ValueError above), in place of the one that was there.

        It is stored at unit length; a VectorError refuses it and changes nothing.
        """

    def remove(self, slot: int) -> bool:
        """Empty a slot; return whether it held a vector."""

    def search(
        self,
        query: Buffer,
        k: int,
        allowed: Sequence[int] | None = None,
        threshold: float | None = None,
    ) -> list[tuple[int, float]]:
        """Return at most `k` slots with their cosines (-1 to 1 within rounding), best first; ties by slot.

        Only slots in `allowed`, where given, and cosines of at least `threshold`, where given. A VectorError refuses
        the query.
        """

    def bytes(self) -> int:
        """Return the memory that is allocated, in bytes."""

    def __len__(self) -> int: ...

# kernels

def kernel_level() -> str:
    """Return the instruction set that is used where none is forced: scalar, neon, avx2 or avx512."""

def available_kernels() -> list[str]:
    """Return the instruction sets that this processor can run, the slowest first."""

# encoder

class ModelError(Exception):
    """A model cannot be used: a file is missing or malformed, or it is not all-MiniLM-L6-v2."""

@final
class Encoder:
    """all-MiniLM-L6-v2 on the CPU: texts to embeddings of unit length. Safe to share between threads, each call runs on
    one; the GIL is released meanwhile.

    model_dir holds model.safetensors, tokenizer.json and perhaps config.json, which must not change while the encoder
    lives. precision is "f32", or "int8" for a third of the time at a cosine above 0.99 to f32. level is an instruction
    set, "scalar", "neon", "avx2" or "avx512"; the best of the processor if None.

    Raises ModelError if the model cannot be used, ValueError for an unknown precision and for a level that is unknown
    or that the processor lacks.
    """

    def __new__(cls, model_dir: str, precision: str = "f32", level: str | None = None) -> Self: ...
    def encode(self, texts: list[str]) -> bytes:
        """Return the embeddings in the order of the texts, `dimension` little-endian float32 values each.

        What lies beyond `max_tokens` word pieces does not count; the empty text has an embedding too. A lone surrogate
        counts as U+FFFD. The embedding of a text does not depend on the others.
        """

    def token_vectors(self, text: str) -> tuple[list[int], bytes]:
        """Return the ids of the word pieces, [CLS] first and [SEP] last, and the last hidden state of each: `dimension`
        little-endian float32 values, not normalised.
        """

    @property
    def dimension(self) -> int:
        """Values of an embedding: 384."""

    @property
    def max_tokens(self) -> int:
        """Word pieces of a text that count, the two special ones included: 256."""

    @property
    def precision(self) -> str:
        """What is computed in, "f32" or "int8": f32 also where int8 was asked for and the level has no fast int8."""

    @property
    def level(self) -> str:
        """The instruction set in use."""

# Identifiers.

def new_id() -> str:
    """A new UUIDv7 (RFC 9562) as text: unique, and ordered by the millisecond in which it was made."""
