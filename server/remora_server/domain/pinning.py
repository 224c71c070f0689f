"""What a context must have: the system text and the newest turns, truncated where that is allowed."""

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
    """What is pinned. `turns` are newest first, `partial` are the messages whose texts are truncated."""

    system: ContextMessage | None
    turns: tuple[Turn, ...]
    partial: frozenset[Place] = frozenset()

    @property
    def chosen(self) -> Chosen:
        """A context of nothing else."""
        return Chosen(self.system, (), [unit for turn in reversed(self.turns) for unit in turn.units])


class Pinning(Struct, frozen=True):
    """Fits what is pinned into the budget of a request."""

    request: ContextRequest
    renderer: Renderer
    reader: MessageReader
    tokens: TokenCounter

    def fitting(self, pinned: Pinned) -> Pinned:
        """What is pinned, with truncated texts where it does not fit and may have them. Raises BudgetTooSmall."""
        budget = self.request.max_tokens
        needed = self._needed(pinned)
        if needed <= budget:
            return pinned
        if not self.request.allow_partial or not pinned.turns:
            raise BudgetTooSmall(budget, needed)
        truncation = Truncation(self.renderer, [message for turn in pinned.turns for message in turn.messages])
        spent = self.selection(pinned).spent
        excess = spent - self.renderer.limit(budget)
        if truncation.saves < excess:
            raise BudgetTooSmall(budget, self.renderer.tokens(spent - truncation.saves))
        return self._truncated(pinned, truncation, excess)

    def _needed(self, pinned: Pinned) -> int:
        """The least budget that holds what is pinned."""
        rendered = self.renderer.render(pinned.chosen)
        return max(rendered.tokens_used, self.renderer.tokens(self.selection(pinned).spent))

    def selection(self, pinned: Pinned) -> Selection:
        """A selection of what is pinned."""
        selection = Selection(self.renderer, self.renderer.limit(self.request.max_tokens))
        system = [] if pinned.system is None else [((pinned.system,),)]
        turns = candidates(self.renderer, Section.RECENT, [turn.units for turn in pinned.turns])
        for candidate in (*candidates(self.renderer, Section.SYSTEM, system), *turns):
            selection.pin(candidate)
        return selection

    def _truncated(self, pinned: Pinned, truncation: Truncation, excess: int) -> Pinned:
        """What is pinned, its texts shorter by the excess."""
        changed = {message.place: self._written(message) for message in truncation.by(excess)}
        turns = tuple([turn.replacing(changed) for turn in pinned.turns])
        return replace(pinned, turns=turns, partial=frozenset(changed))

    def _written(self, message: ContextMessage) -> ContextMessage:
        """A message whose text was truncated, with its wire form."""
        return self.reader.with_text(message, message.text, self.tokens.count(O200K_BASE, [message.text])[0])
