"""The pinned parts of a context: the system text and the newest turns, truncated if that is allowed."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from remora_server.domain.budgets import Selection, candidates
from remora_server.domain.context import ContextRequest, Section
from remora_server.domain.context_messages import ContextMessage, MessageReader, Place
from remora_server.domain.errors import BudgetTooSmall
from remora_server.domain.renderings import Chosen, Renderer
from remora_server.domain.tokens import O200K_BASE, TokenCounter
from remora_server.domain.truncation import Truncation
from remora_server.domain.turns import Turn


class Pinned(Struct, frozen=True):
    """The pinned parts. `turns` are newest first, `partial` are the messages with truncated texts."""

    system: ContextMessage | None
    turns: tuple[Turn, ...]
    partial: frozenset[Place] = frozenset()

    @property
    def chosen(self) -> Chosen:
        """A context of only the pinned parts."""
        return Chosen(self.system, (), [unit for turn in reversed(self.turns) for unit in turn.units])


class Pinning(Struct, frozen=True):
    """Fits the pinned parts into the budget of a request."""

    request: ContextRequest
    renderer: Renderer
    reader: MessageReader
    tokens: TokenCounter

    def fitting(self, pinned: Pinned) -> tuple[Pinned, Selection]:
        """The pinned parts, with texts truncated if they do not fit and that is allowed, and a selection of them.
        Raises BudgetTooSmall.
        """
        budget, selection = self.request.max_tokens, self._selection(pinned)
        needed = max(self.renderer.render(pinned.chosen).tokens_used, self.renderer.tokens(selection.spent))
        if needed <= budget:
            return pinned, selection
        if not self.request.allow_partial or not pinned.turns:
            raise BudgetTooSmall(budget, needed)
        truncation = Truncation(self.renderer, [message for turn in pinned.turns for message in turn.messages])
        spent = selection.spent
        excess = spent - self.renderer.limit(budget)
        if truncation.saves < excess:
            raise BudgetTooSmall(budget, self.renderer.tokens(spent - truncation.saves))
        truncated = self._truncated(pinned, truncation, excess)
        return truncated, self._selection(truncated)

    def _selection(self, pinned: Pinned) -> Selection:
        """A selection of the pinned parts."""
        selection = Selection(self.renderer, self.renderer.limit(self.request.max_tokens))
        system = [] if pinned.system is None else [((pinned.system,),)]
        turns = candidates(self.renderer, Section.RECENT, [turn.units for turn in pinned.turns])
        for candidate in (*candidates(self.renderer, Section.SYSTEM, system), *turns):
            selection.pin(candidate)
        return selection

    def _truncated(self, pinned: Pinned, truncation: Truncation, excess: int) -> Pinned:
        """The pinned parts, with texts shortened by the excess."""
        changed = {message.place: self._written(message) for message in truncation.by(excess)}
        turns = tuple([turn.replacing(changed) for turn in pinned.turns])
        return replace(pinned, turns=turns, partial=frozenset(changed))

    def _written(self, message: ContextMessage) -> ContextMessage:
        """A message with a truncated text, and its wire form."""
        return self.reader.with_text(message, message.text, self.tokens.count(O200K_BASE, [message.text])[0])
