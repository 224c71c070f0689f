"""The working memory of a conversation or a user."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from remora import _json
from remora._times import from_timestamp
from remora.v1 import memory_service_pb2


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
    return _json.to_opaque(data, "content", 1 << 20)
