"""How a call ended, from a reply's headers, as much of HPACK (RFC 7541) as that takes."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status
from tests.network.frames import END_STREAM, HEADERS, Peer

_LETTERS = {
    5: "012aceiost", 6: " %-./3456789=A_bdfghlmnpru", 7: ":BCDEFGHIJKLMNOPQRSTUVWYjkqvwxyz", 8: "&*,;XZ",
}  # fmt: skip
"""Letters by the bits of their Huffman codes, which are consecutive numbers (appendix B)."""


def _codes() -> Iterator[tuple[str, str]]:
    code = 0
    for bits, letters in _LETTERS.items():
        code <<= 1
        for letter in letters:
            yield letter, format(code, f"0{bits}b")
            code += 1
    yield "+", "11111111011"


_CODES = dict(_codes())
_OF_CODES = {code: letter for letter, code in _CODES.items()}


def _huffman(text: str) -> bytes:
    bits = "".join(_CODES[letter] for letter in text)
    bits += "1" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


def _plain(encoded: bytes) -> str:
    """Text from its Huffman codes, behind which ones fill a byte."""
    text, code = "", ""
    for bit in f"{int.from_bytes(encoded, 'big'):0{8 * len(encoded)}b}":
        code += bit
        if code in _OF_CODES:
            text, code = text + _OF_CODES[code], ""
    assert set(code) <= {"1"}, "a letter is not known here"
    return text


def _value(block: bytes, name: str) -> str | None:
    """A header's value in a block that no table abbreviates, None where it is not there."""
    packed = _huffman(name)
    for form in (bytes([0x80 | len(packed)]) + packed, bytes([len(name)]) + name.encode()):
        _, found, rest = block.partition(form)
        if found:
            return _string(rest)
    return None


def _string(encoded: bytes) -> str:
    """The string literal at the front (5.2); its length is an integer with a prefix of 7 bits (5.1)."""
    length, start = encoded[0] & 0x7F, 1
    if length == 0x7F:
        last = next(place for place in count(1) if encoded[place] < 0x80)
        length += sum((encoded[place] & 0x7F) << 7 * (place - 1) for place in range(1, last + 1))
        start = last + 1
    content = encoded[start : start + length]
    return _plain(content) if encoded[0] & 0x80 else content.decode()


@dataclass(frozen=True)
class Ended:
    """A call's code, and its reason where it has one."""

    code: int
    reason: str


def ended(peer: Peer) -> Ended:
    """How the first call of a connection ends. Raises TimeoutError where it does not."""
    for came in peer.frames():
        if came.kind == HEADERS and came.flags & END_STREAM:
            code, details = _value(came.body, "grpc-status"), _value(came.body, "grpc-status-details-bin")
            assert code is not None
            return Ended(int(code), _reason(details or ""))
    raise AssertionError("the server closed the connection")


def _reason(details: str) -> str:
    status, info = Status.FromString(base64.b64decode(details + "=" * (-len(details) % 4))), ErrorInfo()
    return info.reason if any(detail.Unpack(info) for detail in status.details) else ""


def status_of(peer: Peer) -> int:
    """The code that the first call of a connection ends with. Raises TimeoutError where it does not end."""
    return ended(peer).code
