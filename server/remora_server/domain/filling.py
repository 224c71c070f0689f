"""The order in which the sections of a context get room, and how much."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from remora_server.domain.budgets import Candidate, Selection
from remora_server.domain.context import ContextRequest, Section, SectionShare

FACTS_SHARE = 0.25
"""The part of the budget that each section of facts, and working memory, may take at first, where the request does not
say.
"""
ORDER = (
    SectionShare(Section.STATIC_FACTS, FACTS_SHARE),
    SectionShare(Section.FACTS, FACTS_SHARE),
    SectionShare(Section.WORKING_MEMORY, FACTS_SHARE),
    SectionShare(Section.SUMMARY),
    SectionShare(Section.RECENT),
    SectionShare(Section.RECALLED),
)
"""The default."""


class Filler(Protocol):
    """Takes the candidates of a section that fit."""

    @property
    def considered(self) -> Sequence[Candidate]:
        """All candidates so far."""

    def fill(self, selection: Selection, limit: int) -> None:
        """Take candidates while the whole is within a limit."""


class Ranked:
    """Candidates from which each fitting one is taken. They are made when the section is filled for the first time."""

    def __init__(self, make: Callable[[], Sequence[Candidate]]) -> None:
        self._make = make
        self._made: Sequence[Candidate] | None = None

    @property
    def considered(self) -> Sequence[Candidate]:
        return self._made or ()

    def fill(self, selection: Selection, limit: int) -> None:
        if self._made is None:
            self._made = self._make()
        selection.take_all(self._made, limit)


class Run:
    """Candidates that are taken without a gap."""

    def __init__(self, ordered: Sequence[Candidate]) -> None:
        self.considered = ordered
        self._waiting = ordered

    def fill(self, selection: Selection, limit: int) -> None:
        self._waiting = selection.take_run(self._waiting, limit)


def fill_sections(request: ContextRequest, selection: Selection, fillers: Mapping[Section, Filler]) -> None:
    """Fill each section within its share, and then all of them with the remaining room."""
    named = {share.section for share in request.shares}
    order = (*request.shares, *(default for default in ORDER if default.section not in named))
    for share in order:
        fillers[share.section].fill(selection, _limit(request, selection, share, is_named=share.section in named))
    for share in order:
        fillers[share.section].fill(selection, selection.limit)


def _limit(request: ContextRequest, selection: Selection, share: SectionShare, *, is_named: bool) -> int:
    """The greatest measure of the whole when a section has its share."""
    if share.section is Section.RECENT and not is_named and request.search is not None:
        return selection.limit // 2
    if share.share is None:
        return selection.limit
    return min(selection.limit, selection.spent + int(share.share * selection.limit))
