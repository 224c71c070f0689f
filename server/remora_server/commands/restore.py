"""`remora restore`: makes a data directory from a backup. Needs no server."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from remora_server.commands.failures import CommandFailed
from remora_server.commands.manifest import Manifest, ManifestError
from remora_server.commands.numbers import counted
from remora_server.commands.output import diagnostics
from remora_server.commands.parsing import store_path
from remora_server.storage.database.directory import DirectoryError
from remora_server.storage.recovery.restoring import SnapshotError, require_whole, restore

PRIVATE = 0o077
"""Only the user of the command may read or write what it creates."""


def fill(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("backup", metavar="BACKUP", type=store_path, help="a folder that `remora backup` wrote")
    parser.add_argument(
        "--data",
        required=True,
        type=store_path,
        metavar="DIR",
        help="the data directory to make; it must be empty or not exist",
    )


def run(given: dict[str, Any]) -> None:
    """Restore."""
    os.umask(PRIVATE)
    if given["data"].resolve().is_relative_to(given["backup"].resolve()):
        raise CommandFailed(f"{given['data']} is in the backup: a backup is not written to")
    try:
        manifest = Manifest.read(given["backup"])
        _restore(given["backup"] / manifest.file, given["data"], manifest)
    except (ManifestError, SnapshotError, DirectoryError) as error:
        raise CommandFailed(str(error)) from error
    diagnostics().print(f"{given['data']}: revision {manifest.revision}, {counted(manifest.messages, 'message')}")


def _restore(snapshot: Path, directory: Path, manifest: Manifest) -> None:
    store_id = bytes.fromhex(manifest.store_id)
    require_whole(
        snapshot,
        size=manifest.bytes,
        sha256=bytes.fromhex(manifest.sha256),
        contents=(store_id.hex(), manifest.revision, manifest.rows),
        format_version=manifest.format_version,
        schema_version=manifest.schema_version,
    )
    restore(snapshot, directory, store_id=store_id, revision=manifest.revision)
