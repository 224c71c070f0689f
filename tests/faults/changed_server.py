"""`remora` with something changed in it for a test: `python -m tests.faults.changed_server CHANGE[,CHANGE] serve …`."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import duckdb
from tests.faults import planted

from remora_server import _native, application, supervision
from remora_server.domain.calls import Read
from remora_server.domain.errors import DeadlineExceeded
from remora_server.domain.models import PerTenant, ServedModel, ServedModels
from remora_server.domain.search import MessageVector
from remora_server.domain.store import Store
from remora_server.embedding_models import Models
from remora_server.engine import breaker
from remora_server.engine.endpoint_embedder import EndpointEmbedder
from remora_server.main import main
from remora_server.rpc import methods
from remora_server.rpc.calls import Call
from remora_server.storage import local_store
from remora_server.storage.commit import applier
from remora_server.storage.commit.applier import Applier
from remora_server.storage.commit.clock import wall_clock
from remora_server.storage.commit.request_ids import RequestIds
from remora_server.storage.database import database
from remora_server.storage.database.database import Database
from remora_server.storage.database.lacks import Lack
from remora_server.storage.embedding.queues import PendingEmbeddings
from remora_server.storage.local_store import LocalStore, StoreOptions
from remora_server.storage.nouns.conversations import Conversations
from remora_server.storage.nouns.loading import Loader
from remora_server.storage.nouns.messages import CountTokens
from remora_server.storage.recovery import backups, restoring

T = TypeVar("T")
MARK = "a mark of the next schema"
WAITING = "waiting for "
HELD = "held"
WITHOUT_END = 3600.0


def checkpoint_often() -> None:
    """Checkpoints come after kilobytes: kills meet them, and segments are deleted."""
    applier.CHECKPOINT_WAL_BYTES = 100_000


def next_schema() -> None:
    """One more migration, of two statements over what is stored."""
    migrations, number = database._migrations(), database.SCHEMA_VERSION + 1
    script = f"""
        ALTER TABLE conversations ADD COLUMN mark TEXT DEFAULT '{MARK}';
        UPDATE messages SET name = '{MARK}' WHERE name = '';
        ALTER TABLE conversations DROP COLUMN mark;
        UPDATE messages SET name = '' WHERE name = '{MARK}';
        INSERT INTO meta VALUES ('mark', '{MARK}');
    """
    database._migrations = lambda: [*migrations, (number, script)]
    database.SCHEMA_VERSION = number


def checkpoint_soon() -> None:
    """Checkpoints come as soon as no more is written, almost."""
    applier.CHECKPOINT_IDLE_SECONDS = 1.0


def begin_nothing_anew() -> None:
    """A thread whose work has failed stays so."""
    supervision.FIRST_PAUSE = WITHOUT_END


def rest_without_end() -> None:
    """An endpoint that has failed so often that it rests is not asked again."""
    breaker.REST_SECONDS = (WITHOUT_END, WITHOUT_END)


def apply_when_asked() -> None:
    """Only what a read waits for is applied: the journal alone holds the rest."""
    applier.BATCH_SECONDS = 3600.0


def checkpoint_without_looking() -> None:
    """Checkpoints are tried where there is no room for them."""
    database.CHECKPOINT_ROOM = -1 << 40


def leave_out_what_finds_no_room() -> None:
    """The applier goes on behind what it could not write."""
    apply = Applier._apply

    def leaving_out(self: Applier, records: list[tuple[int, bytes]]) -> None:
        try:
            apply(self, records)
        except duckdb.Error:
            self._must_reopen = True
            self._advance(records[-1][0])

    Applier._apply = leaving_out  # type: ignore[method-assign]
    Applier._restore = lambda self: None  # type: ignore[method-assign]


def leave_the_journal_out() -> None:
    """What the journal holds beyond the database is neither applied without a log nor looked at otherwise."""
    Applier._may_do_without_log = lambda self, lack: False  # type: ignore[method-assign]

    def follow_nothing(self: LocalStore, lack: Lack) -> None:
        pass

    LocalStore._follow_unapplied = follow_nothing  # type: ignore[method-assign]
    read = Loader._read

    def read_without_journal(self: Loader, tenant_id: str, conversation_id: str, *, with_journal: bool) -> bool:
        return read(self, tenant_id, conversation_id, with_journal=False)

    Loader._read = read_without_journal  # type: ignore[method-assign]


def load_no_requests() -> None:
    """Which requests there were before the start is never loaded: the database is asked as long as the server runs."""
    RequestIds._load = lambda self: cast("None", self._stopping.wait())  # type: ignore[method-assign]


def send_before_it_is_published() -> None:
    """The native transport is told of no revision to wait for."""
    answer = methods.Method.answer

    def unheld(self: methods.Method, call: Call, encoded: bytes) -> tuple[bytes, int]:
        return answer(self, call, encoded)[0], 0

    methods.Method.answer = unheld  # type: ignore[method-assign]


def counts_wait() -> None:
    """A count of the conversations of the user `WAITING` and a path is answered when that file is gone.

    It takes no longer than it may; without a path, all the time that it has.
    """
    count = Conversations.count

    def waiting(self: Conversations, read: Read, user_id: str, resource_id: str) -> tuple[int, int]:
        if user_id.startswith(WAITING):
            assert read.deadline is not None
            held = Path(user_id.removeprefix(WAITING) or os.devnull)
            while held.exists():
                if time.monotonic() > read.deadline:
                    raise DeadlineExceeded
                time.sleep(0.01)
        return count(self, read, user_id, resource_id)

    Conversations.count = waiting  # type: ignore[method-assign]


def open_when_it_may() -> None:
    """The store is opened when the file `HELD` beside its directory is gone."""
    opened = local_store.open_store

    def waiting(options: StoreOptions, *, count_tokens: CountTokens, models: ServedModels) -> Store:
        assert options.directory is not None
        while options.directory.with_name(HELD).exists():
            time.sleep(0.01)
        return opened(options, count_tokens=count_tokens, models=models)

    application.open_store = waiting  # type: ignore[attr-defined]


def sync_no_snapshot() -> None:
    """A backup, or a restore, waits for the disk without end once it has copied everything."""

    def wait(_file: Path) -> None:
        time.sleep(WITHOUT_END)

    backups.sync_file = wait  # type: ignore[assignment,attr-defined]
    restoring.sync_file = wait  # type: ignore[assignment,attr-defined]


def trust_the_wall_clock() -> None:
    """Records bear what the wall clock shows, even where it was set back."""
    local_store.SteadyClock = lambda: wall_clock  # type: ignore[assignment,attr-defined,misc]


def look_without_a_pause() -> None:
    """The applier looks for what is to be applied again and again."""
    applier.TICK_SECONDS = 0.0


def keep_what_is_read() -> None:
    """What a user's load read is never given back."""
    snapshot, kept = Database.snapshot, []

    def keeping(self: Database, ask: Callable[[duckdb.DuckDBPyConnection], T]) -> T:
        found = snapshot(self, ask)
        kept.append(found)
        return found

    Database.snapshot = keeping  # type: ignore[method-assign]


def forget_refusals() -> None:
    """It is not recorded that a model refuses a message."""
    put = PendingEmbeddings.put_embeddings

    def without_refusals(self: PendingEmbeddings, vectors: Sequence[MessageVector]) -> None:
        put(self, [vector for vector in vectors if vector.values])

    PendingEmbeddings.put_embeddings = without_refusals  # type: ignore[method-assign]


def one_model_for_all() -> None:
    """All tenants have the default model."""

    def of(self: PerTenant[T], tenant_id: str) -> T:
        return self.default

    PerTenant.of = of  # type: ignore[method-assign]


def one_name_for_all_vectors() -> None:
    """The vectors of all endpoints bear one name."""

    def served(self: Models, name: str) -> ServedModel:
        return ServedModel("vectors")

    Models._served = served  # type: ignore[method-assign]
    EndpointEmbedder.model = "vectors"  # type: ignore[assignment,method-assign]


def without(**bounds: float) -> Callable[[], None]:
    """The native transport with other bounds."""

    def change() -> None:
        made = _native.Transport

        def unbounded(*given: Any, **named: Any) -> _native.Transport:  # noqa: ANN401 - whatever the server gives
            return made(*given, **{**named, **bounds})

        _native.Transport = unbounded  # type: ignore[misc,assignment]

    return change


CHANGES: dict[str, Callable[[], None]] = {
    "forget_refusals": forget_refusals,
    "one_model_for_all": one_model_for_all,
    "one_name_for_all_vectors": one_name_for_all_vectors,
    "checkpoint_often": checkpoint_often,
    "next_schema": next_schema,
    "counts_wait": counts_wait,
    "no_handshake_timeout": without(handshake_timeout=3600.0),
    "no_bound_of_replies": without(reply_bytes=1 << 40, connection_reply_bytes=1 << 40),
    "no_bound_of_resets": without(pending_resets=1 << 30),
    "send_before_it_is_published": send_before_it_is_published,
    "load_no_requests": load_no_requests,
    **planted.FAULTS,
    "checkpoint_soon": checkpoint_soon,
    "apply_when_asked": apply_when_asked,
    "begin_nothing_anew": begin_nothing_anew,
    "rest_without_end": rest_without_end,
    "checkpoint_without_looking": checkpoint_without_looking,
    "leave_out_what_finds_no_room": leave_out_what_finds_no_room,
    "leave_the_journal_out": leave_the_journal_out,
    "open_when_it_may": open_when_it_may,
    "sync_no_snapshot": sync_no_snapshot,
    "trust_the_wall_clock": trust_the_wall_clock,
    "look_without_a_pause": look_without_a_pause,
    "keep_what_is_read": keep_what_is_read,
}


if __name__ == "__main__":
    for name in sys.argv[1].split(","):
        CHANGES[name]()
    sys.exit(main(sys.argv[2:]))
