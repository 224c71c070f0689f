"""Expire times that memory shows and the database may lack, beside what the database says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from remora_server._native import Core
from remora_server.storage.database import arrow
from remora_server.storage.database.tables import EXPIRY, RECORD
from remora_server.storage.schema.kinds import Kind

_SAME = " AND ".join(f"later.{column} = own.{column}" for column, _ in (*RECORD, ("revision", arrow.UINT64)))


class UnappliedExpiries:
    """Those of a tenant's records of a kind, as they are now.

    To be asked for before the state of the database is chosen: that then has what is not among them.
    """

    def __init__(self, core: Core, kind: Kind, tenant_id: str) -> None:
        self._kind = kind
        self._count, self._buffers = core.unapplied_expiries(kind.number, tenant_id)

    @contextmanager
    def source(self, cursor: duckdb.DuckDBPyConnection) -> Iterator[str]:
        """What to read the records from, by the name of their table: it has their expire times as memory shows them."""
        kind = self._kind
        if not self._count:
            yield kind.name
            return
        later = f"expiries_{kind.number}"
        cursor.register(later, arrow.table(EXPIRY, self._count, self._buffers))
        try:
            yield f"""(SELECT own.* REPLACE (
                    CASE WHEN later.key IS NULL THEN own.expire_time ELSE later.expire_time END AS expire_time)
                FROM {kind.name} AS own LEFT JOIN {later} AS later ON {_SAME}) AS {kind.name}"""  # noqa: S608 - ours
        finally:
            cursor.unregister(later)
