"""Assembling a context: the system text, recalled and recent messages of a conversation under an exact token budget."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from remora_server.domain.budgets import Candidate, Selection, candidates
from remora_server.domain.calls import Read
from remora_server.domain.context import Context, ContextRequest, Merge, Rendering, Section
from remora_server.domain.context_items import ANSWER, QUESTION, Origins
from remora_server.domain.context_messages import SYSTEM_ROLES, ContextMessage, MessageReader, Place, Unit
from remora_server.domain.context_sources import (
    AROUND,
    ConversationSource,
    MessageSource,
    Recalled,
    Searcher,
    SummarySource,
    UserMessages,
    recalled,
)
from remora_server.domain.costs import Counting
from remora_server.domain.errors import ContextTooLarge
from remora_server.domain.newest import NewestTurns
from remora_server.domain.pinning import Pinned, Pinning
from remora_server.domain.relevance import speaking
from remora_server.domain.renderings import ChatRenderer, Chosen, Rendered, Renderer, TranscriptRenderer
from remora_server.domain.replies import REPLY_BYTES
from remora_server.domain.search import InConversation, MessageFilter, OfUser, SearchQuery
from remora_server.domain.summary_prompts import summary_text
from remora_server.domain.tokens import O200K_BASE, TokenCounter
from remora_server.domain.turns import Recent
from remora_server.domain.windows import Summary

QUERY_CHARACTERS = 8_192
"""Of a message that is the query, how much of its beginning is."""


class ContextAssembler:
    """Chooses messages under a budget and renders them.

    The system text and the newest turn are pinned. Then comes the summary of what has left the window, if it fits, then
    the turns before the newest one, in an unbroken run, within half of the budget; all of it where nothing is recalled.
    Then recalled messages, by score, in all the room that is left, and what they answer or what answers them. What room
    remains goes to further turns of the run.

    Candidates are the turns of the newest messages, up to `recent_messages` or until they would fill the budget by
    themselves, and the hits of the search that speak to the query; hits with the rest of their tool calls, and none
    where that rest is not to be had. The reply has room for so many bytes, too (`domain.budgets`).
    """

    def __init__(
        self,
        conversations: ConversationSource,
        messages: MessageSource,
        searcher: Searcher,
        tokens: TokenCounter,
        reader: MessageReader,
        *,
        windows: SummarySource,
    ) -> None:
        self._conversations = conversations
        self._messages = messages
        self._searcher = searcher
        self._tokens = tokens
        self._reader = reader
        self._windows = windows

    def assemble(self, read: Read, request: ContextRequest) -> Context:
        """Assemble. Raises ConversationNotFound, BudgetTooSmall, ContextTooLarge, and what the search raises."""
        conversation, revision = self._conversations.get(read, request.conversation_id, "")
        user_id = request.user_id or conversation.draft.user_id
        assembly = _Assembly(
            read=read,
            request=request,
            conversation_uid=conversation.uid,
            user_id=user_id,
            summary=self._summary(read, request) if user_id == conversation.draft.user_id else None,
            messages=UserMessages(self._messages, self._reader, read, user_id),
            searcher=self._searcher,
            reader=self._reader,
            tokens=self._tokens,
            renderer=self._renderer(request),
        )
        return assembly.assemble(revision)

    def _summary(self, read: Read, request: ContextRequest) -> Summary | None:
        return self._windows.current(read, request.conversation_id, "")[1]

    def _renderer(self, request: ContextRequest) -> Renderer:
        counting = Counting(self._tokens, request.encoding, request.model)
        if request.rendering is Rendering.TRANSCRIPT:
            return TranscriptRenderer(counting)
        return ChatRenderer(counting, request.merge, request.conversation_id)


class _Assembly(Struct, frozen=True):
    """The assembling of one context."""

    read: Read
    request: ContextRequest
    conversation_uid: int
    user_id: str
    summary: Summary | None
    messages: UserMessages
    searcher: Searcher
    reader: MessageReader
    tokens: TokenCounter
    renderer: Renderer

    def assemble(self, revision: int) -> Context:
        limit = self.renderer.limit(self.request.max_tokens)
        recent, runs = NewestTurns(self.request, self.messages, self.renderer).read()
        pinning = Pinning(self.request, self.renderer, self.reader, self.tokens)
        pinned = pinning.fitting(Pinned(self._system(), recent.pinned))
        selection = pinning.selection(pinned)
        summaries = candidates(self.renderer, Section.SUMMARY, self._summarized())
        selection.take_all(summaries)
        waiting = selection.take_run(runs, limit // 2 if self.request.search else limit)
        found = self._recall(recent, selection)
        hits = candidates(self.renderer, Section.RECALLED, [(unit,) for unit in found.units])
        sides = self._other_sides(found, selection.take_all(hits))
        others = candidates(self.renderer, Section.RECALLED, [((message,),) for message, _ in sides])
        selection.take_all(others)
        selection.take_run(waiting, limit)
        rendered = self._rendered(selection, pinned, found)
        origins = Origins(self.request, pinned, found, {message.place: why for message, why in sides}, self.summary)
        items = origins.items(rendered, selection, self.renderer)
        considered = {place for candidate in (*summaries, *runs, *hits, *others) for place in candidate.places}
        return Context(
            items=items,
            text=rendered.text,
            earlier=rendered.earlier,
            tokens_used=rendered.tokens_used,
            overhead_tokens=rendered.overhead,
            left_out=len(considered - selection.places),
            unanswered=len(recent.unanswered),
            unrelated=found.unrelated,
            exact=self.request.encoding.exact and not any(item.uncounted for item in items),
            revision=revision,
            index=found.index,
            user_id=self.user_id,
            uids={**found.uids, self.request.conversation_id: self.conversation_uid},
        )

    def _system(self) -> ContextMessage | None:
        """The system text: the one given, or else the newest in the conversation."""
        text = self.request.system
        if not text:
            return self.messages.newest_of(self.request.conversation_id, *SYSTEM_ROLES)
        return self.reader.system(text, self.tokens.count(O200K_BASE, [text])[0])

    def _summarized(self) -> list[list[Unit]]:
        """What stands for the messages that have left the window."""
        if self.summary is None:
            return []
        text = summary_text(self.summary.text)
        tokens, revision = self.tokens.count(O200K_BASE, [text])[0], self.summary.revision
        made = self.reader.summary(self.request.conversation_id, self.user_id, text, tokens, revision=revision)
        return [[(made,)]]

    def _recall(self, recent: Recent, selection: Selection) -> Recalled:
        """What the query brings back beside the messages that are in."""
        if self.request.search is None:
            return Recalled()
        vector = self.request.vector
        text, source = self._query(recent) if vector is None else ("", None)
        if vector is None and not text:
            return Recalled()
        known = {sequence for conversation_id, sequence in selection.places if conversation_id and sequence}
        known |= {source.sequence} if source else set()
        query = SearchQuery(
            scope=self._scope(),
            text=text,
            vector=vector,
            options=self.request.search,
            index_wait=self.request.index_wait,
            exclude=tuple((self.conversation_uid, sequence) for sequence in sorted(known)),
            around=AROUND,
        )
        result = self.searcher.search(self.read, query)
        hits = result.hits if self.request.include_unrelated else speaking(result)
        return recalled(replace(result, hits=hits), self.reader, len(result.hits) - len(hits))

    def _scope(self) -> InConversation | OfUser:
        if self.request.search_user_scope:
            return OfUser(self.user_id)
        return InConversation(self.request.conversation_id, self.user_id)

    def _query(self, recent: Recent) -> tuple[str, ContextMessage | None]:
        """The text to search for, and the message that it is of, where it is one's."""
        if self.request.query:
            return self.request.query, None
        said = recent.said or self.messages.newest_said(self.request.conversation_id)
        return ("", None) if said is None else (said.text[:QUERY_CHARACTERS], said)

    def _other_sides(self, found: Recalled, taken: Sequence[Candidate]) -> list[tuple[ContextMessage, str]]:
        """What recalled messages answer, or what answers them, and which it is; nothing where a filter was given, which
        these need not pass, and in VoltAgent's orders.
        """
        search, merge = self.request.search, self.request.merge
        if search is None or search.filter != MessageFilter() or merge is not Merge.EARLIER:
            return []
        sides: dict[Place, tuple[ContextMessage, str]] = {}
        for unit in (unit for candidate in taken for unit in candidate.units):
            side = found.beside[unit[0].place].other_side(unit)
            if side is not None:
                sides.setdefault(side.place, (side, ANSWER if unit[0].opens_turn else QUESTION))
        return list(sides.values())

    def _rendered(self, selection: Selection, pinned: Pinned, found: Recalled) -> Rendered:
        """The selection rendered, without its last choices where a count of the whole comes out above its parts'.
        Raises ContextTooLarge.
        """
        ranks = {unit[0].place: rank for rank, unit in enumerate(found.units)}
        while True:
            hits = sorted(selection.units(Section.RECALLED), key=lambda unit: ranks.get(unit[0].place, len(ranks)))
            recent = sorted(selection.units(Section.RECENT), key=lambda unit: unit[0].sequence)
            summary = next((unit[0] for unit in selection.units(Section.SUMMARY)), None)
            rendered = self.renderer.render(Chosen(pinned.system, hits, recent, summary))
            if rendered.tokens_used <= self.request.max_tokens or not selection.drop_last():
                break
        if not selection.fits_reply:
            raise ContextTooLarge(REPLY_BYTES)
        return rendered
