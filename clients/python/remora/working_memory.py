"""The working memory of a conversation or a user."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self, TypeAlias

from remora import _json, _refusals
from remora._times import from_timestamp
from remora.v1 import memory_service_pb2, working_memory_pb2

Mode: TypeAlias = Literal["replace", "append"]
"""How an edit changes what is there."""

MOST_CONTENT, MOST_SCHEMA = 1 << 20, 1 << 16
_MODES = {
    "replace": working_memory_pb2.WORKING_MEMORY_MODE_REPLACE,
    "append": working_memory_pb2.WORKING_MEMORY_MODE_APPEND,
}


@dataclass(frozen=True, slots=True)
class WorkingMemoryContent:
    """The content of a working memory.

    Attributes:
        content: Byte for byte as it was set.
        update_time: When it was set.
    """

    content: bytes
    update_time: datetime

    @property
    def text(self) -> str:
        """The content as text. Raises UnicodeDecodeError if it is not UTF-8."""
        return self.content.decode()

    def json(self) -> Any:  # noqa: ANN401 - only the caller knows what the JSON holds
        """The content parsed. Raises ValueError if it is not JSON."""
        return _json.loads(self.content)

    @classmethod
    def from_proto(cls, response: memory_service_pb2.GetWorkingMemoryResponse) -> Self | None:
        """The content from the wire; None if there is none."""
        return cls(response.content, from_timestamp(response.update_time)) if response.found else None


def content_bytes(content: object) -> bytes:
    """The bytes to keep: text in UTF-8, bytes as they are, anything else as JSON."""
    data = content.encode() if isinstance(content, str) else content
    return _json.to_opaque(data, "content", MOST_CONTENT)


def edit_request(
    content: object, mode: Mode, schema: dict[str, Any] | None
) -> memory_service_pb2.EditWorkingMemoryRequest:
    """An edit of what its `scope` will say. Raises InvalidFieldError, RequestTooLargeError."""
    if content is None or isinstance(content, bytes):
        raise _refusals.invalid("content", "must be text or what JSON can hold, not None or bytes; set() takes bytes")
    is_markdown = isinstance(content, str) and schema is None
    formats = working_memory_pb2.WorkingMemoryFormat
    return memory_service_pb2.EditWorkingMemoryRequest(
        content=content_bytes(content).decode(),
        mode=_MODES[mode],
        format=formats.WORKING_MEMORY_FORMAT_MARKDOWN if is_markdown else formats.WORKING_MEMORY_FORMAT_JSON,
        json_schema=_json.to_opaque(schema, "schema", MOST_SCHEMA).decode(),
    )
