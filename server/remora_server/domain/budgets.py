"""Choosing units under a token budget, as far as a reply holds them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from msgspec import Struct

from remora_server.domain.context import Section
from remora_server.domain.context_messages import ContextMessage, Place, Unit
from remora_server.domain.renderings import Renderer
from remora_server.domain.replies import REPLY_BYTES

ITEM_BYTES = 256
"""More than what an item has beside its message and its conversation's id, and than a line that dates a sitting."""


class Candidate(Struct, frozen=True):
    """A unit for a section, its measure (that of its sittings aside), and how many bytes it takes in the reply."""

    section: Section
    unit: Unit
    measure: int
    reply_bytes: int
    places: tuple[Place, ...]
    sittings: frozenset[Hashable]


def candidates(renderer: Renderer, section: Section, units: Sequence[Unit]) -> list[Candidate]:
    """The units with their measures, which are taken of all at once."""
    measures = iter(renderer.measure([message for unit in units for message in unit]))
    return [
        Candidate(
            section,
            unit,
            sum(next(measures) for _ in unit),
            sum(_reply_bytes(renderer, message) for message in unit),
            tuple([message.place for message in unit]),
            frozenset(renderer.sitting(message) for message in unit),
        )
        for unit in units
    ]


def would_fill(units: Sequence[Candidate], limit: int) -> bool:
    """Whether those of the units that fit by themselves, within a limit and into the reply, are too many together."""
    able = [unit for unit in units if unit.measure <= limit and unit.reply_bytes <= REPLY_BYTES]
    return sum(unit.measure for unit in able) > limit or sum(unit.reply_bytes for unit in able) > REPLY_BYTES


def _reply_bytes(renderer: Renderer, message: ContextMessage) -> int:
    identity = len(message.conversation_id.encode())
    return len(message.encoded) + renderer.text_bytes(message) + identity + ITEM_BYTES


class Selection:
    """The units that were chosen, in the order of choosing: never more than `limit` in the renderer's measure, nor than
    REPLY_BYTES.
    """

    def __init__(self, renderer: Renderer, limit: int) -> None:
        self._limit = limit
        self._spent = renderer.fixed
        self._room = REPLY_BYTES
        self._sitting_measure = renderer.sitting_measure
        self._sittings: set[Hashable] = set()
        self._sections: dict[Place, Section] = {}
        self._chosen: list[Candidate] = []

    @property
    def sections(self) -> dict[Place, Section]:
        """The section of each message that is in."""
        return self._sections

    def units(self, section: Section) -> list[Unit]:
        """A section's units in the order of choosing."""
        return [candidate.unit for candidate in self._chosen if candidate.section is section]

    def fits(self, candidate: Candidate, limit: int) -> bool:
        """Whether the unit is not in, nor any of it, and fits within a limit and into the reply."""
        fits = self._spent + self._cost(candidate) <= limit and candidate.reply_bytes <= self._room
        return fits and self._sections.keys().isdisjoint(candidate.places)

    def _cost(self, candidate: Candidate) -> int:
        return candidate.measure + self._sitting_measure * len(candidate.sittings - self._sittings)

    def take(self, candidate: Candidate) -> bool:
        """Take a unit if it fits."""
        if not self.fits(candidate, self._limit):
            return False
        self._spent += self._cost(candidate)
        self._room -= candidate.reply_bytes
        self._sittings |= candidate.sittings
        self._sections.update(dict.fromkeys(candidate.places, candidate.section))
        self._chosen.append(candidate)
        return True

    def take_run(self, ordered: Iterable[Candidate], limit: int) -> None:
        """Take from the front until one does not fit within a limit."""
        for candidate in ordered:
            if not self.fits(candidate, limit):
                return
            self.take(candidate)

    def take_all(self, ordered: Iterable[Candidate]) -> None:
        """Take each that fits, in order. What does not fit now will not fit later: more units never cost less."""
        for candidate in ordered:
            self.take(candidate)

    def drop_last(self) -> None:
        """Take back the last choice, not the room that it had."""
        for place in self._chosen.pop().places:
            del self._sections[place]
