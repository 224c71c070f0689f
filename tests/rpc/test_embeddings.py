"""Which embeddings a request may have, compared with the numbers that their bytes are."""

from __future__ import annotations

import math
import struct

from hypothesis import given
from hypothesis import strategies as st

from remora.v1.conversation_service_pb2 import AppendMessagesRequest
from remora.v1.message_pb2 import Embedding, Message
from remora_server.domain.errors import InvalidField
from remora_server.rpc.checks.limits import Limits

LIMITS = Limits(lambda _model: 0)
ZEROS, TINY = (0x0000_0000, 0x8000_0000), (0x0000_0001, 0x807F_FFFF)
LARGEST, ENDLESS = (0x7F7F_FFFF, 0xFF7F_FFFF), (0x7F80_0000, 0xFF80_0000, 0x7FC0_0000, 0xFFFF_FFFF)
bits = st.one_of(
    st.sampled_from(ZEROS), st.sampled_from([*ZEROS, *TINY, *LARGEST, *ENDLESS]), st.integers(0, 0xFFFF_FFFF)
)


def why_refused(values: bytes) -> str:
    numbers = struct.unpack(f"<{len(values) // 4}f", values)
    if not all(map(math.isfinite, numbers)):
        return "must be finite"
    return "" if any(numbers) else "must not be all zero"


def refusal(request: AppendMessagesRequest) -> str:
    try:
        LIMITS.rules(AppendMessagesRequest)(request)
    except InvalidField as error:
        return f"{error.field} {error.description}"
    return ""


@given(st.lists(bits, min_size=1, max_size=12))
def test_an_embedding_is_finite_and_points_somewhere(given_bits: list[int]) -> None:
    values = struct.pack(f"<{len(given_bits)}I", *given_bits)
    message = Message(role="user", text="x", embedding=Embedding(model="m", values=values))
    request = AppendMessagesRequest(conversation_id="c", messages=[message])

    assert refusal(request) == (why_refused(values) and f"messages[0].embedding.values {why_refused(values)}")
