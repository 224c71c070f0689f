"""Transcripts in real encodings: the lines of a text cost what the text costs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora_server.domain.context_messages import ContextMessage
from remora_server.domain.renderings import TranscriptRenderer
from remora_server.domain.tokens import APPROXIMATE, CL100K_BASE, O200K_BASE, TokenEncoding
from remora_server.engine.tokens import NativeTokenCounter

TRICKY = st.text(alphabet=" \n\r\t\x0b\x1c\x85\u00a0\u2028\u200b\u3000/\\?!.,'s[]:aZé中1\u0301😀", max_size=12)
TEXTS = TRICKY | st.text(max_size=12)
MESSAGES = st.lists(
    st.builds(
        ContextMessage,
        conversation_id=st.just("c1"),
        sequence=st.integers(1, 1000),
        role=st.sampled_from(["user", "assistant", "/", " "]),
        name=TEXTS,
        text=TEXTS,
        encoded=st.just(b""),
        sent_time=st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999),
        session_id=st.sampled_from(["", "a"]),
    ),
    max_size=8,
    unique_by=lambda message: message.sequence,
)


@pytest.mark.parametrize("encoding", [O200K_BASE, CL100K_BASE, APPROXIMATE], ids=lambda encoding: encoding.name)
@given(messages=MESSAGES)
def test_messages_and_sittings_add_up_to_the_text(encoding: TokenEncoding, messages: list[ContextMessage]) -> None:
    tokens = NativeTokenCounter()
    renderer = TranscriptRenderer(tokens, encoding)

    rendered = renderer.render([tuple(messages)] if messages else [], [])

    sittings = {renderer.sitting(message) for message in messages}
    measure = sum(renderer.measure(messages)) + renderer.sitting_measure * len(sittings)
    whole = tokens.count(encoding, [rendered.text])[0]
    assert -(-measure // renderer.limit(1)) == whole == rendered.tokens_used
    assert rendered.overhead >= 0
