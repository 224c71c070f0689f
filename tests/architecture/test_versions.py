"""One version in all places that state one."""

import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def table(path: str) -> dict[str, Any]:
    return tomllib.loads((ROOT / path).read_text(encoding="utf-8"))


def test_both_packages_and_the_crate_have_one_version() -> None:
    crates: str = table("Cargo.toml")["workspace"]["package"]["version"]
    clients: str = table("clients/python/pyproject.toml")["project"]["version"]

    assert clients == crates


def test_the_server_wants_the_client_of_its_own_version() -> None:
    crates: str = table("Cargo.toml")["workspace"]["package"]["version"]
    wanted: list[str] = table("pyproject.toml")["project"]["dependencies"]

    assert f"remora=={crates}" in wanted
