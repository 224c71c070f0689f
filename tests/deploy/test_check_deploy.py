"""`make check-deploy` says what it does not check, and fails where a tool finds a fault."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.deploy.dockerfile import ROOT

CHECKED = ROOT / ".cache" / "deploy" / "bin"
FILES = ROOT / "deploy" / "kubernetes"


def checked(path: str) -> subprocess.CompletedProcess[str]:
    """What the check says with these directories of programs."""
    command = [str(ROOT / "tools" / "check_deploy.sh")]
    return subprocess.run(command, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False)


def test_a_tool_that_is_not_installed_is_named_with_what_is_not_checked(tmp_path: Path) -> None:
    for program in ("bash", "dirname"):
        found = shutil.which(program)
        assert found
        (tmp_path / program).symlink_to(found)

    done = checked(str(tmp_path))

    assert done.returncode == 0
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == [
        "check-deploy skips the Dockerfile",
        "check-deploy skips the manifests' schemas",
        "check-deploy skips the charts",
    ]


@pytest.mark.slow
@pytest.mark.skipif(not CHECKED.exists(), reason="make check-deploy installs what it checks with")
def test_a_manifest_with_an_unknown_field_is_refused(tmp_path: Path) -> None:
    text = (FILES / "sidecar.yaml").read_text("utf-8")
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(text.replace("restartPolicy: Always", "restartsPolicy: Always"), "utf-8")

    codes = [
        subprocess.run([CHECKED / "kubernetes-validate", "--strict", file], check=False, capture_output=True).returncode
        for file in (FILES / "sidecar.yaml", wrong)
    ]

    assert codes == [0, 1]
