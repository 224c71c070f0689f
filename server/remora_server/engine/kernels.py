"""The instruction sets that the engine can be told to use."""

from __future__ import annotations

from remora_server import _native


def available_kernels() -> list[str]:
    """The instruction sets that this processor supports, the slowest first."""
    return _native.available_kernels()
