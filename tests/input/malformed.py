"""Requests that are no encoded messages, or hold text that is none: what only bytes on the wire can say."""

from __future__ import annotations

from collections.abc import Iterator

from google.protobuf.descriptor import FieldDescriptor
from tests.input.places import Place, is_map, places, put
from tests.input.table import REQUESTS, TEMPLATES, least

MARK = "\x7f" * 4
NO_TEXT = {
    "a byte that begins nothing": b"\xffabc",
    "a character that is cut off": b"abc\xc3",
    "a high surrogate": b"a\xed\xa0\x80",
    "a low surrogate": b"a\xed\xb0\x80",
    "an overlong NUL": b"ab\xc0\x80",
    "beyond the last character": b"\xf4\x90\x80\x80",
}
"""Bytes that are no UTF-8, as many as MARK has."""

NO_MESSAGE = {
    "a tag that is cut off": b"\xff",
    "a length that is cut off": b"\x0a\xff",
    "a length beyond the end": b"\x0a\x7fabc",
    "a length beyond all ends": b"\x0a\xff\xff\xff\xff\x0f",
    "a negative length": b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    "a number of eleven bytes": b"\x98\x06" + b"\xff" * 10 + b"\x01",
    "the end of a group that was not begun": b"\x0c",
    "a group that is not ended": b"\x9b\x06",
    "groups in groups": b"\x9b\x06" * 100_000,
    "a wire type that there is not": b"\x0f",
    "a fixed number that is cut off": b"\x99\x06abc",
}
"""Encodings that are no message of any kind."""


def with_no_text(request: str) -> Iterator[tuple[str, bytes]]:
    """Requests with bytes that are no text at a place where text stands, and what that is."""
    for place in places(REQUESTS[request]):
        encoded = _marked(place)
        if encoded is None:
            continue
        assert encoded.count(MARK.encode()) == 1, place
        for what, no_text in NO_TEXT.items():
            yield f"{place}: {what}", encoded.replace(MARK.encode(), no_text)


def _marked(place: Place) -> bytes | None:
    """The request with MARK as the text at a place; None where no text stands there."""
    field = place.field
    if is_map(field):
        return put(least(place.request.name), place, {MARK: {"integer": 1}}, TEMPLATES).SerializeToString()
    if field.type != FieldDescriptor.TYPE_STRING or field.is_repeated != place.of_element:
        return None
    return put(least(place.request.name), place, MARK, TEMPLATES).SerializeToString()
