"""The items of a context: why each message is in it."""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from remora_server.domain.budgets import Selection
from remora_server.domain.context import ContextRequest, Item, Section
from remora_server.domain.context_messages import ContextMessage, Place
from remora_server.domain.context_sources import Recalled
from remora_server.domain.pinning import Pinned
from remora_server.domain.renderings import Rendered, Renderer
from remora_server.domain.windows import Summary

FOUND = "number {} of the messages that the query found"
WITH_TOOLS = "shares a tool call with a message that the query found"
QUESTION = "the question before an answer that the query found"
ANSWER = "the answer to a question that the query found"
NEWEST = "one of the newest messages"
LED = "before it, {} is left out, because models want a user's message first"
SUMMARY, UNNAMED = "the summary of the messages that have left the window, by {}", "a model without a name"
STATIC, FOUND_FACT, NEWEST_FACT = "holds for all", "number {} of the facts that the query found", "recorded of late"
OWN_MEMORY, USERS_MEMORY = "the working memory of the conversation", "the working memory of the user"
MEMORY_ID = "working-memory"
"""What receipts name the user's working memory by, among ids of facts."""
_REASONS = {Section.RECENT: NEWEST, Section.STATIC_FACTS: STATIC}
"""Of sections all of whose items have one."""
GIVEN_SYSTEM, STORED_SYSTEM = "the system text of the request", "the newest system message"


class Origins(Struct, frozen=True):
    """Where the items of a context come from. `sides` are messages that belong to a hit, and why; `facts` the rank
    (from 1) and score of each fact of the user, whose score is None where there was no query; `leading` is how many
    messages are left out before the first of the recent ones, which must be a user's.
    """

    request: ContextRequest
    pinned: Pinned
    found: Recalled
    sides: dict[Place, str] = field(default_factory=dict)
    summary: Summary | None = None
    facts: dict[Place, tuple[int, float | None]] = field(default_factory=dict)
    leading: int = 0

    def items(self, rendered: Rendered, selection: Selection, renderer: Renderer) -> tuple[Item, ...]:
        """The items in the order of reading."""
        priced = zip(rendered.messages, rendered.tokens, strict=True)
        items = [self._item(message, message.place, tokens, selection, renderer) for message, tokens in priced]
        if self.leading:
            first = next(number for number, item in enumerate(items) if item.section is Section.RECENT)
            items[first] = replace(items[first], reason=f"{NEWEST}; {LED.format(self.leading)}")
        return tuple(items)

    def _item(
        self, message: ContextMessage, place: Place, tokens: int, selection: Selection, renderer: Renderer
    ) -> Item:
        """One item. The arguments are in the order of the fields, which takes half the time."""
        section = selection.section(place)
        if section in _REASONS:
            score, reason, fact_id = None, _REASONS[section], ""
        else:
            rank, score = self._found(section, place)
            reason, fact_id = self._reason(message, section, rank), _fact_id(message, section)
        uncounted = renderer.uncounted(section, message) if message.images or message.uncounted else ()
        partial = place in self.pinned.partial
        return Item(
            message.encoded, place[0], place[1], section, score, tokens, reason, uncounted, partial, fact_id,
            message.fact,
        )  # fmt: skip

    def _found(self, section: Section, place: Place) -> tuple[int | None, float | None]:
        """The rank and the score of what a query found."""
        if section is Section.RECALLED:
            return self.found.found.get(place, (None, None))
        return self.facts[place] if section is Section.FACTS else (None, None)

    def _reason(self, message: ContextMessage, section: Section, rank: int | None) -> str:
        if section is Section.SYSTEM:
            return GIVEN_SYSTEM if self.request.system else STORED_SYSTEM
        if section is Section.SUMMARY and self.summary is not None:
            return SUMMARY.format(self.summary.model or UNNAMED)
        if section is Section.WORKING_MEMORY:
            return OWN_MEMORY if message.conversation_id else USERS_MEMORY
        if section is Section.FACTS:
            has_query = self.facts[message.place][1] is not None
            return FOUND_FACT.format(rank) if has_query else NEWEST_FACT
        return self.sides.get(message.place, WITH_TOOLS) if rank is None else FOUND.format(rank)


def _fact_id(message: ContextMessage, section: Section) -> str:
    """What a receipt names an item by that is of no conversation but of the user."""
    if section is Section.WORKING_MEMORY and not message.conversation_id:
        return MEMORY_ID
    return message.id if section is Section.FACTS else ""
