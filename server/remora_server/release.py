"""Which release of Remora this is."""

from __future__ import annotations

from importlib import metadata


def version() -> str:
    """The installed version; `source` where the code runs without being installed."""
    try:
        return metadata.version("remora-server")
    except metadata.PackageNotFoundError:
        return "source"
