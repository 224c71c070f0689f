"""Records that one request imports, each with its place in the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct, field

from remora import Remora
from remora.errors import ConversationNotFoundError, InvalidFieldError, RecordConflictError, RemoraError
from remora.v1.transfer_service_pb2 import Record
from remora_server.rpc.handlers.exported import conversation_of

GROUP_RECORDS, GROUP_BYTES = 500, 1 << 20


class RecordRefused(Exception):
    """The server refuses a record, and so its group. `place` is the record's in the file, `index` that in the group."""

    def __init__(self, place: str, index: int, error: RemoraError) -> None:
        super().__init__(f"{place}: {' '.join(str(error).split())}")
        self.place = place
        self.index = index
        self.is_conflict = isinstance(error, RecordConflictError)


class Group(Struct):
    """Records of one conversation that are sent together, with their places."""

    conversation_id: str
    records: list[Record] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    bytes: int = 0

    def takes(self, conversation_id: str, size: int) -> bool:
        """Whether a record of a conversation, with this size in bytes, can be sent with them."""
        if not self.records:
            return True
        fits = len(self.records) < GROUP_RECORDS and self.bytes + size <= GROUP_BYTES
        return fits and conversation_id == self.conversation_id

    def add(self, record: Record, place: str, size: int) -> None:
        """Add a record."""
        self.conversation_id = conversation_of(record)
        self.records.append(record)
        self.places.append(place)
        self.bytes += size

    def send(self, client: Remora) -> int:
        """Import them, all or none. Returns how many were new. Raises RecordRefused."""
        try:
            return client.import_records(self.records)
        except (RecordConflictError, InvalidFieldError, ConversationNotFoundError) as error:
            index = _index(error.metadata.get("field", ""))
            raise RecordRefused(self.places[index], index, error) from error


def grouped(given: Iterable[tuple[Record, str]]) -> Iterator[Group]:
    """Records with their places, in groups."""
    group = Group("")
    for record, place in given:
        size = record.ByteSize()
        if not group.takes(conversation_of(record), size):
            yield group
            group = Group("")
        group.add(record, place, size)
    if group.records:
        yield group


def _index(path: str) -> int:
    """The index of the record in a field's path, such as `records[3].message`."""
    number = path.partition("[")[2].partition("]")[0]
    return int(number) if number.isdigit() else 0
