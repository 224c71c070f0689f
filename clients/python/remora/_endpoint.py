"""Which server a client asks: the endpoint that it is given, else that of the environment, else the default."""

import ipaddress
import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from remora import _refusals
from remora.address import ENDPOINT_VARIABLE, default_endpoint

LARGEST_PORT = 65_535
LONGEST_PATH = 103 if sys.platform == "darwin" else 107
"""Of sockaddr_un, with a NUL behind it."""

_UNDECODABLE = re.compile("[\ud800-\udfff]")
"""What Python makes of bytes in the environment that are not text."""
_NAME = re.compile(r"[^\s:/\[\]]+")
"""A host by its name or its IPv4 address."""
_PORT = re.compile("[0-9]{1,5}")
_URL = re.compile(r"\w+://(?P<rest>[^/]*)/*(?P<path>.*)")


@dataclass(frozen=True, slots=True)
class EndpointForm:
    """`unix:/path` or `host:port`."""

    def require(self, value: str, field: str) -> None:
        """Raises InvalidFieldError for anything else."""
        if not _is_endpoint(value):
            raise _refusals.invalid(field, f"is {value!r}; it must be unix:/path or host:port{_suggestion(value)}")
        require_short(value, field, "give a shorter one")


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
    return from_environment or short_default(default_endpoint())


def require_no_endpoint(path: str, field: str) -> None:
    """Raises InvalidFieldError for a path that is written like an endpoint or a URL."""
    if not _is_endpoint(path) and not _URL.match(path):
        return
    endpoint = next(filter(_is_endpoint, _meant(path)), "host:port")
    raise _refusals.invalid(
        field, f"is {path!r}; Remora(endpoint={endpoint!r}) connects to a server; the directory is './{path}'"
    )


def short_default(endpoint: str) -> str:
    """The same endpoint, which is in the usual directory. Raises InvalidFieldError where no socket can be there."""
    require_short(endpoint, "the usual endpoint", "set $XDG_RUNTIME_DIR to a shorter one, or $REMORA_ENDPOINT")
    return endpoint


def require_short(endpoint: str, field: str, remedy: str) -> None:
    """Raises InvalidFieldError for a path that no socket can have."""
    scheme, _, path = endpoint.partition(":")
    path = path[2:] if path.startswith("///") else path
    size = len(os.fsencode(path))
    if scheme == "unix" and size > LONGEST_PATH:
        raise _refusals.invalid(
            field, f"has a path of {size:,} bytes, and a socket's has at most {LONGEST_PATH}: {remedy}"
        )


def _is_endpoint(text: str) -> bool:
    if _UNDECODABLE.search(text) or "\0" in text:
        return False
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        return bool(path) and (not path.startswith("//") or path.startswith("///"))
    if _URL.match(text):
        return False
    host, _, port = text.rpartition(":")
    return _is_host(host) and _is_port(port)


def _is_host(text: str) -> bool:
    if text.startswith("[") and text.endswith("]"):
        return _is_ip6(text[1:-1])
    return _NAME.fullmatch(text) is not None


def _is_ip6(text: str) -> bool:
    try:
        return bool(ipaddress.IPv6Address(text))
    except ValueError:
        return False


def _is_port(text: str) -> bool:
    return _PORT.fullmatch(text) is not None and 0 < int(text) <= LARGEST_PORT


def _suggestion(text: str) -> str:
    if not text:
        return "; leave it out for the usual one"
    meant = next(filter(_is_endpoint, _meant(text)), None)
    if meant:
        return f"; did you mean {meant!r}?"
    host, colon, port = text.rpartition(":")
    if colon and host != "unix" and _is_host(host) and not _is_port(port):
        return f"; a port is a number from 1 to {LARGEST_PORT:,}"
    return f"; add the port: {text + ':7411'!r}, if that is where it listens" if _is_host(text) else ""


def _meant(text: str) -> Iterator[str]:
    """What somebody who wrote this may have meant, endpoint or not."""
    if text.startswith("unix://"):
        yield f"unix:/{text.removeprefix('unix://')}"
    url = _URL.fullmatch(text)
    if url:
        text = url["rest"] or f"/{url['path']}"
    yield text
    if text.startswith("/"):
        yield f"unix:{text}"
    host, _, port = text.rpartition(":")
    if _is_ip6(host.strip("[]")):
        yield f"[{host.strip('[]')}]:{port}"
