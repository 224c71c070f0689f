"""Contexts: what to assemble, and what came of it. `assembler` makes one of the other."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from remora_server.domain.search import IndexState, QueryVector, SearchOptions
from remora_server.domain.tokens import O200K_BASE, TokenEncoding


class Section(Enum):
    """A part of a context."""

    RECENT = "recent"
    RECALLED = "recalled"


class Merge(Enum):
    """How recalled and recent messages are joined."""

    APPEND = "append"
    PREPEND = "prepend"
    INTERLEAVE = "interleave"


class Rendering(Enum):
    """What a context is rendered as."""

    MESSAGES = "messages"
    TRANSCRIPT = "transcript"


class ContextRequest(Struct, frozen=True):
    """What to assemble.

    An empty user is the conversation's own. What is recalled for is the vector, where there is one, else the query, and
    where that is empty, the text of the newest `user` message, which is then not recalled itself. `recent_messages`
    None stands for as many as fit, `search` None for no recall; `index_wait` is in seconds.
    """

    conversation_id: str
    max_tokens: int
    user_id: str = ""
    query: str = ""
    vector: QueryVector | None = None
    encoding: TokenEncoding = O200K_BASE
    recent_messages: int | None = None
    search: SearchOptions | None = None
    search_user_scope: bool = False
    merge: Merge = Merge.PREPEND
    rendering: Rendering = Rendering.MESSAGES
    index_wait: float = 0.0


class Item(Struct, frozen=True):
    """One message of a context: `encoded` is the message in wire form, `tokens` what it costs as rendered."""

    encoded: bytes
    conversation_id: str
    sequence: int
    section: Section
    score: float | None
    tokens: int
    reason: str


class Context(Struct, frozen=True):
    """A context, its items in the order of reading.

    `tokens_used` is the items' tokens and the overhead; `left_out` counts candidates; `index` is None where nothing was
    searched.
    """

    items: tuple[Item, ...]
    text: str
    tokens_used: int
    overhead_tokens: int
    left_out: int
    uncounted_parts: int
    exact: bool
    revision: int
    index: IndexState | None
