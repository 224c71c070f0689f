"""Stores and exports that versions up to this one wrote, kept in `formats`: this one shows of them what those did.

A store of each is opened as it was closed and as it was killed, with unapplied changes in its journal; without its
database's log, so that more is unapplied; and without its database, which is then rebuilt. Of these five ways, `make
check` runs three: the two that lie between others are for `make faults`.

A sample of the present schema has records of every kind that calls write, and unapplied changes of every kind. Answers
that a model has a part in, such as those of searches, are not compared.
"""

from __future__ import annotations

import json
import re
import tarfile
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import grpc
import pytest
from google.protobuf.descriptor_pb2 import MethodOptions
from tests.faults.sidecar import ROOT, Sidecar
from tests.input.callers import METHODS
from tests.storage.documented.document import table
from tests.storage.documented.written import changes, read
from tests.storage.formats.make import BY_ID, NEVER_WRITTEN, NOT_ASKED, TENANTS, reads
from tests.storage.formats.wire import answers

from remora_server.main import main
from remora_server.storage.database.database import FILE_NAME, SCHEMA_VERSION
from remora_server.storage.recovery.inspection import inspect_store
from remora_server.storage.recovery.mending import WAL_NAME
from remora_server.storage.recovery.salvage import repair
from remora_server.storage.schema.kinds import KINDS

FORMATS = sorted(path.parent for path in Path(__file__).with_name("formats").glob("*/closed.json"))
WITHOUT: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("closed", ()),
    ("closed", (WAL_NAME, FILE_NAME)),
    ("killed", ()),
    ("killed", (WAL_NAME,)),
    ("killed", (WAL_NAME, FILE_NAME)),
)
"""Stores, and what is taken from them before they are opened."""
BETWEEN = [WITHOUT[1], WITHOUT[3]]
"""What lies between others: only `make faults` runs it."""
STORES = [
    pytest.param(folder, *store, marks=pytest.mark.faults if store in BETWEEN else pytest.mark.slow)
    for folder in FORMATS
    for store in WITHOUT
]


def unpacked(folder: Path, name: str, data: Path) -> Path:
    with tarfile.open(folder / f"{name}.tar.xz") as archive:
        archive.extractall(data, filter="data")
    return data


def schema_of(folder: Path, data: Path) -> int:
    """The schema version of the database in a sample."""
    with duckdb.connect(str(unpacked(folder, "closed", data) / FILE_NAME), read_only=True) as database:
        [(version,)] = database.execute("SELECT value FROM meta WHERE key = 'schema_version'").fetchall()
    return int(version)


def test_every_release_and_every_schema_since_the_oldest_has_a_sample(tmp_path: Path) -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    releases = set(re.findall(r"^## \[(\d[^]]*)\]", changelog, re.MULTILINE))
    schemas = {schema_of(folder, tmp_path / folder.name) for folder in FORMATS}

    assert releases <= {folder.name for folder in FORMATS}
    assert schemas == set(range(min(schemas), SCHEMA_VERSION + 1))


def test_a_sample_of_the_present_schema_has_records_and_unapplied_changes_of_every_kind(tmp_path: Path) -> None:
    present = [folder for folder in FORMATS if schema_of(folder, tmp_path / folder.name) == SCHEMA_VERSION]
    kinds = {kind.name for kind in KINDS} - NEVER_WRITTEN
    written_now = {row["change"] for row in table("Changes") if "read as" not in row["effect"]}

    found = [contents(folder, tmp_path / f"{folder.name}, both") for folder in present]

    assert (kinds, kinds, written_now) in found


def contents(folder: Path, place: Path) -> tuple[set[str], set[str], set[str]]:
    """The kinds of records in the database of a sample, the kinds in its journal behind that, and the changes there."""
    closed, killed = (unpacked(folder, name, place / name) for name in ("closed", "killed"))
    with duckdb.connect(str(closed / FILE_NAME), read_only=True) as database:
        tables = {name for (name,) in database.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        names = {kind.number: kind.name for kind in KINDS if kind.name in tables}
        filled = {name for name in names.values() if database.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchall()}
    applied = read(closed).journal.last_revision
    later = [change for change in changes(read(killed).journal.records) if change.revision > applied]
    put = {names[change.content.kind] for change in later if change.name == "put_record"}
    return filled, put, {change.name for change in later}


def test_a_sample_is_asked_every_read_whose_reply_follows_from_the_store_alone() -> None:
    contract = {
        name
        for name, method in METHODS.items()
        if method.GetOptions().idempotency_level == MethodOptions.NO_SIDE_EFFECTS
    }

    asked = {method for method, _ in reads()}

    assert contract == {*asked, *BY_ID, *NOT_ASKED}


@contextmanager
def served(data: Path | None = None) -> Iterator[Sidecar]:
    """A server, of a store that is there already."""
    with tempfile.TemporaryDirectory(prefix="remora-") as place:
        if data is not None:
            data.rename(Path(place, "data"))
        sidecar = Sidecar(Path(place), "--model=none", "--segment-bytes=1MiB")
        sidecar.start()
        try:
            yield sidecar
        finally:
            sidecar.stop()
        assert not inspect_store(Path(place, "data")).findings


def require_same(sidecar: Sidecar, folder: Path, name: str) -> None:
    """Compare all that a server shows with what was kept."""
    told = json.loads((folder / f"{name}.json").read_text("utf-8"))
    asked = [{key: read[key] for key in ("tenant", "method", "request")} for read in told]
    with grpc.insecure_channel(sidecar.endpoint) as channel:
        found = [{**read, **answer} for read, answer in zip(asked, answers(channel, asked), strict=True)]
    assert found == told
    for tenant in TENANTS:
        kept = (folder / f"{name}.{tenant}.jsonl").read_bytes()
        assert events_by_key(exported(sidecar, tenant)) == events_by_key(kept)


def events_by_key(export: bytes) -> list[bytes]:
    """The lines of an export. Timeline events stand by their keys in kept ones, and in the order of adding since."""
    lines = export.splitlines(keepends=True)
    places = [place for place, line in enumerate(lines) if line.startswith(b'{"kind":"timeline_event"')]
    for place, line in zip(places, sorted(lines[place] for place in places), strict=True):
        lines[place] = line
    return lines


def exported(sidecar: Sidecar, tenant: str) -> bytes:
    """The export of a tenant. The command runs in this process: to begin another takes longer than to export."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "export")
        assert main(["export", str(file), "--endpoint", sidecar.endpoint, "--tenant", tenant]) == 0
        return file.read_bytes()


def import_into(sidecar: Sidecar, tenant: str, file: Path) -> None:
    assert main(["import", str(file), "--endpoint", sidecar.endpoint, "--tenant", tenant]) == 0


@pytest.mark.parametrize(("folder", "name", "gone"), STORES, ids=lambda part: getattr(part, "name", str(part)))
def test_a_kept_store_reads_as_before(folder: Path, name: str, gone: tuple[str, ...], tmp_path: Path) -> None:
    data = unpacked(folder, name, tmp_path / "data")
    for file in gone:
        (data / file).unlink(missing_ok=True)

    with served(data) as sidecar:
        require_same(sidecar, folder, name)
        sidecar.kill()
        sidecar.start()
        require_same(sidecar, folder, name)


@pytest.mark.slow
@pytest.mark.parametrize("folder", FORMATS, ids=lambda folder: folder.name)
def test_a_kept_store_is_repaired(folder: Path, tmp_path: Path) -> None:
    data = unpacked(folder, "killed", tmp_path / "data")

    report = repair(data, tmp_path / "saved")

    assert report.is_complete, report
    with served(tmp_path / "saved") as sidecar:
        require_same(sidecar, folder, "killed")


@pytest.fixture(scope="module")
def new() -> Iterator[Sidecar]:
    """A server of a new store, for tenants that are not there yet."""
    with served() as sidecar:
        yield sidecar


@pytest.mark.parametrize("folder", FORMATS, ids=lambda folder: folder.name)
@pytest.mark.parametrize("tenant", TENANTS)
@pytest.mark.parametrize("name", ["closed", "killed"])
def test_a_kept_export_is_imported(folder: Path, tenant: str, name: str, new: Sidecar) -> None:
    kept, importing = folder / f"{name}.{tenant}.jsonl", f"{tenant}-{uuid.uuid4().hex}"

    import_into(new, importing, kept)
    import_into(new, importing, kept)

    assert exported(new, importing) == kept.read_bytes()
