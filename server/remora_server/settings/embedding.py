"""The settings of embedding: which models there are beside the built-in one, and which embed what of which tenant."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct, field
from msgspec.structs import asdict

from remora_server.domain.tenants import complaint
from remora_server.domain.vectors import MAX_DIMENSION
from remora_server.settings import paths, spelling
from remora_server.settings.yaml_text import NotYaml, read_yaml

BUILTIN, NONE, AUTO = "builtin", "none", "auto"
OPENAI = "openai"
"""A provider, and the name of the model that `embedding_url` is the endpoint of."""
MESSAGES = "messages"
COLLECTIONS = (MESSAGES,)
"""What vectors are made of."""
ENCODINGS = ("cl100k_base", "o200k_base")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_HEADERS = re.compile(r"(?i)authorization|cookie|key|token|secret|password")
_OWN_VARIABLES = "REMORA_"


class ChoiceError(Exception):
    """Settings of embedding that do not go together. `setting` is the one that is wrong, the text what it must be."""

    def __init__(self, setting: str, complaint: str) -> None:
        super().__init__(complaint)
        self.setting = setting


class OwnModel(Struct, frozen=True):
    """A name for what the server has itself: `builtin`, or `none`."""

    provider: str

    def as_mapping(self) -> dict[str, object]:
        """As it stands in a file of settings."""
        return {"provider": self.provider}


class EndpointSettings(Struct, frozen=True):
    """An OpenAI-compatible endpoint of embeddings. `base_url` is what `/embeddings` is appended to.

    `vectors` names its vectors: those of one name are compared, those of others never. Times in seconds; a text is cut
    after `max_tokens` of `encoding`, a request has at most `batch_texts` texts of `batch_tokens` together. `api_key` is
    what the variable held.
    """

    base_url: str
    model: str
    vectors: str
    dimensions: int | None = None
    api_key_file: Path | None = None
    api_key_variable: str | None = None
    api_key_header: str = "authorization"
    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    batch_texts: int = 32
    batch_tokens: int = 32_768
    max_tokens: int = 8_191
    encoding: str = "cl100k_base"
    timeout: float = 30.0
    query_timeout: float = 1.0
    api_key: str | None = None

    def __repr__(self) -> str:
        return f"EndpointSettings({self.as_mapping()})"

    @property
    def is_open_to_others(self) -> bool:
        """Whether what is sent, a key with it, is not encrypted and leaves this machine."""
        has_key = self.api_key_file is not None or self.api_key_variable is not None
        return has_key and crosses_network_in_clear(self.base_url)

    def as_mapping(self) -> dict[str, object]:
        """As it stands in a file of settings, with every default; the key is not part of it."""
        named = asdict(self)
        del named["api_key"]
        plain = {name: str(value) if isinstance(value, Path) else value for name, value in named.items()}
        return {"provider": OPENAI, **plain, "headers": dict(self.headers)}


Declared: TypeAlias = Mapping[str, EndpointSettings | OwnModel]
"""Models by their names in the settings."""


class ModelChoice(Struct, frozen=True):
    """The names of the models that embed the messages of the tenants, and their endpoints."""

    default: str
    tenants: Mapping[str, str]
    endpoints: Mapping[str, EndpointSettings]

    def names(self) -> set[str]:
        """The models that embed something."""
        return {self.default, *self.tenants.values()}

    def endpoints_in_use(self) -> dict[str, EndpointSettings]:
        """The endpoints that embed something."""
        return {name: endpoint for name, endpoint in self.endpoints.items() if name in self.names()}


def models(value: object) -> Declared:
    """Models by name, from a mapping or from YAML. Raises ValueError, which says what is wrong where."""
    found: dict[str, EndpointSettings | OwnModel] = {}
    for name, options in _mapping(value, "of models by name").items():
        if not _NAME.fullmatch(str(name)) or name in (BUILTIN, NONE, AUTO):
            raise ValueError(f"must have names other than {BUILTIN}, {NONE}, {AUTO} and {name!r}")
        found[str(name)] = _model(str(name), _mapping(options, f"of the options of {name}"))
    _require_own_vectors(found)
    return MappingProxyType(found)


def tenants(value: object) -> Mapping[str, Mapping[str, str]]:
    """The name of the model for each collection of each tenant, from a mapping or from YAML. Raises ValueError."""
    found: dict[str, Mapping[str, str]] = {}
    for tenant, chosen in _mapping(value, "of tenants to the models of their collections").items():
        wrong = complaint(str(tenant))
        if wrong:
            raise ValueError(f"must name tenants that there can be: {tenant!r} {wrong}")
        collections = _mapping(chosen, f"of the collections of {tenant} to models")
        for collection, model in collections.items():
            _require_known(str(collection), COLLECTIONS, f"{tenant}: there is no collection")
            _text(model, f"{tenant}.{collection}")
        found[str(tenant)] = MappingProxyType({str(name): str(model) for name, model in collections.items()})
    return MappingProxyType(found)


def endpoint_url(value: object) -> str:
    """Where an endpoint is. Raises ValueError."""
    parts = urlsplit(value) if isinstance(value, str) else urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("must be a URL such as https://host/v1, without a query")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must have no user and password: give the key by api_key_file or api_key_variable")
    return str(value).rstrip("/")


def crosses_network_in_clear(url: str) -> bool:
    """Whether what an endpoint is sent leaves this machine, and is not encrypted."""
    parts = urlsplit(url)
    return parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1")


def variable(value: object) -> str:
    """The name of a variable of the environment that holds a key. Raises ValueError."""
    if not isinstance(value, str) or not _VARIABLE.fullmatch(value) or value.startswith(_OWN_VARIABLES):
        raise ValueError(f"must be the name of a variable that does not begin with {_OWN_VARIABLES}")
    return value


def default_vectors(model: str, dimensions: int | None) -> str:
    """The default name of a model's vectors."""
    return model if dimensions is None else f"{model}/{dimensions}"


def _path(value: object) -> Path:
    return paths.absolute(_text(value, ""))


def _text(value: object, name: str) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} must be text".strip())
    return value


def _short(value: object) -> str:
    text = _text(value, "")
    if len(text.encode()) > 256:
        raise ValueError("must have at most 256 bytes")
    return text


def _whole(minimum: int, maximum: int) -> Callable[[object], int]:
    def parse(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
            raise ValueError(f"must be a whole number from {minimum} to {maximum}, not {spelling.shown(value)}")
        return value

    return parse


def _seconds(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 600:
        raise ValueError(f"must be a number of seconds, above 0 and at most 600, not {spelling.shown(value)}")
    return float(value)


def _encoding(value: object) -> str:
    if value not in ENCODINGS:
        raise ValueError(f"must be one of {', '.join(ENCODINGS)}")
    return str(value)


def _header(value: object) -> str:
    if not isinstance(value, str) or not _HEADER.fullmatch(value):
        raise ValueError("must be the name of a header")
    return value.lower()


def _headers(value: object) -> Mapping[str, str]:
    """Headers that are no secret: settings are shown."""
    found = {_header(name): str(text) for name, text in _mapping(value, "of headers to values").items()}
    for name, text in found.items():
        if _SECRET_HEADERS.search(name):
            raise ValueError(f"must not hold {name}: give the key by api_key_file or api_key_variable")
        if not text.isascii() or not text.isprintable():
            raise ValueError(f"must have a value of printable ASCII for {name}")
    return MappingProxyType(found)


_OPTIONS: Mapping[str, Callable[[object], Any]] = {
    "base_url": endpoint_url,
    "model": _short,
    "vectors": _short,
    "dimensions": _whole(1, MAX_DIMENSION),
    "api_key_file": _path,
    "api_key_variable": variable,
    "api_key_header": _header,
    "headers": _headers,
    "batch_texts": _whole(1, 512),
    "batch_tokens": _whole(1, 1_000_000),
    "max_tokens": _whole(1, 1_000_000),
    "encoding": _encoding,
    "timeout": _seconds,
    "query_timeout": _seconds,
}


def _model(name: str, options: Mapping[Any, Any]) -> EndpointSettings | OwnModel:
    given = {str(option): value for option, value in options.items() if value is not None}
    provider = given.pop("provider", None)
    if provider in (BUILTIN, NONE):
        if given:
            raise ValueError(f"{name}: the provider {provider} has no options, but {', '.join(given)} is set")
        return OwnModel(str(provider))
    if provider != OPENAI:
        raise ValueError(f"{name}.provider must be one of {BUILTIN}, {OPENAI}, {NONE}")
    return endpoint(given, f"{name}.")


def endpoint(options: Mapping[str, object], prefix: str) -> EndpointSettings:
    """An endpoint by its options; `prefix` leads their names in messages. Raises ValueError."""
    values: dict[str, Any] = {}
    for option, value in options.items():
        _require_known(option, _OPTIONS, f"{prefix.rstrip('.')}: there is no option")
        try:
            values[option] = _OPTIONS[option](value)
        except ValueError as error:
            raise ValueError(f"{prefix}{option} {error}") from error
    for option in ("base_url", "model"):
        if option not in values:
            raise ValueError(f"{prefix}{option} is required")
    if "api_key_file" in values and "api_key_variable" in values:
        raise ValueError(f"{prefix}api_key_file and api_key_variable are set: one is enough")
    values.setdefault("vectors", default_vectors(values["model"], values.get("dimensions")))
    return EndpointSettings(**values)


def _require_own_vectors(found: Declared) -> None:
    """Vectors of one name are compared: two models may not share one."""
    owners: dict[str, str] = {}
    for name, model in found.items():
        if isinstance(model, EndpointSettings):
            other = owners.setdefault(model.vectors, name)
            if other != name:
                raise ValueError(f"{other} and {name} would both make vectors called {model.vectors!r}: set `vectors`")


def _require_known(name: str, known: Iterable[str], complaint: str) -> None:
    names = list(known)
    if name not in names:
        raise ValueError(f"{complaint} {name}{spelling.hint(name, names, 0.7)}")


def _mapping(value: object, what: str) -> Mapping[Any, Any]:
    if isinstance(value, str):
        try:
            value = read_yaml(value)
        except NotYaml as error:
            raise ValueError(f"must be a mapping {what}, in YAML") from error
    if not isinstance(value, Mapping):
        raise ValueError(f"must be a mapping {what}")  # noqa: TRY004 - a setting's wrong value is a ValueError
    return value


def choose(
    model: str, declared: Declared, of_tenants: Mapping[str, Mapping[str, str]], single: EndpointSettings | None
) -> ModelChoice:
    """What the settings of embedding come to. `single` is the endpoint of `embedding_url`. Raises ChoiceError."""
    if single is not None:
        declared = _with_single(declared, single)
    default = (OPENAI if single is not None else BUILTIN) if model == AUTO else model
    _require_model("model", default, declared)
    chosen = {}
    for tenant, collections in of_tenants.items():
        for name in collections.values():
            _require_model("tenant_models", name, declared, f" for {tenant}")
        if MESSAGES in collections:
            chosen[tenant] = _resolved(collections[MESSAGES], declared)
    endpoints = {name: found for name, found in declared.items() if isinstance(found, EndpointSettings)}
    return ModelChoice(_resolved(default, declared), MappingProxyType(chosen), MappingProxyType(endpoints))


def _with_single(declared: Declared, single: EndpointSettings) -> Declared:
    if OPENAI in declared:
        raise ChoiceError("embedding_url", f"defines the model {OPENAI}, and so does embedding_models")
    both = {**declared, OPENAI: single}
    try:
        _require_own_vectors(both)
    except ValueError as error:
        raise ChoiceError("embedding_models", str(error)) from error
    return both


def _require_model(setting: str, name: str, declared: Declared, where: str = "") -> None:
    known = (BUILTIN, NONE, *declared)
    if name not in known:
        choices = (AUTO, *known) if setting == "model" else known
        raise ChoiceError(setting, f"must name one of {', '.join(choices)}{where}, not {name!r}")


def _resolved(name: str, declared: Declared) -> str:
    """The name of an endpoint, or the word for one of the server's own."""
    found = declared.get(name)
    return found.provider if isinstance(found, OwnModel) else name
