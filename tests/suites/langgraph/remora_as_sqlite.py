"""A plugin of pytest for the tests of langgraph-checkpoint-sqlite: the stores that they open are Remora's.

Each database is a tenant of the server at $REMORA_TEST_ENDPOINT: `:memory:` a new one each time, a file always the
same. Each call has $REMORA_TEST_PATIENCE seconds.
"""

from __future__ import annotations

import os
import uuid
from typing import Any

import langgraph.store.sqlite
import langgraph.store.sqlite.aio

from remora.langgraph import AsyncRemoraStore, RemoraStore

ENDPOINT = os.environ["REMORA_TEST_ENDPOINT"]
PATIENCE = float(os.environ["REMORA_TEST_PATIENCE"])
INTERNAL = {
    "test_vector_store_initialization": "looks for tables in SQLite's catalogue",
    "test_nonnull_migrations": "reads the SQL of SqliteStore's migrations",
    "test_list_namespaces_prefix_uses_indexable_condition": "reads the SQL that SqliteStore makes",
}
"""What tests SQLite's insides, and why it cannot be run."""


def _options(database: str, ttl: dict[str, Any] | None) -> dict[str, Any]:
    name = uuid.uuid4() if database == ":memory:" else uuid.uuid5(uuid.NAMESPACE_URL, database)
    # Unset, LangGraph documents it as true, and so does Remora take it; SqliteStore takes it as false.
    config = None if ttl is None else {"refresh_on_read": False, **ttl}
    return {"tenant": f"sqlite-{name.hex}", "ttl": config, "timeout": PATIENCE}


class SqliteStore(RemoraStore):
    """Opens a tenant for a database."""

    @classmethod
    def from_conn_string(cls, conn_string: str, **config: Any) -> SqliteStore:  # type: ignore[override]  # noqa: ANN401
        return cls(ENDPOINT, index=config.get("index"), **_options(conn_string, config.get("ttl")))


class AsyncSqliteStore(AsyncRemoraStore):
    """Opens a tenant for a database."""

    @classmethod
    def from_conn_string(cls, conn_string: str, **config: Any) -> AsyncSqliteStore:  # type: ignore[override]  # noqa: ANN401
        return cls(ENDPOINT, index=config.get("index"), **_options(conn_string, config.get("ttl")))


for module in (langgraph.store.sqlite, langgraph.store.sqlite.aio):
    setattr(module, "SqliteStore", SqliteStore)  # noqa: B010 - checkers know other classes there
    setattr(module, "AsyncSqliteStore", AsyncSqliteStore)  # noqa: B010 - as above
