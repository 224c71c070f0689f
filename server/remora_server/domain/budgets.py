"""Choosing units under a token budget and within the size of a reply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import islice

from msgspec import Struct

from remora_server.domain.context import Section
from remora_server.domain.context_messages import Place, Unit
from remora_server.domain.renderings import Renderer
from remora_server.domain.replies import REPLY_BYTES

ITEM_BYTES = 256
"""More than the bytes of an item besides its message and its conversation's id, and more than a line with a session's
date.
"""


class Candidate(Struct, frozen=True, eq=False, gc=False):
    """Units that go into a section together, their measure (their shares aside), and their bytes in the reply."""

    section: Section
    units: tuple[Unit, ...]
    measure: int
    shares: dict[Hashable, int]
    reply_bytes: int
    places: tuple[Place, ...]


def candidates(renderer: Renderer, section: Section, groups: Sequence[Sequence[Unit]]) -> list[Candidate]:
    """Groups of units with their measures, which are computed for all at once."""
    if not groups:
        return []
    messages = [[message for unit in units for message in unit] for units in groups]
    measures = iter(renderer.measure(section, [message for listed in messages for message in listed]))
    made = []
    here = {message.conversation_id for listed in messages for message in listed}
    identities = {conversation_id: len(conversation_id.encode()) + ITEM_BYTES for conversation_id in here}
    is_listed = renderer.lists(section)
    for units, listed in zip(groups, messages, strict=True):
        measure = sum(islice(measures, len(listed)))
        reply_bytes = sum([len(message.encoded) + identities[message.conversation_id] for message in listed])
        shares: dict[Hashable, int] = {}
        if is_listed:
            reply_bytes += sum([renderer.text_bytes(section, message) for message in listed])
            shares.update([share for message in listed for share in renderer.shares(section, message)])
        places = tuple([message.place for message in listed])
        made.append(Candidate(section, tuple(units), measure, shares, reply_bytes, places))
    return made


def would_fill(able: Sequence[Candidate], limit: int) -> bool:
    """Whether all candidates together exceed a limit or the reply."""
    return sum(each.measure for each in able) > limit or sum(each.reply_bytes for each in able) > REPLY_BYTES


class Selection:
    """The chosen candidates, in the order of choosing. Only pinned ones may exceed `limit`, in the renderer's measure,
    or REPLY_BYTES.
    """

    def __init__(self, renderer: Renderer, limit: int) -> None:
        self._limit = limit
        self._spent = renderer.fixed
        self._room = REPLY_BYTES
        self._sharing: Counter[Hashable] = Counter()
        self._held: dict[Place, Candidate] = {}
        self._chosen: list[Candidate] = []
        self._pinned = 0

    @property
    def limit(self) -> int:
        """The limit, which only pinned candidates may exceed."""
        return self._limit

    @property
    def spent(self) -> int:
        """The measure of the whole."""
        return self._spent

    @property
    def fits_reply(self) -> bool:
        return self._room >= 0

    @property
    def places(self) -> set[Place]:
        """All messages that are in."""
        return set(self._held)

    def section(self, place: Place) -> Section:
        """The section of a message that is in."""
        return self._held[place].section

    def units(self, section: Section) -> list[Unit]:
        """A section's units in the order of choosing."""
        return [unit for candidate in self._chosen if candidate.section is section for unit in candidate.units]

    def has(self, candidate: Candidate) -> bool:
        """Whether any of its messages is in."""
        return not self._held.keys().isdisjoint(candidate.places)

    def fits(self, candidate: Candidate, limit: int) -> bool:
        """Whether there is room within a limit and in the reply."""
        return self._spent + self._cost(candidate) <= limit and candidate.reply_bytes <= self._room

    def _cost(self, candidate: Candidate) -> int:
        if not candidate.shares:
            return candidate.measure
        return candidate.measure + sum([cost for key, cost in candidate.shares.items() if not self._sharing[key]])

    def pin(self, candidate: Candidate) -> None:
        """Take a candidate whatever it costs. It is never dropped."""
        self._add(candidate)
        self._pinned = len(self._chosen)

    def take(self, candidate: Candidate, limit: int) -> bool:
        """Take a candidate if none of its messages is in and it fits within a limit."""
        if self.has(candidate) or not self.fits(candidate, limit):
            return False
        self._add(candidate)
        return True

    def take_all(self, ordered: Iterable[Candidate], limit: int) -> list[Candidate]:
        """Take each candidate that fits within a limit, in order, and return those. A candidate that does not fit now
        will not fit later, because more candidates never cost less.
        """
        return [candidate for candidate in ordered if self.take(candidate, limit)]

    def take_run(self, ordered: Iterable[Candidate], limit: int) -> list[Candidate]:
        """Take candidates from the front until one does not fit within a limit, and return the rest. A candidate with
        messages that were recalled before replaces these.
        """
        waiting = list(ordered)
        taken = 0
        while taken < len(waiting) and self._take_over(waiting[taken], limit):
            taken += 1
        return waiting[taken:]

    def _take_over(self, candidate: Candidate, limit: int) -> bool:
        if not self.has(candidate):
            return self.take(candidate, limit)
        held = {id(each): each for place in candidate.places if (each := self._held.get(place))}
        for other in held.values():
            self._remove(other)
        if self.fits(candidate, limit):
            self._add(candidate)
            return True
        for other in held.values():
            self._add(other)
        return False

    def _add(self, candidate: Candidate) -> None:
        self._spent += self._cost(candidate)
        self._room -= candidate.reply_bytes
        if candidate.shares:
            self._sharing.update(candidate.shares.keys())
        self._held.update(dict.fromkeys(candidate.places, candidate))
        self._chosen.append(candidate)

    def _remove(self, candidate: Candidate) -> None:
        self._sharing.subtract(candidate.shares.keys())
        self._spent -= self._cost(candidate)
        self._room += candidate.reply_bytes
        for place in candidate.places:
            del self._held[place]
        self._chosen.remove(candidate)

    def drop_last(self) -> bool:
        """Drop the last choice. False if only pinned candidates are left."""
        if len(self._chosen) == self._pinned:
            return False
        self._remove(self._chosen[-1])
        return True
