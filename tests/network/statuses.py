"""The code in a reply's headers, as much of HPACK (RFC 7541) as that takes."""

from __future__ import annotations

from tests.network.frames import END_STREAM, HEADERS, Peer

_CODES = {
    "g": "100110", "r": "101100", "p": "101011", "c": "00100", "-": "010110", "s": "01000", "t": "01001",
    "a": "00011", "u": "101101", "0": "00000", "1": "00001", "2": "00010", "3": "011001", "4": "011010",
    "5": "011011", "6": "011100", "7": "011101", "8": "011110", "9": "011111",
}  # fmt: skip
"""Huffman codes of the letters of `grpc-status` and of digits (appendix B)."""


def _huffman(text: str) -> bytes:
    bits = "".join(_CODES[letter] for letter in text)
    bits += "1" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8, "big")


_NAMES = (_huffman("grpc-status"), b"grpc-status")
_VALUES = {form: code for code in range(17) for form in (_huffman(str(code)), str(code).encode())}


def status_of(peer: Peer) -> int:
    """The code that the first call of a connection ends with. Raises TimeoutError where it does not end."""
    for came in peer.frames():
        if came.kind == HEADERS and came.flags & END_STREAM:
            rest = next(came.body.partition(name)[2] for name in _NAMES if name in came.body)
            length = rest[0] & 0x7F
            return _VALUES[rest[1 : 1 + length]]
    raise AssertionError("the server closed the connection")
