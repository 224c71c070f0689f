"""The manifest of a backup: a backup is a folder with a manifest and the snapshot that it describes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import asdict

from remora.v1.admin_service_pb2 import Backup

MANIFEST_VERSION = 1
FILE_NAME = "manifest.json"
SNAPSHOT_NAME = "remora.duckdb"


Count = Annotated[int, Meta(ge=0)]


def _hexadecimal(size: int) -> Meta:
    return Meta(pattern=f"^[0-9a-f]{{{2 * size}}}$")


class ManifestError(Exception):
    """The manifest is missing, or this version cannot read it; the message says which."""


class Manifest(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a backup. Ids and digests are hexadecimal; `bytes` is the snapshot's size, `rows` is by table."""

    manifest_version: int
    store_id: Annotated[str, _hexadecimal(16)]
    revision: Count
    create_time: str
    format_version: int
    schema_version: int
    remora_version: str
    duckdb_version: str
    file: str
    bytes: Count
    sha256: Annotated[str, _hexadecimal(32)]
    rows: dict[str, Count]

    @classmethod
    def of(cls, backup: Backup) -> Manifest:
        """The manifest of what the server made."""
        return cls(
            manifest_version=MANIFEST_VERSION,
            store_id=backup.store_id,
            revision=backup.revision,
            create_time=backup.create_time.ToJsonString(),
            format_version=backup.format_version,
            schema_version=backup.schema_version,
            remora_version=backup.version,
            duckdb_version=backup.duckdb_version,
            file=SNAPSHOT_NAME,
            bytes=backup.bytes,
            sha256=backup.sha256.hex(),
            rows=dict(sorted(backup.rows.items())),
        )

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest of a backup's folder. Raises ManifestError."""
        path = folder / FILE_NAME
        try:
            manifest = msgspec.json.decode(path.read_bytes(), type=cls)
        except OSError as error:
            raise ManifestError(f"{folder} is not a backup: {path} cannot be read: {error.strerror}") from error
        except msgspec.DecodeError as error:
            raise ManifestError(f"{path} is damaged, or of a newer version of Remora: {error}") from error
        if manifest.manifest_version != MANIFEST_VERSION or manifest.file != SNAPSHOT_NAME:
            raise ManifestError(f"{path} is of a newer version of Remora: upgrade Remora")
        return manifest

    def text(self) -> str:
        """The file's content."""
        return json.dumps(asdict(self), indent=2) + "\n"

    @property
    def messages(self) -> int:
        """How many messages it holds."""
        return self.rows.get("messages", 0)
