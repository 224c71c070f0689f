"""The settings: what can be set, where values come from, and the one frozen value that the server is built from.

A flag overrides the environment, which overrides the file, which overrides the default. What is not known is an error,
wherever it stands.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from remora.address import ENDPOINT_VARIABLE, default_endpoint
from remora_server import failpoints, logs
from remora_server.domain.short_term import ShortTermPolicy
from remora_server.settings import chat, embedding, paths, short_term, spelling, tls
from remora_server.settings.chat import ChatSettings
from remora_server.settings.embedding import ChoiceError, Declared, EndpointSettings, ModelChoice, OwnModel
from remora_server.settings.memory import BOUNDS, MEBIBYTE, fitted, least_limit, memory_bytes
from remora_server.settings.tls import TlsSettings
from remora_server.settings.yaml_text import NotYaml, read_yaml

IN_MEMORY = ":memory:"
DEFAULT, FITTED = "default", "fitted to memory_limit"
"""Where the value of a bound comes from that is not set."""
PREFIX = "REMORA_"
CONFIG_VARIABLE = "REMORA_CONFIG"
# What the commands that ask a server are told besides its address.
TENANT_VARIABLE = "REMORA_TENANT"
TOKEN_VARIABLE = "REMORA_TOKEN"  # noqa: S105 - a variable's name

# Kubernetes sets these in every pod beside a service: all of them, behind REMORA_DB for one that is named `remora-db`.
_OF_SERVICE = re.compile(r"_(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?)")
_SERVICE_HOST = re.compile(r"(REMORA(_\w+)?)_SERVICE_HOST")
# Tests switch failpoints on with the last two.
_NO_SETTINGS = {
    ENDPOINT_VARIABLE, CONFIG_VARIABLE, TENANT_VARIABLE, TOKEN_VARIABLE,
    failpoints.VARIABLE, failpoints.JOURNAL_VARIABLE, failpoints.ENGINE_VARIABLE,
}  # fmt: skip
_DIGITS = re.compile(r"\d{1,30}")
_ENDPOINT = re.compile(r"unix:[^\0]+|(\[[^\s/\[\]]+\]|[^\s/\[\]]+):\d{1,5}")
_LARGEST_PORT = 65_535
_DAY = 86_400
_SIZE = re.compile(r"(\d{1,30}) ?(|KiB|MiB|GiB)")
_UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}

Parse = Callable[[Any], Any]


class SettingsError(Exception):
    """A setting is not known, or its value cannot be used; the message names it and where it stands."""


class Settings(Struct, frozen=True):
    """All settings. Sizes in bytes, times in seconds; `data` is None where all is kept in memory.

    `models` is what those of embedding come to, `chat` those of the chat model, `short_term` those of the policy of new
    conversations, `tls` those of TLS.
    """

    listen: tuple[str, ...]
    health_listen: str | None
    data: Path | None
    model_dir: Path
    model: str
    precision: str
    late: bool
    embedding_url: str | None
    embedding_model: str | None
    embedding_api_key_file: Path | None
    embedding_api_key_variable: str | None
    embedding_models: Declared
    tenant_models: Mapping[str, Mapping[str, str]]
    chat_url: str | None
    chat_model: str | None
    chat_api_key_file: Path | None
    chat_api_key_variable: str | None
    chat_timeout: float
    short_term_profile: str
    short_term_overflow: str | None
    short_term_max_tokens: int | None
    token_file: Path | None
    tls_cert: Path | None
    tls_key: Path | None
    tls_client_ca: Path | None
    tls_client_tenants: Path | None
    socket_mode: str
    insecure: bool
    log_format: str
    log_level: str
    transport: str
    threads: int
    waiting_calls: int
    connections: int
    peer_connections: int
    receive_limit_bytes: int
    default_timeout: float
    memory_limit: int
    window_bytes: int
    record_bytes: int
    vector_bytes: int
    recall_bytes: int
    search_bytes: int
    receipt_days: int
    segment_bytes: int
    queue_bytes: int
    database_bytes: int
    kernels: str
    shutdown_grace: float
    models: ModelChoice
    chat: ChatSettings | None
    short_term: ShortTermPolicy | None
    tls: TlsSettings | None


class Key(Struct, frozen=True):
    """One setting: what it means to people, and how its value is read from text or from YAML.

    `placeholder` stands for the value in help texts, `default_in_words` for a default that depends on the environment.
    """

    name: str
    help: str
    parse: Parse
    default: object = None
    repeated: bool = False
    placeholder: str = "VALUE"
    choices: tuple[str, ...] = ()
    default_in_words: str = ""

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def variable(self) -> str:
        return f"{PREFIX}{self.name.upper()}"


class Loaded(Struct, frozen=True):
    """Settings and, for each, where its value stood: a flag, a variable, the file, DEFAULT or FITTED."""

    settings: Settings
    origins: Mapping[str, str] = field(default_factory=dict)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text")  # noqa: TRY004 - a setting is wrong, not the caller
    if not value:
        raise ValueError("must not be empty")
    return value


def _path(value: object) -> Path:
    return paths.absolute(_text(value))


def _data(value: object) -> Path | None:
    if str(value).startswith(":") and value != IN_MEMORY:
        raise ValueError(f"must be a directory or {IN_MEMORY}, not {value!r}; the directory is './{value}'")
    return None if value == IN_MEMORY else paths.of_store(_text(value))


def _endpoints(value: object) -> tuple[str, ...]:
    """A list, or text with commas between."""
    listed = value if isinstance(value, list) else _text(value).split(",")
    endpoints = tuple(_text(part).strip() for part in listed)
    if not endpoints:
        raise ValueError("must name an endpoint")
    for endpoint in endpoints:
        if _ENDPOINT.fullmatch(endpoint) is None:
            raise ValueError(f"must be unix:/path or host:port, not {endpoint!r}")
        _require_port(endpoint)
    return endpoints


def _host_and_port(value: object) -> str:
    text = str(value)
    if text.startswith("unix:") or _ENDPOINT.fullmatch(text) is None:
        raise ValueError(f"must be host:port, such as 127.0.0.1:9090, not {text!r}")
    _require_port(text)
    return text


def _require_port(endpoint: str) -> None:
    if not endpoint.startswith("unix:") and int(endpoint.rpartition(":")[2]) > _LARGEST_PORT:
        raise ValueError(f"must have a port of at most {_LARGEST_PORT}, not {endpoint!r}")


def _flag(value: object) -> bool:
    words = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
    found = words.get(str(value).lower())
    if found is None:
        raise ValueError(f"must be true or false, not {spelling.shown(value)}")
    return found


def _on_or_off(value: object) -> bool:
    words = {"on": True, "off": False, "true": True, "false": False}  # YAML 1.1 reads on and off as these
    found = words.get(str(value).lower())
    if found is None:
        raise ValueError(f"must be on or off, not {spelling.shown(value)}")
    return found


def _whole(minimum: int, maximum: int) -> Parse:
    def parse(value: object) -> int:
        if not _DIGITS.fullmatch(str(value)) or not minimum <= int(str(value)) <= maximum:
            raise ValueError(f"must be a whole number from {minimum} to {maximum}, not {spelling.shown(value)}")
        return int(str(value))

    return parse


def _size(smallest: str, largest: str) -> Parse:
    """Bytes, as a number or with a unit: 64 MiB."""
    minimum, maximum = _bytes(smallest), _bytes(largest)

    def parse(value: object) -> int:
        size = _bytes(str(value))
        if not minimum <= size <= maximum:
            raise ValueError(f"must be from {smallest} to {largest}, not {spelling.shown(value)}")
        return size

    return parse


def _bytes(text: str) -> int:
    found = _SIZE.fullmatch(text)
    if found is None:
        raise ValueError(f"must be a number of bytes, such as 1048576, 64MiB or 1GiB, not {spelling.shown(text)}")
    return int(found[1]) * _UNITS[found[2]]


def _seconds(value: object) -> float:
    seconds = _number_of_seconds(value)
    if seconds > _DAY:
        raise ValueError(f"must be a number of seconds, at most {_DAY:,}, not {spelling.shown(value)}")
    return seconds


def _number_of_seconds(value: object) -> float:
    if not re.fullmatch(r"\d+(\.\d+)?", str(value)):
        raise ValueError(f"must be a number of seconds, not {spelling.shown(value)}")
    return float(str(value))


def _positive_seconds(most: int) -> Parse:
    def parse(value: object) -> float:
        seconds = _number_of_seconds(value)
        if not 0 < seconds <= most:
            raise ValueError(f"must be a number of seconds, above 0 and at most {most:,}, not {spelling.shown(value)}")
        return seconds

    return parse


def _one_of(*words: str) -> Parse:
    def parse(value: object) -> str:
        if value not in words:
            near = spelling.hint(str(value), words, 0.7)
            quotes = "; put it in quotes, or YAML reads a number" if isinstance(value, int | float) else ""
            raise ValueError(f"must be one of {', '.join(words)}, not {value!r}{quotes or near}")
        return str(value)

    return parse


LARGEST_MEMORY = "16384 GiB"
SECONDS = "SECONDS"


def _choice(name: str, text: str, choices: tuple[str, ...], default: str, parse: Parse | None = None) -> Key:
    return Key(name, text, parse or _one_of(*choices), default, choices=choices)


def _count(name: str, text: str, minimum: int, maximum: int, default: int) -> Key:
    return Key(name, text, _whole(minimum, maximum), default, placeholder="COUNT")


def _bytes_of(name: str, text: str, smallest: str, largest: str, default: int) -> Key:
    return Key(name, text, _size(smallest, largest), default, placeholder=SIZE)


def _bound(name: str, text: str, smallest: str, most: str) -> Key:
    """A bound of memory, whose default is fitted into `memory_limit`."""
    default = f"{most}, or less where memory_limit has no room for it"
    return Key(name, text, _size(smallest, LARGEST_MEMORY), placeholder=SIZE, default_in_words=default)


SIZE = "SIZE"
"""The placeholder of a number of bytes."""

KEYS: tuple[Key, ...] = (
    Key(
        "listen",
        "the address to listen on: unix:/path or host:port; may be repeated (a variable: with commas between; the "
        "file: a list)",
        _endpoints,
        repeated=True,
        placeholder="ADDRESS",
        default_in_words="$REMORA_ENDPOINT, else unix:$XDG_RUNTIME_DIR/remora/remora.sock, "
        "else unix:/tmp/remora-UID/remora.sock",
    ),
    Key(
        "health_listen",
        "the host:port for probes and metrics: gRPC health, and /livez, /startupz, /readyz and /metrics over HTTP; no "
        "data and no token",
        _host_and_port,
        placeholder="ADDRESS",
        default_in_words="none",
    ),
    Key(
        "data",
        f"the data directory, or {IN_MEMORY} to store nothing on disk",
        _data,
        placeholder="DIR",
        default_in_words="$XDG_DATA_HOME/remora, else ~/.local/share/remora",
    ),
    Key(
        "model_dir",
        "the directory of the built-in embedding model's files",
        _path,
        placeholder="DIR",
        default_in_words="remora-models/all-MiniLM-L6-v2 beside the default data directory",
    ),
    Key(
        "model",
        "the embedding model: none (searches go by words alone), builtin, a name from embedding_models, or auto: "
        "embedding_url if it is set, else builtin if its files are installed",
        _text,
        "auto",
        placeholder="NAME",
    ),
    _choice("precision", "the built-in model's arithmetic; int8 is faster", ("f32", "int8"), "f32"),
    _choice(
        "late",
        "keep the vectors of words for the profile hybrid_late: 1.8 KB a message",
        ("on", "off"),
        "on",
        _on_or_off,
    ),
    Key(
        "embedding_url",
        "an OpenAI-compatible endpoint: http://host/v1, the part before /embeddings",
        embedding.endpoint_url,
        placeholder="URL",
    ),
    Key("embedding_model", "the model to request from embedding_url", _text, placeholder="NAME"),
    Key(
        "embedding_api_key_file",
        "the file with the key for embedding_url; read again for every request",
        _path,
        placeholder="FILE",
    ),
    Key(
        "embedding_api_key_variable",
        "the environment variable with the key for embedding_url",
        embedding.variable,
        placeholder="NAME",
    ),
    Key(
        "embedding_models",
        "embedding models by name, in YAML: {NAME: {provider: openai, base_url: URL, model: NAME}}; the provider is "
        "openai, builtin or none",
        embedding.models,
        default={},
        placeholder="YAML",
    ),
    Key(
        "tenant_models",
        "the embedding models of single tenants, in YAML: {TENANT: {messages: NAME}}",
        embedding.tenants,
        default={},
        placeholder="YAML",
    ),
    Key(
        "chat_url",
        "the OpenAI-compatible endpoint of the chat model, which writes summaries and finds facts: http://host/v1, the "
        "part before /chat/completions",
        embedding.endpoint_url,
        placeholder="URL",
        default_in_words="none: summaries are extracted, facts found by patterns",
    ),
    Key("chat_model", "the model to request from chat_url", _text, placeholder="NAME"),
    Key(
        "chat_api_key_file",
        "the file with the key for chat_url; read again for every request",
        _path,
        placeholder="FILE",
    ),
    Key(
        "chat_api_key_variable",
        "the environment variable with the key for chat_url",
        embedding.variable,
        placeholder="NAME",
    ),
    Key("chat_timeout", "how long one request to chat_url may take", _positive_seconds(600), 60.0, placeholder=SECONDS),
    _choice(
        "short_term_profile",
        "the short-term policy of conversations that are created without one; ballerina: a summary takes the place of "
        "all but the newest 2 messages when there are more than 100,000 tokens",
        short_term.PROFILES,
        short_term.NONE,
    ),
    Key(
        "short_term_overflow",
        "what happens to a window that is too large, instead of the profile's summary; trim: the oldest messages leave "
        "until 500 tokens remain; delete_oldest: they leave one at a time until it fits; flush: they leave at half of "
        "the tokens already, until a quarter remains",
        _one_of(*short_term.OVERFLOWS),
        choices=short_term.OVERFLOWS,
        default_in_words="summarize, with a profile",
    ),
    Key(
        "short_term_max_tokens",
        "how many tokens a window may have by the profile's policy",
        _whole(1, 100_000_000),
        placeholder="COUNT",
        default_in_words="the profile's",
    ),
    Key(
        "token_file",
        "the file of bearer tokens, one `TOKEN TENANT` per line; without it no token is required; read again when it "
        "changes",
        _path,
        placeholder="FILE",
    ),
    Key(
        "tls_cert",
        "the server's certificate in PEM, with those of intermediate authorities behind it: TCP ports speak TLS; read "
        "again when it changes, as the other files of TLS are",
        _path,
        placeholder="FILE",
        default_in_words="none: TCP is not encrypted",
    ),
    Key("tls_key", "the private key of tls_cert in PEM", _path, placeholder="FILE"),
    Key(
        "tls_client_ca",
        "the authorities in PEM that may have signed a client's certificate, which is required then (mutual TLS)",
        _path,
        placeholder="FILE",
    ),
    Key(
        "tls_client_tenants",
        "the file of the tenants of client certificates, one `NAME TENANT` per line: NAME is a DNS name or a URI among "
        "the certificate's subject alternative names",
        _path,
        placeholder="FILE",
        default_in_words="none: a certificate does not name a tenant",
    ),
    Key("insecure", "accept connections from other machines without a token", _flag, default=False),
    _choice(
        "socket_mode",
        "who may connect to a Unix socket: 0600, the server's user alone; 0660, all users of its group, too, which "
        "is the directory's where that has the setgid bit, as a volume of Kubernetes with an fsGroup does",
        ("0600", "0660"),
        "0600",
    ),
    _choice("log_format", "the format of the log", tuple(logs.FORMATS), "text"),
    _choice("log_level", "the least severe level to log", tuple(logs.LEVELS), "info"),
    _choice("transport", "the gRPC transport; grpcio only if all clients are trusted", ("native", "grpcio"), "native"),
    _count("threads", "threads that answer calls", 1, 1_024, 16),
    _count("waiting_calls", "calls that may wait for a thread; further calls are refused", 0, 100_000, 256),
    _count("connections", "simultaneous connections (native transport)", 1, 1_000_000, 4_096),
    _count(
        "peer_connections",
        "simultaneous connections of one address, or of one process over a Unix socket (native transport)",
        1,
        1_000_000,
        1_024,
    ),
    _bytes_of("receive_limit_bytes", "the largest request", "64 KiB", "1 GiB", 4 << 20),
    Key("default_timeout", "the deadline of a call that has none", _positive_seconds(_DAY), 30.0, placeholder=SECONDS),
    Key(
        "memory_limit",
        "the memory that the process may take: the bounds below that are not set are fitted into it, with room for the "
        "process itself and the built-in model",
        _size("0", LARGEST_MEMORY),  # `_fitted` knows the least
        placeholder=SIZE,
        default_in_words="the limit of the control group, or the machine's memory",
    ),
    _bound("window_bytes", "memory for the newest messages of active conversations", "0", "48 MiB"),
    _bound("record_bytes", "memory for steps, working memories and other records", "0", "32 MiB"),
    _bound(
        "vector_bytes",
        "memory for the vectors of collections that are searched; those of one user in one collection must fit",
        "0",
        "1 GiB",
    ),
    _bound(
        "recall_bytes",
        "memory for the search indexes of active users; the most recently searched user always stays in memory",
        "0",
        "128 MiB",
    ),
    _bound(
        "search_bytes",
        "memory for the messages of one search while it runs; a larger search is refused",
        "1 MiB",
        "4 times recall_bytes, at least 128 MiB",
    ),
    _count(
        "receipt_days", "days for which receipts of contexts and searches are kept; 0: none are left", 0, 36_500, 30
    ),
    _bytes_of("segment_bytes", "the size of one journal file", "1 MiB", "1 GiB", 64 << 20),
    Key(
        "queue_bytes",
        "writes that may wait for the disk",
        _size("64 KiB", "1 GiB"),
        placeholder=SIZE,
        default_in_words="16 MiB, or less where memory_limit has no room for it",
    ),
    _bound(
        "database_bytes",
        "memory for DuckDB; vectors of more than 512 dimensions and checkpoints of long messages add to it",
        "32 MiB",
        "64 MiB",
    ),
    _choice(
        "kernels", "the instruction set of vector arithmetic", ("auto", "avx512", "avx2", "neon", "scalar"), "auto"
    ),
    Key(
        "shutdown_grace",
        "how long calls may still run when the server stops, and how long it then writes receipts that wait",
        _seconds,
        10.0,
        placeholder=SECONDS,
    ),
)
_BY_NAME = {key.name: key for key in KEYS}
_OF_SINGLE_ENDPOINT = ("embedding_url", "embedding_model", "embedding_api_key_file", "embedding_api_key_variable")


def load(flags: Mapping[str, object], environment: Mapping[str, str], config: str | None = None) -> Loaded:
    """The effective settings. `flags` are those that were given, by the settings' names; `config` the file, where a
    flag names one. Raises SettingsError.
    """
    given = {
        **_defaults(environment),
        **_from_file(_config(environment) if config is None else config),
        **_from_environment(environment),
        **{name: (value, _BY_NAME[name].flag) for name, value in flags.items()},
    }
    values: dict[str, Any] = {name: _parsed(_BY_NAME[name], value, origin) for name, (value, origin) in given.items()}
    origins = {name: origin for name, (_, origin) in given.items()}
    origins |= dict.fromkeys((name for name in BOUNDS if values[name] is None), FITTED)
    try:
        models, chat_model = _models(values, environment), chat.choose(values, environment)
        values |= _fitted(values, has_model=not models.names().isdisjoint((embedding.BUILTIN, embedding.AUTO)))
        policy, secured = short_term.choose(values), tls.choose(values)
    except ChoiceError as error:
        raise SettingsError(f"{origins[error.setting]}: {error.setting} {error}") from error
    return Loaded(Settings(**values, models=models, chat=chat_model, short_term=policy, tls=secured), origins)


def _fitted(values: Mapping[str, Any], *, has_model: bool) -> dict[str, int]:
    """The bounds of memory. A limit that is given must hold them; that of the machine need not. Raises ChoiceError."""
    limit, given = values["memory_limit"], {name: values[name] for name in BOUNDS}
    least = least_limit(given, has_model=has_model)
    if limit is not None and limit < least:
        model = ", with the built-in model" if has_model else ""
        raise ChoiceError("memory_limit", f"must be at least {math.ceil(least / MEBIBYTE)} MiB for what is set{model}")
    limit = memory_bytes() if limit is None else limit
    return {"memory_limit": limit, **fitted(limit, given, has_model=has_model)}


def _models(values: Mapping[str, Any], environment: Mapping[str, str]) -> ModelChoice:
    chosen = embedding.choose(
        values["model"], values["embedding_models"], values["tenant_models"], _single_endpoint(values)
    )
    endpoints = {name: _with_key(endpoint, environment) for name, endpoint in chosen.endpoints.items()}
    return replace(chosen, endpoints=endpoints)


def _single_endpoint(values: Mapping[str, Any]) -> EndpointSettings | None:
    """The endpoint that the settings `embedding_*` define together."""
    url, model = values["embedding_url"], values["embedding_model"]
    file, variable = values["embedding_api_key_file"], values["embedding_api_key_variable"]
    given = [name for name in _OF_SINGLE_ENDPOINT if values[name] is not None]
    if not given:
        return None
    if url is None or model is None:
        raise ChoiceError(given[0], "needs both embedding_url and embedding_model")
    if file is not None and variable is not None:
        raise ChoiceError("embedding_api_key_file", "and embedding_api_key_variable are set: one is enough")
    vectors = embedding.default_vectors(model, None)
    return EndpointSettings(url, model, vectors, api_key_file=file, api_key_variable=variable)


def _with_key(endpoint: EndpointSettings, environment: Mapping[str, str]) -> EndpointSettings:
    if endpoint.api_key_variable is None:
        return endpoint
    return replace(endpoint, api_key=environment.get(endpoint.api_key_variable))


def _parsed(key: Key, value: object, origin: str) -> object:
    if value is None and origin == DEFAULT:
        return None
    try:
        return key.parse(value)
    except ValueError as error:
        raise SettingsError(f"{origin}: {key.name} {error}") from error


def _defaults(environment: Mapping[str, str]) -> dict[str, tuple[object, str]]:
    share = Path(environment.get("XDG_DATA_HOME", ""))
    if not share.is_absolute():  # the XDG Base Directory Specification ignores a relative one
        share = Path("~/.local/share")
    found: dict[str, tuple[object, str]] = {key.name: (key.default, DEFAULT) for key in KEYS}
    found["data"] = (str(share / "remora"), DEFAULT)
    found["model_dir"] = (str(share / "remora-models" / "all-MiniLM-L6-v2"), DEFAULT)
    endpoint = environment.get(ENDPOINT_VARIABLE)
    found["listen"] = (endpoint, ENDPOINT_VARIABLE) if endpoint else (default_endpoint(), DEFAULT)
    return found


def _config(environment: Mapping[str, str]) -> str | None:
    """The file that a variable names."""
    path = environment.get(CONFIG_VARIABLE)
    if path == "":
        raise SettingsError(f"{CONFIG_VARIABLE} is empty: name a YAML file, or leave it out")
    return path


def _from_file(path: str | None) -> dict[str, tuple[object, str]]:
    if path is None:
        return {}
    try:
        content = read_yaml(Path(path).read_text("utf-8"))
    except OSError as error:
        raise SettingsError(f"{path}: {error.strerror}") from error
    except (NotYaml, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content or {}, dict):
        raise SettingsError(f"{path} is not a mapping of settings to values")
    for name in content or {}:
        _require_known(str(name), _BY_NAME, path)
    return {name: (value, path) for name, value in (content or {}).items() if value is not None}


def _from_environment(environment: Mapping[str, str]) -> dict[str, tuple[object, str]]:
    variables = {key.variable: key.name for key in KEYS}
    services = [service[1] for variable in environment if (service := _SERVICE_HOST.fullmatch(variable))]
    found: dict[str, tuple[object, str]] = {}
    for variable, value in environment.items():
        if not variable.startswith(PREFIX) or variable in _NO_SETTINGS or _is_of_service(variable, services):
            continue
        _require_known(variable, variables, "the environment")
        found[variables[variable]] = (value, variable)
    return found


def _is_of_service(variable: str, services: Iterable[str]) -> bool:
    named = (service for service in services if variable.startswith(service))
    return any(_OF_SERVICE.fullmatch(variable, len(service)) for service in named)


def _require_known(name: str, known: Iterable[str], source: str) -> None:
    names = list(known)
    if name in names:
        return
    raise SettingsError(f"{source}: there is no setting {name}{spelling.hint(name, names, 0.8)}")


def describe(loaded: Loaded) -> str:
    """The settings as a YAML file that says of each value where it comes from."""
    lines = []
    for key in KEYS:
        value = json.dumps(_plain(key.name, getattr(loaded.settings, key.name)), ensure_ascii=False)
        lines.append(f"{key.name}: {value}  # {loaded.origins[key.name]}\n")
    return "".join(lines)


def _plain(name: str, value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    if name == "data" and value is None:
        return IN_MEMORY
    if isinstance(value, Mapping):
        return {inner: _plain(inner, each) for inner, each in value.items()}
    if isinstance(value, EndpointSettings | OwnModel):
        return value.as_mapping()
    return os.fspath(value) if isinstance(value, Path) else value
