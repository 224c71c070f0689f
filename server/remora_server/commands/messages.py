"""Messages as a person reads them, and as scripts do."""

from __future__ import annotations

from datetime import datetime

from rich.text import Text

from remora import Message
from remora._printable import printable, printable_lines
from remora.media import media_names

ROLE_STYLES = {"user": "bold cyan", "assistant": "bold green", "system": "bold yellow", "tool": "bold magenta"}
OTHER_ROLE = "bold blue"


def local_time(time: datetime | None) -> str:
    """A time in the reader's zone, to the minute."""
    return "" if time is None else f"{time.astimezone():%Y-%m-%d %H:%M}"


def message_line(message: Message) -> Text:
    """The time, the speaker and the text of a message."""
    speaker = printable(message.name or message.role)
    line = Text.assemble(
        (local_time(message.sent_time or message.create_time), "dim"),
        "  ",
        (speaker, ROLE_STYLES.get(message.role, OTHER_ROLE)),
        "  ",
    )
    line.append(_said(message))
    return line


def _said(message: Message) -> Text:
    said = Text(printable_lines(message.text))
    for call in message.tool_calls:
        said.append(f"{' ' if said else ''}[{printable(call.name)}]", "magenta")
    for name in media_names(message.media):
        said.append(f"{' ' if said else ''}[{printable(name)}]", "magenta")
    return said or Text("[no text]", "dim")


def message_json(message: Message, conversation_id: str) -> dict[str, object]:
    """The message as an object for scripts; times in ISO 8601, UTC."""
    sent = message.sent_time or message.create_time
    return {
        "conversation_id": conversation_id,
        "sequence": message.sequence,
        "id": message.id,
        "user_id": message.user_id,
        "role": message.role,
        "name": message.name,
        "text": message.text,
        "sent_time": None if sent is None else sent.isoformat(),
        "token_count": message.token_count,
    }
