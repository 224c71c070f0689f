"""Messages that wait for a vector, in the order in which they get it. Knows no database and no model."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterable
from itertools import islice

from remora_server.domain.search import Portion, Unembedded
from remora_server.storage.embedding.scopes import Part, ResolvedScope

OWN_BYTES = 512
"""The approximate memory of a waiting message besides its text, in bytes."""


class EmbeddingOrder:
    """New messages first: parts of conversations take turns, the newest message of a part goes before its older ones.
    So a part that is written to faster than it can be embedded does not keep others waiting. Then what was left behind,
    oldest first.

    Bounded in bytes. Not safe to share between threads.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._bytes = 0
        self._new: OrderedDict[Part, deque[Unembedded]] = OrderedDict()
        self._left: deque[Unembedded] = deque()

    def __bool__(self) -> bool:
        return bool(self._new or self._left)

    def add(self, message: Unembedded) -> bool:
        """Put in a new message; False if there is no room."""
        if not self._makes_room(message):
            return False
        self._new.setdefault(part_of(message), deque()).append(message)
        return True

    def add_left(self, message: Unembedded) -> bool:
        """Put in a message that was left behind; False if there is no room."""
        if not self._makes_room(message):
            return False
        self._left.append(message)
        return True

    def prefer(self, scope: ResolvedScope) -> None:
        """Let what was left behind in a scope go among the new messages, and these be the next."""
        kept: deque[Unembedded] = deque()
        for message in self._left:
            if scope.holds(part_of(message)):
                self._new.setdefault(part_of(message), deque()).appendleft(message)
            else:
                kept.append(message)
        self._left = kept
        for part in self._parts(scope):
            self._new.move_to_end(part, last=False)

    def take(self, portion: Portion) -> list[Unembedded]:
        """Take the next messages."""
        taken = self._take_turns(list(islice(self._new, portion.messages)), portion)
        while self._left and not self._new and portion.has_room_after(taken):
            taken.append(self._left.popleft())
            self._bytes -= _bytes(taken[-1])
        return taken

    def take_of(self, scope: ResolvedScope, portion: Portion) -> list[Unembedded]:
        """Take the next messages of a scope, but none that was left behind and is not preferred."""
        return self._take_turns(self._parts(scope), portion)

    def give_back(self, messages: Iterable[Unembedded]) -> None:
        """Put in again what was taken last, whether there is room or not."""
        for message in reversed(list(messages)):
            self._bytes += _bytes(message)
            self._new.setdefault(part_of(message), deque()).append(message)

    def _parts(self, scope: ResolvedScope) -> list[Part]:
        if scope.user_id is not None and scope.uid is not None:
            part = (scope.tenant_id, scope.user_id, scope.uid)
            return [part] if part in self._new else []
        return [part for part in self._new if scope.holds(part)]

    def _take_turns(self, parts: Iterable[Part], portion: Portion) -> list[Unembedded]:
        turns = deque(parts)
        taken: list[Unembedded] = []
        while turns and portion.has_room_after(taken):
            part = turns.popleft()
            taken.append(self._pop(part))
            if part in self._new:
                turns.append(part)
        return taken

    def _pop(self, part: Part) -> Unembedded:
        """The newest message of a part, whose next turn is after the others'."""
        waiting = self._new[part]
        message = waiting.pop()
        self._bytes -= _bytes(message)
        if waiting:
            self._new.move_to_end(part)
        else:
            del self._new[part]
        return message

    def _makes_room(self, message: Unembedded) -> bool:
        if self._bytes + _bytes(message) > self._capacity:
            return False
        self._bytes += _bytes(message)
        return True


def part_of(message: Unembedded) -> Part:
    """The part of a conversation that a message is in."""
    return message.tenant_id, message.user_id, message.conversation_uid


def _bytes(message: Unembedded) -> int:
    """At most what it takes in memory: up to 4 bytes for each character, if one is not in ASCII."""
    text = message.text
    return OWN_BYTES + (len(text) if text.isascii() else 4 * len(text))
