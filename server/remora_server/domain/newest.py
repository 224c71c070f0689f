"""Reading the newest turns of a conversation: as many as a context may have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from remora_server.domain.budgets import Candidate, candidates, would_fill
from remora_server.domain.context import ContextRequest, Section
from remora_server.domain.context_messages import USER, ContextMessage
from remora_server.domain.context_sources import LARGEST_PAGE, TOOL_REACH, UserMessages
from remora_server.domain.renderings import Renderer
from remora_server.domain.turns import Recent, Turn, recent_turns

PAGE_TOKENS = 128
"""The first page of recent messages would fill the budget if each had this many tokens."""
SMALLEST_PAGE = 16


class NewestTurns(Struct, frozen=True):
    """The newest turns of a request's conversation."""

    request: ContextRequest
    messages: UserMessages
    renderer: Renderer

    def read(self) -> tuple[Recent, list[Candidate]]:
        """The newest turns, and the turns before the pinned ones as candidates, newest first: as many as were
        requested, or as would fill the budget or the reply.
        """
        if self.request.recent_messages == 0:
            return Recent(), []
        limit = self.renderer.limit(self.request.max_tokens)
        page = min(LARGEST_PAGE, max(SMALLEST_PAGE, self.request.max_tokens // PAGE_TOKENS))
        recent, runs = Recent(), list[Candidate]()
        for newest in self.messages.newest(self.request.conversation_id, page=page):
            recent = recent_turns(newest)
            before = list(self._as_many_as_asked(recent))
            runs = candidates(self.renderer, Section.RECENT, [turn.units for turn in before])
            if self._is_settled(recent, newest) and (len(before) < len(recent.before) or would_fill(runs, limit)):
                break
        return recent, runs

    def _as_many_as_asked(self, recent: Recent) -> Iterator[Turn]:
        """The turns before the pinned ones, up to the number of messages that was requested."""
        most = self.request.recent_messages
        count = sum(len(turn.messages) for turn in recent.pinned)
        for turn in recent.before:
            count += len(turn.messages)
            if most is not None and count > most:
                return
            yield turn

    def _is_settled(self, recent: Recent, read: Sequence[ContextMessage]) -> bool:
        """Whether reading more would not change the pinned turn: its beginning was read, and a call for one of its
        results would be too far back.
        """
        begin = recent.begin
        if begin is None:
            return self.messages.newest_of(self.request.conversation_id, USER) is None
        is_whole = not any(message.tool_result_ids for message in recent.unanswered)
        return is_whole or sum(message.sequence < begin for message in read) >= TOOL_REACH
