"""A data directory and its journal are what `docs/format.md` says, and a start judges damage as it says."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.storage.documented.document import FILE, layout, table
from tests.storage.documented.reader import (
    ALIGNMENT,
    BATCH,
    RECORD_BYTES,
    SEGMENT,
    Journal,
    Record,
    Refused,
    checksum,
    u32,
)
from tests.storage.documented.written import Written

from remora_server import _native
from remora_server.storage.database.database import SCHEMA_VERSION
from remora_server.storage.database.directory import FORMAT_VERSION
from remora_server.storage.schema.kinds import KINDS


def test_the_files_of_a_store_are_documented(written: Written) -> None:
    patterns = [re.sub(r"<\w+>", ".+", re.escape(row["path"])) for row in table("The data directory", "path")]

    files = {str(file.relative_to(written.data)) for file in written.data.rglob("*") if file.is_file()}

    assert {"LOCK", "FORMAT", "operator.token", "journal/reach", "journal/spare.tmp"} <= files
    assert [file for file in files if not any(re.fullmatch(pattern, file) for pattern in patterns)] == []


def test_the_versions_are_the_documented_ones(written: Written) -> None:
    found = json.loads((written.data / "FORMAT").read_text())
    now = {row["what"]: row["now"] for row in table("Versions")}

    assert list(found) == [row["field"] for row in table("The data directory", "field")]
    assert found["begun"] is True
    assert now == {
        "format": str(FORMAT_VERSION),
        "segment": "1",
        "changes": f"1 to {max(int(row['number']) for row in table('Changes'))}",
        "kinds": f"1 to {len(KINDS)}",
        "schema": str(SCHEMA_VERSION),
    }


def test_the_reader_of_the_document_reads_what_a_server_wrote(written: Written) -> None:
    kept: list[Record] = []
    _native.salvage_journal(
        written.data / "journal",
        lambda revision, payload: kept.append(Record(revision, payload)),
        store_id=written.store_id,
        applied_revision=0,
    )

    journal = written.journal
    assert journal.records == kept
    assert [record.revision for record in kept] == list(range(1, len(kept) + 1))
    assert len(journal.segments) > 2
    assert journal.seals == len(journal.segments) - 1
    assert journal.torn is None
    assert journal.note.published == journal.last_revision
    assert 0 < journal.note.applied <= journal.last_revision


def test_a_segment_has_the_documented_bytes_at_least_and_at_most(tmp_path: Path) -> None:
    least = layout(SEGMENT)["zeros"].stop + 2 * layout(BATCH)["first_revision"].stop + RECORD_BYTES + ALIGNMENT
    assert f"at least {least:,} and at most 2^30" in " ".join(FILE.read_text("utf-8").split())

    opened = partial(_native.Core, store_id=bytes(range(16)), applied_revision=0)
    opened(str(tmp_path / "least"), segment_bytes=least).close()
    for wrong in (least - 1, (1 << 30) + 1):
        with pytest.raises(_native.JournalError, match="segment_bytes"):
            opened(str(tmp_path / "wrong"), segment_bytes=wrong)


Harm = Callable[[list[Path], Journal], object]
"""Damages the segments in some files, which are those of a journal."""


def overwrite(file: Path, offset: int, data: bytes) -> None:
    with file.open("r+b") as stream:
        stream.seek(offset)
        stream.write(data)


def copy_batch(files: list[Path], journal: Journal) -> None:
    """A whole batch again, in another place than the one that its checksum is of."""
    last = journal.segments[-1]
    [*_, (begin, end)] = last.batches
    overwrite(files[-1], end, last.data[begin:end])


def begin_batch(files: list[Path], journal: Journal) -> None:
    """A batch of which a part was written."""
    [*_, (_, end)] = journal.segments[-1].batches
    overwrite(files[-1], end, b"RBAT" + bytes(range(1, 200)))


def change_page(files: list[Path], _: Journal, *, name: str, value: bytes) -> None:
    """A header page with another value, and its checksum."""
    fields = layout(SEGMENT)
    page = bytearray(files[-1].read_bytes()[:4096])
    page[fields[name]], page[fields["checksum"]] = value, bytes(4)
    page[fields["checksum"]] = u32(checksum(bytes(page)))
    overwrite(files[-1], 0, bytes(page))


def change_seal(files: list[Path], journal: Journal, *, value: bytes, at: int = 0) -> None:
    [*_, (_, end)] = journal.segments[0].batches
    overwrite(files[0], end + at, value)


END = (1 << 20) - 1
"""The last byte of a segment."""
JUDGED: dict[str, tuple[str, Harm]] = {
    "nothing": ("whole", lambda _files, _journal: None),
    "a part of a batch": ("torn", begin_batch),
    "a batch in another place": ("torn", copy_batch),
    "a byte far behind the end": ("torn", lambda files, _: overwrite(files[-1], END, b"x")),
    "no seal": ("whole", partial(change_seal, value=bytes(32))),
    "the first half of a seal": ("whole", partial(change_seal, value=bytes(16), at=16)),
    "the second half of a seal": ("whole", partial(change_seal, value=bytes(16))),
    "a damaged seal": ("refused", partial(change_seal, value=b"x")),
    "bytes behind a seal": ("refused", lambda files, _: overwrite(files[0], END, b"x")),
    "a damaged batch before others": ("refused", lambda files, _: overwrite(files[-1], 4096 + 40, b"xxxx")),
    "zeros for what was published": ("refused", lambda files, _: overwrite(files[-1], 4096, bytes(END - 4095))),
    "no second segment": ("refused", lambda files, _: files[1].unlink()),
    "no last segment": ("refused", lambda files, _: files[-1].unlink()),
    "a shorter file": ("refused", lambda files, _: files[-1].write_bytes(files[-1].read_bytes()[:-8])),
    "another name": ("refused", lambda files, _: files[-1].rename(files[-1].with_name(f"{10**9:020}.journal"))),
    "another store": ("refused", partial(change_page, name="store_id", value=bytes(16))),
    "another version": ("refused", partial(change_page, name="version", value=u32(2))),
    "a damaged header page": ("refused", lambda files, _: overwrite(files[-1], 4095, b"x")),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", JUDGED)
def test_a_start_judges_damage_as_documented(written: Written, damage: str, tmp_path: Path) -> None:
    verdict, harm = JUDGED[damage]
    folder = shutil.copytree(written.data / "journal", tmp_path / "journal")
    harm(sorted(folder.glob("*.journal")), written.journal)

    assert judged_by_document(folder, written.store_id) == verdict
    if verdict == "refused":
        with pytest.raises(_native.JournalError):
            start(folder, written.store_id)
    else:
        torn = Journal(folder, written.store_id).torn
        start(folder, written.store_id)
        kept = {file.name: file.read_bytes() for file in (folder / "damaged").glob("*")}
        assert kept == ({f"{torn.segment}-{torn.offset}.0": torn.data} if torn else {})
        assert judged_by_document(folder, written.store_id) == "whole"


def judged_by_document(folder: Path, store_id: bytes) -> str:
    try:
        return "torn" if Journal(folder, store_id).torn else "whole"
    except Refused:
        return "refused"


def start(folder: Path, store_id: bytes) -> None:
    _native.Core(str(folder), store_id=store_id, applied_revision=0).close()
