"""Records that are made of rows: they are imported, read back, and compared with the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from google.protobuf.message import Message
from msgspec import Struct, field
from rich.console import Console

from remora import Remora
from remora.v1.transfer_service_pb2 import Record
from remora_server.commands.failures import CommandFailed
from remora_server.commands.numbers import counted
from remora_server.commands.output import noting_silence
from remora_server.commands.record_groups import Group, RecordRefused, grouped
from remora_server.commands.reported import Reported


class Copied(Struct):
    """How many records are in the file, how many of them were new, and the places of those that differ.

    `refused` are the places of records that the server refused because it has others there.
    """

    given: int = 0
    new: int = 0
    refused: set[str] = field(default_factory=set)
    differing: set[str] = field(default_factory=set)

    def told(self, noun: str) -> str:
        """The last line of a copy without differences."""
        there = self.given - self.new
        said = f"{counted(self.new, noun)} copied" + (
            f", {counted(there, 'was', 'were')} there already" if there else ""
        )
        return f"{said}; all are as in the file"


def send(client: Remora, name: str, given: Iterable[tuple[Record, str]], console: Console) -> Copied:
    """Import records with their places. An existing record that differs is left as it is; the comparison names it.

    Raises CommandFailed if the server refuses a record for another reason.
    """
    copied, left = Copied(), set[str]()
    for group in grouped(given):
        copied.given += len(group.records)
        try:
            with noting_silence(console):
                copied.new += _send(client, group, copied.refused, left)
        except RecordRefused as refused:
            raise CommandFailed(
                f"{name}: {refused}; {counted(copied.new, 'record was', 'records were')} copied before"
            ) from refused
    return copied


def _send(client: Remora, group: Group, refused_places: set[str], left: set[str]) -> int:
    """Import a group without records that exist and differ. Nothing is imported into the conversations in `left`: an
    existing one with the same id may be another user's.
    """
    while group.records and not (group.conversation_id and group.conversation_id in left):
        try:
            return group.send(client)
        except RecordRefused as refused:
            if not refused.is_conflict:
                raise
            refused_places.add(refused.place)
            if group.records[refused.index].HasField("conversation"):
                left.add(group.conversation_id)
            del group.records[refused.index], group.places[refused.index]
    return 0


def exported(client: Remora, kind: str | None, console: Console) -> Iterator[Record]:
    """All records that the tenant has, of one kind or (None) of all."""
    token = ""
    while True:
        with noting_silence(console):
            page = client.export_records(page_token=token)
        yield from (record for record in page.records if kind in (None, record.WhichOneof("kind")))
        token = page.next_page_token
        if not token:
            return


def differences(expected: Message, found: Message) -> list[str]:
    """The names of the fields in which two messages differ."""
    fields = {each.name for message in (expected, found) for each, _ in message.ListFields()}
    return [name for name in sorted(fields) if getattr(expected, name) != getattr(found, name)]


def require_equal(copied: Copied, report: Reported, noun: str) -> None:
    """Raise CommandFailed if something differs; `report` has said what, and says the rest."""
    for place in sorted(copied.refused - copied.differing):
        copied.differing.add(place)
        report(f"{place}: Remora has another one")
    report.end()
    if copied.differing:
        differing = counted(
            len(copied.differing), f"of {counted(copied.given, noun)} is", f"of {counted(copied.given, noun)} are"
        )
        raise CommandFailed(f"{differing} not in Remora as in the file")
