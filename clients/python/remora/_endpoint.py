"""Which server a client asks: the endpoint that it is given, else that of the environment, else the default."""

import os
import re
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from remora import _refusals
from remora.address import ENDPOINT_VARIABLE, default_endpoint

LARGEST_PORT = 65_535

_UNDECODABLE = re.compile("[\ud800-\udfff]")
"""What Python makes of bytes in the environment that are not text."""
_URL = re.compile(r"\w+://(?P<rest>[^/]*)/*(?P<path>.*)")


@dataclass(frozen=True, slots=True)
class EndpointForm:
    """`unix:/path` or `host:port`."""

    def require(self, value: str, field: str) -> None:
        """Raises InvalidFieldError for anything else."""
        if not _is_endpoint(value):
            raise _refusals.invalid(field, f"is {value!r}; it must be unix:/path or host:port{_suggestion(value)}")


Endpoint: TypeAlias = Annotated[str, EndpointForm()]
"""`unix:/path` or `host:port`."""


def resolve_endpoint(endpoint: str | None) -> str:
    """The endpoint itself if one is given, which is checked then, else $REMORA_ENDPOINT, else the default.

    Raises InvalidFieldError for an environment variable of another form.
    """
    if endpoint is not None:
        return endpoint
    from_environment = os.environ.get(ENDPOINT_VARIABLE)
    if from_environment:
        EndpointForm().require(from_environment, f"${ENDPOINT_VARIABLE}")
    return from_environment or default_endpoint()


def _is_endpoint(text: str) -> bool:
    if _UNDECODABLE.search(text):
        return False
    if text.startswith("unix:"):
        return len(text) > len("unix:")
    if _URL.match(text):
        return False
    host, _, port = text.rpartition(":")
    return bool(host) and port.isascii() and port.isdigit() and int(port[:6]) <= LARGEST_PORT


def _suggestion(text: str) -> str:
    url = _URL.fullmatch(text)
    if url:
        text = url["rest"] or f"/{url['path']}"
    for meant in (text, f"unix:{text}"):
        if meant.startswith("unix:") and not meant.startswith("unix:/"):
            continue
        if _is_endpoint(meant):
            return f"; did you mean {meant!r}?"
    return "" if ":" in text or "/" in text else f"; add the port: {text + ':50051'!r}, if that is where it listens"
