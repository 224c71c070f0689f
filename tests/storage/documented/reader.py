"""Reads a journal, keys and places as `docs/format.md` says it, and by nothing else of this repository."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct
from tests.storage.documented.document import constant, layout

SEGMENT, BATCH, RECORD, NOTE = "Segments", "Batches", "Records", "The note reach"
ALIGNMENT = 8

Part: TypeAlias = str | int | Sequence[str]


def _table() -> list[int]:
    def entry(value: int) -> int:
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        return value

    return [entry(byte) for byte in range(256)]


_CRC = _table()


def checksum(*parts: bytes) -> int:
    """CRC-32C of some bytes, joined."""
    crc = 0xFFFFFFFF
    for part in parts:
        for byte in part:
            crc = crc >> 8 ^ _CRC[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def u32(value: int) -> bytes:
    return value.to_bytes(4, "little")


def u64(value: int) -> bytes:
    return value.to_bytes(8, "little")


class Header:
    """A header at the beginning of some bytes, its fields as a table of the document places them."""

    def __init__(self, kind: str, data: bytes) -> None:
        self.layout = layout(kind)
        self.size = max(place.stop for place in self.layout.values())
        self.data = data[: self.size]
        self.is_there = len(self.data) == self.size and self["magic"] == constant(kind, "magic").encode()

    def __getitem__(self, field: str) -> bytes:
        return self.data[self.layout[field]]

    def number(self, field: str) -> int:
        return int.from_bytes(self[field], "little")


class Record(Struct, frozen=True):
    """A record of a journal."""

    revision: int
    payload: bytes


class Refused(Exception):
    """A start refuses this journal."""


class Segment:
    """A file of a journal. Making one raises Refused where its header page is not right."""

    def __init__(self, file: Path, store_id: bytes) -> None:
        self.name, self.data = file.name, file.read_bytes()
        self.header = header = Header(SEGMENT, self.data)
        page = bytearray(header.data)
        page[header.layout["checksum"]] = bytes(4)
        if not header.is_there or header.number("checksum") != checksum(bytes(page)):
            raise Refused(f"{file.name}: its header page")
        if header.number("version") != int(constant(SEGMENT, "version")):
            raise Refused(f"{file.name}: its version")
        self.first_revision = header.number("first_revision")
        is_named = file.name == f"{self.first_revision:020}.journal"
        if not is_named or header.number("segment_bytes") != len(self.data) or header["store_id"] != store_id:
            raise Refused(f"{file.name}: its name, length or store")
        self.batches: list[tuple[int, int]] = []
        """Where each begins and ends, but for the seal; filled when the journal is read."""

    def batch_header(self, offset: int) -> Header | None:
        """The batch header at an offset, None where there is none."""
        header = Header(BATCH, self.data[offset : offset + 32])
        if not header.is_there:
            return None
        own = self.header["store_id"], self.header["first_revision"], u64(offset), header.data[8:32]
        is_right = header.number("checksum") == checksum(*own) and header.number("first_revision") <= 1 << 62
        return header if is_right else None

    def batch(self, offset: int) -> tuple[Header, list[Record]] | None:
        """The whole batch at an offset, None where there is none. A seal has no records."""
        header = self.batch_header(offset)
        if header is None:
            return None
        size, begin = header.number("body_bytes"), offset + header.size
        body = self.data[begin : begin + size]
        if len(body) != size or checksum(body) != header.number("body_checksum"):
            return None
        records = list(_records(body, header.number("first_revision")))
        is_full = sum(_padded(RECORD_BYTES + len(record.payload)) for record in records) == size
        return (header, records) if is_full and len(records) == header.number("records") else None

    def has_torn_seal(self, end: int, revision: int) -> bool:
        """Whether nothing lies behind an offset but some bytes of the seal that says which revision comes next."""
        fields = u32(checksum()) + u32(0) + u32(0) + u32(0) + u64(revision)
        own = self.header["store_id"], self.header["first_revision"], u64(end), fields
        seal = constant(BATCH, "magic").encode() + u32(checksum(*own)) + fields
        rest = self.data[end:].rstrip(b"\0")
        return len(rest) <= len(seal) and all(found in (0, byte) for found, byte in zip(rest, seal, strict=False))

    def has_later_batch(self, end: int) -> bool:
        """Whether a batch header lies behind an offset."""
        magic, at = constant(BATCH, "magic").encode(), end
        while (at := self.data.find(magic, at + 1)) >= 0:
            if at % ALIGNMENT == 0 and self.batch_header(at):
                return True
        return False


RECORD_BYTES = max(place.stop for place in layout(RECORD).values())


def _padded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _records(body: bytes, revision: int) -> Iterator[Record]:
    """The right records at the beginning of a body, which have consecutive revisions."""
    fields, at = layout(RECORD), 0
    while at < len(body):
        header = body[at : at + RECORD_BYTES]
        length = int.from_bytes(header[fields["payload_bytes"]], "little")
        payload = body[at + RECORD_BYTES : at + RECORD_BYTES + length]
        is_right = int.from_bytes(header[fields["checksum"]], "little") == checksum(payload, u64(revision), u32(length))
        if len(payload) != length or header[fields["revision"]] != u64(revision) or not is_right:
            return
        yield Record(revision, payload)
        revision, at = revision + 1, at + _padded(RECORD_BYTES + length)


class Torn(Struct, frozen=True):
    """The torn end of a journal."""

    segment: str
    offset: int
    data: bytes


class Journal:
    """The journal in a folder, read as a start reads it. Making one raises Refused."""

    def __init__(self, folder: Path, store_id: bytes, applied_revision: int = 0) -> None:
        files = sorted(file for file in folder.iterdir() if re.fullmatch(r"\d{20}\.journal", file.name))
        self.segments = [Segment(file, store_id) for file in files]
        self.records: list[Record] = []
        self.seals = 0
        self.torn: Torn | None = None
        self._next = self.first_revision = self.segments[0].first_revision
        for segment in self.segments:
            self._read(segment, is_last=segment is self.segments[-1])
        self.note = Note(folder / "reach", store_id)
        reached = max(applied_revision, self.note.published)
        if self.last_revision < reached or self.first_revision > applied_revision + 1:
            raise Refused(f"revisions {self.first_revision} to {self.last_revision}")

    @property
    def last_revision(self) -> int:
        return self._next - 1

    def _expect(self, segment: Segment, revision: int) -> None:
        if revision != self._next:
            raise Refused(f"{segment.name}: revision {revision} instead of {self._next}")

    def _read(self, segment: Segment, *, is_last: bool) -> None:
        self._expect(segment, segment.first_revision)
        end, is_sealed = segment.header.size, False
        while not is_sealed and (batch := segment.batch(end)) is not None:
            header, records = batch
            self._expect(segment, header.number("first_revision"))
            begin, end = end, end + header.size + header.number("body_bytes")
            is_sealed = not records
            self.seals += is_sealed
            self.records += records
            self._next += len(records)
            if records:
                segment.batches.append((begin, end))
        rest = segment.data[end:].rstrip(b"\0")
        if is_sealed and is_last:
            raise Refused(f"{segment.name}: its successor is missing")
        if rest and not is_sealed and not is_last and segment.has_torn_seal(end, self._next):
            return
        if rest and (is_sealed or not is_last or segment.has_later_batch(end)):
            raise Refused(f"{segment.name}: damaged at {end}")
        if rest:
            self.torn = Torn(segment.name, end, rest)


class Note:
    """The note of a journal's reach; 0 where it says nothing."""

    def __init__(self, file: Path, store_id: bytes) -> None:
        self._header = header = Header(NOTE, file.read_bytes() if file.exists() else b"")
        checked = header.data[header.layout["store_id"].start :]
        self._says = (
            header.is_there and header.number("checksum") == checksum(checked) and header["store_id"] == store_id
        )

    @cached_property
    def published(self) -> int:
        return self._header.number("published") if self._says else 0

    @cached_property
    def applied(self) -> int:
        return self._header.number("applied") if self._says else 0


def key(types: Sequence[str], parts: Sequence[Part]) -> bytes:
    """The parts of a key, of documented types, encoded."""
    return b"".join(_part(kind, part) for kind, part in zip(types, parts, strict=True))


def _part(kind: str, part: Part) -> bytes:
    match kind, part:
        case "text", str():
            return part.encode().replace(b"\0", b"\0\xff") + b"\0\x01"
        case "texts", [*texts]:
            return b"".join(_part("text", text) for text in texts) + b"\0\0"
        case "unsigned", int():
            return part.to_bytes(8, "big")
        case "signed", int():
            return (part + (1 << 63)).to_bytes(8, "big")
    raise AssertionError((kind, part))


def place(tenant: str, conversation_uid: int, partition: bytes) -> int:
    """The hash by which the database finds a partition."""
    mask, value = (1 << 64) - 1, 0xCBF29CE484222325
    for byte in u64(len(tenant.encode())) + tenant.encode() + u64(conversation_uid) + partition:
        value = (value ^ byte) * 0x100000001B3 & mask
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * factor & mask
    return value ^ value >> 33
