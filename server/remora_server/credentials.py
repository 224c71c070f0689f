"""The credentials that the settings name: read at the start, and again when their files change."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, Self, TypeVar

from msgspec import Struct

from remora_server.rpc.client_certificates import CertificateTenants
from remora_server.rpc.identity import Tokens
from remora_server.rpc.rereading import Source, state_of
from remora_server.rpc.transport.tls import Tls, TlsFiles
from remora_server.settings.settings import Settings

logger = logging.getLogger(__name__)


def is_guarded(settings: Settings) -> bool:
    """Whether a caller who comes over TCP must show a token or a certificate."""
    return settings.token_file is not None or settings.tls_client_ca is not None


def tls_files(settings: Settings) -> TlsFiles | None:
    """The files of TLS; None without it."""
    tls = settings.tls
    return None if tls is None else TlsFiles(tls.cert, tls.key, tls.client_ca)


class Credentials(Struct, frozen=True):
    """What callers are told by, and what TCP ports show; None if it is not set. `sources`: what they came from."""

    tokens: Tokens | None
    certificates: CertificateTenants | None
    tls: Tls | None
    sources: tuple[Source, ...]


def open_credentials(settings: Settings) -> Credentials:
    """Read the files. Raises CredentialFileError, which names the file."""
    tenants = None if settings.tls is None else settings.tls.client_tenants
    sources: list[Source] = []
    return Credentials(
        tokens=_open(settings.token_file, Tokens.read, sources),
        certificates=_open(tenants, CertificateTenants.read, sources),
        tls=_open_tls(tls_files(settings), sources),
        sources=tuple(sources),
    )


def warn_of_expiry(files: TlsFiles | None) -> None:
    """Log that the server's certificate has expired or soon will. Raises TlsFileError."""
    if files is not None and (complaint := files.expiry_complaint()):
        logger.warning("%s", complaint, extra={"file": str(files.cert)})


class _Replaceable(Protocol):
    def take(self, other: Self) -> None: ...


_Read = TypeVar("_Read", bound=_Replaceable)


def _open(file: Path | None, read: Callable[[Path], _Read], sources: list[Source]) -> _Read | None:
    """What a file holds; the file joins the sources."""
    if file is None:
        return None
    state = state_of((file,))
    found = read(file)
    sources.append(Source((file,), state, lambda: found.take(read(file))))
    return found


def _open_tls(files: TlsFiles | None, sources: list[Source]) -> Tls | None:
    if files is None:
        return None
    state = state_of(files.all())
    tls = files.open()

    def reread() -> None:
        files.reread(tls)
        warn_of_expiry(files)

    sources.append(Source(files.all(), state, reread))
    return tls
