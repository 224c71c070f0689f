"""Assembling a context: recent and recalled messages of a conversation under an exact token budget."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from remora_server.domain.budgets import Candidate, Selection, candidates, would_fill
from remora_server.domain.calls import Read
from remora_server.domain.context import Context, ContextRequest, Item, Rendering, Section
from remora_server.domain.context_messages import ContextMessage, MessageReader, Place, whole_units
from remora_server.domain.context_sources import (
    ConversationSource,
    MessageSource,
    Recalled,
    Searcher,
    UserMessages,
    recalled,
)
from remora_server.domain.errors import BudgetTooSmall
from remora_server.domain.renderings import ChatRenderer, Rendered, Renderer, TranscriptRenderer
from remora_server.domain.search import InConversation, OfUser, SearchQuery
from remora_server.domain.tokens import TokenCounter

QUERY_ROLE = "user"
QUERY_CHARACTERS = 8_192
"""Of a message that is the query, how much of its beginning is."""
PAGE_TOKENS = 32
"""The first page of recent messages would fill the budget if each cost so much, within PAGE_MESSAGES."""
PAGE_MESSAGES = (16, 1_000)


class ContextAssembler:
    """Chooses messages under a budget and renders them.

    The newest messages come first, in an unbroken run, within half of the budget; all of it where nothing is recalled,
    and the newest unit may go beyond the half. Then come recalled ones, by score, in all the room that is left. What
    room remains goes to further recent ones, until nothing that was left out would fit.

    Candidates are the newest messages, up to `recent_messages` or until they would fill the budget by themselves, and
    the hits of the search; all with the rest of their tool calls, and none where that rest is not to be had. Those that
    the whole budget would not hold do not break the run. The reply has room for so many bytes, too (`domain.budgets`).
    """

    def __init__(
        self,
        conversations: ConversationSource,
        messages: MessageSource,
        searcher: Searcher,
        tokens: TokenCounter,
        reader: MessageReader,
    ) -> None:
        self._conversations = conversations
        self._messages = messages
        self._searcher = searcher
        self._tokens = tokens
        self._reader = reader

    def assemble(self, read: Read, request: ContextRequest) -> Context:
        """Assemble. Raises ConversationNotFound, BudgetTooSmall, and what the search raises."""
        renderer = self._renderer(request)
        if request.max_tokens < renderer.fixed:
            raise BudgetTooSmall(request.max_tokens, renderer.fixed)
        conversation, revision = self._conversations.get(read, request.conversation_id, "")
        user_id = request.user_id or conversation.draft.user_id
        assembly = _Assembly(
            read=read,
            request=request,
            conversation_uid=conversation.uid,
            user_id=user_id,
            messages=UserMessages(self._messages, self._reader, read, user_id),
            searcher=self._searcher,
            reader=self._reader,
            renderer=renderer,
        )
        return assembly.assemble(revision)

    def _renderer(self, request: ContextRequest) -> Renderer:
        if request.rendering is Rendering.TRANSCRIPT:
            return TranscriptRenderer(self._tokens, request.encoding)
        return ChatRenderer(self._tokens, request.encoding, request.merge)


class _Assembly(Struct, frozen=True):
    """The assembling of one context."""

    read: Read
    request: ContextRequest
    conversation_uid: int
    user_id: str
    messages: UserMessages
    searcher: Searcher
    reader: MessageReader
    renderer: Renderer

    def assemble(self, revision: int) -> Context:
        limit = self.renderer.limit(self.request.max_tokens)
        selection = Selection(self.renderer, limit)
        newest, recent = self._newest(limit)
        able = [candidate for candidate in recent if selection.fits(candidate, limit)]
        selection.take_all(able[:1])
        selection.take_run(able[1:], limit // 2 if self.request.search else limit)
        found = self._recall(newest, selection.sections)
        hits = candidates(self.renderer, Section.RECALLED, found.units)
        selection.take_all([*hits, *recent])
        return self._context(selection, [*recent, *hits], found, revision)

    def _newest(self, limit: int) -> tuple[list[ContextMessage], list[Candidate]]:
        """The newest messages, by sequence, until those that fit would fill the budget or the reply; and their units,
        backwards.
        """
        fewest, most = PAGE_MESSAGES
        page = min(most, max(fewest, self.request.max_tokens // PAGE_TOKENS))
        newest: list[ContextMessage] = []
        units: list[Candidate] = []
        conversation_id, at_most = self.request.conversation_id, self.request.recent_messages
        for newest in self.messages.newest(conversation_id, at_most=at_most, page=page):
            units = candidates(self.renderer, Section.RECENT, whole_units(newest))
            if would_fill(units, limit):
                break
        return newest, units[::-1]

    def _recall(self, newest: Sequence[ContextMessage], held: dict[Place, Section]) -> Recalled:
        """What the query brings back beside the messages that are in."""
        if self.request.search is None:
            return Recalled()
        vector = self.request.vector
        text, source = self._query(newest) if vector is None else ("", ())
        if vector is None and not text:
            return Recalled()
        known = sorted({sequence for _, sequence in held} | {message.sequence for message in source})
        query = SearchQuery(
            scope=self._scope(),
            text=text,
            vector=vector,
            options=self.request.search,
            index_wait=self.request.index_wait,
            exclude=tuple((self.conversation_uid, sequence) for sequence in known),
        )
        return recalled(self.searcher.search(self.read, query), self.reader, self.messages)

    def _scope(self) -> InConversation | OfUser:
        if self.request.search_user_scope:
            return OfUser(self.user_id)
        return InConversation(self.request.conversation_id, self.user_id)

    def _query(self, newest: Sequence[ContextMessage]) -> tuple[str, tuple[ContextMessage, ...]]:
        """The text to search for, and the message that it is of, where it is one's."""
        if self.request.query:
            return self.request.query, ()
        spoken = next((message for message in reversed(newest) if message.role == QUERY_ROLE), None)
        spoken = spoken or self.messages.newest_of(self.request.conversation_id, QUERY_ROLE)
        return ("", ()) if spoken is None else (spoken.text[:QUERY_CHARACTERS], (spoken,))

    def _context(
        self, selection: Selection, considered: Sequence[Candidate], found: Recalled, revision: int
    ) -> Context:
        rendered = self._rendered(selection, found)
        priced = zip(rendered.messages, rendered.tokens, strict=True)
        places = {place for candidate in considered for place in candidate.places}
        return Context(
            items=tuple(_item(message, tokens, selection.sections[message.place], found) for message, tokens in priced),
            text=rendered.text,
            tokens_used=rendered.tokens_used,
            overhead_tokens=rendered.overhead,
            left_out=len(places) - len(rendered.messages),
            uncounted_parts=sum(message.has_parts for message in rendered.messages),
            exact=self.request.encoding.exact,
            revision=revision,
            index=found.index,
        )

    def _rendered(self, selection: Selection, found: Recalled) -> Rendered:
        """The selection rendered, without its last choices where a count of the whole comes out above its parts'."""
        ranks = {id(unit): rank for rank, unit in enumerate(found.units)}
        while True:
            recent = sorted(selection.units(Section.RECENT), key=lambda unit: unit[0].sequence)
            hits = sorted(selection.units(Section.RECALLED), key=lambda unit: ranks[id(unit)])
            rendered = self.renderer.render(recent, hits)
            if rendered.tokens_used <= self.request.max_tokens:
                return rendered
            selection.drop_last()


def _item(message: ContextMessage, tokens: int, section: Section, found: Recalled) -> Item:
    rank, score = found.found.get(message.place, (None, None)) if section is Section.RECALLED else (None, None)
    return Item(
        encoded=message.encoded,
        conversation_id=message.conversation_id,
        sequence=message.sequence,
        section=section,
        score=score,
        tokens=tokens,
        reason=_reason(section, rank),
    )


def _reason(section: Section, rank: int | None) -> str:
    if section is Section.RECENT:
        return "one of the newest messages"
    if rank is None:
        return "shares a tool call with a message that the query found"
    return f"number {rank} of the messages that the query found"
