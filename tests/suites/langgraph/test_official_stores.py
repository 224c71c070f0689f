"""The store tests of langgraph-checkpoint-sqlite, as they are, against Remora: all but those of SQLite's insides."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from tests.faults.sidecar import ROOT
from tests.patience import PATIENCE
from tests.suites.conftest import Server

RELEASE = "langgraph-checkpoint-sqlite==3.1.2"
DIGEST = "sha256:4e3f376fa6f192d6ad2a1a4643b039986f1593552ef870e9e45281575de6fbf2"
HERE = Path(__file__).parent
KEPT = ROOT / ".cache" / "suites" / "sources"
FILES = ("tests/test_store.py", "tests/test_async_store.py", "tests/test_ttl.py")
TIMED = "tests/test_ttl.py::"
RETRIES = 3
TESTS = 150
"""How many tests there are at least."""


def _internal() -> dict[str, str]:
    """What the plugin says of tests that are not run; it needs a server to be imported."""
    text = (HERE / "remora_as_sqlite.py").read_text("utf-8")
    assigned = (node for node in ast.parse(text).body if isinstance(node, ast.Assign))
    [value] = [node.value for node in assigned if ast.unparse(node.targets[0]) == "INTERNAL"]
    found: dict[str, str] = ast.literal_eval(value)
    return found


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release's source, which the package index has under this digest."""
    KEPT.mkdir(parents=True, exist_ok=True)
    wanted = tmp_path_factory.mktemp("wanted") / "requirements.txt"
    wanted.write_text(f"{RELEASE} --hash={DIGEST}\n", "utf-8")
    options = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--require-hashes", "--quiet"]
    if not list(KEPT.glob("langgraph_checkpoint_sqlite-*.tar.gz")):
        pip = [sys.executable, "-m", "pip", "download", *options, "--dest", str(KEPT), "-r", str(wanted)]
        subprocess.run(pip, check=True, timeout=240)
    [archive] = KEPT.glob("langgraph_checkpoint_sqlite-*.tar.gz")
    unpacked = tmp_path_factory.mktemp("source")
    with tarfile.open(archive) as files:
        files.extractall(unpacked, filter="data")
    return next(unpacked.iterdir())


@pytest.mark.timeout(8 * PATIENCE)
def test_the_official_store_tests_pass(server: Server, source: Path) -> None:
    unchosen = " and ".join(f"not {name}" for name in _internal())

    ended = _run(server, source, "-k", unchosen, *FILES)
    retried = _retried(server, source, ended)

    assert retried.returncode == 0, retried.stdout[-8_000:] + retried.stderr[-2_000:]
    counts = {
        what: int(number) for number, what in re.findall(r"(\d+) (passed|deselected|skipped|xfailed)", ended.stdout)
    }
    assert set(counts) <= {"passed", "deselected"}
    assert counts["passed"] + counts["deselected"] + len(_failed(ended)) >= TESTS


def _run(server: Server, source: Path, *chosen: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "REMORA_TEST_ENDPOINT": server.endpoint, "REMORA_TEST_PATIENCE": str(PATIENCE)}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT / "clients" / "python"), str(HERE)])
    pytest_run = [sys.executable, "-m", "pytest", "-p", "remora_as_sqlite", "-o", "addopts=", "-o", "asyncio_mode=auto"]
    return subprocess.run(
        [*pytest_run, "-q", "-W", "ignore", *chosen],
        cwd=source,
        env=environment,
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE,
        check=False,
    )


def _retried(server: Server, source: Path, ended: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """The last run of the tests that failed. Those of `TIMED` sleep for seconds, and LangGraph lets them fail: it marks
    them as flaky, for a plugin of pytest that retries them.
    """
    for _ in range(RETRIES):
        failed = _failed(ended)
        if not failed or not all(name.startswith(TIMED) for name in failed):
            break
        ended = _run(server, source, *failed)
    return ended


def _failed(ended: subprocess.CompletedProcess[str]) -> list[str]:
    return re.findall(r"^FAILED (\S+)", ended.stdout, re.MULTILINE)
