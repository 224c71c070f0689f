"""Histories for tests of trimming: messages whose cost is easy to tell."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from msgspec import Struct

from remora_server.domain.costs import ToolCall
from remora_server.domain.images import Image
from remora_server.domain.tool_pairs import Span, ToolUse, uses_of

PER_MESSAGE = 4
"""What a message costs besides its text: 3, and 1 for the role."""


class Said(Struct, frozen=True):
    """One message. Its text costs a token for each character, its calls nothing."""

    role: str
    text: str = ""
    calls: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    arguments: str = ""
    tool: str = "look_up"
    name: str = ""
    token_count: int | None = None
    images: tuple[Image, ...] = ()
    uncounted: tuple[str, ...] = ()

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return tuple(ToolCall(call_id, self.tool, self.arguments) for call_id in self.calls)

    @property
    def tool_result_ids(self) -> tuple[str, ...]:
        return self.answers


class SaidHistory:
    """A history of such messages. `counted` are the ranges that were counted."""

    def __init__(self, messages: Sequence[Said]) -> None:
        self.messages = messages
        self.counted: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self.messages)

    def role(self, index: int) -> str:
        return self.messages[index].role

    def opens_turn(self, index: int) -> bool:
        return self.messages[index].role == "user" and not self.messages[index].answers

    def tool_uses(self, begin: int, end: int) -> list[ToolUse]:
        said = enumerate(self.messages[begin:end], start=begin)
        return [use for index, message in said for use in uses_of(index, message.calls, message.answers)]

    def costs(self, begin: int, end: int) -> list[int]:
        self.counted.append((begin, end))
        return [cost(message) for message in self.messages[begin:end]]

    def divisible_text(self, index: int) -> str:
        message = self.messages[index]
        return "" if message.calls or message.answers else message.text

    def tokens(self, text: str) -> int:
        return len(text)


def cost(message: Said) -> int:
    return PER_MESSAGE + len(message.text)


def pairs(messages: Sequence[Said]) -> set[Span]:
    """Each result with the newest call of its id before it, found the slow way."""
    found = set()
    for index, message in enumerate(messages):
        for call_id in message.answers:
            callers = [caller for caller in range(index + 1) if call_id in messages[caller].calls]
            if callers:
                found.add((callers[-1], index))
    return found


IDS = st.lists(st.sampled_from("abc"), max_size=2).map(tuple)
TEXTS = st.text(st.sampled_from("x\n"), max_size=8)
MESSAGES = st.one_of(
    st.builds(Said, st.sampled_from(["user", "assistant", "system", "developer"]), TEXTS),
    st.builds(Said, st.just("assistant"), TEXTS, calls=IDS),
    st.builds(Said, st.just("tool"), TEXTS, answers=IDS),
    st.builds(Said, st.just("user"), TEXTS, answers=IDS),
)
HISTORIES = st.lists(MESSAGES, max_size=12)
