"""Keys of records as bytes whose order is that of their parts. Every part delimits itself, so that encodings can be
joined, and what stands for the leading parts is a prefix of the whole.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, TypeAlias

KeyPart: TypeAlias = str | int | Sequence[str]

_NUL, _ESCAPED_NUL = b"\x00", b"\x00\xff"
_TEXT_END, _LIST_END = b"\x00\x01", b"\x00\x00"
_UNSIGNED = struct.Struct(">Q")
_SIGN = 1 << 63


class KeyType(Enum):
    """What a part of a key is."""

    TEXT = "text"
    TEXTS = "texts"
    UNSIGNED = "unsigned"
    SIGNED = "signed"


def encode(types: Iterable[KeyType], parts: Iterable[KeyPart]) -> bytes:
    """The parts of a key, one for each type. Integers have 64 bits."""
    return encoder(types)(parts)


def encoder(types: Iterable[KeyType]) -> Callable[[Iterable[KeyPart]], bytes]:
    """The same for many keys of these types."""
    encoders = [_ENCODERS[kind] for kind in types]

    def encode_parts(parts: Iterable[KeyPart]) -> bytes:
        return b"".join([encode_part(part) for encode_part, part in zip(encoders, parts, strict=True)])

    return encode_parts


def encode_leading_texts(texts: Iterable[str]) -> bytes:
    """What every list of texts begins with that begins with these."""
    return b"".join(map(_text, texts))


def _text(text: str) -> bytes:
    encoded = text.encode()
    return (encoded.replace(_NUL, _ESCAPED_NUL) if _NUL in encoded else encoded) + _TEXT_END


def _texts(texts: Iterable[str]) -> bytes:
    return encode_leading_texts(texts) + _LIST_END


def _signed(number: int) -> bytes:
    return _UNSIGNED.pack(number + _SIGN)


_ENCODERS: Mapping[KeyType, Callable[[Any], bytes]] = {
    KeyType.TEXT: _text,
    KeyType.TEXTS: _texts,
    KeyType.UNSIGNED: _UNSIGNED.pack,
    KeyType.SIGNED: _signed,
}


def decode(types: Iterable[KeyType], data: bytes) -> tuple[KeyPart, ...]:
    """The parts of an encoded key. Raises ValueError if it is not a valid key."""
    parts: list[KeyPart] = []
    offset = 0
    for kind in types:
        part, offset = _decode(kind, data, offset)
        parts.append(part)
    if offset != len(data):
        raise ValueError("bytes follow the last part of a key")
    return tuple(parts)


def _decode(kind: KeyType, data: bytes, offset: int) -> tuple[KeyPart, int]:
    if kind is KeyType.TEXT:
        return _decode_text(data, offset)
    if kind is KeyType.TEXTS:
        return _decode_texts(data, offset)
    if len(data) < offset + _UNSIGNED.size:
        raise ValueError("an integer of a key is cut short")
    [number] = _UNSIGNED.unpack_from(data, offset)
    return number - _SIGN if kind is KeyType.SIGNED else number, offset + _UNSIGNED.size


def _decode_text(data: bytes, offset: int) -> tuple[str, int]:
    end = data.find(_NUL, offset)
    while end >= 0 and data[end : end + 2] == _ESCAPED_NUL:
        end = data.find(_NUL, end + 2)
    if end < 0 or data[end : end + 2] != _TEXT_END:
        raise ValueError("a text of a key has no end")
    return data[offset:end].replace(_ESCAPED_NUL, _NUL).decode(), end + 2


def _decode_texts(data: bytes, offset: int) -> tuple[tuple[str, ...], int]:
    texts: list[str] = []
    while data[offset : offset + 2] != _LIST_END:
        text, offset = _decode_text(data, offset)
        texts.append(text)
    return tuple(texts), offset + 2
