"""Windows of conversations: which messages are in one, and which leave one that has too many tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol

from msgspec import Struct

from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.context_messages import SYSTEM_ROLES, ContextMessage
from remora_server.domain.short_term import DeleteOldest, Flush, ShortTermPolicy, Trim
from remora_server.domain.tool_pairs import pair_tools, uses_among, whole_cuts


class Window(Struct, frozen=True):
    """What of a conversation is in its window: the messages from a sequence on, and one system message before it.

    `revision` moved the window last. All is 0 while nothing has left.
    """

    first_sequence: int = 0
    system_sequence: int = 0
    revision: int = 0
    move_time: int = 0


WHOLE = Window()
"""Nothing has left."""


class WindowMoved(Exception):
    """A window is not what it was when a write was planned."""


class Growth(Struct, frozen=True):
    """Messages that were appended to a conversation with a policy: their texts, and their tokens in o200k_base."""

    texts: Sequence[str]
    o200k_tokens: int


class WindowListener(Protocol):
    """Is told what may make a window too large, before readers see it. Writes wait for it."""

    def written(self, tenant_id: str, conversation_id: str, revision: int, growth: Growth | None) -> None:
        """A write of this revision appended messages, or (None) changed the policy or messages in another way."""


class WindowStore(Protocol):
    """Keeps windows: see `domain.store`."""

    def get(self, read: Read, conversation_id: str, user_id: str) -> tuple[Window, int]:
        """The window and the revision that this shows. Raises ConversationNotFound."""

    def move(self, write: Write, conversation_id: str, uid: int, before: Window, after: Window) -> Outcome:
        """Move the window of the conversation with this uid; `time`. The revision and the time of `after` are ignored.

        Raises ConversationNotFound, and WindowMoved where the window is not as `before` any more.
        """

    def listen(self, listener: WindowListener) -> None:
        """Tell a listener from now on what is written to conversations that have a policy."""


def is_system(message: ContextMessage) -> bool:
    """Whether a message tells the model what to do. It takes no part in overflow."""
    return message.role in SYSTEM_ROLES


def first_to_stay(policy: ShortTermPolicy, messages: Sequence[ContextMessage], counts: Sequence[int]) -> int:
    """The sequence of the first message that stays; 0 where all stay.

    `messages` are those of the window by sequence, without system messages, `counts` their tokens.
    """
    remaining = [0, *accumulate(reversed(counts))][::-1]
    if remaining[0] <= policy.trigger:
        return 0
    least, cuts = _least_to_leave(policy, remaining), _cuts(messages)
    index = next((cut for cut in cuts if cut >= least), cuts[-1] if cuts else 0)
    return messages[index].sequence if index else 0


def _least_to_leave(policy: ShortTermPolicy, remaining: Sequence[int]) -> int:
    """How many messages must leave; `remaining` has, for each number of those that left, the tokens of the others."""
    step = 1
    match policy.overflow:
        case Trim(keep_tokens):
            most = keep_tokens
        case Flush():
            most = policy.trigger // 2
        case DeleteOldest(messages):
            most, step = policy.trigger, messages
    every = len(remaining) - 1
    return next((left for left in range(step, every, step) if remaining[left] <= most), every)


def _cuts(messages: Sequence[ContextMessage]) -> list[int]:
    """Before which messages, by index, the window may begin: nowhere between a call of tools and its results."""
    return list(whole_cuts(pair_tools(uses_among(messages)).spans, 1, len(messages) - 1))
