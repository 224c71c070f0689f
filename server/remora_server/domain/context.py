"""Contexts: requests for them, and their values. `assembler` makes a context for a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from itertools import zip_longest
from typing import TypeVar

from msgspec import Struct, field

from remora_server.domain.facts import FactTimes
from remora_server.domain.search import IndexState, QueryVector, SearchOptions
from remora_server.domain.tokens import O200K_BASE, TokenEncoding

T = TypeVar("T")


class Section(Enum):
    """A part of a context."""

    __hash__ = object.__hash__  # that of an Enum hashes the name each time, in Python

    SYSTEM = "system"
    STATIC_FACTS = "static_facts"
    FACTS = "facts"
    WORKING_MEMORY = "working_memory"
    SUMMARY = "summary"
    RECALLED = "recalled"
    RECENT = "recent"


class Merge(Enum):
    """How recalled and recent messages are joined.

    EARLIER is Remora's own order: recalled messages in the order of time, quoted in one message before the recent ones.
    The others are VoltAgent's, by its names: recalled messages stand by themselves, best first.
    """

    EARLIER = "earlier"
    APPEND = "append"
    PREPEND = "prepend"
    INTERLEAVE = "interleave"


def joined(merge: Merge, recalled: Sequence[T], recent: Sequence[T]) -> list[T]:
    """Recalled and recent elements in the order of a merge. For EARLIER, they are given in the order of time."""
    match merge:
        case Merge.APPEND:
            return [*recent, *recalled]
        case Merge.INTERLEAVE:
            return [element for pair in zip_longest(recalled, recent) for element in pair if element is not None]
        case _:
            return [*recalled, *recent]


class Rendering(Enum):
    """The form in which a context is rendered."""

    MESSAGES = "messages"
    TRANSCRIPT = "transcript"
    SYSTEM_PROMPT = "system_prompt"


class ContextFacts(Struct, frozen=True):
    """Which facts go in: `k` at most, those that answer the query best; `threshold` bounds their scores."""

    k: int = 10
    threshold: float | None = None
    times: FactTimes = FactTimes()


class SectionShare(Struct, frozen=True):
    """The part of the budget that a section may take at first; None: all of it."""

    section: Section
    share: float | None = None


class ContextRequest(Struct, frozen=True):
    """What to assemble.

    An empty user is the conversation's own. What is recalled for is the vector, where there is one, else the query, and
    where that is empty, the text of the newest `user` message, which is then not recalled itself. `recent_messages`
    None stands for as many as fit, `search` None for no recall; `index_wait` is in seconds. `model` is the one whose
    rule for images holds. An empty `system` is the conversation's own. With `allow_partial`, texts of the newest turn
    are truncated where it does not fit; with `include_unrelated`, recall has no floor (`domain.relevance`). `facts`
    None stands for none; `shares` are of different sections, which get their room in this order (`domain.filling`).
    """

    conversation_id: str
    max_tokens: int
    user_id: str = ""
    query: str = ""
    vector: QueryVector | None = None
    encoding: TokenEncoding = O200K_BASE
    model: str = ""
    system: str = ""
    recent_messages: int | None = None
    search: SearchOptions | None = None
    search_user_scope: bool = False
    merge: Merge = Merge.EARLIER
    rendering: Rendering = Rendering.MESSAGES
    index_wait: float = 0.0
    allow_partial: bool = False
    include_unrelated: bool = False
    facts: ContextFacts | None = None
    static_facts: bool = False
    working_memory: bool = False
    shares: tuple[SectionShare, ...] = ()


class Item(Struct, frozen=True, gc=False):
    """One message of a context, or one fact: `encoded` is the message in wire form, `tokens` what it costs as rendered.

    `uncounted` is what it holds that is not counted. `partial` says that its text is truncated. `fact_id` is that of a
    fact of the user, or names the user's working memory; `fact` is the fact in wire form.
    """

    encoded: bytes
    conversation_id: str
    sequence: int
    section: Section
    score: float | None
    tokens: int
    reason: str
    uncounted: tuple[str, ...] = ()
    partial: bool = False
    fact_id: str = ""
    fact: bytes = b""


class Context(Struct, frozen=True):
    """A context, its items in the order of reading.

    `tokens_used` is the items' tokens and the overhead; `left_out` counts candidates; `index` is None where nothing was
    searched. `earlier` is the text that quotes the recalled messages, empty where they stand by themselves; `memory` is
    the text of a message that lists the facts, or of the system's where it holds all that is remembered.
    `unanswered` counts the newest messages that are half of a tool call, `unrelated` the hits that are not relevant to
    the query. `user_id` is whose messages they are, `uids` are those of the conversations that they are from.
    """

    items: tuple[Item, ...]
    text: str
    tokens_used: int
    overhead_tokens: int
    left_out: int
    exact: bool
    revision: int
    index: IndexState | None
    earlier: str = ""
    memory: str = ""
    unanswered: int = 0
    unrelated: int = 0
    user_id: str = ""
    uids: Mapping[str, int] = field(default_factory=dict)

    @property
    def uncounted_parts(self) -> int:
        """How many items hold something that is not counted."""
        return sum(bool(item.uncounted) for item in self.items)
