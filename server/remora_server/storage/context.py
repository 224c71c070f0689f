"""What the parts of the embedded store share."""

from __future__ import annotations

from msgspec import Struct

from remora_server._native import Core
from remora_server.domain.messages import NewId
from remora_server.storage.clock import Clock
from remora_server.storage.commands import Commands
from remora_server.storage.commits import Commits
from remora_server.storage.database import Database
from remora_server.storage.loading import Loader
from remora_server.storage.locks import Locks
from remora_server.storage.records import Records


class StoreContext(Struct, frozen=True):
    """The engine, the database, the ways of reads and of writes, and where ids come from."""

    core: Core
    database: Database
    commits: Commits
    commands: Commands
    loader: Loader
    locks: Locks
    records: Records
    clock: Clock
    new_id: NewId
