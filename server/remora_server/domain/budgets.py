"""Choosing units under a token budget and within the size of a reply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import islice
from operator import attrgetter

from msgspec import Struct

from remora_server.domain.context import Section
from remora_server.domain.context_messages import ContextMessage, Place, Unit
from remora_server.domain.renderings import Renderer, Share
from remora_server.domain.replies import REPLY_BYTES

ITEM_BYTES = 256
"""More than the bytes of an item besides its message and its conversation's id, and more than a line with a session's
date.
"""


_SHARES = attrgetter("shares")


class Weight(Struct, frozen=True, gc=False):
    """What a message adds to a context in a section: its measure, its bytes in the reply, and the costs that it shares
    with others.
    """

    measure: int
    reply_bytes: int
    shares: tuple[Share, ...] = ()


class Candidate(Struct, frozen=True, eq=False, gc=False):
    """Units that go into a section together, their measure (their shares aside), and their bytes in the reply."""

    section: Section
    units: tuple[Unit, ...]
    measure: int
    shares: dict[Hashable, int]
    reply_bytes: int
    places: tuple[Place, ...]


def weigh(renderer: Renderer, section: Section, messages: Sequence[ContextMessage]) -> list[Weight]:
    """What each message adds. All are measured at once."""
    measured = renderer.measured(section, messages)
    here = {message.conversation_id for message in messages}
    around = {conversation_id: len(conversation_id.encode()) + ITEM_BYTES for conversation_id in here}
    sizes = [len(message.encoded) + len(message.fact) + around[message.conversation_id] for message in messages]
    if not measured.text_bytes:
        return list(map(Weight, measured.measures, sizes))
    sizes = [size + text for size, text in zip(sizes, measured.text_bytes, strict=True)]
    return list(map(Weight, measured.measures, sizes, measured.shares))


def candidate_of(
    section: Section, units: Sequence[Unit], messages: Sequence[ContextMessage], weights: Iterable[Weight]
) -> Candidate:
    """Units as a candidate, with all of their messages and the weight of each."""
    measure = reply_bytes = 0
    shares: dict[Hashable, int] = {}
    for weight in weights:
        measure += weight.measure
        reply_bytes += weight.reply_bytes
        if weight.shares:
            shares.update(weight.shares)
    places = tuple([message.place for message in messages])
    return Candidate(section, tuple(units), measure, shares, reply_bytes, places)


def candidates(renderer: Renderer, section: Section, groups: Sequence[Sequence[Unit]]) -> list[Candidate]:
    """Groups of units as candidates."""
    if not groups:
        return []
    messages = [[message for unit in units for message in unit] for units in groups]
    weights = iter(weigh(renderer, section, [message for listed in messages for message in listed]))
    return [
        candidate_of(section, units, listed, islice(weights, len(listed)))
        for units, listed in zip(groups, messages, strict=True)
    ]


def would_fill(weights: Sequence[Weight], limit: int) -> bool:
    """Whether all messages together exceed a limit or the reply. The costs that they share are not counted."""
    return (
        sum([weight.measure for weight in weights]) > limit
        or sum([weight.reply_bytes for weight in weights]) > REPLY_BYTES
    )


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

    def units(self) -> Mapping[Section, Sequence[Unit]]:
        """The units of each section in the order of choosing."""
        units: dict[Section, list[Unit]] = {section: [] for section in Section}
        for candidate in self._chosen:
            units[candidate.section] += candidate.units
        return units

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

    def take_run(self, ordered: Sequence[Candidate], limit: int) -> Sequence[Candidate]:
        """Take candidates from the front until one does not fit within a limit, and return the rest. A candidate with
        messages that were recalled before replaces these.
        """
        if self._are_apart(ordered):
            taken = self._fitting(ordered, limit)
            self._add_apart(ordered[:taken])
            return ordered[taken:]
        taken = 0
        while taken < len(ordered) and self._take_over(ordered[taken], limit):
            taken += 1
        return ordered[taken:]

    def _are_apart(self, candidates: Sequence[Candidate]) -> bool:
        """Whether none shares a cost, and no message of them is in."""
        places = [place for candidate in candidates for place in candidate.places]
        return self._held.keys().isdisjoint(places) and not any(map(_SHARES, candidates))

    def _fitting(self, ordered: Sequence[Candidate], limit: int) -> int:
        """How many candidates from the front fit together, if none shares a cost."""
        spent, room = self._spent, self._room
        for number, candidate in enumerate(ordered):
            spent += candidate.measure
            room -= candidate.reply_bytes
            if spent > limit or room < 0:
                return number
        return len(ordered)

    def _add_apart(self, candidates: Sequence[Candidate]) -> None:
        """Add candidates that share no cost."""
        self._spent += sum([candidate.measure for candidate in candidates])
        self._room -= sum([candidate.reply_bytes for candidate in candidates])
        self._held.update([(place, candidate) for candidate in candidates for place in candidate.places])
        self._chosen += candidates

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
