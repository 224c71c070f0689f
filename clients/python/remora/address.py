"""Where a server listens by default, and whose directory that may be. Server and client share it."""

import os
from pathlib import Path

ENDPOINT_VARIABLE = "REMORA_ENDPOINT"
SOCKET_NAME = "remora.sock"


def default_endpoint() -> str:
    """The default endpoint of server and client.

    `unix:$XDG_RUNTIME_DIR/remora/remora.sock` if that variable is set, else `unix:/tmp/remora-<uid>/remora.sock`. A
    relative `$XDG_RUNTIME_DIR` is ignored (XDG Base Directory Specification).
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
    if scheme != "unix":
        return None
    return Path("/", path.lstrip("/")) if path.startswith("/") else Path(path).absolute()


def _runtime_directory() -> Path:
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    if runtime.is_absolute():
        return runtime / "remora"
    return Path(f"/tmp/remora-{os.getuid()}")  # noqa: S108 - the uid keeps users apart; server and client check the owner
