"""The lines of an export: JSON objects with a `kind`. Those between the first and the last line are records.

The first line is `{"kind":"format","version":1}`, with `user_id` or `conversation_id` if only that was exported. The
last one is `{"kind":"end","records":3}`: a file without it is not complete.
A record is its message in proto3's JSON with the contract's names: bytes in base64, 64-bit integers as text. A field of
its own that is called `kind`, which a span has, is `span_kind` there.
"""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message

from remora.v1.span_pb2 import SpanKind
from remora.v1.transfer_service_pb2 import Record

FORMAT_VERSION = 1
KINDS = frozenset(Record.DESCRIPTOR.fields_by_name)


NEITHER = "is neither the first line of an export nor OpenAI chat, a JSON object in each line"


class LineError(Exception):
    """A line breaks the format; the message says how."""


def first_line(user_id: str | None = None, conversation_id: str | None = None) -> bytes:
    """The first line of a file: an export of everything, of a user or of a conversation."""
    scope = {"user_id": user_id, "conversation_id": conversation_id}
    given = {key: value for key, value in scope.items() if value}
    return _line({"kind": "format", "version": FORMAT_VERSION, **given})


def is_first_line(line: bytes) -> bool:
    """Whether a line, which may be incomplete, is the first of an export of any scope."""
    head = first_line().removesuffix(b"}\n")
    return line.startswith((head + b"}\n", head + b",")) or first_line().startswith(line)


def last_line(records: int) -> bytes:
    """The last line of a complete file with this number of records."""
    return _line({"kind": "end", "records": records})


def is_last_line(line: bytes) -> bool:
    """Whether a line, with its line break, is the last of a complete file."""
    return line.startswith(b'{"kind":"end",') and line.endswith(b"\n")


def _line(value: dict[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def record_line(record: Record) -> bytes:
    """A record's line: the same bytes for the same record."""
    kind = str(record.WhichOneof("kind"))
    fields = MessageToDict(getattr(record, kind), preserving_proto_field_name=True)
    if "kind" in fields:
        fields[_own_kind(kind)] = fields.pop("kind")
    return _line({"kind": kind, **_sorted(fields)})


def _own_kind(kind: str) -> str:
    """What a line calls the field `kind` of its record."""
    return f"{kind}_kind"


def _sorted(value: Any) -> Any:  # noqa: ANN401 - JSON
    """The same value with sorted keys: maps have no order."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(element) for element in value] if isinstance(value, list) else value


def parse_line(line: bytes) -> dict[str, Any]:
    """A line's object. Raises LineError."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        raise LineError("is not JSON") from None
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        raise LineError("is not an object with a kind")
    return value


def require_kind(line: bytes) -> None:
    """Refuse a first line that cannot begin an export, where there is one. Raises LineError."""
    if line and b'"kind"' not in line:
        raise LineError(NEITHER)


def require_format(value: dict[str, Any]) -> None:
    """Refuse a first line that does not begin an export. Raises LineError."""
    if value["kind"] != "format":
        raise LineError(NEITHER)
    if value.get("version") != FORMAT_VERSION:
        raise LineError(f"says format {value.get('version')}; this version of Remora reads {FORMAT_VERSION}")


def parse_record(value: dict[str, Any]) -> Record:
    """The record of a line's object. Raises LineError."""
    kind = value.pop("kind")
    if kind in SpanKind.keys():  # noqa: SIM118 - an enum of protobuf
        value[_own_kind("span")], kind = kind, "span"  # files have such lines in which the span's kind is the line's
    if kind not in KINDS:
        raise LineError(f"has the unknown kind {kind}")
    if _own_kind(kind) in value:
        value["kind"] = value.pop(_own_kind(kind))
    record = Record()
    part: Message = getattr(record, kind)
    part.SetInParent()
    try:
        ParseDict(value, part)
    except (ParseError, SystemError) as error:  # the latter for half a surrogate pair where a name is expected
        raise LineError(f"is not a record of the kind {kind}: {' '.join(str(error).split())}") from None
    return record
