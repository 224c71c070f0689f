"""Columns to and from DuckDB without copies through Python objects where it matters, by Arrow's C interface."""

from __future__ import annotations

import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import nanoarrow as na  # type: ignore[import-untyped]

if TYPE_CHECKING:
    import duckdb

# nanoarrow brings no types.
ArrowType: TypeAlias = Any
ArrowArray: TypeAlias = Any

TEXT = na.string()
BLOB = na.binary()
UINT64 = na.uint64()
INT64 = na.int64()
INT32 = na.int32()
BOOL = na.bool_()
VECTOR = na.list_(na.float32())


def table(columns: Sequence[tuple[str, ArrowType]], rows: Sequence[tuple[Any, ...]]) -> ArrowArray:
    """An Arrow array of structs from rows; `columns` are (name, type). DuckDB takes it by `register`.

    Values of a VECTOR column are little-endian f32 bytes.
    """
    values = zip(*rows, strict=True) if rows else ((),) * len(columns)
    children = [_column(kind, list(column)) for (_, kind), column in zip(columns, values, strict=True)]
    schema = na.struct({name: child.schema for (name, _), child in zip(columns, children, strict=True)})
    return na.c_array_from_buffers(schema, len(rows), [None], children=children)


def _column(kind: ArrowType, values: list[Any]) -> ArrowArray:
    return _vectors(values) if kind is VECTOR else na.c_array(values, kind)


def _vectors(values: list[bytes]) -> ArrowArray:
    offsets = array.array("i", [0])
    for value in values:
        offsets.append(offsets[-1] + len(value) // 4)
    floats = na.c_array_from_buffers(na.float32(), offsets[-1], [None, b"".join(values)])
    return na.c_array_from_buffers(VECTOR, len(values), [None, na.c_buffer(offsets)], children=[floats])


def vectors(relation: duckdb.DuckDBPyRelation) -> Iterable[bytes]:
    """The rows of a relation whose one column is FLOAT[], each as little-endian f32 bytes."""
    for chunk in na.ArrayStream(relation).read_all().iter_chunks():
        column = chunk.child(0)
        offsets = memoryview(column.buffer(1))
        floats = memoryview(column.child(0).buffer(1)).cast("B")
        for row in range(len(column)):
            yield bytes(floats[4 * offsets[row] : 4 * offsets[row + 1]])
