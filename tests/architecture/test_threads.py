"""Nothing that goes on for long is started but by the modules that begin it anew where it fails."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / "server" / "remora_server"
ENGINE = ROOT / "rust"

STARTERS = {"Thread", "Timer", "ThreadPoolExecutor", "ProcessPoolExecutor", "Process", "start_new_thread", "fork"}
SUPERVISION = "supervision.py"
OTHERS = {
    "rpc/transport/workers.py": "an executor's threads outlive what they run, whatever it raises",
    "rpc/transport/gate.py": "an executor's thread, too",
    "embedding_models.py": "it loads a model, which the start waits for",
    "commands/output.py": "a note for a person at a terminal",
    "failpoints.py": "it kills the process",
}

APART = {"engine/flights.py": "one request to an endpoint"}
"""Short work, which is not restarted."""

SPAWN = re.compile(r"\b(?:tokio::|thread::)?(?:spawn\(|Builder::new\(\)\s*\.name\()|\.spawn\(|ThreadPoolBuilder")
TASKS = {
    "encoder/src/background.rs": "begun anew (`keep_thread`)",
    "journal/src/log.rs": "a panic stops the store as a failed write does",
    "recall/src/scoring/parallel.rs": "rayon's threads outlive what they run, and give a panic to whoever asked",
    "transport/src/server.rs": "begun anew (`keep_task`)",
    "transport/src/listener.rs": "a connection, which ends alone",
    "transport/src/call.rs": "a call, which is answered as INTERNAL",
    "transport/src/pace.rs": "a pause",
}


def started_in(source: str) -> Iterator[str]:
    """What a module calls, or derives from, that starts threads or processes."""
    for node in ast.walk(ast.parse(source)):
        used = [node.func] if isinstance(node, ast.Call) else node.bases if isinstance(node, ast.ClassDef) else []
        names = {getattr(one, "id", getattr(one, "attr", "")) for one in used}
        yield from names & STARTERS


@pytest.mark.slow
def test_threads_of_the_server_are_started_under_supervision() -> None:
    modules = {path.relative_to(SERVER).as_posix(): set(started_in(path.read_text())) for path in SERVER.rglob("*.py")}

    assert modules[SUPERVISION] == {"Thread"}
    assert {name for name, started in modules.items() if started} == {SUPERVISION, *OTHERS}


@pytest.mark.slow
def test_only_short_work_is_not_restarted() -> None:
    modules = {path.relative_to(SERVER).as_posix(): path.read_text() for path in SERVER.rglob("*.py")}

    assert {name for name, source in modules.items() if "run_apart(" in source} == {SUPERVISION, *APART}


def code_of(path: Path) -> str:
    """A file of the engine without its tests and comments."""
    return re.sub(r"//.*", "", path.read_text().partition("#[cfg(test)]\nmod tests {")[0])


def test_tasks_and_threads_of_the_engine_are_known() -> None:
    files = [path for path in ENGINE.glob("*/src/**/*.rs") if not {"tests", "tests.rs"} & set(path.parts)]
    spawning = {path.relative_to(ENGINE).as_posix() for path in files if SPAWN.search(code_of(path))}

    assert spawning == set(TASKS)


@pytest.mark.parametrize(
    ("file", "keeper"), [("transport/src/server.rs", "keep_task"), ("encoder/src/background.rs", "keep_thread")]
)
def test_what_goes_on_for_long_is_begun_anew(file: str, keeper: str) -> None:
    spawned = [match.end() for match in SPAWN.finditer(code_of(ENGINE / file)) if "spawn(" in match[0]]

    assert spawned
    assert all(keeper in code_of(ENGINE / file)[end : end + 150] for end in spawned)
