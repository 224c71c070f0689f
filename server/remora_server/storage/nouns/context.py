"""The parts that the nouns of the local store share."""

from __future__ import annotations

from msgspec import Struct

from remora_server._native import Core
from remora_server.domain.messages import NewId
from remora_server.storage.commit.clock import Clock
from remora_server.storage.commit.commands import Commands
from remora_server.storage.commit.commits import Commits
from remora_server.storage.commit.locks import Locks
from remora_server.storage.database.database import Database
from remora_server.storage.nouns.loading import Loader
from remora_server.storage.records.records import Records


class NobodysParts(Struct):
    """Whether parts of runs and entries that name no user were saved, and the database may lack them. Set under the
    locks of such parts, and reset under all locks.
    """

    are_new: bool = False


class StoreContext(Struct, frozen=True):
    """The engine, the database, the readers and writers, and the source of ids."""

    core: Core
    database: Database
    commits: Commits
    commands: Commands
    loader: Loader
    locks: Locks
    records: Records
    clock: Clock
    new_id: NewId
    nobodys_parts: NobodysParts
