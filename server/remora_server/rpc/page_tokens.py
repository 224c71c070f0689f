"""Page tokens: where a list goes on. Opaque to callers, who can neither make nor change one."""

from __future__ import annotations

import base64
import copy
import hashlib
import hmac
from dataclasses import dataclass, field
from typing import TypeAlias

from remora.v1.conversation_service_pb2 import ListConversationsRequest, ListMessagesRequest, ListStepsRequest
from remora_server.domain.errors import InvalidPageToken
from remora_server.rpc.calls import Call

ListRequest: TypeAlias = ListConversationsRequest | ListMessagesRequest | ListStepsRequest

_POSITION_BYTES, _CODE_BYTES = 8, 16
_TOKEN_LETTERS = (_POSITION_BYTES + _CODE_BYTES) * 4 // 3


@dataclass(frozen=True, slots=True)
class PageTokens:
    """Makes and reads page tokens: a position and a code (BLAKE2b with a key of 1 to 64 bytes) over it, the method, the
    tenant and the request's other fields.
    """

    key: bytes = field(repr=False)

    def make(self, call: Call, request: ListRequest, position: int) -> str:
        """The token of the page that begins at a position, 0 to 2**64 - 1."""
        encoded = position.to_bytes(_POSITION_BYTES, "big")
        return base64.urlsafe_b64encode(encoded + self._code(call, request, encoded)).decode()

    def position(self, call: Call, request: ListRequest) -> int | None:
        """Where the page begins that the request asks for, None for the first. Raises InvalidPageToken."""
        if not request.page_token:
            return None
        encoded = _decoded(request.page_token)
        position, code = encoded[:_POSITION_BYTES], encoded[_POSITION_BYTES:]
        if not hmac.compare_digest(code, self._code(call, request, position)):
            raise InvalidPageToken
        return int.from_bytes(position, "big")

    def _code(self, call: Call, request: ListRequest, position: bytes) -> bytes:
        digest = hashlib.blake2b(key=self.key, digest_size=_CODE_BYTES)
        for part in (call.method.encode(), call.tenant_id.encode(), position, _other_fields(request)):
            digest.update(len(part).to_bytes(8, "big") + part)
        return digest.digest()


def _decoded(token: str) -> bytes:
    if len(token) != _TOKEN_LETTERS:  # base64 passes over padding, wherever it stands
        raise InvalidPageToken
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True)
    except ValueError:
        raise InvalidPageToken from None


def _other_fields(request: ListRequest) -> bytes:
    others = copy.copy(request)
    others.ClearField("page_token")
    return others.SerializeToString(deterministic=True)
