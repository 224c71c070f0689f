"""The sources of a context's candidates: the newest messages of a conversation, and the hits of a search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice, takewhile
from typing import Protocol

from msgspec import Struct, field

from remora_server.domain.calls import Read
from remora_server.domain.context_messages import USER, ContextMessage, MessageReader, Place, Unit, whole_units
from remora_server.domain.conversations import Conversation
from remora_server.domain.messages import MessagePage, MessageQuery, View
from remora_server.domain.search import Hit, IndexState, SearchQuery, SearchResult, Side
from remora_server.domain.windows import Summary, Window

LARGEST_PAGE = 1_000
TOOL_REACH = 32
"""The rest of a hit's tool calls is looked for in this many messages before and after it."""
OTHER_SIDE_REACH = 8
"""The greatest distance of an answer from its question, not counting the tools that were called for it."""
AROUND = TOOL_REACH + OTHER_SIDE_REACH
"""How many messages before and after each hit a context may look at."""


class ConversationSource(Protocol):
    """The conversations that a context needs: see `domain.conversations.ConversationStore`."""

    def get(self, read: Read, conversation_id: str, user_id: str) -> tuple[Conversation, int]: ...


class MessageSource(Protocol):
    """The messages that a context needs: see `domain.messages.MessageStore`."""

    def list(self, read: Read, query: MessageQuery) -> MessagePage: ...


class SummarySource(Protocol):
    """The windows that a context needs: see `domain.windows.WindowStore`."""

    def current(self, read: Read, conversation_id: str, user_id: str) -> tuple[Window, Summary | None, int]: ...


class Searcher(Protocol):
    """Finds messages: see `domain.recollection.Recollection`."""

    def search(self, read: Read, query: SearchQuery) -> SearchResult: ...


class UserMessages:
    """One user's messages, as read by one request."""

    def __init__(self, source: MessageSource, reader: MessageReader, read: Read, user_id: str) -> None:
        self._source = source
        self._reader = reader
        self._read = read
        self._user_id = user_id

    def newest(
        self, conversation_id: str, *, page: int, following: Callable[[], int]
    ) -> Iterator[list[ContextMessage]]:
        """The newest messages of the window by sequence: after each page of reading, all that were read so far. The
        first page has `page` messages, the others as many as is asked for then, up to as many as those before it.
        """
        messages: list[ContextMessage] = []
        before, more = None, True
        while more:
            found = self._list(
                MessageQuery(conversation_id, self._user_id, before_sequence=before, limit=page, view=View.WINDOW)
            )
            messages = self._reader.page(conversation_id, found.encoded) + messages
            yield messages
            before, more = found.first_sequence, found.more
            page = max(1, min(following(), len(messages), LARGEST_PAGE))

    def newest_of(self, conversation_id: str, *roles: str) -> ContextMessage | None:
        """The newest message of one of the roles."""
        found = self._list(MessageQuery(conversation_id, self._user_id, roles, limit=1))
        return next(iter(self._reader.page(conversation_id, found.encoded)), None)

    def newest_said(self, conversation_id: str) -> ContextMessage | None:
        """The last message of the user, unless it is long before the tools' results of that role."""
        found = self._list(MessageQuery(conversation_id, self._user_id, (USER,), limit=TOOL_REACH))
        said = [message for message in self._reader.page(conversation_id, found.encoded) if message.opens_turn]
        return said[-1] if said else None

    def _list(self, query: MessageQuery) -> MessagePage:
        return self._source.list(self._read, query)


class Beside(Struct, frozen=True):
    """The messages around one that was found, as the same search saw them."""

    hit: Hit
    reader: MessageReader

    def earlier(self, place: Place, reach: int) -> Iterator[ContextMessage]:
        """The messages before a place, the nearest first."""
        numbers = reversed(range(len(self.hit.before)))
        return islice((one for one in self._read(self.hit.before, numbers) if one.sequence < place[1]), reach)

    def later(self, place: Place, reach: int) -> Iterator[ContextMessage]:
        """The messages after a place, the nearest first."""
        numbers = range(len(self.hit.after))
        return islice((one for one in self._read(self.hit.after, numbers) if one.sequence > place[1]), reach)

    def _read(self, side: Side, numbers: Iterable[int]) -> Iterator[ContextMessage]:
        return (self.reader.message(self.hit.conversation_id, side[number]) for number in numbers)

    def unit_of(self, message: ContextMessage) -> Unit | None:
        """The unit that holds the message that was found; None if the rest of it is not to be had."""
        if not message.uses_tools:
            return (message,)
        before = reversed(list(self.earlier(message.place, TOOL_REACH)))
        around = [*before, message, *self.later(message.place, TOOL_REACH)]
        return next((unit for unit in whole_units(around) if message in unit), None)

    def other_side(self, unit: Unit) -> ContextMessage | None:
        """The answer to a unit that is a question, or else the question that it answers, if one is near."""
        if unit[0].opens_turn:
            later = self.later(unit[-1].place, OTHER_SIDE_REACH)
            turn = takewhile(lambda message: not message.opens_turn, later)
            return next((message for message in turn if message.is_answer), None)
        earlier = self.earlier(unit[0].place, OTHER_SIDE_REACH)
        return next((message for message in earlier if message.opens_turn), None)


class Recalled(Struct):
    """What a search brought back: units, best first, and the rank (from 1) and score of each message that was found.

    `beside` has what is around each unit, by the place of its first message. `unrelated` are the hits that are not
    relevant to the query; `uids` are those of the conversations.
    """

    units: list[Unit] = field(default_factory=list)
    beside: dict[Place, Beside] = field(default_factory=dict)
    found: dict[Place, tuple[int, float]] = field(default_factory=dict)
    index: IndexState | None = None
    unrelated: frozenset[Place] = frozenset()
    uids: dict[str, int] = field(default_factory=dict)


def recalled(result: SearchResult, reader: MessageReader, unrelated: frozenset[Place] = frozenset()) -> Recalled:
    """The hits of a search, each with the rest of its unit. A hit with an incomplete unit is left out."""
    gathered = Recalled(index=result.index, unrelated=unrelated)
    held: set[Place] = set()
    for rank, hit in enumerate(result.hits, 1):
        message, beside = reader.message(hit.conversation_id, hit.encoded), Beside(hit, reader)
        gathered.found[message.place] = rank, hit.score
        gathered.uids[hit.conversation_id] = hit.conversation_uid
        unit = None if message.place in held else beside.unit_of(message)
        if unit is not None:
            gathered.units.append(unit)
            gathered.beside[unit[0].place] = beside
            held.update(member.place for member in unit)
    return gathered
