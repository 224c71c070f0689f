"""Where a server listens: the default of server and client, and the forms of an endpoint."""

import os
import re
from pathlib import Path

ENDPOINT_VARIABLE = "REMORA_ENDPOINT"
SOCKET_NAME = "remora.sock"

_UNDECODABLE = re.compile("[\ud800-\udfff]")
"""What Python makes of bytes in the environment that are not text."""


def default_endpoint() -> str:
    """The default endpoint of server and client.

    `unix:$XDG_RUNTIME_DIR/remora/remora.sock` if that variable is set (XDG Base Directory Specification), else
    `unix:/tmp/remora-<uid>/remora.sock`.
    """
    return f"unix:{_runtime_directory() / SOCKET_NAME}"


def require_own_default(endpoint: str) -> None:
    """Raise PermissionError where an endpoint is the default one and its directory another user's, who would be told
    all that is sent. Root may own it, as the server allows; a directory that is not there is nobody's.
    """
    directory = _runtime_directory()
    if _socket_of(endpoint) != directory / SOCKET_NAME:
        return
    owner = other_owner(directory)
    if owner is not None:
        raise PermissionError(
            f"{directory}, where the socket of a Remora server would be, belongs to user {owner}, not to user "
            f"{os.geteuid()}: set $XDG_RUNTIME_DIR, or say with $REMORA_ENDPOINT where the server listens"
        )


def other_owner(directory: Path) -> int | None:
    """The user, neither this process's nor root, whom a directory belongs to, or a symbolic link to one: the owner of
    the link can point it elsewhere at any time. None where there is none.
    """
    for status in (directory.lstat, directory.stat):
        try:
            owner = status().st_uid
        except FileNotFoundError:
            return None
        if owner not in (0, os.geteuid()):
            return owner
    return None


def _socket_of(endpoint: str) -> Path | None:
    scheme, _, path = endpoint.partition(":")
    return Path("/", path.lstrip("/")) if scheme == "unix" else None


def _runtime_directory() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        return Path(runtime) / "remora"
    return Path(f"/tmp/remora-{os.getuid()}")  # noqa: S108 - the uid keeps users apart; server and client check the owner


def resolve_endpoint(endpoint: str | None) -> str:
    """The endpoint itself if one is given, else $REMORA_ENDPOINT, else the default.

    Raises ValueError for anything but `unix:/path` and `host:port`.
    """
    chosen = endpoint or os.environ.get(ENDPOINT_VARIABLE) or default_endpoint()
    if chosen.startswith("unix:"):
        return _checked(chosen, valid=len(chosen) > len("unix:"))
    host, _, port = chosen.rpartition(":")
    return _checked(chosen, valid=bool(host) and port.isascii() and port.isdigit())


def _checked(endpoint: str, *, valid: bool) -> str:
    if not valid or _UNDECODABLE.search(endpoint):
        raise ValueError(f"an endpoint is unix:/path or host:port, not {endpoint!r}")
    return endpoint
