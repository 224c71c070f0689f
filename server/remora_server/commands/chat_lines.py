"""OpenAI chat messages as lines of JSON: one message a line, or one conversation a line (`{"messages": [...]}`).

What cannot be imported is reported and left out.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct, field

from remora import Message
from remora._bounds import Id
from remora._checks import check_of
from remora._refusals import listed, shown_alone
from remora.errors import InvalidFieldError
from remora.messages import CHAT_KEYS, MessageExtras
from remora.roles import KNOWN_ROLES
from remora.v1 import message_pb2
from remora_server.domain.errors import InvalidField
from remora_server.rpc.checks.limits import Limits

CONVERSATION_KEYS = frozenset({"messages", "id"})
SENT_TIME = "sent_time"
OTHERS_TIMES = ("timestamp", "created_at")
"""What other programs call the time when a message was sent, among other things."""
LARGEST_GROUP, GROUP_BYTES = 500, 1 << 20

Report = Callable[[str], None]

_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_LEAST_SECONDS, _MOST_SECONDS = 1e8, 1e10
"""1973 and 2286: less is rather a duration, more are milliseconds."""

_ID = check_of(Id)
_REQUIRE_LEGAL = Limits(lambda _model: 0).rules(message_pb2.Message)
"""The server's own check. A conversation whose messages it passes is not refused in the middle."""


class ChatGroup(Struct):
    """Consecutive messages of one conversation that are appended at once, each with its place in the file, such as
    `line 3, message 2`. `position`: the bytes read so far.
    """

    conversation_id: str
    position: int = 0
    messages: list[Message] = field(default_factory=list)
    places: list[str] = field(default_factory=list)

    def place_of(self, path: str) -> str:
        """The place of the message that a field's path such as `messages[3].name` leads to; without one, all places."""
        number = path.removeprefix("messages[").partition("]")[0]
        if number.isdigit():
            return self.places[int(number)]
        return " to ".join(dict.fromkeys((self.places[0], self.places[-1])))


class Line(Struct, frozen=True):
    """One line of a file: its number, its bytes, and the position after it. `file` is a hash of the file's name."""

    file: str
    number: int
    content: bytes
    position: int


def is_chat_line(line: bytes) -> bool:
    """Whether a line holds a chat message or a conversation."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and ("messages" in value or "role" in value)


def numbered(lines: Iterable[bytes], name: str) -> Iterator[Line]:
    """The lines of a file with this name that are not empty."""
    file, position = f"{zlib.crc32(os.fsencode(name)):08x}", 0
    for number, content in enumerate(lines, 1):
        position += len(content)
        if content.strip():
            yield Line(file, number, content, position)


def chat_groups(lines: Iterable[Line], name: str, report: Report) -> Iterator[ChatGroup]:
    """The messages of all lines, in groups that fit one request. `name` becomes the ids of conversations.

    Each message gets an id from the file's name and its place there, so that a second import replaces it and adds
    nothing, and another file adds its messages to the same conversation.
    """
    group = ChatGroup(name)
    size = 0
    for line in lines:
        conversation_id, messages = _conversation(line, name, report)
        for index, message in enumerate(messages):
            is_full = len(group.messages) == LARGEST_GROUP or size + len(line.content) > GROUP_BYTES
            if group.messages and (is_full or conversation_id != group.conversation_id):
                yield group
                group, size = ChatGroup(conversation_id), 0
            group.conversation_id = conversation_id
            place = f"line {line.number}, message {index + 1}"
            for read in _message(message, line, index, place, report):
                group.messages.append(read)
                group.places.append(place)
            group.position = line.position
            size += len(line.content) // len(messages)
    if group.messages:
        yield group


def _conversation(line: Line, name: str, report: Report) -> tuple[str, list[Any]]:
    """The id and the messages of a line's conversation. A line with one message belongs to the file's conversation."""
    try:
        value = json.loads(line.content)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and "role" in value:
        return name, [value]
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        report(f"line {line.number} is skipped: it is neither a chat message nor an object with messages")
        return name, []
    _report_unknown(value, CONVERSATION_KEYS, f"line {line.number}", report)
    numbered = f"{name}-{line.number}"
    return _id(value.get("id"), line, numbered, report) or numbered, value["messages"]


def _id(given: object, line: Line, numbered: str, report: Report) -> str | None:
    """The id that a line gives its conversation; None if it gives none that can be an id, so that it is `numbered`."""
    if given in (None, ""):
        return None
    try:
        _ID.require(given, "id")
    except InvalidFieldError as error:
        report(f"line {line.number}: id is not imported: {error}; the conversation is {numbered}")
        return None
    return str(given)


def _message(value: object, line: Line, index: int, place: str, report: Report) -> list[Message]:
    """The message; none if the value is not one that the server takes."""
    if not isinstance(value, dict) or not isinstance(value.get("role"), str):
        report(f"{place} is skipped: it has no role")
        return []
    try:
        _require_known(value["role"])
        key, sent_time = _sent_time(value)
        _report_unknown(value, CHAT_KEYS | {key}, place, report)
        known = {key: part for key, part in value.items() if key in CHAT_KEYS}
        extras: MessageExtras = {"id": f"{line.file}-{line.number}-{index + 1}"}
        if sent_time is not None:
            extras["sent_time"] = sent_time
        message = Message.of(known, **extras)
        _REQUIRE_LEGAL(message.to_proto())
    except (TypeError, ValueError, InvalidField) as error:
        report(f"{place} is skipped: {error}")
        return []
    return [message]


def _require_known(role: str) -> None:
    """Raises ValueError for a role that no model knows: a file cannot say that it is meant."""
    if role not in KNOWN_ROLES:
        raise ValueError(f"role is {shown_alone(role)}; it must be {listed(KNOWN_ROLES, 'or')}")


def _sent_time(value: dict[str, Any]) -> tuple[str, datetime | None]:
    """When a message was sent, None if it does not say, and the key that says it. Raises ValueError for a `sent_time`
    that is no time; other programs' keys are left then.
    """
    given = value.get(SENT_TIME)
    if given is not None:
        time = _time(given)
        if time is None:
            raise ValueError(
                f"{SENT_TIME} is {shown_alone(given)}; it must be a time with its zone, such as 2026-11-23T15:39:00Z, "
                "or seconds since 1970"
            )
        return SENT_TIME, time
    times = ((key, _time(value.get(key))) for key in OTHERS_TIMES)
    return next(((key, time) for key, time in times if time is not None), (SENT_TIME, None))


def _time(given: object) -> datetime | None:
    """The time of a text of RFC 3339, or of seconds since 1970; None for anything else."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    if not isinstance(given, str):
        return datetime.fromtimestamp(given, UTC) if _LEAST_SECONDS <= given < _MOST_SECONDS else None
    if not _RFC_3339.fullmatch(given):
        return None
    try:
        return datetime.fromisoformat(given.upper()).astimezone(UTC)
    except (ValueError, OverflowError):  # such as a 13th month, or before the year 1 in UTC
        return None


def _report_unknown(value: dict[str, Any], known: frozenset[str], place: str, report: Report) -> None:
    unknown = sorted(value.keys() - known)
    if unknown:
        report(f"{place}: {', '.join(unknown)} {'is' if len(unknown) == 1 else 'are'} not imported")
