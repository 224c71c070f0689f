"""The messages of a context, and the units of messages that a model must see together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol, TypeAlias

from msgspec import Struct

from remora_server.domain.costs import ToolCall
from remora_server.domain.facts import StaticFact
from remora_server.domain.images import Image
from remora_server.domain.tool_pairs import pair_tools, uses_among

USER, ASSISTANT, SYSTEM = "user", "assistant", "system"
SYSTEM_ROLES = (SYSTEM, "developer")
"""Roles that decide a message's place. OpenAI has two names for the role of instructions."""

Place: TypeAlias = tuple[str, int]
"""A message's conversation id and sequence."""


class ContextMessage(Struct, frozen=True, gc=False):
    """The parts of a message that decide its place in a context. `encoded` is the message in wire form, and `fact` the
    fact of a user that it was made of; both are opaque to the domain.

    `sent_time` is the server's create time if the caller gave none. The rest is as in `domain.costs.ChatMessage`. What
    contexts make for each message is without `gc`: it is never part of a cycle, and looking for cycles among it takes a
    twentieth of an assembly.
    """

    conversation_id: str
    sequence: int
    role: str
    text: str
    encoded: bytes
    name: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_result_ids: tuple[str, ...] = ()
    sent_time: int = 0
    session_id: str = ""
    token_count: int | None = None
    images: tuple[Image, ...] = ()
    uncounted: tuple[str, ...] = ()
    id: str = ""
    fact: bytes = b""

    @property
    def place(self) -> Place:
        return self.conversation_id, self.sequence

    @property
    def uses_tools(self) -> bool:
        return bool(self.tool_calls or self.tool_result_ids)

    @property
    def opens_turn(self) -> bool:
        """Whether a user speaks. Anthropic's tool results have the role `user`, too."""
        return self.role == USER and not self.tool_result_ids

    @property
    def is_answer(self) -> bool:
        """Whether the model speaks to the user."""
        return self.role == ASSISTANT and bool(self.text) and not self.uses_tools


class MessageReader(Protocol):
    """Reads messages out of their wire form, and writes those that a context makes."""

    def message(self, conversation_id: str, encoded: bytes) -> ContextMessage:
        """One message."""

    def page(self, conversation_id: str, encoded: bytes) -> list[ContextMessage]:
        """The messages of `domain.messages.MessagePage.encoded`, in its order."""

    def system(self, text: str, token_count: int) -> ContextMessage:
        """A system text of so many tokens (in o200k_base) as a message of no conversation."""

    def summary(
        self, conversation_id: str, user_id: str, text: str, token_count: int, *, revision: int
    ) -> ContextMessage:
        """What stands before a window, of so many tokens (in o200k_base), as a message of the user with no sequence."""

    def working_memory(
        self, conversation_id: str, user_id: str, text: str, token_count: int, *, update_time: int, sequence: int
    ) -> ContextMessage:
        """A working memory as a message of the user, of so many tokens (in o200k_base)."""

    def static_fact(self, fact: StaticFact, sequence: int) -> ContextMessage:
        """A static fact as a message of the user."""

    def fact(self, encoded: bytes, sequence: int) -> ContextMessage:
        """A fact in wire form as a message of the user."""

    def with_text(self, message: ContextMessage, text: str, token_count: int) -> ContextMessage:
        """The message with another text, of so many tokens, and with nothing else for a model but its tools."""


Unit: TypeAlias = tuple[ContextMessage, ...]
"""Messages that are in a context together or not at all, in the order of their sequences."""


def whole_units(messages: Sequence[ContextMessage]) -> list[Unit]:
    """The units of one conversation's messages, which are given by sequence; in the order of their first messages.

    A message that calls tools is one unit with the messages that answer. A result belongs to the newest call of its id
    before it. A unit that lacks a call or a result is left out, because models refuse incomplete ones and second
    results. In a sequence of units, results directly follow their calls, as models want them.
    """
    if not any(message.tool_calls or message.tool_result_ids for message in messages):
        return [(message,) for message in messages]
    pairing = pair_tools(uses_among(messages))
    groups = _Groups(len(messages))
    for caller, result in pairing.answers:
        groups.join(caller, result)
    broken = {index for index, _ in (*pairing.orphans, *pairing.dangling)}
    broken.update(result for _, result, _ in pairing.repeats)
    return [tuple(messages[index] for index in group) for group in groups.without(broken)]


class _Groups:
    """Disjoint groups of the numbers below `size`."""

    def __init__(self, size: int) -> None:
        self._parents = list(range(size))

    def join(self, first: int, second: int) -> None:
        roots = sorted((self._root(first), self._root(second)))
        self._parents[roots[1]] = roots[0]

    def _root(self, index: int) -> int:
        while self._parents[index] != index:
            self._parents[index] = self._parents[self._parents[index]]
            index = self._parents[index]
        return index

    def without(self, broken: set[int]) -> list[list[int]]:
        """The groups with no number in `broken`, by their lowest numbers."""
        members: dict[int, list[int]] = defaultdict(list)
        for index in range(len(self._parents)):
            members[self._root(index)].append(index)
        refused = {self._root(index) for index in broken}
        return [members[root] for root in sorted(members) if root not in refused]
