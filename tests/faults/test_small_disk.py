"""Tests on a small disk are not left out in silence: where it could be had, its lack is a failure."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.faults import small_disk
from tests.faults.small_disk import SmallDisk

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="namespaces that have mounts of their own are Linux's")


@pytest.mark.skipif(not small_disk.may_mount(), reason="whoever runs this may not mount file systems")
def test_a_user_who_may_mount_gets_a_disk_that_fills_up(tmp_path: Path) -> None:
    disk = SmallDisk(tmp_path / "disk", 1 << 20)

    disk.fill()

    assert disk.free() < small_disk.BLOCK
    disk.close()


@pytest.mark.parametrize(("may", "outcome"), [(True, pytest.fail.Exception), (False, pytest.skip.Exception)])
def test_a_disk_that_cannot_be_mounted_fails_the_tests_of_root_and_is_reported_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, may: bool, outcome: type[BaseException]
) -> None:
    monkeypatch.setattr(small_disk, "may_mount", lambda: may)
    refusing = tmp_path / "unshare"
    refusing.write_text("#!/bin/sh\necho not permitted >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    with pytest.raises(outcome, match="no file system can be mounted here: not permitted"):
        SmallDisk(tmp_path / "disk", 1 << 20)
