"""What mypy and pyright say of users' code, in their strict modes, with the real types of openai's package."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

ROOT = Path(__file__).resolve().parents[2]
CASES = Path(__file__).parent / "typed"
CLIENT = ROOT / "clients" / "python"
PYRIGHT = ROOT / "node_modules" / ".bin" / "pyright"

pytestmark = pytest.mark.slow

Errors: TypeAlias = "dict[str, dict[int, str]]"
"""The errors of files, by their names and by lines."""


def mypy(folder: Path, files: set[str]) -> Errors:
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
        [*command, f"--cache-dir={folder / 'cache'}", "--hide-error-context", "--no-pretty", *sorted(files)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MYPYPATH": str(CLIENT)},
        cwd=folder,
    )
    assert said.returncode in (0, 1), said.stderr or said.stdout
    errors: Errors = defaultdict(dict)
    for name, line, text in re.findall(r"^([^:]+):(\d+): error: (.*)$", said.stdout, re.MULTILINE):
        errors[name][int(line)] = text
    assert set(errors) <= files
    return errors


def pyright(folder: Path, files: set[str]) -> Errors:
    settings = {"include": sorted(files), "typeCheckingMode": "strict", "extraPaths": [str(CLIENT)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), "utf-8")
    command = [str(PYRIGHT), "--project", str(folder), "--pythonpath", sys.executable, "--outputjson"]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    assert said.returncode in (0, 1), said.stderr or said.stdout
    found = json.loads(said.stdout)
    assert found["summary"]["filesAnalyzed"] == len(files)
    errors: Errors = defaultdict(dict)
    for problem in found["generalDiagnostics"]:
        if problem["severity"] == "error":
            errors[Path(problem["file"]).name][problem["range"]["start"]["line"] + 1] = problem["message"]
    assert set(errors) <= files
    return errors


@pytest.fixture(scope="module", params=[mypy, pyright], ids=["mypy", "pyright"])
def errors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Errors:
    """What a checker says of all files at once: most of its time goes into what they all import."""
    if request.param is pyright and not (PYRIGHT.exists() and shutil.which("node")):
        pytest.skip("pyright is not installed: npm ci")
    folder = tmp_path_factory.mktemp("typed")
    files = {path.name: path.read_text("utf-8") for path in (CASES / "accepted.py", CASES / "refused.py")}
    example = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)[0]
    files["example.py"] = f"from openai import OpenAI\n\nllm = OpenAI()\n{example}"
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    check: Callable[[Path, set[str]], Errors] = request.param
    return check(folder, set(files))


def test_a_users_code_holds(errors: Errors) -> None:
    assert errors["accepted.py"] == {}


def test_the_readmes_example_holds(errors: Errors) -> None:
    assert errors["example.py"] == {}


def test_mistakes_are_refused_where_they_are(errors: Errors) -> None:
    lines = (CASES / "refused.py").read_text("utf-8").splitlines()
    marked = {number for number, line in enumerate(lines, 1) if line.endswith("# refused")}

    assert len(marked) > 20
    assert set(errors["refused.py"]) == marked
