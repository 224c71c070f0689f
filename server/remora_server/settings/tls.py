"""The settings of TLS, which belong together: what must be there with what."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from remora_server.settings.embedding import ChoiceError


class TlsSettings(Struct, frozen=True):
    """What TCP ports show and ask for. `client_ca` and `client_tenants` are None if clients show no certificate, or
    where it does not say their tenant.
    """

    cert: Path
    key: Path
    client_ca: Path | None = None
    client_tenants: Path | None = None


def choose(values: Mapping[str, Any]) -> TlsSettings | None:
    """The settings of TLS, None without any. Raises ChoiceError."""
    cert, key, authority, tenants = (
        values[name] for name in ("tls_cert", "tls_key", "tls_client_ca", "tls_client_tenants")
    )
    _require("tls_key", key, "tls_cert", cert)
    _require("tls_cert", cert, "tls_key", key)
    _require("tls_client_ca", authority, "tls_cert", cert)
    _require("tls_client_tenants", tenants, "tls_client_ca", authority)
    if cert is None:
        return None
    if all(endpoint.startswith("unix:") for endpoint in values["listen"]):
        raise ChoiceError("tls_cert", "is for TCP ports, and listen names none: add a host:port")
    return TlsSettings(cert, key, authority, tenants)


def _require(name: str, value: Path | None, needed: str, other: Path | None) -> None:
    if value is not None and other is None:
        raise ChoiceError(name, f"needs {needed}")
