"""Stores that real servers wrote and that were killed, with what they acknowledged; and what is done to their files."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tests.faults.sidecar import Sidecar
from tests.patience import PATIENCE

from remora import Remora
from remora.errors import NotFoundError
from remora.v1 import admin_service_pb2

SEGMENT = 1 << 20
ARGUMENTS = ("--model", "none", f"--segment-bytes={SEGMENT}")
CONVERSATIONS = 4
LONG = "words " * 4000
DATABASE, WAL = "remora.duckdb", "remora.duckdb.wal"

FIRST = 2
"""What `write_released` writes to each conversation before anything else."""

Texts = dict[str, list[str]]
"""What was acknowledged, by conversation."""
Order = list[tuple[str, str]]
"""What was acknowledged as (conversation, text): the revisions from the first on."""


@dataclass(frozen=True)
class Written:
    """A killed server's directory, what it had acknowledged, and older copies of the database by name.

    `other` is the data directory of another store, whose server was killed, too.
    """

    directory: Path
    texts: Texts
    order: Order
    copies: dict[str, Path]
    other: Path

    def copy(self, target: Path) -> Path:
        """A copy of the data directory that may be damaged."""
        shutil.copytree(self.directory / "data", target / "data")
        return target / "data"


def write_other(directory: Path) -> Path:
    """The data directory of a store of the same conversations with other texts."""
    sidecar, texts = Sidecar(directory, *ARGUMENTS), Texts()
    sidecar.start()
    append(sidecar, texts, "theirs", 3)
    sidecar.stop()
    sidecar.start()
    append(sidecar, texts, "theirs", 2)
    wait_applied(sidecar)
    sidecar.kill()
    return directory / "data"


def write_whole(directory: Path, other: Path) -> Written:
    """A store whose journal begins at the first revision. A part is checkpointed, a part in the write-ahead log."""
    sidecar, texts, order = Sidecar(directory, *ARGUMENTS), Texts(), Order()
    sidecar.start()
    order += append(sidecar, texts, "early", 3)
    sidecar.stop()
    shutil.copy(directory / "data" / DATABASE, directory / "early")
    order += checkpoint_more(sidecar, texts)
    sidecar.start()
    order += append(sidecar, texts, "late", 5)
    wait_applied(sidecar)
    sidecar.kill()
    return Written(directory, texts, order, older_copies(directory, "early"), other)


def write_released(directory: Path, other: Path) -> Written:
    """A store whose journal no longer holds the first revisions."""
    sidecar, texts, order = Sidecar(directory, *ARGUMENTS), Texts(), Order()
    sidecar.start()
    order += append(sidecar, texts, "first", FIRST)
    sidecar.stop()
    shutil.copy(directory / "data" / DATABASE, directory / "first")
    sidecar.start()
    order += append(sidecar, texts, LONG, 40)
    sidecar.stop()
    shutil.copy(directory / "data" / DATABASE, directory / "released")
    assert len(segments(directory / "data")) == 1
    order += checkpoint_more(sidecar, texts)
    sidecar.start()
    order += append(sidecar, texts, "short", 3)
    order += append(sidecar, texts, LONG, 30)
    order += append(sidecar, texts, "last", 3)
    wait_applied(sidecar)
    sidecar.kill()
    assert len(segments(directory / "data")) > 2
    return Written(directory, texts, order, older_copies(directory, "first", "released"), other)


def write_unapplied(directory: Path, other: Path) -> Written:
    """A store whose journal alone holds what was written last."""
    sidecar, texts, order = Sidecar(directory, *ARGUMENTS), Texts(), Order()
    sidecar.start()
    order += append(sidecar, texts, "early", 3)
    sidecar.stop()
    sidecar.changes = ("apply_when_asked",)
    sidecar.start()
    order += append(sidecar, texts, "unapplied", 20)
    sidecar.kill()
    return Written(directory, texts, order, {}, other)


def checkpoint_more(sidecar: Sidecar, texts: Texts) -> Order:
    """Write something that is in the database's file and not in a copy made before."""
    sidecar.start()
    order = append(sidecar, texts, "between", 1)
    sidecar.stop()
    return order


def older_copies(directory: Path, *names: str) -> dict[str, Path]:
    """Copies of the database's file as it was; each is another file than it is now."""
    newest = (directory / "data" / DATABASE).read_bytes()
    copies = {name: directory / name for name in names}
    assert all(copy.read_bytes() != newest for copy in copies.values())
    return copies


def append(sidecar: Sidecar, texts: Texts, word: str, count: int) -> Order:
    """Append to each conversation, one after another, and keep what was acknowledged."""
    order = Order()
    with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
        for number in range(CONVERSATIONS):
            name = f"c{number}"
            chat, kept = memory.conversation(name, user_id="sarah"), texts.setdefault(name, [])
            for _ in range(count):
                text = f"{len(kept)} in {name}: {word}"
                chat.append({"role": "user", "content": text})
                kept.append(text)
                order.append((name, text))
    return order


def held(sidecar: Sidecar) -> Texts:
    """All messages that the server shows, by conversation; a conversation that is not there has none."""
    found = Texts()
    with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
        for number in range(CONVERSATIONS):
            name = f"c{number}"
            with suppress(NotFoundError):
                listed = memory.conversation(name, user_id="sarah").messages(limit=None)
                found[name] = [message.text for message in listed]
    return found


def wait_applied(sidecar: Sidecar) -> None:
    """Wait until the database has everything."""
    with Remora(sidecar.endpoint, timeout=PATIENCE) as memory:
        while True:
            status = memory.stubs.admin.GetStatus(admin_service_pb2.GetStatusRequest(), timeout=PATIENCE)
            if status.store.applied_revision == status.store.revision:
                return


def digest(directory: Path) -> str:
    """Of everything in a directory that a look at it must not change; locks have no content."""
    found = hashlib.sha256()
    for file in sorted(path for path in directory.rglob("*") if path.is_file()):
        found.update(f"{file.relative_to(directory)} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return found.hexdigest()


def segments(data: Path) -> list[Path]:
    """The journal's files, oldest first."""
    return sorted((data / "journal").glob("*.journal"))


def flip(file: Path, at: int) -> None:
    """Flip some bits of a byte; from the end where `at` is negative."""
    content = bytearray(file.read_bytes())
    content[at] ^= 0x55
    file.write_bytes(content)


def flip_each(file: Path, begin: int, step: int) -> None:
    """Flip bits of many bytes."""
    content = bytearray(file.read_bytes())
    for at in range(begin, len(content), step):
        content[at] ^= 0x55
    file.write_bytes(content)


def truncate(file: Path, length: int) -> None:
    """Cut a file; negative lengths count from its end."""
    content = file.read_bytes()
    file.write_bytes(content[:length])


def zero(file: Path, begin: int, end: int) -> None:
    """Overwrite bytes with zeros."""
    content = bytearray(file.read_bytes())
    content[begin:end] = bytes(len(content[begin:end]))
    file.write_bytes(content)


@dataclass(frozen=True)
class Case:
    """Damage, what becomes of the next start (`mended` or `refused`), and what the doctor finds."""

    name: str
    store: str
    damage: Callable[[Path, Written], None]
    becomes: str
    finding: str


def _delete_database(data: Path, _: Written) -> None:
    (data / DATABASE).unlink()
    (data / WAL).unlink()


def _older(name: str, *, keep_wal: bool) -> Callable[[Path, Written], None]:
    def damage(data: Path, written: Written) -> None:
        shutil.copy(written.copies[name], data / DATABASE)
        if not keep_wal:
            (data / WAL).unlink()

    return damage


def _swap_segments(data: Path, _: Written) -> None:
    first, second, *_rest = segments(data)
    one, two = first.read_bytes(), second.read_bytes()
    first.write_bytes(two)
    second.write_bytes(one)


def _foreign_database(*, with_wal: bool) -> Callable[[Path, Written], None]:
    def damage(data: Path, written: Written) -> None:
        (data / WAL).unlink()
        shutil.copy(written.other / DATABASE, data / DATABASE)
        if with_wal:
            shutil.copy(written.other / WAL, data / WAL)

    return damage


def _foreign_file_alone(data: Path, written: Written) -> None:
    shutil.copy(written.other / DATABASE, data / DATABASE)


def _delete_all(data: Path, written: Written) -> None:
    _delete_database(data, written)
    shutil.rmtree(data / "journal")


def _delete_journal(data: Path, _: Written) -> None:
    shutil.rmtree(data / "journal")


def _put_file_for_journal(data: Path, _: Written) -> None:
    shutil.rmtree(data / "journal")
    (data / "journal").touch()


def _empty_journal(data: Path, _: Written) -> None:
    shutil.rmtree(data / "journal")
    (data / "journal").mkdir()


def _delete_segments(data: Path, _: Written) -> None:
    for segment in segments(data):
        segment.unlink()


def _empty_segments(data: Path, _: Written) -> None:
    (data / "journal" / "reach").unlink()
    for segment in segments(data):
        segment.write_bytes(b"")


def _wipe_segments(data: Path, _: Written) -> None:
    (data / "journal" / "reach").unlink()
    for segment in segments(data):
        zero(segment, 0, SEGMENT)


JOURNAL_LOST: dict[str, Callable[[Path, Written], None]] = {
    "the journal missing": _delete_journal,
    "a file for the journal": _put_file_for_journal,
    "an empty journal": _empty_journal,
    "the journal's segments empty, its note missing": _empty_segments,
    "the journal's segments zeros, its note missing": _wipe_segments,
}
"""Nothing of the journal is left, nor anything that says how far it came."""

CASES = (
    Case(
        "a flipped byte in the log", "whole", lambda d, _: flip(d / WAL, 300), "mended", "write-ahead log|lost from it"
    ),
    Case("a flipped length in the log", "whole", lambda d, _: flip(d / WAL, 9), "mended", "log"),
    Case("a log cut short", "whole", lambda d, _: truncate(d / WAL, -200), "mended", "were applied and are lost"),
    Case("a log of zeros", "whole", lambda d, _: zero(d / WAL, 0, 10**9), "mended", "log"),
    Case("no log", "whole", lambda d, _: (d / WAL).unlink(), "mended", "were applied and are lost"),
    Case("no log, a part released", "released", lambda d, _: (d / WAL).unlink(), "mended", "were applied and are lost"),
    Case("a flipped byte in the log, a part released", "released", lambda d, _: flip(d / WAL, 500), "mended", "log"),
    Case("no database file", "whole", lambda d, _: (d / DATABASE).unlink(), "mended", "it is missing"),
    Case("no database", "whole", _delete_database, "mended", "it is missing"),
    Case("no database, a part released", "released", _delete_database, "refused", "it is missing"),
    Case(
        "a flipped byte in the file's header",
        "whole",
        lambda d, _: flip(d / DATABASE, 20),
        "mended",
        "cannot be opened",
    ),
    Case(
        "a flipped byte in the file's header, a part released",
        "released",
        lambda d, _: flip(d / DATABASE, 20),
        "refused",
        "cannot be opened",
    ),
    Case(
        "a file cut short", "released", lambda d, _: truncate(d / DATABASE, 5000), "refused", "cannot be (opened|read)"
    ),
    Case("a file of zeros", "whole", lambda d, _: zero(d / DATABASE, 0, 10**9), "mended", "cannot be opened"),
    Case("an older file and no log", "whole", _older("early", keep_wal=False), "mended", "were applied and are lost"),
    Case(
        "an older file, a part released", "released", _older("released", keep_wal=False), "mended", "were applied and"
    ),
    Case("an older file than the journal", "released", _older("first", keep_wal=False), "refused", "only revision"),
    Case("an older file and a newer log", "released", _older("first", keep_wal=True), "refused", "log|opened"),
    Case(
        "a damaged batch in the middle of the journal",
        "released",
        lambda d, _: flip(segments(d)[0], 4096 + 32 + 16 + 9),
        "refused",
        "at byte 4096",
    ),
    Case("a segment missing", "released", lambda d, _: segments(d)[1].unlink(), "refused", "was expected"),
    Case("two segments exchanged", "released", _swap_segments, "refused", "the header begins at revision"),
    Case("the last segment missing", "released", lambda d, _: segments(d)[-1].unlink(), "refused", "is missing"),
    *(Case(name, "unapplied", damage, "refused", "journal") for name, damage in JOURNAL_LOST.items()),
    Case("the journal's segments missing", "unapplied", _delete_segments, "refused", "was acknowledged|was applied"),
    Case("all missing", "whole", _delete_all, "refused", "it is missing"),
    *(
        Case(f"another store's {name}", store, damage, "refused", "belongs to store")
        for store in ("whole", "released")
        for name, damage in (
            ("database", _foreign_database(with_wal=False)),
            ("database and its log", _foreign_database(with_wal=True)),
            ("database beside this one's log", _foreign_file_alone),
        )
    ),
    Case("the format file missing", "whole", lambda d, _: (d / "FORMAT").unlink(), "refused", "FORMAT is missing"),
    Case("the format file damaged", "whole", lambda d, _: truncate(d / "FORMAT", 9), "refused", "FORMAT is damaged"),
)
