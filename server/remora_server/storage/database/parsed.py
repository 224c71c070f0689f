"""Queries that are parsed once: of a brief query, DuckDB's parser takes a quarter of the time."""

from __future__ import annotations

import duckdb

MOST = 256
"""How many different queries are kept. The texts of most are constants."""

_statements: dict[str, duckdb.Statement] = {}


def execute(cursor: duckdb.DuckDBPyConnection, sql: str, parameters: object = None) -> duckdb.DuckDBPyConnection:
    """Execute one statement. A statement belongs to no connection: DuckDB binds a copy of it each time."""
    statement = _statements.get(sql)
    if statement is None:
        [statement] = cursor.extract_statements(sql)
        if len(_statements) < MOST:
            _statements[sql] = statement
    return cursor.execute(statement, parameters)
