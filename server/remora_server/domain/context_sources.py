"""Where a context's candidates come from: the newest messages of a conversation, and what a search finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from remora_server.domain.calls import Read
from remora_server.domain.context_messages import ContextMessage, MessageReader, Place, Unit, whole_units
from remora_server.domain.conversations import Conversation
from remora_server.domain.errors import ConversationNotFound
from remora_server.domain.messages import MessagePage, MessageQuery
from remora_server.domain.search import IndexState, SearchQuery, SearchResult

PAGE_MESSAGES = 1000
TOOL_REACH = 32
"""How many messages before and after one that was found may hold the rest of its tool calls."""


class ConversationSource(Protocol):
    """What a context asks of conversations: see `domain.conversations.ConversationStore`."""

    def get(self, read: Read, conversation_id: str, user_id: str) -> tuple[Conversation, int]: ...


class MessageSource(Protocol):
    """What a context asks of messages: see `domain.messages.MessageStore`."""

    def list(self, read: Read, query: MessageQuery) -> MessagePage: ...


class Searcher(Protocol):
    """Finds messages: see `domain.recollection.Recollection`."""

    def search(self, read: Read, query: SearchQuery) -> SearchResult: ...


class UserMessages:
    """One user's messages, as one request reads them."""

    def __init__(self, source: MessageSource, reader: MessageReader, read: Read, user_id: str) -> None:
        self._source = source
        self._reader = reader
        self._read = read
        self._user_id = user_id

    def newest(self, conversation_id: str, *, at_most: int | None, page: int) -> Iterator[list[ContextMessage]]:
        """The newest messages by sequence, `at_most` so many: after each page of reading, all that were read so far."""
        messages: list[ContextMessage] = []
        before, more = None, True
        while more and (at_most is None or len(messages) < at_most):
            limit = page if at_most is None else min(page, at_most - len(messages))
            found = self._list(MessageQuery(conversation_id, before_sequence=before, limit=limit))
            messages = self._reader.page(conversation_id, found.encoded) + messages
            yield messages
            before, more = found.first_sequence, found.more

    def newest_of(self, conversation_id: str, role: str) -> ContextMessage | None:
        """The newest message of a role."""
        found = self._list(MessageQuery(conversation_id, roles=(role,), limit=1))
        return next(iter(self._reader.page(conversation_id, found.encoded)), None)

    def unit_around(self, message: ContextMessage) -> Unit | None:
        """The unit that holds a message; None where the rest of it is not to be had."""
        if not message.uses_tools:
            return (message,)
        here, at = message.conversation_id, message.sequence
        try:
            before = self._list(MessageQuery(here, before_sequence=at, limit=TOOL_REACH))
            after = self._list(MessageQuery(here, after_sequence=at, newest=False, limit=TOOL_REACH))
        except ConversationNotFound:
            return None  # deleted since it was found
        near = [*self._reader.page(here, before.encoded), message, *self._reader.page(here, after.encoded)]
        return next((unit for unit in whole_units(near) if message in unit), None)

    def _list(self, query: MessageQuery) -> MessagePage:
        return self._source.list(self._read, replace(query, user_id=self._user_id))


class Recalled(Struct):
    """What a search brought back: units, best first, and the rank (from 1) and score of each message that was found."""

    units: list[Unit] = field(default_factory=list)
    found: dict[Place, tuple[int, float]] = field(default_factory=dict)
    index: IndexState | None = None


def recalled(result: SearchResult, reader: MessageReader, messages: UserMessages) -> Recalled:
    """The hits of a search, each with the rest of its unit; a hit whose unit is not whole is left out."""
    gathered = Recalled(index=result.index)
    held: set[Place] = set()
    for rank, hit in enumerate(result.hits, 1):
        message = reader.message(hit.conversation_id, hit.encoded)
        gathered.found[message.place] = rank, hit.score
        unit = None if message.place in held else messages.unit_around(message)
        if unit is not None:
            gathered.units.append(unit)
            held.update(member.place for member in unit)
    return gathered
