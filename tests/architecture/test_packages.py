"""What a package index shows of the two packages."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("file", ["pyproject.toml", "clients/python/pyproject.toml"])
def test_a_package_describes_itself(file: str) -> None:
    project = tomllib.loads((ROOT / file).read_text("utf-8"))["project"]
    page = ((ROOT / file).parent / project["readme"]).read_text("utf-8")

    assert page.startswith(f"# {project['name']}\n")
    assert "pip install" in page
    assert "](" not in page, "an index shows no files that a link could lead to"
    assert set(project["urls"]) >= {"Homepage", "Documentation", "Changelog"}
    assert project["description"]
    assert project["keywords"]
    assert "Typing :: Typed" in project["classifiers"]
    assert (
        f"Programming Language :: Python :: {project['requires-python'].removeprefix('>=')}" in project["classifiers"]
    )
