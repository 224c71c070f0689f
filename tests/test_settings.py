"""Where settings come from, and what is refused."""

from __future__ import annotations

import os
import pwd
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from remora.address import default_endpoint
from remora_server.settings import settings as settings_module
from remora_server.settings.memory import batch_bytes, memory_bytes, passing_bytes
from remora_server.settings.settings import KEYS, Key, Loaded, Settings, SettingsError, describe, load

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
    "memory_limit": "12345MiB",
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


@pytest.mark.parametrize("content", ["data: /a\nthreads: 1\ndata: /b\n", "{data: /a, data: /b}"])
def test_a_file_that_names_a_setting_twice_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(SettingsError, match="is not YAML: data is there twice"):
        load({}, {}, file_of(tmp_path, content))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("[" * 3_000, "it is nested too deeply"),
        ("data: 2020-99-99", "month must be in 1..12"),
        ("threads: !!int x", "invalid literal"),
    ],
)
def test_a_file_that_python_cannot_read_is_named(tmp_path: Path, content: str, why: str) -> None:
    config = file_of(tmp_path, content)

    with pytest.raises(SettingsError, match=f"^{re.escape(config)} is not YAML: {re.escape(why)}"):
        load({}, {}, config)


def test_the_defaults_follow_the_xdg_base_directories() -> None:
    loaded = load({}, {"XDG_DATA_HOME": "/share"})

    assert loaded.settings.data == Path("/share/remora")
    assert loaded.settings.model_dir == Path("/share/remora-models/all-MiniLM-L6-v2")
    assert set(loaded.origins.values()) == {"default", "fitted to memory_limit"}


@pytest.mark.parametrize("share", ["", "share", "./share", "~/share"])
def test_a_data_directory_of_xdg_that_is_not_absolute_is_ignored(share: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ana")

    assert load({}, {"XDG_DATA_HOME": share}).settings.data == Path("/home/ana/.local/share/remora")


def test_an_empty_home_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Path(pwd.getpwuid(os.getuid()).pw_dir)
    monkeypatch.setenv("HOME", "")

    loaded = load({"model_dir": "~"}, {"HOME": ""})

    assert loaded.settings.data == home / ".local" / "share" / "remora"
    assert loaded.settings.model_dir == home


def test_an_empty_home_of_a_user_without_an_entry_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "")
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)

    with pytest.raises(SettingsError, match="names a home directory that is not known: '~/"):
        load({}, {"HOME": ""})


def _bounds(settings: Settings) -> list[int]:
    names = ("window_bytes", "record_bytes", "queue_bytes", "database_bytes", "vector_bytes", "search_bytes")
    return [getattr(settings, name) >> 20 for name in names]


def test_with_much_memory_every_bound_has_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_module, "memory_bytes", lambda: 16 << 30)

    settings = load({}, {}).settings

    assert (settings.memory_limit, _bounds(settings)) == (16 << 30, [48, 32, 16, 64, 1024, 512])
    assert settings.recall_bytes == 128 << 20


SIZES = st.dictionaries(
    st.sampled_from(["window_bytes", "record_bytes", "vector_bytes", "recall_bytes", "search_bytes"]),
    st.integers(1, 2_000).map(lambda size: f"{size}MiB"),
)


@given(limit=st.integers(128, 8_192), model=st.sampled_from(["none", "builtin"]), given_sizes=SIZES)
def test_the_bounds_and_the_process_fit_into_a_limit_that_is_accepted(
    limit: int, model: str, given_sizes: dict[str, str]
) -> None:
    try:
        settings = load({"memory_limit": f"{limit}MiB", "model": model, **given_sizes}, {}).settings
    except SettingsError as refused:
        least = re.search(r"must be at least (\d+) MiB", str(refused))
        assert least
        assert int(least[1]) > limit
        settings = load({"memory_limit": f"{least[1]}MiB", "model": model, **given_sizes}, {}).settings

    searches = max(settings.recall_bytes, settings.search_bytes) - settings.search_bytes
    taken = sum(_bounds(settings)) + (searches >> 20) + (160 if model == "builtin" else 96)
    assert taken <= settings.memory_limit >> 20
    assert {name: getattr(settings, name) for name in given_sizes} == {
        name: int(size.removesuffix("MiB")) << 20 for name, size in given_sizes.items()
    }


@pytest.mark.parametrize(
    ("flags", "least"),
    [
        ({"memory_limit": "178MiB", "model": "none"}, "179 MiB for what is set"),
        ({"memory_limit": "64MiB", "model": "none"}, "179 MiB for what is set"),
        ({"memory_limit": 0, "model": "none"}, "179 MiB for what is set"),
        ({"memory_limit": "242MiB", "model": "builtin"}, "243 MiB for what is set, with the built-in model"),
        ({"memory_limit": "512MiB", "model": "none", "vector_bytes": "500MiB"}, "646 MiB for what is set"),
        ({"memory_limit": "512MiB", "model": "none", "recall_bytes": "500MiB"}, "646 MiB for what is set"),
    ],
)
def test_a_limit_that_cannot_be_kept_is_refused_with_the_least(flags: dict[str, str], least: str) -> None:
    with pytest.raises(SettingsError, match=f"^--memory-limit: memory_limit must be at least {least}$"):
        load(flags, {})


def test_with_little_memory_of_the_machine_everything_has_the_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_module, "memory_bytes", lambda: 64 << 20)

    assert _bounds(load({}, {}).settings) == [4, 4, 2, 32, 8, 8]


def test_what_is_set_stays_and_the_others_have_the_rest() -> None:
    flags = {"memory_limit": "1GiB", "model": "none", "vector_bytes": "600MiB", "window_bytes": "1MiB"}

    settings = load(flags, {}).settings

    assert _bounds(settings)[:1] == [1]
    assert settings.vector_bytes == 600 << 20
    assert sum(_bounds(settings)) <= 0.7 * (1024 - 96) + 12


@pytest.mark.parametrize(
    ("limit", "receive_limit", "passing"),
    [(256, 4, 16), (1_024, 4, 64), (8_192, 4, 256), (64, 1, 16), (256, 32, 128)],
)
def test_requests_and_replies_under_way_take_a_part_of_the_memory(limit: int, receive_limit: int, passing: int) -> None:
    assert passing_bytes(limit << 20, receive_limit << 20) == passing << 20


@pytest.mark.parametrize(
    ("limit", "receive_limit", "largest"),
    [(256, 4, 4), (1_024, 4, 16), (2_304, 4, 36), (65_536, 4, 36), (65_536, 100, 100), (256, 32, 32)],
)
def test_the_largest_batch_is_fitted_to_the_memory(limit: int, receive_limit: int, largest: int) -> None:
    assert batch_bytes(limit << 20, receive_limit << 20) == largest << 20


@pytest.mark.parametrize(
    ("own", "file"),
    [
        ("0::/", "memory.max"),  # in a container, where the own group is the root
        ("0::/system.slice/remora.service", "system.slice/remora.service/memory.max"),
        ("0::/system.slice/remora.service", "system.slice/memory.max"),  # the group above bounds it, too
        ("8:pids:/\n4:memory:/docker/12ab", "memory/memory.limit_in_bytes"),  # version 1, seen from inside
        ("8:pids:/\n4:memory:/docker/12ab", "memory/docker/12ab/memory.limit_in_bytes"),
    ],
)
def test_the_limit_of_a_control_group_that_holds_the_process_is_the_memory(tmp_path: Path, own: str, file: str) -> None:
    groups = tmp_path / "groups"
    (groups / file).parent.mkdir(parents=True)
    (groups / file).write_text("268435456\n")

    assert memory_bytes(groups, _own_groups(tmp_path, own)) == 256 << 20


def test_the_least_limit_of_the_groups_counts(tmp_path: Path) -> None:
    for file, limit in {"a/b/memory.max": 3 << 20, "a/memory.max": 2 << 20, "memory.max": 4 << 20}.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(f"{limit}\n")

    assert memory_bytes(tmp_path, _own_groups(tmp_path, "0::/a/b")) == 2 << 20


def test_without_a_limit_of_a_control_group_the_memory_is_the_machines(tmp_path: Path) -> None:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    (tmp_path / "memory.max").write_text("max\n")

    assert memory_bytes(tmp_path, _own_groups(tmp_path, "0::/")) == machine
    assert memory_bytes(tmp_path / "absent", tmp_path / "absent") == machine


def _own_groups(directory: Path, lines: str) -> Path:
    """A file like /proc/self/cgroup."""
    file = directory / "own"
    file.write_text(f"{lines}\n")
    return file


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
        ("listen", "nowhere"),
        ("listen", "http://localhost:50051"),
        ("listen", "[::1:50051"),
        ("data", ""),
        ("data", ":memory"),
        ("data", "/data-\udcff"),
        ("data", "/da\0ta"),
        ("data", "/who?/data"),
        ("data", "/back\\slash"),
        ("model_dir", "/mo\0del"),
        ("token_file", "/tok\0ens"),
        ("listen", "unix:/s\0"),
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
        ("default_timeout", "0"),
        ("default_timeout", "86401"),
        ("default_timeout", "9" * 500),
        ("shutdown_grace", "-1"),
        ("shutdown_grace", "86401"),
        ("listen", "127.0.0.1:65536"),
        ("health_listen", "127.0.0.1:65536"),
        ("listen", "unix:/s,[::1]:" + "9" * 5_000),
        ("kernels", "mmx"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(name: str, wrong: object) -> None:
    with pytest.raises(SettingsError, match=rf"--{name.replace('_', '-')}: {name} must"):
        load({name: wrong}, {})


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("threads: five", "threads must be a whole number from 1 to 1024, not 'five'"),
        ("threads: 1.5", "threads must be a whole number from 1 to 1024, not 1.5"),
        ("insecure: perhaps", "insecure must be true or false, not 'perhaps'"),
        (
            "memory_limit: 5 gallons",
            "memory_limit must be a number of bytes, such as 1048576, 64MiB or 1GiB, not '5 gallons'",
        ),
        ("default_timeout: 5s", "default_timeout must be a number of seconds, not '5s'"),
        ("chat_timeout: 86401", "chat_timeout must be a number of seconds, above 0 and at most 600, not 86401"),
        ("shutdown_grace: 86401", "shutdown_grace must be a number of seconds, at most 86,400, not 86401"),
    ],
)
def test_a_value_that_cannot_be_used_is_shown(tmp_path: Path, content: str, told: str) -> None:
    with pytest.raises(SettingsError) as refusal:
        load({}, {}, file_of(tmp_path, content))

    assert str(refusal.value).endswith(f"remora.yaml: {told}")


def test_an_unknown_variable_is_an_error_that_names_it() -> None:
    with pytest.raises(SettingsError, match="no setting REMORA_DTA; did you mean REMORA_DATA"):
        load({}, {"REMORA_DTA": "/d"})


def test_an_unknown_key_of_the_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"remora\.yaml: there is no setting thread; did you mean threads"):
        load({}, {}, file_of(tmp_path, "thread: 4"))


@pytest.mark.parametrize("service", ["REMORA", "REMORA_REMORA", "REMORA_METRICS_2"])
def test_what_kubernetes_sets_for_a_service_whose_name_begins_so_is_no_setting(service: str) -> None:
    of_kubernetes = [
        f"{service}_SERVICE_HOST",
        f"{service}_SERVICE_PORT",
        f"{service}_SERVICE_PORT_GRPC",
        f"{service}_PORT",
        f"{service}_PORT_7000_TCP",
        f"{service}_PORT_7000_TCP_ADDR",
    ]

    assert load({}, dict.fromkeys(of_kubernetes, "x")) == load({}, {})


@pytest.mark.parametrize("variable", ["REMORA_PORT", "REMORA_HEALTH_PORT", "REMORA_SERVICE_PORT"])
def test_a_port_without_a_service_is_no_setting_of_kubernetes(variable: str) -> None:
    with pytest.raises(SettingsError, match=f"the environment: there is no setting {variable}"):
        load({}, {variable: "7411", "REMORA_OTHER_SERVICE_HOST": "10.0.0.1"})


@pytest.mark.parametrize("content", ["- a", "text", "a: [", "\x00"])
def test_a_file_that_is_no_mapping_is_refused_in_one_line(tmp_path: Path, content: str) -> None:
    with pytest.raises(SettingsError, match=r"remora\.yaml is no") as refusal:
        load({}, {}, file_of(tmp_path, content))

    assert "\n" not in str(refusal.value)


def test_a_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(SettingsError, match="/not/there: No such file"):
        load({}, {}, "/not/there")


def test_a_variable_that_names_no_file_is_refused_by_its_name() -> None:
    with pytest.raises(SettingsError, match=r"REMORA_CONFIG is empty: name a YAML file, or leave it out"):
        load({}, {"REMORA_CONFIG": ""})


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


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("0660", "must be one of 0600, 0660, not 432; put it in quotes, or YAML reads a number$"),
        ("660", "not 660; put it in quotes, or YAML reads a number$"),
        ('"660"', "not '660'; did you mean 0660[?]$"),
        ("0o660", "not '0o660'; did you mean 0660[?]$"),
        ("rw-rw----", "not 'rw-rw----'$"),
    ],
)
def test_a_mode_that_is_written_otherwise_is_refused_with_a_hint(tmp_path: Path, written: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        load({}, {}, file_of(tmp_path, f"socket_mode: {written}"))


def test_a_mode_in_a_variable_is_refused_with_a_hint() -> None:
    with pytest.raises(SettingsError, match=r"^REMORA_SOCKET_MODE: socket_mode must be .*; did you mean 0660[?]$"):
        load({}, {"REMORA_SOCKET_MODE": "660"})


@pytest.mark.parametrize("given", ["9090", "unix:/s", "localhost", ":9090", ""])
def test_probes_are_served_at_a_host_and_a_port(given: str) -> None:
    with pytest.raises(SettingsError, match=f"^--health-listen: health_listen must be host:port, .* not '{given}'$"):
        load({"health_listen": given}, {})


def test_a_bound_that_is_set_is_not_told_as_fitted() -> None:
    origins = load({"window_bytes": "8MiB"}, {}).origins

    assert (origins["window_bytes"], origins["record_bytes"]) == ("--window-bytes", "fitted to memory_limit")
