"""Reading a conversation for an agent's turn: its newest messages and the hits of a search, as they are stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from remora_server.domain.calls import Read
from remora_server.domain.context import Merge, joined
from remora_server.domain.context_sources import LARGEST_PAGE, ConversationSource, MessageSource, Searcher
from remora_server.domain.conversations import Conversation
from remora_server.domain.messages import MessagePage, MessageQuery, View
from remora_server.domain.replies import REPLY_BYTES, fitting
from remora_server.domain.search import Hit, InConversation, IndexState, SearchQuery

Split: TypeAlias = Callable[[bytes], list[bytes]]
"""Separates the messages of a `MessagePage`."""


class ReadRequest(Struct, frozen=True):
    """What to read. An empty user is the conversation's own; `recent_messages` None stands for all, `search` None for
    no search. The scope of the search is the conversation.
    """

    conversation_id: str
    user_id: str = ""
    recent_messages: int | None = None
    search: SearchQuery | None = None
    merge: Merge = Merge.EARLIER


class ReadMessage(Struct, frozen=True):
    """One message in wire form. `score` is set if the search found it and it is not recent."""

    encoded: bytes
    score: float | None = None


class Reading(Struct, frozen=True):
    """A conversation (None if the messages are not its owner's) and its messages, in the order of reading.

    `first_sequence` is that of the oldest recent message, 0 if there is none. `truncated` says that a reply has no
    room for all.
    """

    conversation: Conversation | None
    messages: tuple[ReadMessage, ...]
    first_sequence: int
    truncated: bool
    revision: int
    index: IndexState | None = None


class ConversationReader(Struct, frozen=True):
    """Reads conversations."""

    conversations: ConversationSource
    messages: MessageSource
    searcher: Searcher
    split: Split

    def read(self, read: Read, request: ReadRequest) -> Reading:
        """Read. Raises ConversationNotFound, and what the search raises."""
        conversation, revision = self.conversations.get(read, request.conversation_id, "")
        user_id = request.user_id or conversation.draft.user_id
        recent = self._recent(read, request, user_id)
        shown = conversation if user_id == conversation.draft.user_id else None
        reading = Reading(shown, (), recent.first_sequence, recent.truncated, revision)
        if request.search is None:
            return replace(reading, messages=tuple(map(ReadMessage, recent.encoded)))
        scope = InConversation(request.conversation_id, user_id)
        result = self.searcher.search(read, replace(request.search, scope=scope))
        others = [hit for hit in result.hits if not recent.holds(hit.sequence)]
        held = fitting(others, _size, room=REPLY_BYTES - recent.size, least=0)
        if request.merge is Merge.EARLIER:
            held.sort(key=_sequence)
        found = [ReadMessage(hit.encoded, hit.score) for hit in held]
        return replace(
            reading,
            messages=tuple(joined(request.merge, found, list(map(ReadMessage, recent.encoded)))),
            truncated=recent.truncated or len(held) < len(others),
            index=result.index,
        )

    def _recent(self, read: Read, request: ReadRequest, user_id: str) -> _Recent:
        """The newest messages, as many as were requested, in whole pages up to the size of a reply."""
        recent, left = _Recent(), request.recent_messages
        more = left != 0
        while more:
            limit = LARGEST_PAGE if left is None else min(left, LARGEST_PAGE)
            before = recent.first_sequence or None
            query = MessageQuery(
                request.conversation_id, user_id, before_sequence=before, limit=limit, view=View.WINDOW
            )
            page = self.messages.list(read, query)
            if recent.size + len(page.encoded) > REPLY_BYTES and recent.encoded:
                return replace(recent, truncated=True)
            recent = recent.after(page, self.split(page.encoded))
            left = None if left is None else left - page.count
            more = page.more and left != 0
        return recent


class _Recent(Struct, frozen=True):
    """A run of the newest messages of one user, which take `size` bytes together."""

    encoded: tuple[bytes, ...] = ()
    size: int = 0
    first_sequence: int = 0
    last_sequence: int = 0
    truncated: bool = False

    def after(self, page: MessagePage, encoded: list[bytes]) -> _Recent:
        """The run with a page of what comes before it."""
        if not encoded:
            return self
        last = self.last_sequence or page.last_sequence
        return _Recent((*encoded, *self.encoded), self.size + len(page.encoded), page.first_sequence, last)

    def holds(self, sequence: int) -> bool:
        return self.first_sequence <= sequence <= self.last_sequence


def _size(hit: Hit) -> int:
    return len(hit.encoded)


def _sequence(hit: Hit) -> int:
    return hit.sequence
