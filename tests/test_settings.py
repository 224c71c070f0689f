"""Where settings come from, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from remora.address import default_endpoint
from remora_server.settings import settings as settings_module
from remora_server.settings.settings import KEYS, Key, Loaded, SettingsError, describe, load

VALUES = {
    "listen": "localhost:7411",
    "health_listen": "127.0.0.1:9090",
    "data": "/d",
    "model_dir": "/m",
    "model": "none",
    "precision": "int8",
    "late": "off",
    "embedding_url": "http://host/v1",
    "embedding_model": "e5",
    "embedding_api_key_file": "/k",
    "embedding_api_key_variable": "E5_KEY",
    "embedding_models": "{large: {provider: openai, base_url: 'https://host/v1', model: ada, dimensions: 3}}",
    "tenant_models": "{acme: {messages: builtin}}",
    "chat_url": "http://host/v1",
    "chat_model": "scribe",
    "chat_api_key_file": "/k",
    "chat_api_key_variable": "CHAT_KEY",
    "chat_timeout": "5",
    "short_term_profile": "ballerina",
    "short_term_overflow": "trim",
    "short_term_max_tokens": "8000",
    "token_file": "/t",
    "tls_cert": "/c",
    "tls_key": "/k",
    "tls_client_ca": "/a",
    "tls_client_tenants": "/n",
    "socket_mode": "0660",
    "insecure": "true",
    "log_format": "json",
    "log_level": "debug",
    "transport": "grpcio",
    "threads": "3",
    "waiting_calls": "0",
    "connections": "7",
    "peer_connections": "6",
    "receive_limit_bytes": "1MiB",
    "default_timeout": "2.5",
    "window_bytes": "2 MiB",
    "record_bytes": "6MiB",
    "vector_bytes": "7MiB",
    "recall_bytes": "3GiB",
    "search_bytes": "5GiB",
    "receipt_days": "7",
    "segment_bytes": "4MiB",
    "queue_bytes": "5000000",
    "database_bytes": "60MiB",
    "kernels": "scalar",
    "shutdown_grace": "0",
}
"""A value of each setting that is not its default."""
NEEDED = {
    "embedding_url": ("embedding_model",),
    "embedding_model": ("embedding_url",),
    "embedding_api_key_file": ("embedding_url", "embedding_model"),
    "embedding_api_key_variable": ("embedding_url", "embedding_model"),
    "chat_url": ("chat_model",),
    "chat_model": ("chat_url",),
    "chat_api_key_file": ("chat_url", "chat_model"),
    "chat_api_key_variable": ("chat_url", "chat_model"),
    "short_term_overflow": ("short_term_profile",),
    "short_term_max_tokens": ("short_term_profile",),
    "tls_cert": ("tls_key", "listen"),
    "tls_key": ("tls_cert", "listen"),
    "tls_client_ca": ("tls_cert", "tls_key", "listen"),
    "tls_client_tenants": ("tls_client_ca", "tls_cert", "tls_key", "listen"),
}
"""Settings that others need beside them."""
TOGETHER = {name: value for name, value in VALUES.items() if not name.endswith("_key_variable")}


def file_of(directory: Path, content: str) -> str:
    path = directory / "remora.yaml"
    path.write_text(content, "utf-8")
    return str(path)


def value(loaded: Loaded, name: str) -> object:
    return getattr(loaded.settings, name)


def test_each_setting_has_a_value_to_try() -> None:
    assert {key.name for key in KEYS} == VALUES.keys()


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_a_flag_a_variable_and_a_line_of_the_file_mean_the_same(key: Key, tmp_path: Path) -> None:
    given = VALUES[key.name]
    beside = {name: VALUES[name] for name in NEEDED.get(key.name, ())}

    by_flag = load({key.name: given, **beside}, {})
    by_variable = load(beside, {key.variable: given})
    by_file = load(beside, {}, file_of(tmp_path, yaml.safe_dump({key.name: given})))

    assert value(by_flag, key.name) == value(by_variable, key.name) == value(by_file, key.name)
    assert value(by_flag, key.name) != value(load({}, {}), key.name)
    assert by_flag.origins[key.name] == key.flag
    assert by_variable.origins[key.name] == key.variable
    assert by_file.origins[key.name] == str(tmp_path / "remora.yaml")


def test_a_flag_overrides_the_environment_which_overrides_the_file(tmp_path: Path) -> None:
    config = file_of(tmp_path, "data: /file\nthreads: 1\nmodel: none\n")
    environment = {"REMORA_DATA": "/environment", "REMORA_THREADS": "2"}

    settings = load({"data": "/flag"}, environment, config).settings

    assert (settings.data, settings.threads, settings.model) == (Path("/flag"), 2, "none")


def test_a_variable_names_the_file_unless_a_flag_does(tmp_path: Path) -> None:
    config = file_of(tmp_path, "threads: 5")

    assert load({}, {"REMORA_CONFIG": config}).settings.threads == 5
    assert load({}, {"REMORA_CONFIG": "/not/there"}, config).settings.threads == 5


def test_the_defaults_follow_the_xdg_base_directories() -> None:
    loaded = load({}, {"XDG_DATA_HOME": "/share"})

    assert loaded.settings.data == Path("/share/remora")
    assert loaded.settings.model_dir == Path("/share/remora-models/all-MiniLM-L6-v2")
    assert set(loaded.origins.values()) == {"default"}


@pytest.mark.parametrize(
    ("memory", "recall", "allowed"),
    [(16_384, "128MiB", 512), (512, "128MiB", 128), (1_024, "128MiB", 256), (16_384, "0", 128), (64, "1MiB", 128)],
)
def test_a_search_may_take_a_quarter_of_the_memory_at_most(
    monkeypatch: pytest.MonkeyPatch, memory: int, recall: str, allowed: int
) -> None:
    monkeypatch.setattr(settings_module, "memory_bytes", lambda: memory << 20)

    assert load({"recall_bytes": recall}, {}).settings.search_bytes == allowed << 20


@pytest.mark.parametrize(("memory", "allowed"), [(16_384, 1_024), (1_024, 256), (64, 128)])
def test_vectors_may_take_a_quarter_of_the_memory_at_most(
    monkeypatch: pytest.MonkeyPatch, memory: int, allowed: int
) -> None:
    monkeypatch.setattr(settings_module, "memory_bytes", lambda: memory << 20)

    assert load({}, {}).settings.vector_bytes == allowed << 20


def test_server_and_client_meet_at_one_address() -> None:
    assert load({}, {}).settings.listen == (default_endpoint(),)
    assert load({}, {"REMORA_ENDPOINT": "unix:/e"}).settings.listen == ("unix:/e",)
    assert load({}, {"REMORA_ENDPOINT": "unix:/e", "REMORA_LISTEN": "unix:/l"}).settings.listen == ("unix:/l",)


@pytest.mark.parametrize("given", ["unix:/a, 127.0.0.1:1", ["unix:/a", "127.0.0.1:1"]])
def test_several_addresses_can_be_listened_on(given: object) -> None:
    assert load({"listen": given}, {}).settings.listen == ("unix:/a", "127.0.0.1:1")


def test_memory_alone_is_a_place_for_data() -> None:
    assert load({"data": ":memory:"}, {}).settings.data is None


def test_paths_may_begin_at_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/nora")

    assert load({"data": "~/d"}, {}).settings.data == Path("/home/nora/d")


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("listen", ""),
        ("listen", []),
        ("listen", ["unix:/s", 3]),
        ("data", ""),
        ("model", "gpt"),
        ("precision", "f16"),
        ("late", "sometimes"),
        ("insecure", "perhaps"),
        ("log_format", "xml"),
        ("log_level", "loud"),
        ("transport", "http"),
        ("connections", "0"),
        ("threads", "0"),
        ("threads", "many"),
        ("threads", "1.5"),
        ("waiting_calls", "-1"),
        ("receive_limit_bytes", "4MB"),
        ("window_bytes", "-1"),
        ("record_bytes", "-1"),
        ("window_bytes", "9" * 24),
        ("window_bytes", "9" * 5_000),
        ("recall_bytes", "16385GiB"),
        ("search_bytes", "1023KiB"),
        ("database_bytes", "0"),
        ("receive_limit_bytes", "0"),
        ("receive_limit_bytes", "2GiB"),
        ("segment_bytes", "1"),
        ("queue_bytes", "0"),
        ("threads", "1025"),
        ("waiting_calls", "9" * 5_000),
        ("default_timeout", "soon"),
        ("shutdown_grace", "-1"),
        ("kernels", "mmx"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(name: str, wrong: object) -> None:
    with pytest.raises(SettingsError, match=rf"--{name.replace('_', '-')}: {name} must"):
        load({name: wrong}, {})


def test_an_unknown_variable_is_an_error_that_names_it() -> None:
    with pytest.raises(SettingsError, match="no setting REMORA_DTA; did you mean REMORA_DATA"):
        load({}, {"REMORA_DTA": "/d"})


def test_an_unknown_key_of_the_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"remora\.yaml: there is no setting thread; did you mean threads"):
        load({}, {}, file_of(tmp_path, "thread: 4"))


def test_what_kubernetes_sets_for_a_service_of_this_name_is_no_setting() -> None:
    of_kubernetes = [
        "REMORA_SERVICE_HOST",
        "REMORA_SERVICE_PORT",
        "REMORA_SERVICE_PORT_GRPC",
        "REMORA_PORT",
        "REMORA_PORT_7000_TCP",
        "REMORA_PORT_7000_TCP_ADDR",
    ]

    assert load({}, dict.fromkeys(of_kubernetes, "x")) == load({}, {})


@pytest.mark.parametrize("content", ["- a", "text", "a: [", "\x00"])
def test_a_file_that_is_no_mapping_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    with pytest.raises(SettingsError, match=r"remora\.yaml is no") as refusal:
        load({}, {}, file_of(tmp_path, content))

    assert "\n" not in str(refusal.value)


def test_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(SettingsError, match="/not/there: No such file"):
        load({}, {}, "/not/there")


@pytest.mark.parametrize("content", ["", "threads:", "# nothing"])
def test_a_file_may_say_nothing(tmp_path: Path, content: str) -> None:
    assert load({}, {}, file_of(tmp_path, content)).settings == load({}, {}).settings


def test_what_is_described_is_a_file_of_the_same_settings(tmp_path: Path) -> None:
    loaded = load(TOGETHER, {})

    described = describe(loaded)

    assert load({}, {}, file_of(tmp_path, described)).settings == loaded.settings
    assert 'data: "/d"  # --data\n' in described


def test_the_defaults_are_described_too(tmp_path: Path) -> None:
    loaded = load({"data": ":memory:"}, {})

    assert load({}, {}, file_of(tmp_path, describe(loaded))).settings == loaded.settings
