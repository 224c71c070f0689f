"""`remora doctor` and `remora config`: which models embed, whether their endpoints do, and never a key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.engine.chat_server import ChatServer
from tests.engine.embedding_server import EmbeddingServer
from tests.engine.endpoint_server import error
from tests.patience import PATIENCE

from remora_server.engine.model_files import SHA256
from remora_server.main import main

KEY = "sk-never-shown"


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any], str]:
    """The exit code of the doctor, what it says for scripts, and all that it wrote."""
    code = main(["doctor", "--json", "--data=:memory:", "--listen=unix:/tmp/none", *arguments])
    written = capsys.readouterr()
    return code, json.loads(written.out), written.out + written.err


def endpoint(server: EmbeddingServer, *, key: Path) -> list[str]:
    return [f"--embedding-url={server.url}", "--embedding-model=letters", f"--embedding-api-key-file={key}"]


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("remora_server.commands.doctor.ASKING_SECONDS", PATIENCE)


@pytest.fixture
def key(tmp_path: Path) -> Path:
    file = tmp_path / "key"
    file.write_text(KEY)
    return file


def test_a_built_in_model_that_is_damaged_is_to_be_installed_where_it_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    models = tmp_path / "my models"
    models.mkdir()
    for name in SHA256:
        (models / name).write_bytes(b"damaged")

    code, said, _ = report(capsys, "--model=builtin", f"--model-dir={models}")

    [finding] = said["findings"]
    assert code == 1
    assert "is not the published file" in finding["what"]
    assert finding["remedy"] == f"`remora model install --dir '{models}'`"


def test_an_endpoint_that_embeds_is_as_it_should_be(capsys: pytest.CaptureFixture[str], key: Path) -> None:
    with EmbeddingServer(dimension=12) as server:
        code, said, written = report(capsys, *endpoint(server, key=key))
        assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"

    assert (code, said["findings"]) == (0, [])
    model = said["model openai"]
    assert (model["url"], model["model"], model["vectors"], model["dimension"]) == (
        server.url,
        "letters",
        "letters",
        12,
    )
    assert KEY not in written


def test_an_endpoint_that_refuses_or_is_not_there_is_found(capsys: pytest.CaptureFixture[str], key: Path) -> None:
    with EmbeddingServer() as server:
        server.behaviour = lambda _asked: error(401, "invalid_api_key")
        refused = report(capsys, *endpoint(server, key=key))
    gone = report(capsys, *endpoint(server, key=key))

    assert [finding["part"] for finding in refused[1]["findings"]] == ["model openai"]
    assert "answered 401 (invalid_api_key)" in refused[1]["findings"][0]["what"]
    assert "no connection" in gone[1]["findings"][0]["what"]
    assert {refused[0], gone[0]} == {1}
    assert KEY not in refused[2] + gone[2]


def test_a_key_that_is_not_set_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--embedding-url=http://127.0.0.1:1/v1", "--embedding-model=m", "--embedding-api-key-variable=NO_KEY"]

    code, said, _ = report(capsys, *arguments)

    assert code == 1
    assert "NO_KEY, is not set" in said["findings"][0]["what"]


def test_models_of_tenants_and_those_of_nobody_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    spare = {"spare": {"provider": "openai", "base_url": "http://127.0.0.1:1", "model": "m"}}
    tenants = {"acme": {"messages": "none"}}

    code, said, _ = report(
        capsys, "--model=none", f"--embedding-models={json.dumps(spare)}", f"--tenant-models={json.dumps(tenants)}"
    )

    assert (code, said["model"]["tenants"]) == (0, {"acme": "none"})
    assert "the model spare embeds nothing" in [note["what"] for note in said["notes"]]


def test_the_settings_show_where_a_key_is_and_not_the_key(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LETTERS_KEY", KEY)
    models = {
        "letters": {"provider": "openai", "base_url": "http://h/v1", "model": "m", "api_key_variable": "LETTERS_KEY"}
    }

    assert main(["config", f"--embedding-models={json.dumps(models)}", "--model=letters"]) == 0

    written = capsys.readouterr().out
    assert "LETTERS_KEY" in written
    assert KEY not in written


def chat(server: ChatServer, *, key: Path) -> list[str]:
    return [f"--chat-url={server.url}", "--chat-model=scribe", f"--chat-api-key-file={key}", "--model=none"]


def test_a_chat_model_that_answers_is_as_it_should_be(capsys: pytest.CaptureFixture[str], key: Path) -> None:
    with ChatServer() as server:
        code, said, written = report(capsys, *chat(server, key=key))
        assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"

    assert (code, said["findings"]) == (0, [])
    assert said["chat model"] == {"url": server.url, "model": "scribe"}
    assert KEY not in written


def test_a_chat_model_that_refuses_or_has_no_key_is_found(capsys: pytest.CaptureFixture[str], key: Path) -> None:
    with ChatServer() as server:
        server.behaviour = lambda _asked: error(401, "invalid_api_key")
        refused = report(capsys, *chat(server, key=key))
    without = [f"--chat-url={server.url}", "--chat-model=scribe", "--chat-api-key-variable=NO_SUCH_KEY", "--model=none"]
    nameless = report(capsys, *without)

    assert refused[0] == nameless[0] == 1
    assert "answered 401 (invalid_api_key)" in refused[1]["findings"][0]["what"]
    assert "NO_SUCH_KEY" in nameless[1]["findings"][0]["what"]
    assert KEY not in refused[2]
