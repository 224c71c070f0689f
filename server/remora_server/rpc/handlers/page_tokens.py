"""Page tokens: where a list continues. They are encrypted, because a position may hold ids, which do not belong into
logs, and authenticated, so that callers can neither make nor change one.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import hmac
import struct
from typing import TypeAlias, TypeVar

from msgspec import DecodeError, msgpack

from remora.v1.checkpoint_service_pb2 import ListChannelHistoryRequest, ListCheckpointsRequest, ListThreadsRequest
from remora.v1.conversation_service_pb2 import ListConversationsRequest, ListMessagesRequest
from remora.v1.history_service_pb2 import (
    ListEntryStepsRequest,
    ListHistoryEntriesRequest,
    ListLogRecordsRequest,
    ListSpansRequest,
    ListStepsRequest,
    ListTimelineEventsRequest,
    ListTracesRequest,
)
from remora.v1.memory_service_pb2 import (
    ListFactsRequest,
    ListMemoryItemsRequest,
    ListReceiptsRequest,
    SearchMessagesRequest,
)
from remora.v1.store_service_pb2 import ListNamespacesRequest
from remora.v1.transfer_service_pb2 import ExportRecordsRequest
from remora.v1.vector_service_pb2 import ListCollectionsRequest
from remora.v1.workflow_service_pb2 import ListWorkflowIdsRequest, ListWorkflowRunsRequest, ListWorkflowStepsRequest
from remora_server.domain.errors import InvalidPageToken
from remora_server.rpc.calls import Call

ListRequest: TypeAlias = (
    ListChannelHistoryRequest
    | ListCheckpointsRequest
    | ListThreadsRequest
    | ListCollectionsRequest
    | ListConversationsRequest
    | ListEntryStepsRequest
    | ListHistoryEntriesRequest
    | ListLogRecordsRequest
    | ListSpansRequest
    | ListTracesRequest
    | ListFactsRequest
    | ListMemoryItemsRequest
    | ListReceiptsRequest
    | ListMessagesRequest
    | ListNamespacesRequest
    | ListStepsRequest
    | ListTimelineEventsRequest
    | ListWorkflowIdsRequest
    | ListWorkflowRunsRequest
    | ListWorkflowStepsRequest
    | ExportRecordsRequest
    | SearchMessagesRequest
)

P = TypeVar("P")

_CODE_BYTES = 16

_length = struct.Struct(">Q").pack


class PageTokens:
    """Makes and reads page tokens: a position and a code (BLAKE2b with a key of 1 to 64 bytes) over it, the method, the
    tenant and the fields that say which list it is. The code is also the synthetic initialization vector with
    which the position is encrypted (the construction of RFC 5297), by a stream of SHAKE256.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def make(self, call: Call, request: ListRequest, position: object) -> str:
        """The token of the page that begins at a position: a number, a tuple or a Struct, in MessagePack."""
        encoded = msgpack.encode(position)
        code = self._code(call, request, encoded)
        return _encoded(self._encrypted(encoded, code) + code)

    def position(self, call: Call, request: ListRequest, kind: type[P]) -> P | None:
        """Where the requested page begins; None for the first page. Raises InvalidPageToken."""
        if not request.page_token:
            return None
        token = _decoded(request.page_token)
        code = token[-_CODE_BYTES:]
        encoded = self._encrypted(token[:-_CODE_BYTES], code)
        if not hmac.compare_digest(code, self._code(call, request, encoded)):
            raise InvalidPageToken
        try:
            return msgpack.decode(encoded, type=kind)
        except DecodeError:  # a position of another version of the server
            raise InvalidPageToken from None

    def _encrypted(self, position: bytes, code: bytes) -> bytes:
        """The position encrypted, or decrypted if it is encrypted."""
        size = len(position)
        stream = hashlib.shake_256(b"position" + self._key + code).digest(size)
        return (int.from_bytes(position) ^ int.from_bytes(stream)).to_bytes(size)

    def _code(self, call: Call, request: ListRequest, position: bytes) -> bytes:
        method, tenant, others = call.method.encode(), call.tenant_id.encode(), _other_fields(request)
        parts = (
            _length(len(method)), method, _length(len(tenant)), tenant,
            _length(len(position)), position, _length(len(others)), others,
        )  # fmt: skip
        return hashlib.blake2b(b"".join(parts), key=self._key, digest_size=_CODE_BYTES).digest()


def _decoded(token: str) -> bytes:
    try:
        decoded = base64.b64decode(token, altchars=b"-_", validate=True)
    except ValueError:
        raise InvalidPageToken from None
    if _encoded(decoded) != token:  # base64 ignores padding, and bits that it does not need
        raise InvalidPageToken
    return decoded


def _encoded(token: bytes) -> str:
    return base64.urlsafe_b64encode(token).decode()


def _other_fields(request: ListRequest) -> bytes:
    """Those that say which list it is. Pages of a list may have other sizes, and clients raise `min_revision` with each
    write, also between two pages.
    """
    others = copy.copy(request)
    others.ClearField("page_token")
    others.ClearField("min_revision")
    if not isinstance(others, SearchMessagesRequest):
        others.ClearField("page_size")
    return others.SerializeToString(deterministic=True)
