"""What mypy and pyright say of users' code, in their strict modes, with the real types of openai's package."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CASES = Path(__file__).parent / "typed"
CLIENT = ROOT / "clients" / "python"
PYRIGHT = ROOT / "node_modules" / ".bin" / "pyright"

pytestmark = pytest.mark.slow

Checker = Callable[[Path, Path], dict[int, str]]
"""The errors of a file, by line, found in a folder for files of its own."""


def mypy(file: Path, folder: Path) -> dict[int, str]:
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--follow-imports=silent",
        "--no-error-summary",
    ]
    said = subprocess.run(
        [*command, f"--cache-dir={folder}", "--hide-error-context", "--no-pretty", str(file)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MYPYPATH": str(CLIENT)},
        cwd=folder,
    )
    assert said.returncode in (0, 1), said.stderr or said.stdout
    return {int(line): text for line, text in re.findall(r"^[^:]+:(\d+): error: (.*)$", said.stdout, re.MULTILINE)}


def pyright(file: Path, folder: Path) -> dict[int, str]:
    copied = folder / file.name
    copied.write_text(file.read_text("utf-8"), "utf-8")
    settings = {"include": [file.name], "typeCheckingMode": "strict", "extraPaths": [str(CLIENT)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
    command = [str(PYRIGHT), "--project", str(folder), "--pythonpath", sys.executable, "--outputjson"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode in (0, 1), said.stderr or said.stdout
    found = json.loads(said.stdout)
    assert found["summary"]["filesAnalyzed"] == 1
    return {
        problem["range"]["start"]["line"] + 1: problem["message"]
        for problem in found["generalDiagnostics"]
        if problem["severity"] == "error"
    }


@pytest.fixture(params=[mypy, pyright], ids=["mypy", "pyright"])
def checker(request: pytest.FixtureRequest) -> Checker:
    if request.param is pyright and not (PYRIGHT.exists() and shutil.which("node")):
        pytest.skip("pyright is not installed: npm ci")
    chosen: Checker = request.param
    return chosen


def test_a_users_code_holds(checker: Checker, tmp_path: Path) -> None:
    assert checker(CASES / "accepted.py", tmp_path) == {}


def test_the_readmes_example_holds(checker: Checker, tmp_path: Path) -> None:
    example = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)[0]
    file = tmp_path / "example.py"
    file.write_text(f"from openai import OpenAI\n\nllm = OpenAI()\n{example}", "utf-8")

    assert checker(file, tmp_path) == {}


def test_mistakes_are_refused_where_they_are(checker: Checker, tmp_path: Path) -> None:
    lines = (CASES / "refused.py").read_text("utf-8").splitlines()
    marked = {number for number, line in enumerate(lines, 1) if line.endswith("# refused")}

    assert len(marked) > 20
    assert set(checker(CASES / "refused.py", tmp_path)) == marked
