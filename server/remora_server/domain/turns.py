"""Turns: what a user says, with everything that follows it. The recent messages of a context are whole turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from remora_server.domain.context_messages import SYSTEM_ROLES, ContextMessage, Place, Unit, whole_units


class Turn(Struct, frozen=True, gc=False):
    """Units that follow one another, and their messages in that order."""

    units: tuple[Unit, ...]
    messages: Unit

    @classmethod
    def of(cls, units: tuple[Unit, ...]) -> Turn:
        """The turn of these units."""
        if len(units) == 1:
            return cls(units, units[0])
        return cls(units, tuple([message for unit in units for message in unit]))

    def replacing(self, changed: Mapping[Place, ContextMessage]) -> Turn:
        """The turn with other messages in some places."""
        return Turn.of(tuple([tuple([changed.get(message.place, message) for message in unit]) for unit in self.units]))


class Recent(Struct, frozen=True):
    """The newest messages by turns, newest first.

    `pinned` are the turns that a context must have: the newest one, and those before it in which a tool answers after
    that one began. `halves` are the messages that are half of a tool call, `leading` those before the first turn.
    """

    pinned: tuple[Turn, ...] = ()
    before: tuple[Turn, ...] = ()
    halves: tuple[ContextMessage, ...] = ()
    leading: tuple[ContextMessage, ...] = ()

    @property
    def said(self) -> ContextMessage | None:
        """The last message of the user."""
        first = self.pinned[0].units[0][0] if self.pinned else None
        return first if first is not None and first.opens_turn else None

    @property
    def begin(self) -> int | None:
        """The sequence at which the newest turn begins."""
        return None if self.said is None else self.said.sequence


def recent_turns(messages: Sequence[ContextMessage]) -> Recent:
    """The turns of one conversation's newest messages, which are given by sequence.

    Units before the first turn are left out, because providers want a user's message first. If no user speaks at all,
    each unit is a turn. System messages belong to no turn.
    """
    spoken = [message for message in messages if message.role not in SYSTEM_ROLES]
    units = tuple(whole_units(spoken))
    turns = _turns(units)
    if not turns:
        return Recent(halves=_halves(spoken, units))
    first = turns[0].units[0][0].sequence
    leading = tuple([message for message in spoken if message.sequence < first])
    if len(units) == len(spoken):  # each message is a unit: no turn reaches into a later one, and none is half
        return Recent((turns[-1],), tuple(turns[-2::-1]), leading=leading)
    begin = turns[-1].units[0][0].sequence
    late = next(number for number, turn in enumerate(turns) if max(each.sequence for each in turn.messages) >= begin)
    return Recent(tuple(turns[late:][::-1]), tuple(turns[:late][::-1]), _halves(spoken, units), leading)


def _turns(units: tuple[Unit, ...]) -> list[Turn]:
    openings = [number for number, unit in enumerate(units) if unit[0].opens_turn]
    if not openings:
        return [Turn.of((unit,)) for unit in units]
    ends = [*openings[1:], len(units)]
    return [Turn.of(units[begin:end]) for begin, end in zip(openings, ends, strict=True)]


def _halves(messages: Sequence[ContextMessage], units: Sequence[Unit]) -> tuple[ContextMessage, ...]:
    whole = {message.sequence for unit in units for message in unit}
    return tuple([message for message in messages if message.sequence not in whole])
