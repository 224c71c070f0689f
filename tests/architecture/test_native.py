"""Who may import the Rust engine, and which of its crates knows Python: import-linter sees nothing of `_native`."""

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SERVER = ROOT / "server" / "remora_server"
NATIVE = "remora_server._native"
ALLOWED = {"engine", "storage"}
TRANSPORT = {Path("rpc") / "transport" / name for name in ("native_transport.py", "tls.py")}


def imported_names(source: str) -> Iterator[str]:
    """Yield the full name of everything that a module imports, those of `from` with their module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports_native(path: Path) -> bool:
    names = imported_names(path.read_text(encoding="utf-8"))
    return any(name == NATIVE or name.startswith(f"{NATIVE}.") for name in names)


@pytest.mark.slow
def test_only_engine_storage_and_the_transport_import_the_rust_engine() -> None:
    importers = {path.relative_to(SERVER) for path in SERVER.rglob("*.py") if imports_native(path)}

    assert importers, "nothing imports the engine: the guard looks at the wrong place"
    assert {path for path in importers if path.parts[0] not in ALLOWED} == TRANSPORT


def test_the_client_imports_no_engine() -> None:
    modules = list((ROOT / "clients" / "python" / "remora").rglob("*.py"))

    assert modules
    assert [path for path in modules if imports_native(path)] == []


def test_one_crate_alone_knows_python() -> None:
    manifests = [tomllib.loads(path.read_text(encoding="utf-8")) for path in (ROOT / "rust").glob("*/Cargo.toml")]
    knowing = [manifest["package"]["name"] for manifest in manifests if "pyo3" in manifest.get("dependencies", {})]

    assert len(manifests) > 1
    assert knowing == ["remora-native"]
