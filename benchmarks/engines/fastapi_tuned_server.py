"""The same REST server, tuned: async handlers, orjson, one transaction for all appends that waited for the last one.

The event loop reads; a thread writes, so that the loop goes on while it syncs.
Run as `fastapi_tuned_server.py DATABASE SOCKET`.
"""

import asyncio
import sqlite3
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import orjson
import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi_server import INSERT, NEWEST, SCHEMA, Message, NewMessage, connect

NAMES = tuple(Message.model_fields)

Row: TypeAlias = tuple[str, str, str, str, str, int]


class Writer:
    """Inserts rows; those that come during a transaction share the next one."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._thread = ThreadPoolExecutor(1)
        self._waiting: list[tuple[Row, asyncio.Future[int]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def insert(self, row: Row) -> int:
        """The sequence of the row, once it is durable."""
        inserted = asyncio.get_running_loop().create_future()
        self._waiting.append((row, inserted))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())
        return await inserted

    async def _write(self) -> None:
        while self._waiting:
            group, self._waiting = self._waiting, []
            rows = [row for row, _ in group]
            try:
                sequences = await asyncio.get_running_loop().run_in_executor(self._thread, self._transact, rows)
            except sqlite3.Error as error:
                for _, inserted in group:
                    inserted.set_exception(error)
            else:
                for (_, inserted), sequence in zip(group, sequences, strict=True):
                    inserted.set_result(sequence)
        self._writing = None

    def _transact(self, rows: list[Row]) -> list[int]:
        with self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            return [self._connection.execute(INSERT, row).fetchall()[0][0] for row in rows]


def application(path: str) -> FastAPI:
    app = FastAPI()
    connection = connect(path)
    connection.execute(SCHEMA)
    writer, reader = Writer(connection), connect(path)

    @app.post("/conversations/{conversation_id}/messages", response_class=Response)
    async def append(conversation_id: str, request: Request) -> Response:
        message = NewMessage.model_validate_json(await request.body())
        message_id, now = uuid.uuid4().hex, time.time_ns() // 1000
        row = (conversation_id, message_id, message.user_id, message.role, message.text, now)
        sequence = await writer.insert(row)
        return _json({"id": message_id, "sequence": sequence, "create_time": now})

    @app.get("/conversations/{conversation_id}/messages", response_class=Response)
    async def newest(conversation_id: str, user_id: str, limit: int = 50) -> Response:
        rows = reader.execute(NEWEST, (conversation_id, user_id, limit)).fetchall()
        return _json([dict(zip(NAMES, row, strict=True)) for row in reversed(rows)])

    return app


def _json(value: Any) -> Response:  # noqa: ANN401 - JSON of any shape
    return Response(orjson.dumps(value), media_type="application/json")


if __name__ == "__main__":
    uvicorn.run(application(sys.argv[1]), uds=sys.argv[2], access_log=False, log_level="warning")
