"""Adding facts, also those that are found in what a user says, and finding them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.context_messages import ContextMessage, MessageReader
from remora_server.domain.embedded import question, vectors
from remora_server.domain.fact_patterns import facts_in
from remora_server.domain.facts import FactDraft, FactFilter, FactQuery, FactSource, FactStore, FactTimes, StaticFact
from remora_server.domain.memory_items import FoundItems
from remora_server.domain.memory_list import KNOWN
from remora_server.domain.messages import MessagePage, MessageQuery
from remora_server.domain.models import PerTenant
from remora_server.domain.renderings import EARLIER
from remora_server.domain.search import Embedder, IndexState
from remora_server.domain.summary_prompts import PREFIX as SUMMARY_PREFIX

PATTERNS = "patterns"
"""The extractor of what patterns find."""
MESSAGES_AT_ONCE = 1_000
MOST_FOUND = 1_000
"""Facts of one call."""
MOST_CHARACTERS = 1 << 20
"""Of a conversation, one call reads so much text, or one message: a second of work, or a few."""


class MessageSource(Protocol):
    """What extraction asks of messages: see `domain.messages.MessageStore`."""

    def list(self, read: Read, query: MessageQuery) -> MessagePage: ...


class Extracted(Struct, frozen=True):
    """What was found, in the order of saying; the last message that was read, and whether others are behind it."""

    drafts: tuple[FactDraft, ...]
    revision: int = 0
    through_sequence: int = 0
    more: bool = False


class FactMemory:
    """Adds and finds facts: it makes the vectors of what they say, by the model of the tenant."""

    def __init__(
        self,
        facts: FactStore,
        messages: MessageSource,
        reader: MessageReader,
        embedders: PerTenant[Embedder | None],
    ) -> None:
        self._facts = facts
        self._messages = messages
        self._reader = reader
        self._embedders = embedders

    def add(self, write: Write, user_id: str, drafts: Sequence[FactDraft]) -> Outcome:
        """Add facts, with vectors where the model makes them in time. Raises InvalidField."""
        return self._facts.add(write, user_id, self._embedded(write, drafts))

    def correct(self, write: Write, user_id: str, fact_id: str, draft: FactDraft) -> Outcome:
        """Replace a fact. Raises FactNotFound, InvalidField."""
        return self._facts.correct(write, user_id, fact_id, self._embedded(write, [draft])[0])

    def _embedded(self, write: Write, drafts: Sequence[FactDraft]) -> list[FactDraft]:
        made = vectors(self._embedders.of(write.tenant_id), [draft.said for draft in drafts], write.deadline)
        return [replace(draft, vector=vector) for draft, vector in zip(drafts, made, strict=True)]

    def search(self, read: Read, user_id: str, query: FactQuery) -> FoundItems:
        """The best facts: by vectors and words, or by words alone where there is no vector of the query; by the vector
        alone that the query has.
        """
        if query.vector is not None:
            found = self._facts.search(read, user_id, query)
            return FoundItems(found.hits, IndexState(query.model, found.pending, None), found.revision)
        asked = question(self._embedders.of(read.tenant_id), query.text, read.deadline)
        found = self._facts.search(read, user_id, replace(query, model=asked.model, vector=asked.vector))
        return FoundItems(found.hits, IndexState(asked.model, found.pending, asked.words_only), found.revision)

    def newest(self, read: Read, user_id: str, times: FactTimes, limit: int) -> Sequence[bytes]:
        """The facts that were recorded last, in wire form, the newest first."""
        return self._facts.list(read, user_id, FactFilter(times=times), None, limit).encoded

    def static(self, read: Read) -> tuple[Sequence[StaticFact], int | None, int]:
        """The tenant's static facts: see `FactStore`."""
        return self._facts.static(read)

    def keep(self, write: Write, user_id: str, messages: Iterable[ContextMessage]) -> None:
        """Add what messages say of their user. What was added before is not added again."""
        drafts = [draft for message in messages for draft in _said(message)]
        for begin in range(0, len(drafts), MOST_FOUND):
            self.add(write, user_id, drafts[begin : begin + MOST_FOUND])

    def in_text(self, text: str, source: FactSource | None) -> Extracted:
        """What a text of a user's says."""
        return Extracted(tuple(_drafts(text, source)))

    def in_conversation(self, read: Read, conversation_id: str, user_id: str, after_sequence: int) -> Extracted:
        """What a user says in a conversation. Raises ConversationNotFound."""
        query = MessageQuery(
            conversation_id,
            user_id,
            after_sequence=after_sequence or None,
            newest=False,
            limit=MESSAGES_AT_ONCE,
        )
        page = self._messages.list(read, query)
        found: list[FactDraft] = []
        through, characters = after_sequence, 0
        for message in self._reader.page(conversation_id, page.encoded):
            drafts = _said(message)
            characters += len(message.text)
            is_too_much = characters > MOST_CHARACTERS or len(found) + len(drafts) > MOST_FOUND
            if through > after_sequence and is_too_much:
                return Extracted(tuple(found), page.revision, through, more=True)
            found += drafts
            through = message.sequence
        return Extracted(tuple(found), page.revision, through, page.more)


def _said(message: ContextMessage) -> list[FactDraft]:
    """What a message says in its user's own words; nothing where it is another one's, or a tool's."""
    if not message.opens_turn:
        return []
    return _drafts(message.text, FactSource(message.conversation_id, message.id, message.sent_time))


def _drafts(text: str, source: FactSource | None) -> list[FactDraft]:
    """What a text says in its user's own words, up to so much as one call gives."""
    if text.startswith((EARLIER, KNOWN, SUMMARY_PREFIX)):
        return []
    return [
        FactDraft(
            subject=found.subject,
            predicate=found.predicate,
            object=found.object,
            confidence=found.confidence,
            exclusive=found.exclusive,
            extractor=PATTERNS,
            source=source,
        )
        for found in facts_in(text)[:MOST_FOUND]
    ]
