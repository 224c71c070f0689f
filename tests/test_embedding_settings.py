"""The settings of embedding: what they come to, and what is refused by name."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from remora_server.embedding_models import Models, ModelsError
from remora_server.settings.settings import Loaded, SettingsError, describe, load

URL = "https://host/v1"
LARGE = {"provider": "openai", "base_url": URL, "model": "ada"}


def settings(**flags: object) -> Loaded:
    return load(flags, {})


def test_the_default_is_the_built_in_model() -> None:
    models = settings().settings.models

    assert (models.default, models.tenants, models.endpoints) == ("builtin", {}, {})


def test_one_endpoint_for_all_takes_two_settings() -> None:
    models = load({}, {"REMORA_EMBEDDING_URL": f"{URL}/", "REMORA_EMBEDDING_MODEL": "e5"}).settings.models

    assert models.default == "openai"
    endpoint = models.endpoints["openai"]
    assert (endpoint.base_url, endpoint.model, endpoint.vectors, endpoint.dimensions) == (URL, "e5", "e5", None)
    assert settings(model="none", embedding_url=URL, embedding_model="e5").settings.models.default == "none"


def test_tenants_have_models_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "remora.yaml"
    file.write_text(
        """
        model: large
        embedding_models:
          large: {provider: openai, base_url: "https://host/v1", model: ada, dimensions: 256, batch_texts: 8}
          quiet: {provider: none}
          local: {provider: builtin}
        tenant_models:
          acme: {messages: quiet}
          beta: {messages: builtin}
          gamma: {messages: local}
          delta: {}
        """
    )

    models = load({}, {}, str(file)).settings.models

    assert models.default == "large"
    assert models.tenants == {"acme": "none", "beta": "builtin", "gamma": "builtin"}
    assert models.names() == {"large", "none", "builtin"}
    assert (models.endpoints["large"].vectors, models.endpoints["large"].batch_texts) == ("ada/256", 8)


def test_only_endpoints_that_embed_something_are_in_use() -> None:
    other = {**LARGE, "model": "e5"}
    models = settings(embedding_models={"large": LARGE, "spare": other}, model="large").settings.models

    assert set(models.endpoints_in_use()) == {"large"}


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        ({"model": "gpt"}, "--model: model must name one of auto, builtin, none, not 'gpt'"),
        ({"embedding_url": URL}, "--embedding-url: embedding_url needs both"),
        ({"embedding_model": "e5"}, "--embedding-model: embedding_model needs both"),
        ({"embedding_api_key_file": "/k"}, "embedding_api_key_file needs both"),
        ({"embedding_url": "host/v1", "embedding_model": "m"}, "embedding_url must be a URL"),
        ({"embedding_url": "http://me:secret@host/v1", "embedding_model": "m"}, "must have no user and password"),
        ({"embedding_url": "http://host/v1?key=1", "embedding_model": "m"}, "without a query"),
        ({"embedding_api_key_variable": "REMORA_KEY"}, "embedding_api_key_variable must be the name of a variable"),
        ({"embedding_api_key_variable": "a b"}, "embedding_api_key_variable must be the name of a variable"),
        ({"embedding_models": "x"}, "embedding_models must be a mapping of models by name"),
        ({"embedding_models": "{a: ["}, "embedding_models must be a mapping of models by name, in YAML"),
        ({"embedding_models": {"a": 3}}, "must be a mapping of the options of a"),
        ({"embedding_models": {"none": LARGE}}, "must have names other than"),
        ({"embedding_models": {"a b": LARGE}}, "must have names other than"),
        ({"embedding_models": {"a": {}}}, "a.provider must be one of builtin, openai, none"),
        ({"embedding_models": {"a": {"provider": "openai"}}}, "a.base_url is required"),
        ({"embedding_models": {"a": {"provider": "openai", "base_url": URL}}}, "a.model is required"),
        ({"embedding_models": {"a": {"provider": "none", "model": "m"}}}, "provider none has no options, but model"),
        ({"embedding_models": {"a": {**LARGE, "modell": 1}}}, "a: there is no option modell; did you mean model?"),
        ({"embedding_models": {"a": {**LARGE, "dimensions": 0}}}, "a.dimensions must be a whole number from 1 to 4096"),
        ({"embedding_models": {"a": {**LARGE, "dimensions": True}}}, "a.dimensions must be a whole number"),
        ({"embedding_models": {"a": {**LARGE, "timeout": 0}}}, "a.timeout must be a number of seconds"),
        ({"embedding_models": {"a": {**LARGE, "encoding": "p50k"}}}, "a.encoding must be one of"),
        ({"embedding_models": {"a": {**LARGE, "api_key": "sk-1"}}}, "a: there is no option api_key"),
        ({"embedding_models": {"a": {**LARGE, "headers": {"Authorization": "x"}}}}, "must not hold authorization"),
        ({"embedding_models": {"a": {**LARGE, "headers": {"x y": "z"}}}}, "must be the name of a header"),
        ({"embedding_models": {"a": {**LARGE, "headers": {"x": "a\nb"}}}}, "printable ASCII for x"),
        (
            {"embedding_models": {"a": {**LARGE, "api_key_file": "/k", "api_key_variable": "K"}}},
            "api_key_file and api_key_variable are set",
        ),
        ({"embedding_models": {"a": LARGE, "b": LARGE}}, "a and b would both make vectors called 'ada'"),
        (
            {"embedding_models": {"openai": LARGE}, "embedding_url": URL, "embedding_model": "m"},
            "embedding_url defines the model openai",
        ),
        (
            {"embedding_models": {"a": LARGE}, "embedding_url": URL, "embedding_model": "ada"},
            "would both make vectors called 'ada'",
        ),
        ({"tenant_models": {"acme": "none"}}, "must be a mapping of the collections of acme"),
        ({"tenant_models": {"t\xe9n": {"messages": "none"}}}, "'t\xe9n' is not printable ASCII"),
        ({"tenant_models": {"acme": {"facts": "none"}}}, "acme: there is no collection facts"),
        ({"tenant_models": {"acme": {"message": "none"}}}, "did you mean messages?"),
        ({"tenant_models": {"acme": {"messages": "x"}}}, "must name one of builtin, none for acme, not 'x'"),
        ({"tenant_models": {"acme": {"messages": 3}}}, "acme.messages must be text"),
    ],
)
def test_what_cannot_be_meant_is_named(flags: dict[str, object], complaint: str) -> None:
    with pytest.raises(SettingsError) as raised:
        settings(**flags)

    assert complaint in str(raised.value)


@pytest.mark.parametrize(
    ("url", "key", "expected"),
    [
        ("http://embeddings:8080/v1", "/k", True),
        ("https://embeddings/v1", "/k", False),
        ("http://127.0.0.1:8080", "/k", False),
        ("http://[::1]/v1", "/k", False),
        ("http://embeddings/v1", None, False),
    ],
)
def test_a_key_that_leaves_the_machine_in_clear_is_noticed(url: str, key: str | None, expected: bool) -> None:
    models = {"a": {**LARGE, "base_url": url, "api_key_file": key}}

    assert settings(embedding_models=models).settings.models.endpoints["a"].is_open_to_others is expected


def test_a_key_is_never_shown(tmp_path: Path) -> None:
    models = {"large": {**LARGE, "api_key_variable": "LARGE_KEY"}}

    loaded = load({"embedding_models": json.dumps(models), "model": "large"}, {"LARGE_KEY": "sk-secret"})

    assert loaded.settings.models.endpoints["large"].api_key == "sk-secret"
    assert "sk-secret" not in describe(loaded)
    assert "sk-secret" not in repr(loaded)
    assert "LARGE_KEY" in describe(loaded)


def test_a_key_that_is_not_there_is_told_where_it_is_needed() -> None:
    models = {"large": {**LARGE, "api_key_variable": "LARGE_KEY"}}

    Models.of(settings(embedding_models=models, model="none").settings, None)
    with pytest.raises(ModelsError, match="LARGE_KEY, the variable with the key of the model large, is not set"):
        Models.of(settings(embedding_models=models, model="large").settings, None)


def test_models_that_cannot_be_loaded_are_told_when_they_are_waited_for() -> None:
    models = {"large": {**LARGE, "api_key_variable": "LARGE_KEY"}}

    loaded = Models.begin(settings(embedding_models=models, model="large").settings)

    with pytest.raises(ModelsError, match="LARGE_KEY"):
        loaded()


def test_the_loading_of_models_begins_before_the_rest_of_the_server_is_imported() -> None:
    program = "import json, sys, remora_server.commands.serve; print(json.dumps([*sys.modules]))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    imported = {*json.loads(done.stdout)}

    assert "remora_server.embedding_models" in imported
    assert not {"remora_server.application", "duckdb"} & imported
