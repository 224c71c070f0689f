"""Words that say whose they are: where one is seen by another, something has leaked."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable
from dataclasses import dataclass

_CANARY = re.compile(rb"zq(\d)x(\d)x(\d+)qz")
_TOKEN = re.compile(rb"[A-Za-z0-9_-]{16,}")


@dataclass(frozen=True, order=True)
class Canary:
    """A word of a tenant's user; no two are the same."""

    tenant: int
    user: int
    number: int

    def __str__(self) -> str:
        return f"zq{self.tenant}x{self.user}x{self.number}qz"


def canaries(data: bytes) -> set[Canary]:
    """The canaries in bytes, and in what base64 hides in them."""
    return {_canary(found) for part in (data, *_hidden(data)) for found in _CANARY.finditer(part)}


def _canary(found: re.Match[bytes]) -> Canary:
    return Canary(*map(int, found.groups()))


def _hidden(data: bytes) -> Iterable[bytes]:
    for found in _TOKEN.finditer(data):
        word = found[0]
        try:
            yield base64.urlsafe_b64decode(word + b"=" * (-len(word) % 4))
        except binascii.Error:
            continue
