"""Reading the newest turns of a conversation: as many as a context may have."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, islice

from msgspec import Struct
from msgspec.structs import replace

from remora_server.domain.budgets import Candidate, Weight, candidate_of, weigh, would_fill
from remora_server.domain.context import ContextRequest, Section
from remora_server.domain.context_messages import USER, ContextMessage
from remora_server.domain.context_sources import LARGEST_PAGE, TOOL_REACH, UserMessages
from remora_server.domain.renderings import Renderer
from remora_server.domain.turns import Recent, Turn, recent_turns

PAGE_TOKENS = 128
"""The first page of recent messages would fill the budget if each had this many tokens."""
SMALLEST_PAGE, LEAST_PAGE = 16, 4
"""Of the first page, and of those that follow it."""
SPARE = 1.25
"""So many times as many messages are read as are likely to be missing."""


class NewestTurns(Struct, frozen=True):
    """The newest turns of a request's conversation."""

    request: ContextRequest
    messages: UserMessages
    renderer: Renderer

    def read(self) -> tuple[Recent, list[Candidate]]:
        """The newest turns, and the turns before the pinned ones as candidates, newest first: as many as were
        requested, or as would fill the budget or the reply. `leading` is what stands before all turns of the window;
        nothing while there may be turns before those that were read, or not all of them were requested.
        """
        if self.request.recent_messages == 0:
            return Recent(), []
        limit = self.renderer.limit(self.request.max_tokens)
        page = min(LARGEST_PAGE, max(SMALLEST_PAGE, self.request.max_tokens // PAGE_TOKENS))
        recent, before = Recent(), tuple[Turn, ...]()
        weights: dict[int, Weight] = {}
        measure, count = 0, 0

        def following() -> int:
            return _lacking(limit, measure, count)

        for newest in self.messages.newest(self.request.conversation_id, page=page, following=following):
            recent = recent_turns(newest)
            before = self._as_many_as_asked(recent)
            weighed = self._weighed(before, weights)
            measure, count = sum([weight.measure for weight in weighed]), len(newest)
            if self._is_settled(recent, newest) and (len(before) < len(recent.before) or would_fill(weighed, limit)):
                recent = replace(recent, leading=())
                break
        if len(before) < len(recent.before):
            recent = replace(recent, leading=())
        return recent, [
            candidate_of(Section.RECENT, turn.units, turn.messages, [weights[each.sequence] for each in turn.messages])
            for turn in before
        ]

    def _weighed(self, turns: Sequence[Turn], weights: dict[int, Weight]) -> list[Weight]:
        """The weight of each message. `weights` are those of the pages before, by sequence, and get the new ones."""
        messages = [message for turn in turns for message in turn.messages]
        new = [message for message in messages if message.sequence not in weights]
        sequences = [message.sequence for message in new]
        weights.update(zip(sequences, weigh(self.renderer, Section.RECENT, new), strict=True))
        return [weights[message.sequence] for message in messages]

    def _as_many_as_asked(self, recent: Recent) -> tuple[Turn, ...]:
        """The turns before the pinned ones, up to the number of messages that was requested."""
        most = self.request.recent_messages
        if most is None:
            return recent.before
        counts = accumulate(len(turn.messages) for turn in (*recent.pinned, *recent.before))
        within = sum(count <= most for count in islice(counts, len(recent.pinned), None))
        return recent.before[:within]

    def _is_settled(self, recent: Recent, read: Sequence[ContextMessage]) -> bool:
        """Whether reading more would not change the pinned turn: its beginning was read, and a call for one of its
        results would be too far back.
        """
        begin = recent.begin
        if begin is None:
            return self.messages.newest_of(self.request.conversation_id, USER) is None
        is_whole = not any(half.tool_result_ids for half in recent.halves if half.sequence >= begin)
        return is_whole or sum(message.sequence < begin for message in read) >= TOOL_REACH


def _lacking(limit: int, measure: int, count: int) -> int:
    """About how many messages more fill a limit, if they cost as much as those so far do; as many again if something
    else is looked for.
    """
    if not 0 < measure < limit:
        return count
    return int((limit - measure) * count / measure * SPARE) + LEAST_PAGE
