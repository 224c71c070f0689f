"""Which release of Remora this is."""

from __future__ import annotations

from importlib import metadata


def version_of(package: str) -> str:
    """The version of an installed package. Raises PackageNotFoundError."""
    return metadata.version(package)


def version() -> str:
    """The installed version; `source` where the code runs without being installed."""
    try:
        return version_of("remora-server")
    except metadata.PackageNotFoundError:
        return "source"
