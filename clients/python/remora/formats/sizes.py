"""The size of an image in a data URL, from the first bytes of PNG, GIF, WebP and JPEG."""

import base64
import binascii
import struct
from collections.abc import Iterator

UNKNOWN = (0, 0)
HEADER_CHARACTERS = 1 << 18
"""Of a data URL, how much may hold the size: metadata may come before it in a JPEG."""
JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""The markers of JPEG's frame headers (ITU T.81, table B.1)."""


def size_of_data_url(url: str) -> tuple[int, int]:
    """Width and height in pixels; UNKNOWN for other addresses and other formats."""
    head, separator, data = url.partition(";base64,")
    if not head.startswith("data:") or not separator:
        return UNKNOWN
    try:
        return size_of(base64.b64decode(data[:HEADER_CHARACTERS]))
    except (binascii.Error, struct.error, ValueError):
        return UNKNOWN


def size_of(data: bytes) -> tuple[int, int]:
    """Width and height of an image of which at least the beginning is given. Raises struct.error if it is too short."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        width, height = struct.unpack_from(">II", data, 16)
        return width, height
    if data.startswith((b"GIF87a", b"GIF89a")):
        width, height = struct.unpack_from("<HH", data, 6)
        return width, height
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return _webp_size(data)
    if data.startswith(b"\xff\xd8"):
        return next(_jpeg_sizes(data), UNKNOWN)
    return UNKNOWN


def _webp_size(data: bytes) -> tuple[int, int]:
    match data[12:16]:
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            (bits,) = struct.unpack_from("<I", data, 21)
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X":
            return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
        case _:
            return UNKNOWN


def _jpeg_sizes(data: bytes) -> Iterator[tuple[int, int]]:
    at = 2
    while at < len(data):
        marker, length = struct.unpack_from(">xBH", data, at)
        if marker in JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            yield width, height
        at += 2 + length
