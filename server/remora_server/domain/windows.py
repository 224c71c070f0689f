"""Windows of conversations: which messages are in a window, and which leave it when it has too many tokens."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol

from msgspec import Struct

from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.context_messages import SYSTEM_ROLES, ContextMessage
from remora_server.domain.short_term import DeleteOldest, Flush, ShortTermPolicy, Summarize, Trim
from remora_server.domain.tool_pairs import pair_tools, uses_among, whole_cuts


class Window(Struct, frozen=True):
    """The window of a conversation: the messages from a sequence on, and one system message before it.

    `revision` moved the window last. All fields are 0 while no message has left.
    """

    first_sequence: int = 0
    system_sequence: int = 0
    revision: int = 0
    move_time: int = 0


WHOLE = Window()
"""The window of a conversation that no message has left."""


class Summary(Struct, frozen=True):
    """What stands before a window for the messages up to the sequence `covers_through`, which have left it.

    `model` wrote it; `token_count` is in o200k_base. The newest system message among them stays in the window.
    `user_id` is the conversation's own. `revision` stored it, and moved the window, at `create_time`.
    """

    text: str
    covers_through: int
    model: str
    token_count: int
    system_sequence: int = 0
    user_id: str = ""
    revision: int = 0
    create_time: int = 0


class Cover(Struct, frozen=True):
    """The messages that a summary covers: those of a window up to the sequence `through`, as read at `revision`.

    `window_revision` had moved the window last.
    """

    window_revision: int
    through: int
    revision: int


class Weights(Struct, frozen=True):
    """What the messages of a window weigh: the sequences of those that may leave, ascending, and the tokens of each in
    o200k_base.

    `newest_system` is the sequence of the newest system message; 0: there is none. `may_use_tools`: whether those that
    may leave may call tools or answer calls; if not, they surely do not. `revision`: what this shows at least.
    """

    sequences: Sequence[int]
    tokens: Sequence[int]
    newest_system: int
    may_use_tools: bool
    revision: int


class WindowMoved(Exception):
    """A window, or the messages that a summary covers or facts are of, have changed since a write was planned."""


class Growth(Struct, frozen=True):
    """Messages that were appended to a conversation with a policy: their texts, and their tokens in o200k_base."""

    texts: Sequence[str]
    o200k_tokens: int


class WindowListener(Protocol):
    """Is told of changes that may make a window too large, before readers see them. Writes wait for it."""

    def written(self, tenant_id: str, conversation_id: str, revision: int, growth: Growth | None) -> None:
        """A write of this revision appended messages, or (None) changed the policy or messages in another way."""


class WindowStore(Protocol):
    """Keeps windows: see `domain.store`."""

    def get(self, read: Read, conversation_id: str, user_id: str) -> tuple[Window, int]:
        """The window and the revision that this shows. Raises ConversationNotFound."""

    def current(self, read: Read, conversation_id: str, user_id: str) -> tuple[Window, Summary | None, int]:
        """The window, its summary and the revision that this shows. Raises ConversationNotFound."""

    def weigh(self, read: Read, conversation_id: str, window: Window) -> Weights:
        """What a window weighs, read without the messages. Raises ConversationNotFound."""

    def move(self, write: Write, conversation_id: str, uid: int, before: Window, after: Window) -> Outcome:
        """Move the window of the conversation with this uid; `time`. The revision and the time of `after` are ignored.

        Raises ConversationNotFound, and WindowMoved where the window is not as `before` any more.
        """

    def summarize(self, write: Write, conversation_id: str, uid: int, cover: Cover, summary: Summary) -> Outcome:
        """Store the summary of what a cover says and move the window behind it, in one; `time`.

        The summary's user, revision and time are ignored. Raises ConversationNotFound, and WindowMoved where the window
        has moved, or one of the messages was replaced or removed since `cover.revision`.
        """

    def listen(self, listener: WindowListener) -> None:
        """From now on, tell a listener of writes to conversations with a policy."""


def is_system(message: ContextMessage) -> bool:
    """Whether a message has instructions for the model. Such messages do not count for overflow."""
    return message.role in SYSTEM_ROLES


def first_to_stay(policy: ShortTermPolicy, messages: Sequence[ContextMessage], counts: Sequence[int]) -> int:
    """The sequence of the first message that stays; 0 if all stay, as they do until there is a summary of them.

    `messages` are those of the window by sequence, without system messages, `counts` their tokens.
    """
    least = _least_to_leave(policy, counts)
    index = _first_cut(_cuts(messages), least) if least else 0
    return messages[index].sequence if index else 0


def first_to_stay_without_tools(policy: ShortTermPolicy, weights: Weights) -> int:
    """The same, of messages that do not use tools, so that none belongs to another."""
    least = _least_to_leave(policy, weights.tokens)
    index = _first_cut(range(1, len(weights.tokens)), least) if least else 0
    return weights.sequences[index] if index else 0


def _first_cut(cuts: Sequence[int], least: int) -> int:
    """The first cut behind which so many messages or more have left; if there is none, the last one, or 0."""
    if not cuts:
        return 0
    return cuts[min(bisect_left(cuts, least), len(cuts) - 1)]


def _least_to_leave(policy: ShortTermPolicy, counts: Sequence[int]) -> int:
    """How many messages must leave; 0 where none has to, or there must be a summary of them first."""
    overflow, trigger = policy.overflow, policy.trigger
    if isinstance(overflow, Summarize) or sum(counts) <= trigger:
        return 0
    # For each number of messages that left, the tokens of the others.
    remaining = [0, *accumulate(reversed(counts))][::-1]
    step = 1
    match overflow:
        case Trim(keep_tokens):
            most = keep_tokens
        case Flush():
            most = trigger // 2
        case DeleteOldest(messages):
            most, step = trigger, messages
    every = len(remaining) - 1
    return next((left for left in range(step, every, step) if remaining[left] <= most), every)


def oldest_to_summarize(
    messages: Sequence[ContextMessage], counts: Sequence[int], keep: int, most_tokens: int
) -> tuple[int, bool]:
    """How many of the oldest messages to summarise so that `keep` stay, and whether others are left for another time.

    Together they have at most a number of tokens, unless the first inseparable ones have more.
    """
    cuts = [cut for cut in _cuts(messages) if cut <= len(messages) - keep]
    if not cuts:
        return 0, False
    totals = [0, *accumulate(counts)]
    within = [cut for cut in cuts if totals[cut] <= most_tokens] or cuts[:1]
    return within[-1], within[-1] < cuts[-1]


def missing_to_summarize(messages: Sequence[ContextMessage], keep: int) -> int:
    """How many more messages there must be, at least, before the oldest may be summarised so that `keep` stay."""
    first = next(iter(_cuts(messages)), len(messages))
    return max(1, first + keep - len(messages))


def may_begin_behind(messages: Sequence[ContextMessage], sequence: int) -> bool:
    """Whether a window of these messages may begin right behind a sequence."""
    return sum(message.sequence <= sequence for message in messages) in _cuts(messages)


def _cuts(messages: Sequence[ContextMessage]) -> list[int]:
    """Before which messages, by index, the window may begin: nowhere between a call of tools and its results."""
    return list(whole_cuts(pair_tools(uses_among(messages)).spans, 1, len(messages) - 1))


def newest_system(messages: Sequence[ContextMessage]) -> int:
    """The sequence of the newest system message; 0 if there is none."""
    return next((message.sequence for message in reversed(messages) if is_system(message)), 0)


def moved_to(first: int, newest_system: int) -> Window:
    """The window that begins at the sequence `first`. The newest system message stays in it where it stands before."""
    return Window(first, newest_system if newest_system < first else 0)
