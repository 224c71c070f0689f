"""Adding facts, also those that are found in what a user says, and finding them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.chat_models import ChatModelFailed
from remora_server.domain.context_memories import PREFIX as MEMORY_PREFIX
from remora_server.domain.context_messages import ContextMessage, MessageReader
from remora_server.domain.embedded import question, vectors
from remora_server.domain.fact_prompts import ModelFacts
from remora_server.domain.facts import (
    FactDraft,
    FactFilter,
    FactQuery,
    FactSource,
    FactStore,
    FactTimes,
    Reading,
    StaticFact,
)
from remora_server.domain.memory_items import FoundItems
from remora_server.domain.memory_list import CLOSING, KNOWN, OPENING
from remora_server.domain.messages import MessagePage, MessageQuery
from remora_server.domain.models import PerTenant
from remora_server.domain.renderings import EARLIER
from remora_server.domain.search import Embedder, IndexState
from remora_server.domain.summary_prompts import PREFIX as SUMMARY_PREFIX
from remora_server.domain.windows import WindowMoved

PATTERNS = "patterns"
"""The extractor of what patterns find."""
MESSAGES_AT_ONCE = 1_000
MOST_FOUND = 1_000
"""Facts of one call."""
MOST_CHARACTERS, MOST_MODEL_CHARACTERS = 1 << 20, 1 << 15
"""Of a conversation, one call reads so much text, or one message: a second of work of the patterns, or a few, and one
question to a model.
"""

_REMEMBERED = re.compile(
    rf"^[ \t]*{re.escape(OPENING.strip())}[ \t]*\r?$.*?(?:^[ \t]*{re.escape(CLOSING)}|\Z)"
    rf"|^{re.escape(EARLIER.strip())}.*",
    re.MULTILINE | re.DOTALL,
)
"""What a prompt may have of Remora's beside its own text: the element of what is remembered, in which no line
closes it, and recalled messages, which go on to the end.
"""


class MessageSource(Protocol):
    """What extraction asks of messages: see `domain.messages.MessageStore`."""

    def list(self, read: Read, query: MessageQuery) -> MessagePage: ...


class FactModel(Protocol):
    """Finds facts in what a user says, and picks those that bear on a message. Safe to share between threads."""

    def facts_in(self, texts: Sequence[str], deadline: float | None) -> ModelFacts:
        """The facts of each text. Raises ChatModelFailed."""

    def picked(self, message: str, facts: Sequence[str], deadline: float | None) -> tuple[list[int], str]:
        """Which facts bear on a message, by their places, the most helpful first; and who says so. Raises
        ChatModelFailed.
        """


class Said(Struct, frozen=True):
    """A text of a user's, and the message that it is of, where it is one's."""

    text: str
    source: FactSource | None


class Found(Struct, frozen=True):
    """The facts of each of some texts, and what found them. `failure` says why the model did not; empty if it did, or
    there is none.
    """

    drafts: tuple[tuple[FactDraft, ...], ...]
    extractor: str
    failure: str = ""

    @property
    def all(self) -> tuple[FactDraft, ...]:
        """Those of all texts."""
        return tuple([draft for drafts in self.drafts for draft in drafts])


class Extracted(Struct, frozen=True):
    """What was found, in the order of saying, and where; the last message that was read, and whether others are behind
    it. The rest is as in Found. Drafts add facts, or end some.
    """

    drafts: tuple[FactDraft, ...]
    reading: Reading
    through_sequence: int = 0
    more: bool = False
    extractor: str = PATTERNS
    failure: str = ""

    @property
    def added(self) -> list[FactDraft]:
        """Those that add facts."""
        return [draft for draft in self.drafts if not draft.ends]


class Picked(Struct, frozen=True):
    """Facts that were found, and the model that picked them; empty: none did. `failure` says why it did not."""

    found: FoundItems
    picker: str = ""
    failure: str = ""


class FactMemory:
    """Adds and finds facts: it makes the vectors of what they say, by the model of the tenant. With a chat `model`, it
    finds and picks facts; where that fails, patterns find them, and their ranks stay.
    """

    def __init__(
        self,
        facts: FactStore,
        messages: MessageSource,
        reader: MessageReader,
        embedders: PerTenant[Embedder | None],
        model: FactModel | None = None,
    ) -> None:
        self._model = model
        self._facts = facts
        self._messages = messages
        self._reader = reader
        self._embedders = embedders

    def add(self, write: Write, user_id: str, drafts: Sequence[FactDraft], reading: Reading | None = None) -> Outcome:
        """Add facts, with vectors where the model makes them in time, or end some. Raises as FactStore."""
        return self._facts.add(write, user_id, self._embedded(write, drafts), reading)

    def correct(self, write: Write, user_id: str, fact_id: str, draft: FactDraft) -> Outcome:
        """Replace a fact. Raises FactNotFound, InvalidField."""
        return self._facts.correct(write, user_id, fact_id, self._embedded(write, [draft])[0])

    def _embedded(self, write: Write, drafts: Sequence[FactDraft]) -> list[FactDraft]:
        added = [draft.said for draft in drafts if not draft.ends]
        made = iter(vectors(self._embedders.of(write.tenant_id), added, write.deadline))
        return [draft if draft.ends else replace(draft, vector=next(made)) for draft in drafts]

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

    def picked(self, read: Read, user_id: str, query: FactQuery) -> Picked:
        """Of the best facts those that the chat model picks, in its order; all of them where it does not."""
        found = self.search(read, user_id, query)
        if self._model is None or not found.hits:
            return Picked(found)
        texts = [self._reader.fact(hit.encoded, 0).text for hit in found.hits]
        try:
            picked, picker = self._model.picked(query.text, texts, read.deadline)
        except ChatModelFailed as error:
            return Picked(found, failure=str(error))
        return Picked(replace(found, hits=tuple([found.hits[number] for number in picked])), picker)

    @property
    def asks_model(self) -> bool:
        """Whether finding facts may take as long as a model does."""
        return self._model is not None

    def keep(self, write: Write, user_id: str, messages: Iterable[ContextMessage], reading: Reading) -> None:
        """Add what messages say of their user, and end what they say has ended. What was added before is not added
        again. Raises WindowMoved where the messages are erased or others by now.
        """
        for said in _portions([said for message in messages for said in _said(message)], self._most_characters):
            drafts = self._found(said, write.deadline).all
            for begin in range(0, len(drafts), MOST_FOUND):
                self.add(write, user_id, drafts[begin : begin + MOST_FOUND], reading)

    def extract(
        self, write: Write, user_id: str, find: Callable[[Read], Extracted], *, dry_run: bool
    ) -> tuple[Extracted, Outcome | None]:
        """Find facts, and add them, unless it is a dry run or there are none. A request with an id is remembered in any
        case. Where the messages of a conversation that say them are erased or others meanwhile, they are found again.
        What a text says is not added where the user is deleted meanwhile. Raises as `find` and FactStore.
        """
        while True:
            found = find(Read(write.tenant_id, deadline=write.deadline))
            if dry_run or not (found.drafts or write.request_id):
                return found, None
            try:
                return found, self.add(write, user_id, found.drafts, found.reading)
            except WindowMoved:
                if not found.reading.uid:
                    return found, None

    def in_text(self, read: Read, text: str, source: FactSource | None, *, by_patterns: bool = False) -> Extracted:
        """What a text of a user's says."""
        reading = Reading(self._facts.static(read)[-1])
        found = self._found(_own([Said(text, source)]), read.deadline, by_patterns=by_patterns)
        return Extracted(found.all, reading, extractor=found.extractor, failure=found.failure)

    def in_conversation(
        self, read: Read, conversation_id: str, user_id: str, after_sequence: int, *, by_patterns: bool = False
    ) -> Extracted:
        """What a user says in a conversation. Raises ConversationNotFound."""
        query = MessageQuery(
            conversation_id,
            user_id,
            after_sequence=after_sequence or None,
            newest=False,
            limit=MESSAGES_AT_ONCE,
        )
        page = self._messages.list(read, query)
        most = MOST_CHARACTERS if by_patterns else self._most_characters
        messages = _as_many_as(self._reader.page(conversation_id, page.encoded), most)
        said = [(message.sequence, each) for message in messages for each in _said(message)]
        found = self._found([each for _, each in said], read.deadline, by_patterns=by_patterns)
        through = messages[-1].sequence if messages else after_sequence
        drafts: list[FactDraft] = []
        telling = 0
        for (sequence, _), those in zip(said, found.drafts, strict=True):
            if drafts and len(drafts) + len(those) > MOST_FOUND:
                through = sequence - 1
                break
            drafts += those
            telling = sequence if those else telling
        more = page.more or through < page.last_sequence
        reading = Reading(page.revision, page.uid, telling)
        return Extracted(tuple(drafts), reading, through, more, found.extractor, found.failure)

    @property
    def _most_characters(self) -> int:
        return MOST_CHARACTERS if self._model is None else MOST_MODEL_CHARACTERS

    def _found(self, said: Sequence[Said], deadline: float | None, *, by_patterns: bool = False) -> Found:
        """What a user's own texts say: by the model, or else by patterns."""
        failure = ""
        if self._model is not None and said and not by_patterns:
            try:
                return _of_model(self._model, said, deadline)
            except ChatModelFailed as error:
                failure = str(error)
        return Found(tuple([tuple(_drafts(each)) for each in said]), PATTERNS, failure)


def _of_model(model: FactModel, said: Sequence[Said], deadline: float | None) -> Found:
    """What a model finds in texts. Raises ChatModelFailed."""
    if any(len(each.text) > MOST_MODEL_CHARACTERS for each in said):
        raise ChatModelFailed(f"a text has more than {MOST_MODEL_CHARACTERS} characters")
    answer = model.facts_in([each.text for each in said], deadline)
    drafts: list[list[FactDraft]] = [[] for _ in said]
    for found in answer.found[:MOST_FOUND]:
        draft = FactDraft(
            subject=found.subject,
            predicate=found.predicate,
            object=found.object,
            confidence=found.confidence,
            exclusive=found.exclusive,
            extractor=answer.model,
            source=said[found.message].source,
            ends=found.ends,
        )
        drafts[found.message].append(draft)
    return Found(tuple(map(tuple, drafts)), answer.model)


def _as_many_as(messages: Sequence[ContextMessage], most: int) -> Sequence[ContextMessage]:
    """The first messages that have so many characters at most, or the first one."""
    characters = 0
    for number, message in enumerate(messages):
        characters += len(message.text)
        if number and characters > most:
            return messages[:number]
    return messages


def _portions(said: Sequence[Said], most: int) -> Iterator[list[Said]]:
    """Texts in portions of so many characters at most, or of one text."""
    portion: list[Said] = []
    characters = 0
    for each in said:
        characters += len(each.text)
        if portion and characters > most:
            yield portion
            portion, characters = [], len(each.text)
        portion.append(each)
    if portion:
        yield portion


def _said(message: ContextMessage) -> list[Said]:
    """What a message says in its user's own words; nothing where it is another one's, or a tool's."""
    if not message.opens_turn:
        return []
    source = FactSource(message.conversation_id, message.id, message.sent_time)
    return _own([Said(message.text, source)])


def _own(said: Sequence[Said]) -> list[Said]:
    """What is no text that Remora made, without such text in it."""
    own = [each for each in said if not each.text.startswith((EARLIER, KNOWN, MEMORY_PREFIX, SUMMARY_PREFIX))]
    return [each for each in map(_without_remembered, own) if each.text.strip()]


def _without_remembered(said: Said) -> Said:
    if OPENING.strip() not in said.text and EARLIER.strip() not in said.text:
        return said
    return replace(said, text=_REMEMBERED.sub("", said.text))


def _drafts(said: Said) -> list[FactDraft]:
    """What patterns find in a text, up to so much as one call gives."""
    # Compiling the patterns takes long: the first extraction does it, not every start.
    from remora_server.domain.fact_patterns import found_in  # noqa: PLC0415

    return [
        FactDraft(
            subject=found.subject,
            predicate=found.predicate,
            object=found.object,
            confidence=found.confidence,
            exclusive=found.exclusive,
            extractor=PATTERNS,
            source=said.source,
            ends=found.ends,
        )
        for found in found_in(said.text)[:MOST_FOUND]
    ]
