"""One version in all places that state one."""

import json
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


def test_the_packages_of_npm_have_the_version_of_the_others() -> None:
    crates: str = table("Cargo.toml")["workspace"]["package"]["version"]
    manifests = sorted((ROOT / "clients" / "typescript" / "packages").glob("*/package.json"))

    assert len(manifests) > 1
    assert {json.loads(manifest.read_text("utf-8"))["version"] for manifest in manifests} == {crates}


FUZZ_ALONE = {"remora-fuzz", "arbitrary", "cc", "find-msvc-tools", "jobserver", "libfuzzer-sys", "shlex"}
"""The fuzzers' crate, and the fuzzer with what builds it."""
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"


def test_the_fuzzers_are_locked_to_the_crates_of_the_workspace() -> None:
    locked = {crate["name"]: crate for crate in table("fuzz/Cargo.lock")["package"]}
    versions = {(crate["name"], crate["version"]) for crate in table("Cargo.lock")["package"]}

    assert "remora-fuzzed" in locked
    assert [
        name for name, crate in locked.items() if (name, crate["version"]) not in versions and name not in FUZZ_ALONE
    ] == []
    assert {crate["source"] for crate in locked.values() if "source" in crate} == {REGISTRY}


def test_the_fuzzers_lock_file_has_all_that_their_crates_use() -> None:
    locked = {crate["name"]: crate for crate in table("fuzz/Cargo.lock")["package"]}
    ours = [name for name in locked if name.startswith("remora-") and name not in FUZZ_ALONE]

    assert ours
    for name in ours:
        manifest = table(f"rust/{name.removeprefix('remora-')}/Cargo.toml")
        assert set(manifest.get("dependencies", {})) <= set(locked[name].get("dependencies", []))
