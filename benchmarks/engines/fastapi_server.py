"""The REST server that one would write: FastAPI on uvicorn, SQLite in WAL mode with synchronous=FULL.

Writes share a connection under a lock, because SQLite has one writer; each thread reads through its own.
Run as `fastapi_server.py DATABASE SOCKET`.
"""

import sqlite3
import sys
import threading
import time
import uuid

import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

SCHEMA = """
CREATE TABLE IF NOT EXISTS messages (
    conversation_id TEXT NOT NULL, sequence INTEGER NOT NULL, id TEXT NOT NULL, user_id TEXT NOT NULL,
    role TEXT NOT NULL, text TEXT NOT NULL, create_time INTEGER NOT NULL, PRIMARY KEY (conversation_id, sequence)
) WITHOUT ROWID
"""
MEMORIES = """
CREATE TABLE IF NOT EXISTS working_memories (
    user_id TEXT PRIMARY KEY, content TEXT NOT NULL, update_time INTEGER NOT NULL
) WITHOUT ROWID
"""
INSERT = """
INSERT INTO messages
SELECT ?1, coalesce(max(sequence), 0) + 1, ?2, ?3, ?4, ?5, ?6 FROM messages WHERE conversation_id = ?1
RETURNING sequence
"""
NEWEST = """
SELECT id, user_id, role, text, sequence, create_time FROM messages
WHERE conversation_id = ? AND user_id = ? ORDER BY sequence DESC LIMIT ?
"""
PUT = """
INSERT INTO working_memories VALUES (?, ?, ?)
ON CONFLICT (user_id) DO UPDATE SET content = excluded.content, update_time = excluded.update_time
"""
GET = "SELECT content, update_time FROM working_memories WHERE user_id = ?"


class NewMessage(BaseModel):
    user_id: str
    role: str
    text: str


class Appended(BaseModel):
    id: str
    sequence: int
    create_time: int


class Message(BaseModel):
    id: str
    user_id: str
    role: str
    text: str
    sequence: int
    create_time: int


class NewMemory(BaseModel):
    content: str


class MemorySet(BaseModel):
    update_time: int


class Memory(BaseModel):
    content: str
    update_time: int


def connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def application(path: str) -> FastAPI:
    app = FastAPI()
    writer, writing, own = connect(path), threading.Lock(), threading.local()
    writer.execute(SCHEMA)
    writer.execute(MEMORIES)

    def reader() -> sqlite3.Connection:
        if not hasattr(own, "connection"):
            own.connection = connect(path)
        return own.connection

    @app.post("/conversations/{conversation_id}/messages")
    def append(conversation_id: str, message: NewMessage) -> Appended:
        message_id, now = uuid.uuid4().hex, time.time_ns() // 1000
        row = (conversation_id, message_id, message.user_id, message.role, message.text, now)
        with writing:
            [(sequence,)] = writer.execute(INSERT, row).fetchall()
        return Appended(id=message_id, sequence=sequence, create_time=now)

    @app.get("/conversations/{conversation_id}/messages")
    def newest(conversation_id: str, user_id: str, limit: int = 50) -> list[Message]:
        rows = reader().execute(NEWEST, (conversation_id, user_id, limit)).fetchall()
        return [Message(**dict(zip(Message.model_fields, row, strict=True))) for row in reversed(rows)]

    @app.put("/users/{user_id}/working-memory")
    def put(user_id: str, memory: NewMemory) -> MemorySet:
        now = time.time_ns() // 1000
        with writing:
            writer.execute(PUT, (user_id, memory.content, now))
        return MemorySet(update_time=now)

    @app.get("/users/{user_id}/working-memory")
    def get(user_id: str) -> Memory:
        row = reader().execute(GET, (user_id,)).fetchone()
        if row is None:
            raise HTTPException(404, f"user {user_id} has no working memory")
        return Memory(content=row[0], update_time=row[1])

    return app


if __name__ == "__main__":
    uvicorn.run(application(sys.argv[1]), uds=sys.argv[2], access_log=False, log_level="warning")
