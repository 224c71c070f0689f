"""Transcripts, quotations and system prompts in real encodings: the lines of a text cost what the text costs."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from remora_server.domain.context import Merge, Section
from remora_server.domain.context_messages import ContextMessage
from remora_server.domain.costs import REPLY_PRIMING, Counting
from remora_server.domain.renderings import (
    EARLIER_ROLE,
    ChatRenderer,
    Chosen,
    Renderer,
    SystemPromptRenderer,
    TranscriptRenderer,
)
from remora_server.domain.tokens import APPROXIMATE, CL100K_BASE, O200K_BASE, TokenEncoding
from remora_server.engine.tokens import NativeTokenCounter

TRICKY = st.text(alphabet=" \n\r\t\x0b\x1c\x85\u00a0\u2028\u200b\u3000/\\?!.,'s[]:aZé中1\u0301😀", max_size=12)
TEXTS = TRICKY | st.text(max_size=12)
MESSAGES = st.lists(
    st.builds(
        ContextMessage,
        conversation_id=st.sampled_from(["c1", "/ c2\n"]),
        sequence=st.integers(1, 1000),
        role=st.sampled_from(["user", "assistant", "/", " "]),
        name=TEXTS,
        text=TEXTS,
        encoded=st.just(b""),
        sent_time=st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999),
        session_id=st.sampled_from(["", "a"]),
    ),
    max_size=8,
    unique_by=lambda message: message.place,
)


ENCODINGS = pytest.mark.parametrize(
    "encoding", [O200K_BASE, CL100K_BASE, APPROXIMATE], ids=lambda encoding: encoding.name
)
COUNTER = NativeTokenCounter()


def measured(renderer: Renderer, section: Section, messages: list[ContextMessage]) -> int:
    """The measure of a context of nothing but these messages."""
    measured = renderer.measured(section, messages)
    shares = dict(share for shared in measured.shares for share in shared)
    return renderer.fixed + sum(measured.measures) + sum(shares.values())


@ENCODINGS
@given(messages=MESSAGES)
def test_messages_and_sessions_add_up_to_the_text(encoding: TokenEncoding, messages: list[ContextMessage]) -> None:
    renderer = TranscriptRenderer(Counting(COUNTER, encoding))

    rendered = renderer.render(Chosen(None, (), [tuple(messages)]))

    whole = COUNTER.count(encoding, [rendered.text])[0]
    assert renderer.tokens(measured(renderer, Section.RECENT, messages)) == whole == rendered.tokens_used
    assert rendered.overhead >= 0


@ENCODINGS
@given(messages=MESSAGES.filter(bool))
def test_quoted_messages_add_up_to_the_message_that_quotes_them(
    encoding: TokenEncoding, messages: list[ContextMessage]
) -> None:
    counting = Counting(COUNTER, encoding)
    renderer = ChatRenderer(counting, Merge.EARLIER, "c1")

    rendered = renderer.render(Chosen(None, [tuple(messages)], ()))

    quotation = ContextMessage("", 0, EARLIER_ROLE, rendered.earlier, b"")
    whole = REPLY_PRIMING + counting.messages([quotation])[0]
    assert rendered.tokens_used == whole <= renderer.tokens(measured(renderer, Section.RECALLED, messages)) <= whole + 1
    assert encoding == APPROXIMATE or renderer.tokens(measured(renderer, Section.RECALLED, messages)) == whole
    assert rendered.overhead >= 0


@ENCODINGS
@given(text=TEXTS, messages=MESSAGES.filter(bool))
@example(text="Be brief.", messages=[ContextMessage("c1", 1, "user", "tea", b"")])
def test_a_system_text_and_what_is_recalled_add_up_to_the_system_prompt(
    encoding: TokenEncoding, text: str, messages: list[ContextMessage]
) -> None:
    counting = Counting(COUNTER, encoding)
    system = ContextMessage("c1", 0, "system", text, b"")
    renderer = SystemPromptRenderer(counting, system)

    rendered = renderer.render(Chosen(system, [tuple(messages)], ()))

    whole = REPLY_PRIMING + counting.messages([ContextMessage("", 0, "system", rendered.memory, b"")])[0]
    least = sum(renderer.measured(Section.SYSTEM, [system]).measures) + measured(renderer, Section.RECALLED, messages)
    assert rendered.tokens_used == whole <= renderer.tokens(least) <= whole + 1
    assert encoding == APPROXIMATE or renderer.tokens(least) == whole
