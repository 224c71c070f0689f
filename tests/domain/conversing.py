"""What tests of contexts share: conversations in a list, a search by a fixed ranking, a count that is easy to check."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from msgspec.structs import replace

from remora_server.domain.calls import Read
from remora_server.domain.context_messages import ContextMessage
from remora_server.domain.conversations import Conversation, ConversationDraft
from remora_server.domain.costs import ToolCall
from remora_server.domain.errors import ConversationNotFound
from remora_server.domain.facts import FactQuery, FactTimes, StaticFact
from remora_server.domain.images import Image
from remora_server.domain.memory_items import FoundItems, ItemHit
from remora_server.domain.messages import MessagePage, MessageQuery
from remora_server.domain.search import (
    Background,
    Component,
    Hit,
    InConversation,
    IndexState,
    SearchQuery,
    SearchResult,
    WordsOnly,
)
from remora_server.domain.tokens import APPROXIMATE, TokenEncoding
from remora_server.domain.windows import WHOLE, Summary, Window
from remora_server.domain.working_memory import UserMemory, WorkingMemory, WorkingMemoryOwner

READ = Read("acme")
CONVERSATION = "c1"
UIDS = {CONVERSATION: 7, "c2": 8}
DAY = 86_400_000_000


class WordCounter:
    """Counts words, marks and newlines; a quarter of the characters where the encoding is the approximate one."""

    def encoding_for_model(self, model: str) -> TokenEncoding:
        return APPROXIMATE

    def count(self, encoding: TokenEncoding, texts: Sequence[str]) -> list[int]:
        if encoding == APPROXIMATE:
            return [-(-len(text) // 4) for text in texts]
        return [words(text) for text in texts]


def words(text: str) -> int:
    return len(re.findall(r"\w+|[^\w\s]|\n", text))


def message(
    sequence: int,
    text: str = "hello there",
    *,
    role: str = "user",
    name: str = "",
    calls: Sequence[str] = (),
    answers: Sequence[str] = (),
    sent_time: int | None = None,
    session_id: str = "",
    conversation_id: str = CONVERSATION,
    images: Sequence[Image] = (),
    uncounted: Sequence[str] = (),
) -> ContextMessage:
    return ContextMessage(
        conversation_id=conversation_id,
        sequence=sequence,
        role=role,
        text=text,
        encoded=f"{conversation_id}/{sequence}".encode(),
        name=name,
        tool_calls=tuple(ToolCall(call, "look_up", '{"q": 1}') for call in calls),
        tool_result_ids=tuple(answers),
        sent_time=sequence * 60_000_000 if sent_time is None else sent_time,
        session_id=session_id,
        token_count=words(text),
        images=tuple(images),
        uncounted=tuple(uncounted),
    )


@dataclass
class KnownFacts:
    """Facts as their texts: what a search finds, best first, with scores that fall from 0.9."""

    texts: Sequence[str] = ()
    of_all: Sequence[str] = ()
    queries: list[FactQuery] = field(default_factory=list)

    def search(self, read: Read, user_id: str, query: FactQuery) -> FoundItems:
        self.queries.append(query)
        hits = [ItemHit(0.9 - rank / 100, text.encode()) for rank, text in enumerate(self.texts[: query.k])]
        return FoundItems(tuple(hits), IndexState("words", 0, WordsOnly.NO_MODEL), 9)

    def newest(self, read: Read, user_id: str, times: FactTimes, limit: int) -> Sequence[bytes]:
        return [text.encode() for text in self.texts[:limit]]

    def static(self, read: Read) -> tuple[Sequence[StaticFact], int | None, int]:
        return [StaticFact(f"s{number}", text) for number, text in enumerate(self.of_all)], 1, 9


@dataclass
class KnownMemories:
    """Working memories: the user's and the conversation's, None where there is none."""

    of_user: bytes | None = None
    of_conversation: bytes | None = None

    def get(self, read: Read, owner: WorkingMemoryOwner) -> WorkingMemory:
        content = self.of_user if isinstance(owner, UserMemory) else self.of_conversation
        return WorkingMemory(content, 5, 9)


@dataclass
class Conversations:
    """Messages by conversation: the store, the reader and the search of one test.

    A search finds the messages whose places are in `ranking`, in that order, with scores that fall from 0.9.
    """

    messages: Sequence[ContextMessage]
    ranking: Sequence[tuple[str, int]] = ()
    searches: list[SearchQuery] = field(default_factory=list)
    summarized: Summary | None = None
    lists: list[MessageQuery] = field(default_factory=list)
    rewritten: dict[bytes, ContextMessage] = field(default_factory=dict)
    model: str = "words"
    cosine: float = 0.5

    def get(self, read: Read, conversation_id: str, user_id: str) -> tuple[Conversation, int]:
        if conversation_id not in UIDS:
            raise ConversationNotFound(conversation_id)
        draft = ConversationDraft(conversation_id, user_id="sarah")
        return Conversation(draft, UIDS[conversation_id], 9, 9, len(self.messages), 0, 0), 9

    def message(self, conversation_id: str, encoded: bytes) -> ContextMessage:
        return next(each for each in self.messages if each.encoded == encoded)

    def system(self, text: str, token_count: int) -> ContextMessage:
        return ContextMessage("", 0, "system", text, f"given: {text}".encode(), token_count=token_count)

    def summary(
        self, conversation_id: str, user_id: str, text: str, token_count: int, *, revision: int
    ) -> ContextMessage:
        return ContextMessage(conversation_id, 0, "user", text, f"summary: {text}".encode(), token_count=token_count)

    def current(self, read: Read, conversation_id: str, user_id: str) -> tuple[Window, Summary | None, int]:
        return WHOLE, self.summarized, 9

    def working_memory(
        self, conversation_id: str, user_id: str, text: str, token_count: int, *, update_time: int, sequence: int
    ) -> ContextMessage:
        encoded = f"memory: {text}".encode()
        return ContextMessage(conversation_id, sequence, "user", text, encoded, token_count=token_count)

    def static_fact(self, fact: StaticFact, sequence: int) -> ContextMessage:
        return ContextMessage("", sequence, "user", fact.content, f"static: {fact.content}".encode(), id=fact.id)

    def fact(self, encoded: bytes, sequence: int) -> ContextMessage:
        return ContextMessage("", sequence, "user", encoded.decode(), b"fact: " + encoded)

    def with_text(self, message: ContextMessage, text: str, token_count: int) -> ContextMessage:
        encoded = message.encoded + b": " + text.encode()
        shown = replace(message, text=text, encoded=encoded, token_count=token_count)
        self.rewritten[encoded] = shown
        return shown

    def joined(self, page: Sequence[bytes]) -> bytes:
        """The messages of a page."""
        return b",".join(page)

    def page(self, conversation_id: str, encoded: bytes) -> list[ContextMessage]:
        return [self.message(conversation_id, entry) for entry in encoded.split(b",") if entry]

    def search(self, read: Read, query: SearchQuery) -> SearchResult:
        self.searches.append(query)
        within = query.scope.conversation_id if isinstance(query.scope, InConversation) else None
        places = [
            place
            for place in self.ranking
            if within in (None, place[0])
            and (UIDS[place[0]], place[1]) not in query.exclude
            and self._role(place) not in query.without_roles
        ]
        hits = tuple(
            Hit(
                UIDS[place[0]],
                place[0],
                place[1],
                0.9 - rank / 100,
                self._components(),
                self._encoded(place),
                self._near(place, -1)[-query.around :],
                self._near(place, 1)[: query.around],
            )
            for rank, place in enumerate(places[: query.options.k])
        )
        index = IndexState(self.model, 0, WordsOnly.NO_MODEL)
        return SearchResult(hits, index, query.options.profile, 9, Background(messages=1_000))

    def _components(self) -> tuple[Component, ...]:
        return (Component("cosine", self.cosine, 1.0),)

    def _near(self, place: tuple[str, int], way: int) -> list[bytes]:
        """The messages of its conversation before (-1) or after (1) a place."""
        here = [each for each in self.messages if each.conversation_id == place[0]]
        return [each.encoded for each in here if (each.sequence - place[1]) * way > 0]

    def _role(self, place: tuple[str, int]) -> str:
        return next(each.role for each in self.messages if each.place == place)

    def _encoded(self, place: tuple[str, int]) -> bytes:
        return next(each.encoded for each in self.messages if each.place == place)

    def list(self, read: Read, query: MessageQuery) -> MessagePage:
        self.lists.append(query)
        after = -1 if query.after_sequence is None else query.after_sequence
        before = 1 << 60 if query.before_sequence is None else query.before_sequence
        found = [
            each
            for each in self.messages
            if each.conversation_id == query.conversation_id
            and after < each.sequence < before
            and (not query.roles or each.role in query.roles)
        ]
        page = found[-query.limit :] if query.newest else found[: query.limit]
        encoded = self.joined([each.encoded for each in page])
        ends = (page[0].sequence, page[-1].sequence) if page else (0, 0)
        return MessagePage(encoded, len(page), *ends, len(found) > len(page), 9, 1)
