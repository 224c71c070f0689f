"""Moves columns into and out of DuckDB through Arrow's C interface, without a Python object for each value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import duckdb
import nanoarrow as na  # type: ignore[import-untyped]

# nanoarrow brings no types.
ArrowType: TypeAlias = Any
ArrowArray: TypeAlias = Any

TEXT = na.large_string()
BLOB = na.large_binary()
UINT64 = na.uint64()
INT64 = na.int64()
INT32 = na.int32()
DOUBLE = na.float64()
BOOL = na.bool_()
VECTOR = na.large_list(na.float32())
NUMBER_BYTES = 8

Buffers: TypeAlias = "tuple[bytes | None, bytes | None, bytes]"
"""A column as Arrow lays it out: validity (None if nothing is missing), offsets (where its kind has any), values."""


def table(columns: Sequence[tuple[str, ArrowType]], rows: int, buffers: Sequence[Buffers]) -> ArrowArray:
    """An Arrow array of structs from so many rows; `columns` are (name, type). DuckDB takes it by `register`."""
    children = [_column(kind, rows, *given) for (_, kind), given in zip(columns, buffers, strict=True)]
    return na.c_array_from_buffers(na.struct(dict(columns)), rows, [None], children=children)


def _column(kind: ArrowType, rows: int, validity: bytes | None, offsets: bytes | None, values: bytes) -> ArrowArray:
    if kind is VECTOR:
        floats = na.c_array_from_buffers(na.float32(), len(values) // 4, [None, values])
        return na.c_array_from_buffers(kind, rows, [validity, offsets], children=[floats])
    data = [values] if offsets is None else [offsets, values]
    return na.c_array_from_buffers(kind, rows, [validity, *data])


def vectors(relation: duckdb.DuckDBPyRelation) -> Iterable[bytes]:
    """The rows of a relation whose one column is FLOAT[], each as little-endian f32 bytes. Raises duckdb.Error."""
    for column in _columns(relation):
        offsets = memoryview(column.buffer(1))
        floats = memoryview(column.child(0).buffer(1)).cast("B")
        for row in range(len(column)):
            yield bytes(floats[4 * offsets[row] : 4 * offsets[row + 1]])


def numbers(relation: duckdb.DuckDBPyRelation) -> memoryview[int]:
    """The rows of a relation whose one column is UBIGINT. Raises duckdb.Error."""
    values = (memoryview(column.buffer(1)).cast("B")[: NUMBER_BYTES * len(column)] for column in _columns(relation))
    return memoryview(b"".join(values)).cast("Q")


def _columns(relation: duckdb.DuckDBPyRelation) -> list[ArrowArray]:
    """The one column of a relation, in pieces. What fails in the middle of a stream has DuckDB's words alone."""
    stream = na.ArrayStream(relation)
    try:
        return [chunk.child(0) for chunk in stream.read_all().iter_chunks()]
    except RuntimeError as error:
        raise duckdb.Error(str(error)) from error


def table_of(columns: Sequence[tuple[str, ArrowType]], rows: Sequence[Sequence[object]]) -> ArrowArray:
    """An Arrow array of structs from rows of Python values; `columns` are (name, type)."""
    values = zip(*rows, strict=True)
    children = [na.c_array(list(column), kind) for (_, kind), column in zip(columns, values, strict=True)]
    return na.c_array_from_buffers(na.struct(dict(columns)), len(rows), [None], children=children)
