"""What steps of runs, steps of history entries, timeline events and spans have in common: they are found by their run
(or entry, or trace) and their id, or by the id alone.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from google.protobuf.message import Message

from remora_server.domain.calls import Access, Outcome, Read, Write
from remora_server.domain.errors import RemoraError, RequestTooLarge, RevisionConflict
from remora_server.domain.workflows import PartName, PartPage, PartPosition, PartQuery
from remora_server.storage.commit.commands import Planned
from remora_server.storage.nouns.context import StoreContext
from remora_server.storage.records.reader import Partition, PartitionQuery
from remora_server.storage.records.records import Remove
from remora_server.storage.records.refusals import BodyTooLong, RevisionMismatch
from remora_server.storage.schema.kinds import HISTORY_ENTRIES, IN_ORDER, WORKFLOW_RUNS, Kind, Position

T = TypeVar("T")

RUN_KEY = b""
"""The key of the one record of the partition of a run or an entry."""


def last_of_each(named: Iterable[tuple[Hashable, T]]) -> list[T]:
    """The last of each name, in the order in which these come: as if they were saved one after the other."""
    found: dict[Hashable, T] = {}
    for name, each in named:
        found.pop(name, None)
        found[name] = each
    return list(found.values())


def place_of_run(run_id: str) -> Partition:
    """The place of a run."""
    return Partition(WORKFLOW_RUNS, 0, WORKFLOW_RUNS.encode_partition(run_id))


def place_of_entry(entry_id: str) -> Partition:
    """The place of an entry."""
    return Partition(HISTORY_ENTRIES, 0, HISTORY_ENTRIES.encode_partition(entry_id))


@contextmanager
def answered() -> Iterator[None]:
    """Why a write of records is refused, as callers are told."""
    try:
        yield
    except RevisionMismatch as error:
        raise RevisionConflict(error.expected, error.found) from error
    except BodyTooLong as error:
        raise RequestTooLarge(error.limit) from error


def position_of(position: Position | None) -> PartPosition | None:
    """A position of the records as one of the domain: both end with a revision and an ordinal."""
    if position is None:
        return None
    values: Any = position
    *order, revision, ordinal = values
    return PartPosition(tuple(order), revision, ordinal)


def stored_position(position: PartPosition | None) -> Position | None:
    """The reverse."""
    return None if position is None else (*position.order, position.revision, position.ordinal)


class RunParts:
    """The records of one kind, whose partition is a run's id and whose key is their own."""

    def __init__(self, context: StoreContext, kind: Kind, not_found: Callable[[str], RemoraError]) -> None:
        self._commits = context.commits
        self._commands = context.commands
        self._database = context.database
        self._records = context.records
        self._nobodys_parts = context.nobodys_parts
        self._kind = kind
        self._not_found = not_found

    def get(self, read: Read, name: PartName) -> tuple[bytes, int]:
        place = self._place(read, name)
        found, revision = self._records.get(read, place, self._kind.encode_key(name.id))
        if found is None:
            raise self._not_found(name.id)
        return found.body, revision

    def list(self, read: Read, query: PartQuery) -> PartPage:
        wanted = PartitionQuery(order=IN_ORDER, limit=query.limit, after=stored_position(query.after))
        found = self._records.encoded_page(read, self._of_run(query.run_id), wanted)
        return PartPage(found.encoded, position_of(found.following), found.revision)

    def delete(self, write: Write, name: PartName) -> Outcome:
        place, key = self._place(write, name), self._kind.encode_key(name.id)

        def plan(_: None, _now: int) -> Planned | None:
            if self._records.stored(write, place, key) is None:
                return None
            gone = self._records.changes(write, [Remove(place.kind, 0, place.partition, key)])
            return Planned(gone, Outcome(revision=0, deleted=True))

        return self._commands.run(write, self._records.held_place(write, place), plan)

    def _accepted(self, write: Write, place: Partition, part_id: str) -> bytes:
        """The body of one, as writers build on it, under its lock."""
        found = self._records.accepted(write, place, [self._kind.encode_key(part_id)])
        if not found:
            raise self._not_found(part_id)
        return found[0].body

    def _known(self, write: Write, parts: Sequence[Message]) -> dict[PartName, bytes]:
        """The bodies that are there under the names of some parts."""
        names: dict[str, list[str]] = {}
        for name in map(self._name_of, parts):
            names.setdefault(name.run_id, []).append(name.id)
        found: dict[PartName, bytes] = {}
        for run_id, ids in names.items():
            place, keys = self._of_run(run_id), {self._kind.encode_key(each): each for each in ids}
            # Has all keys of the run loaded at once: the next parts then ask the database for none.
            self._records.count(Read(write.tenant_id, deadline=write.deadline), place)
            for record in self._records.accepted(write, place, list(keys)):
                found[PartName(keys[record.key], run_id)] = record.body
        return found

    def _name_of(self, part: Message) -> PartName:
        return PartName(self._kind.key[0].of(part), self._kind.partition[0].of(part))

    def _fill_user(self, write: Write, parts: Sequence[Any]) -> None:
        """Give those that name no user that of their run."""
        users: dict[str, str] = {}
        for part in parts:
            if not part.user_id:
                if part.run_id not in users:
                    users[part.run_id] = self._user_of_run(write, part.run_id)
                part.user_id = users[part.run_id]
                if not part.user_id:
                    self._nobodys_parts.are_new = True

    def _user_of_run(self, write: Write, run_id: str) -> str:
        for place in (place_of_run(run_id), place_of_entry(run_id)):
            found = self._records.stored(write, place, RUN_KEY)
            if found is not None and found.user_id:
                return found.user_id
        return ""

    def _of_run(self, run_id: str) -> Partition:
        return Partition(self._kind, 0, self._kind.encode_partition(run_id))

    def _place(self, access: Access, name: PartName) -> Partition:
        """Where one stands: in its run, or else where the newest stands that has the id."""
        return self._of_run(name.run_id) if name.run_id else self._newest_place(access, name.id)

    def _newest_place(self, access: Access, part_id: str) -> Partition:
        """A place without records: the parts of a run with an empty id."""
        read = access if isinstance(access, Read) else Read(access.tenant_id, deadline=access.deadline)
        self._commits.begin_query_of(read, self._kind.number)
        [(partition,)] = self._database.rows(
            f"""SELECT max_by(partition, (revision, ordinal)) FROM {self._kind.name}
                WHERE tenant_id = ? AND {self._kind.key[0].name} = ?""",  # noqa: S608 - a table of ours
            [access.tenant_id, part_id],
        )
        return self._of_run("") if partition is None else Partition(self._kind, 0, partition)
