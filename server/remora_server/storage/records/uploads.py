"""Bodies that are too long for one write, uploaded in parts. Parts that no write names within some time expire."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from remora_server.domain.calls import Access
from remora_server.domain.uploads import UNNAMED_SECONDS
from remora_server.storage.commit import changes
from remora_server.storage.commit.clock import Clock
from remora_server.storage.records.reader import Partition, RecordReader
from remora_server.storage.records.refusals import RecordNotFound, UploadNamed
from remora_server.storage.schema.kinds import Kind, parts_of
from remora_server.storage.v1 import record_pb2


class Upload(Struct, frozen=True):
    """A body that is being uploaded for a record of a kind, and whose that will be."""

    id: str
    kind: Kind
    uid: int = 0
    conversation_id: str = ""
    user_id: str = ""

    @property
    def place(self) -> Partition:
        """Where its parts stand."""
        return _place(self.kind, self.uid, self.id)


class Uploaded(Struct, frozen=True):
    """A complete upload: its id and its number of parts."""

    id: str
    parts: int

    def place(self, kind: Kind, uid: int) -> Partition:
        """Where the parts stand of a record of a kind."""
        return _place(kind, uid, self.id)

    @property
    def reference(self) -> str:
        """What the record keeps of it."""
        return f"{self.id}/{self.parts}"


class Uploads:
    """Makes the changes of uploads."""

    def __init__(self, reader: RecordReader, clock: Clock) -> None:
        self._reader = reader
        self._clock = clock

    def part(self, access: Access, upload: Upload, index: int, data: bytes) -> changes.Change:
        """One part, up to PART_BYTES. The same again replaces it, under the upload's lock. Raises UploadNamed."""
        kind = parts_of(upload.kind)
        found, _ = self._reader.stored(access, upload.place, kind.encode_key(index))
        if found is not None and found.expire_time is None:
            raise UploadNamed(upload.id)
        draft = kind.draft(
            record_pb2.BodyPart(
                upload_id=upload.id,
                index=index,
                conversation_id=upload.conversation_id,
                user_id=upload.user_id,
                data=data,
            ),
            self._clock() + UNNAMED_SECONDS * 1_000_000,
        )
        return changes.put_record(kind, upload.uid, draft, replaces=True)

    def confirm(self, access: Access, place: Partition, uploaded: Uploaded, user_id: str) -> Iterator[changes.Change]:
        """Keep the parts for a user's record that names them, under the upload's lock.

        Raises RecordNotFound if one is missing, named, or another user's: it would go with that user.
        """
        parts = uploaded.place(place.kind, place.uid)
        kind = parts.kind
        for index in range(uploaded.parts):
            key = kind.encode_key(index)
            found, _ = self._reader.stored(access, parts, key)
            if found is None or found.expire_time is None or found.user_id != user_id:
                raise RecordNotFound(kind.name, parts.partition)
            yield changes.set_expiry(kind.number, place.uid, parts.partition, key, found.revision, None)


def _place(kind: Kind, uid: int, upload_id: str) -> Partition:
    """Raises ValueError if the id is one by which the database does not find its parts: see `tables.py`."""
    if not upload_id or "/" in upload_id or "\0" in upload_id:
        raise ValueError(f"{upload_id!r} is not an id of an upload")
    parts = parts_of(kind)
    return Partition(parts, uid, parts.encode_partition(upload_id))
