"""Messages as lines of a text, under lines that date them: the form of transcripts and of quoted messages.

Every line ends with a newline and begins with neither a blank nor a slash. So the tokens of lines add up to those of
the text: o200k_base and cl100k_base let no token reach over a newline, unless a blank or a slash follows.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from datetime import date
from functools import lru_cache
from itertools import chain

from msgspec import Struct

from remora_server.domain.context_messages import ContextMessage

DAY = 86_400_000_000
EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
INDENTED = "\n    "


class Lines(Struct, frozen=True):
    """A text in lines, its messages, and the line of each message."""

    lines: tuple[str, ...]
    messages: tuple[ContextMessage, ...]
    shown: tuple[int, ...]


class Quotation(Struct, frozen=True):
    """How messages become lines.

    A session is the messages of a conversation with one session id or, without an id, of one day (UTC). Sessions are in
    the order of their first shown messages, and have the dates of these. With `here`, the lines of other conversations
    name them, and continuation lines are indented.
    """

    here: str | None = None

    def session(self, message: ContextMessage) -> Hashable:
        """The key of the messages that share a date line."""
        return message.conversation_id, message.session_id or message.sent_time // DAY

    def line(self, message: ContextMessage) -> str:
        """The message's line."""
        speaker = _one_line(message.name) or _one_line(message.role)
        text = message.text if self.here is None else message.text.replace("\n", INDENTED)
        if text and not message.tool_calls:
            return f"{speaker}: {text}\n"
        parts = [text] if text else []
        parts += [f"[calls {_one_line(call.name)} {_one_line(call.arguments)}]" for call in message.tool_calls]
        return f"{speaker}: {' '.join(parts)}\n"

    def date_line(self, message: ContextMessage) -> str:
        """The line over the message's session."""
        day = day_of(message)
        if self.here in (None, message.conversation_id):
            return f"[{day}]\n"
        return f"[{day}, conversation {_one_line(message.conversation_id)}]\n"

    def lines(self, messages: Sequence[ContextMessage]) -> Lines:
        """All lines: by session, and by time within."""
        sessions: dict[Hashable, list[ContextMessage]] = {}
        for message in in_time(messages):
            sessions.setdefault(self.session(message), []).append(message)
        lines: list[str] = []
        shown: list[int] = []
        for session in sessions.values():
            lines.append(self.date_line(session[0]))
            shown += range(len(lines), len(lines) + len(session))
            lines += map(self.line, session)
        return Lines(tuple(lines), tuple(chain.from_iterable(sessions.values())), tuple(shown))


def day_of(message: ContextMessage) -> str:
    """When it was sent, in UTC."""
    return _named(message.sent_time // DAY)


@lru_cache(maxsize=1_024)
def _named(day: int) -> str:
    """A day by its number since 1970."""
    return date.fromordinal(EPOCH_ORDINAL + day).isoformat()


def in_time(messages: Sequence[ContextMessage]) -> list[ContextMessage]:
    """Messages in the order of time."""
    return sorted(messages, key=_moment)


def _moment(message: ContextMessage) -> tuple[int, str, int]:
    return message.sent_time, *message.place


def _one_line(text: str) -> str:
    if text.isalnum():
        return text
    return " ".join(text.split()).lstrip("/ ")
