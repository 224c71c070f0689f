"""TLS: how a client recognises the server, and what it shows of itself."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import grpc

from remora import _refusals
from remora._arguments import checked_fields

File: TypeAlias = str | os.PathLike[str]
"""The path of a file in PEM."""

_CONTENTS = {
    "ca_file": ("certificate", re.compile(rb"-----BEGIN [A-Z0-9 ]*CERTIFICATE-----")),
    "cert_file": ("certificate", re.compile(rb"-----BEGIN [A-Z0-9 ]*CERTIFICATE-----")),
    "key_file": ("private key", re.compile(rb"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----")),
}
"""What each file holds, and how that begins. With an empty file of authorities gRPC would trust all public ones."""


@checked_fields
@dataclass(frozen=True, slots=True)
class Tls:
    """How a client speaks TLS. The files are in PEM, and are read when it connects.

    Attributes:
        ca_file: The authorities that may have signed the server's certificate; None: gRPC's own list of public ones.
        cert_file: The client's certificate, for a server that requires one; its authorities may follow in the file.
        key_file: The key of that certificate.
        server_name: The name that the server's certificate must have; None: the host of the endpoint.
    """

    ca_file: File | None = None
    cert_file: File | None = None
    key_file: File | None = None
    server_name: str | None = None

    def __post_init__(self) -> None:
        """Raises InvalidFieldError for a certificate without its key, or the other way round."""
        for given, missing in (("cert_file", "key_file"), ("key_file", "cert_file")):
            if getattr(self, given) is not None and getattr(self, missing) is None:
                raise _refusals.invalid(given, f"needs {missing}")

    def credentials(self) -> grpc.ChannelCredentials:
        """What gRPC connects with. Raises InvalidFieldError for a file that cannot be read or is of another kind."""
        return grpc.ssl_channel_credentials(
            _content("ca_file", self.ca_file),
            _content("key_file", self.key_file),
            _content("cert_file", self.cert_file),
        )


def require_tcp(endpoint: str, tls: Tls | None) -> None:
    """Raises InvalidFieldError for TLS over a Unix socket, which has none."""
    if tls is not None and endpoint.startswith("unix:"):
        raise _refusals.invalid("tls", f"is for host:port, and the endpoint is {endpoint!r}; leave it out")


def channel_options(options: tuple[tuple[str, str | int], ...], tls: Tls | None) -> tuple[tuple[str, str | int], ...]:
    """The options of a channel. With TLS, the server is named by its host, which its certificate must have."""
    if tls is None:
        return options
    named = tuple(option for option in options if option[0] != "grpc.default_authority")
    return named if tls.server_name is None else (*named, ("grpc.ssl_target_name_override", tls.server_name))


def _content(field: str, file: File | None) -> bytes | None:
    if file is None:
        return None
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise _refusals.invalid(f"tls.{field}", f"cannot be read: {os.fspath(file)}: {error.strerror}") from error
    what, beginning = _CONTENTS[field]
    if not beginning.search(content):
        raise _refusals.invalid(f"tls.{field}", f"holds no {what} in PEM: {os.fspath(file)}")
    return content
