"""Assembling a context: the system text, facts, recalled and recent messages under an exact token budget."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from remora_server.domain.budgets import Candidate, Selection, candidates
from remora_server.domain.calls import Read
from remora_server.domain.context import Context, ContextRequest, Merge, Rendering, Section
from remora_server.domain.context_facts import FactFinder, KnownFacts
from remora_server.domain.context_items import ANSWER, QUESTION, Origins
from remora_server.domain.context_memories import MemorySource, working_memories
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
from remora_server.domain.filling import Filler, Ranked, Run, fill_sections
from remora_server.domain.memory_list import ELEMENTS
from remora_server.domain.newest import NewestTurns
from remora_server.domain.pinning import Pinned, Pinning
from remora_server.domain.relevance import relevant
from remora_server.domain.renderings import (
    ChatRenderer,
    Chosen,
    Rendered,
    Renderer,
    SystemPromptRenderer,
    TranscriptRenderer,
)
from remora_server.domain.replies import REPLY_BYTES
from remora_server.domain.search import Hit, InConversation, MessageFilter, OfUser, SearchQuery, SearchResult
from remora_server.domain.summary_prompts import summary_text
from remora_server.domain.tokens import O200K_BASE, TokenCounter
from remora_server.domain.turns import Recent
from remora_server.domain.windows import Summary

QUERY_CHARACTERS = 8_192
"""How many characters of a message are the query, if it is searched for: those at its beginning."""


class ContextAssembler:
    """Chooses messages under a budget and renders them.

    The system text and the newest turn are pinned. Then come facts, within a quarter of the budget each for those of
    the tenant and of the user, and working memories within another one; then the summary of what has left the window,
    if it fits, then the turns before the newest one, in an unbroken run, within half of the budget; all of it where
    nothing is recalled. Then recalled messages, by score, in all the room that is left, and what they answer or what
    answers them. What room remains goes to further facts and turns. A request may set another order and other shares
    (`domain.filling`).

    Candidates are the turns of the newest messages, up to `recent_messages` or until they would fill the budget alone,
    and the hits of the search that are relevant to the query. A hit comes with the rest of its tool calls, and is left
    out if that rest is missing. The reply has room for so many bytes, too (`domain.budgets`).
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
        facts: FactFinder,
        memories: MemorySource,
    ) -> None:
        self._memories = memories
        self._conversations = conversations
        self._messages = messages
        self._searcher = searcher
        self._tokens = tokens
        self._reader = reader
        self._windows = windows
        self._facts = facts

    def assemble(self, read: Read, request: ContextRequest) -> Context:
        """Assemble. Raises ConversationNotFound, BudgetTooSmall, ContextTooLarge, and what the search raises."""
        conversation, revision = self._conversations.get(read, request.conversation_id, "")
        user_id = request.user_id or conversation.draft.user_id
        is_owner = user_id == conversation.draft.user_id
        messages = UserMessages(self._messages, self._reader, read, user_id)
        system = self._system(request, messages)
        assembly = _Assembly(
            read=read,
            request=request,
            conversation_uid=conversation.uid,
            user_id=user_id,
            system=system,
            working=self._working(read, request, user_id, is_owner=is_owner),
            summary=self._summary(read, request, user_id) if is_owner else None,
            messages=messages,
            facts=KnownFacts(read, request, self._facts, self._reader, user_id),
            searcher=self._searcher,
            reader=self._reader,
            tokens=self._tokens,
            renderer=self._renderer(request, system),
        )
        return assembly.assemble(revision)

    def _summary(self, read: Read, request: ContextRequest, user_id: str) -> Summary | None:
        """The summary before the window. Another user's is that of a later conversation with the id."""
        summary = self._windows.current(read, request.conversation_id, "")[1]
        return summary if summary is not None and summary.user_id == user_id else None

    def _system(self, request: ContextRequest, messages: UserMessages) -> ContextMessage | None:
        """The system text: the one given, or else the newest in the conversation."""
        if not request.system:
            return messages.newest_of(request.conversation_id, *SYSTEM_ROLES)
        return self._reader.system(request.system, self._tokens.count(O200K_BASE, [request.system])[0])

    def _working(self, read: Read, request: ContextRequest, user_id: str, *, is_owner: bool) -> list[ContextMessage]:
        if not request.working_memory:
            return []
        return working_memories(
            self._memories,
            self._reader,
            self._tokens,
            read,
            request.conversation_id,
            user_id=user_id,
            is_owner=is_owner,
        )

    def _renderer(self, request: ContextRequest, system: ContextMessage | None) -> Renderer:
        counting = Counting(self._tokens, request.encoding, request.model)
        if request.rendering is Rendering.SYSTEM_PROMPT:
            return SystemPromptRenderer(counting, system)
        if request.rendering is Rendering.TRANSCRIPT:
            return TranscriptRenderer(counting)
        return ChatRenderer(counting, request.merge, request.conversation_id)


class _Assembly(Struct, frozen=True):
    """The assembling of one context."""

    read: Read
    request: ContextRequest
    conversation_uid: int
    user_id: str
    system: ContextMessage | None
    working: Sequence[ContextMessage]
    summary: Summary | None
    messages: UserMessages
    facts: KnownFacts
    searcher: Searcher
    reader: MessageReader
    tokens: TokenCounter
    renderer: Renderer

    def assemble(self, revision: int) -> Context:
        recent, runs = NewestTurns(self.request, self.messages, self.renderer).read()
        pinning = Pinning(self.request, self.renderer, self.reader, self.tokens)
        pinned, selection = pinning.fitting(Pinned(self.system, recent.pinned))
        text, source = self._query(recent)
        static = self.facts.static()
        known = self.facts.found(text, len(static))
        recall = _Recall(self, text, source)
        fillers: dict[Section, Filler] = {
            Section.STATIC_FACTS: Ranked(lambda: self._single(Section.STATIC_FACTS, static)),
            Section.FACTS: Ranked(lambda: self._single(Section.FACTS, [fact.message for fact in known])),
            Section.WORKING_MEMORY: Ranked(lambda: self._single(Section.WORKING_MEMORY, self.working)),
            Section.SUMMARY: Ranked(lambda: self._single(Section.SUMMARY, self._summarized())),
            Section.RECENT: Run(runs),
            Section.RECALLED: recall,
        }
        fill_sections(self.request, selection, fillers)
        rendered = self._rendered(selection, pinned, recall.found)
        origins = Origins(
            self.request,
            pinned,
            recall.found,
            recall.sides,
            self.summary,
            {fact.message.place: (rank, fact.score) for rank, fact in enumerate(known, 1)},
            _leading(recent, runs, selection),
        )
        items = origins.items(rendered, selection, self.renderer)
        considered = {place for filler in fillers.values() for each in filler.considered for place in each.places}
        return Context(
            items=items,
            text=rendered.text,
            memory=rendered.memory,
            earlier=rendered.earlier,
            tokens_used=rendered.tokens_used,
            overhead_tokens=rendered.overhead,
            left_out=len(considered - selection.places),
            unanswered=_unanswered(recent, selection),
            unrelated=len(recall.found.unrelated - selection.places),
            exact=self.request.encoding.exact and not any(item.uncounted for item in items),
            revision=revision,
            index=recall.found.index,
            user_id=self.user_id,
            uids={**recall.found.uids, self.request.conversation_id: self.conversation_uid},
        )

    def _single(self, section: Section, messages: Sequence[ContextMessage]) -> list[Candidate]:
        """Messages as candidates, each by itself."""
        return candidates(self.renderer, section, [((message,),) for message in messages])

    def _summarized(self) -> list[ContextMessage]:
        """What stands for the messages that have left the window."""
        if self.summary is None:
            return []
        text = summary_text(self.summary.text)
        tokens, revision = self.tokens.count(O200K_BASE, [text])[0], self.summary.revision
        return [self.reader.summary(self.request.conversation_id, self.user_id, text, tokens, revision=revision)]

    def recall(self, text: str, source: ContextMessage | None, selection: Selection) -> Recalled:
        """What a text, which is that of `source`, or the request's vector recalls besides the messages that are in."""
        vector = self.request.vector
        if self.request.search is None or (vector is None and not text):
            return Recalled()
        known = {sequence for conversation_id, sequence in selection.places if conversation_id and sequence > 0}
        known |= {source.sequence} if source else set()
        query = SearchQuery(
            scope=self._scope(),
            text=text,
            vector=vector,
            options=self.request.search,
            index_wait=self.request.index_wait,
            exclude=tuple((self.conversation_uid, sequence) for sequence in sorted(known)),
            around=AROUND,
            source=(self.conversation_uid, source.sequence) if source else None,
            without_roles=() if self.request.search.filter.roles else SYSTEM_ROLES,
        )
        result = self.searcher.search(self.read, query)
        hits = result.hits if self.request.include_unrelated else self._relevant(result)
        unrelated = {(hit.conversation_id, hit.sequence) for hit in result.hits}
        unrelated.difference_update((hit.conversation_id, hit.sequence) for hit in hits)
        return recalled(replace(result, hits=hits), self.reader, frozenset(unrelated))

    def _relevant(self, result: SearchResult) -> tuple[Hit, ...]:
        """The hits that are relevant to the query. One of white space alone is not: its vector is like that of any
        short text. One without text has the vector that its caller gave.
        """
        hits = relevant(result)
        texts = [self.reader.message(hit.conversation_id, hit.encoded).text for hit in hits]
        return tuple(hit for hit, text in zip(hits, texts, strict=True) if not text or text.strip())

    def _scope(self) -> InConversation | OfUser:
        if self.request.search_user_scope:
            return OfUser(self.user_id)
        return InConversation(self.request.conversation_id, self.user_id)

    def _query(self, recent: Recent) -> tuple[str, ContextMessage | None]:
        """The text to search for, and its message, if it is the text of one. The text is empty if nothing is searched
        for, or if the request has a vector.
        """
        if self.request.search is None and self.request.facts is None:
            return "", None
        if self.request.query or self.request.vector is not None:
            return self.request.query, None
        said = recent.said or self.messages.newest_said(self.request.conversation_id)
        return ("", None) if said is None else (said.text[:QUERY_CHARACTERS], said)

    def other_sides(self, found: Recalled, taken: Sequence[Candidate]) -> list[tuple[ContextMessage, str]]:
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
        """The rendered selection, without its last choices if the count of the whole is above the sum of its parts.
        Raises ContextTooLarge.
        """
        ranks = {unit[0].place: rank for rank, unit in enumerate(found.units)}
        while True:
            units = selection.units()
            hits = sorted(units[Section.RECALLED], key=lambda unit: ranks.get(unit[0].place, len(ranks)))
            recent = sorted(units[Section.RECENT], key=lambda unit: unit[0].sequence)
            summary = next((unit[0] for unit in units[Section.SUMMARY]), None)
            facts = {section: [unit[0] for unit in units[section]] for section in ELEMENTS}
            working = tuple([unit[0] for unit in units[Section.WORKING_MEMORY]])
            rendered = self.renderer.render(Chosen(pinned.system, hits, recent, summary, facts, working))
            if rendered.tokens_used <= self.request.max_tokens or not selection.drop_last():
                break
        if not selection.fits_reply:
            raise ContextTooLarge(REPLY_BYTES)
        return rendered


def _unanswered(recent: Recent, selection: Selection) -> int:
    """How many halves of tool calls were said since the first of the recent messages that are in."""
    units = selection.units()[Section.RECENT]
    first = min((message.sequence for unit in units for message in unit), default=recent.begin or 0)
    return sum(half.sequence >= first for half in recent.halves)


def _leading(recent: Recent, runs: Sequence[Candidate], selection: Selection) -> int:
    """How many messages before the first turn are not in, where all turns are."""
    if not all(selection.places.issuperset(turn.places) for turn in runs):
        return 0
    return sum(message.place not in selection.places for message in recent.leading)


class _Recall:
    """Recalled messages, with their questions or answers. They are searched for when the section is filled for the
    first time.
    """

    def __init__(self, assembly: _Assembly, text: str, source: ContextMessage | None) -> None:
        """`text` is the text to search for, `source` its message."""
        self._assembly = assembly
        self._text = text
        self._source = source
        self._hits: list[Candidate] | None = None
        self._others: list[Candidate] = []
        self.found = Recalled()
        self.sides: dict[Place, str] = {}
        """Why messages that the query did not find are in the context."""

    @property
    def considered(self) -> Sequence[Candidate]:
        return [*(self._hits or ()), *self._others]

    def fill(self, selection: Selection, limit: int) -> None:
        if self._hits is None:
            self.found = self._assembly.recall(self._text, self._source, selection)
            self._hits = self._candidates([(unit,) for unit in self.found.units])
        sides = self._assembly.other_sides(self.found, selection.take_all(self._hits, limit))
        self.sides.update({message.place: why for message, why in sides})
        self._others += self._candidates([((message,),) for message, _ in sides])
        selection.take_all(self._others, limit)

    def _candidates(self, groups: Sequence[Sequence[Unit]]) -> list[Candidate]:
        return candidates(self._assembly.renderer, Section.RECALLED, groups)
