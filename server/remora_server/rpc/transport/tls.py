"""TLS on TCP ports: the files of certificates, read for the Rust module."""

from __future__ import annotations

import datetime as dt
import time
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from remora_server import _native
from remora_server.rpc.private_files import CHMOD, CredentialFileError, ExposedError, read_private

Tls: TypeAlias = _native.Tls
"""The certificates that TCP ports show and ask for on new connections."""

DAY_SECONDS = 86_400
SOON_SECONDS = 7 * DAY_SECONDS
"""A certificate that expires sooner than this is reported, because automatic renewal happens earlier."""


class TlsFileError(CredentialFileError):
    """A file of TLS cannot be read or used; the message names it and its setting."""


class TlsFiles(Struct, frozen=True):
    """Where the server's certificate and key are, and the authorities of clients, if these show certificates."""

    cert: Path
    key: Path
    client_ca: Path | None = None

    def open(self) -> Tls:
        """The present content of the files. Raises TlsFileError."""
        contents = self._read()
        try:
            return Tls(*contents)
        except ValueError as error:
            raise self._unusable(error) from error

    def reread(self, tls: Tls) -> None:
        """Use the present content for new connections. Raises TlsFileError, and then changes nothing."""
        contents = self._read()
        try:
            tls.replace(*contents)
        except ValueError as error:
            raise self._unusable(error) from error

    def all(self) -> tuple[Path, ...]:
        """The files."""
        return (self.cert, self.key) if self.client_ca is None else (self.cert, self.key, self.client_ca)

    def expiry_complaint(self) -> str:
        """Why the server's certificate is invalid now or soon; empty if it is not. Raises TlsFileError."""
        try:
            expiry = Tls.expiry(_read("tls_cert", self.cert))
        except ValueError as error:
            raise self._unusable(error) from error
        day = dt.datetime.fromtimestamp(expiry, dt.UTC).date().isoformat()
        if expiry <= time.time():
            return f"the certificate of tls_cert expired on {day}: clients refuse it"
        if expiry < time.time() + SOON_SECONDS:
            return f"the certificate of tls_cert expires on {day}"
        return ""

    def _read(self) -> tuple[bytes, bytes, bytes | None]:
        client_ca = None if self.client_ca is None else _read("tls_client_ca", self.client_ca)
        return _read("tls_cert", self.cert), _read_key(self.key), client_ca

    def _unusable(self, error: ValueError) -> TlsFileError:
        argument, why = error.args
        setting, file = {
            "chain": ("tls_cert", self.cert),
            "key": ("tls_key", self.key),
            "client_ca": ("tls_client_ca", self.client_ca),
        }[argument]
        return TlsFileError(f"{setting}: {file}: {why}", _remedy(setting))


def _read(setting: str, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise TlsFileError(f"{setting}: {file}: {error.strerror}", _remedy(setting)) from error


def _read_key(file: Path) -> bytes:
    try:
        return read_private(file)
    except ExposedError:
        raise TlsFileError(f"tls_key: every user of this machine can read or change {file}", CHMOD) from None
    except OSError as error:
        raise TlsFileError(f"tls_key: {file}: {error.strerror}", _remedy("tls_key")) from error


def _remedy(setting: str) -> str:
    return f"name a file in PEM that fits (--{setting.replace('_', '-')})"
