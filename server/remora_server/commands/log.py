"""`remora log`: conversations, newest first; or the messages of one, oldest first, and new ones as they come."""

from __future__ import annotations

import argparse
import signal
import threading
from collections.abc import Iterable, Sequence
from types import FrameType
from typing import Any

from remora import ConversationRecord, Message, Remora
from remora._printable import printable
from remora.errors import ConversationNotFoundError
from remora_server.commands.connecting import add_connection_flags, connected
from remora_server.commands.failures import Misused
from remora_server.commands.messages import local_time, message_json, message_line
from remora_server.commands.numbers import positive
from remora_server.commands.output import (
    Column,
    add_json_flag,
    diagnostics,
    output,
    print_set_in,
    print_table,
    write_json,
)
from remora_server.commands.parsing import name

FOLLOW_SECONDS = 0.5


def fill(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("conversation", type=name, metavar="CONVERSATION", nargs="?", help="show its messages")
    parser.add_argument(
        "--user", type=name, help="this user's conversations; with a conversation, this user's messages"
    )
    parser.add_argument(
        "--limit", type=positive, default=20, metavar="COUNT", help="the most to show, the newest (default: 20)"
    )
    parser.add_argument("--follow", action="store_true", help="show new messages as they come, until interrupted")
    add_json_flag(parser)
    add_connection_flags(parser)


def run(given: dict[str, Any]) -> None:
    """Show conversations or messages."""
    if given["follow"] and given["conversation"] is None:
        raise Misused("--follow needs a conversation")
    with connected(given) as client:
        limit, user = given["limit"], given["user"]
        if given["conversation"] is None:
            found = client.list_conversations(user_id=user, limit=limit + 1)
            _show_conversations(found[:limit], given)
            _note(len(found), given)
            return
        uid = _uid(client, given) if given["follow"] else 0
        messages = client.conversation(given["conversation"], user_id=user).messages(limit + 1, view="all")
        newest = _show(messages[-limit:], given, 0)
        _note(len(messages), given)
        if given["follow"]:
            _follow(client, given, uid, newest)


def _note(found: int, given: dict[str, Any]) -> None:
    """Say on standard error that there is nothing, or that there is more."""
    if given["json"]:
        return
    if found > given["limit"]:
        diagnostics().print(f"there are more, older ones: --limit shows more than {given['limit']}", style="dim")
    elif not found and not given["follow"]:
        diagnostics().print("nothing was found")


def _follow(client: Remora, given: dict[str, Any], uid: int, newest: int) -> None:
    """Show new messages until an interrupt. A conversation that is deleted and made again is shown from its start.

    `uid` is the conversation's, `newest` the sequence that was shown last.
    """
    conversation = client.conversation(given["conversation"], user_id=given["user"])
    interrupts = _interrupts()
    while not interrupts.wait(FOLLOW_SECONDS):
        try:
            messages = conversation.messages(None, after=newest, oldest_first=True, view="all")
            found = _uid(client, given)
        except ConversationNotFoundError:  # it may be made again
            continue
        if found != uid:  # the messages may be of either
            uid, newest = found, 0
        else:
            newest = _show(messages, given, newest)
    raise KeyboardInterrupt


def _uid(client: Remora, given: dict[str, Any]) -> int:
    """The uid of the conversation, whoever owns it. Raises ConversationNotFoundError."""
    return client.conversation(given["conversation"]).get().uid


def _interrupts() -> threading.Event:
    """Set by every interrupt. Its exception may be lost, because Python drops exceptions in destructors."""
    seen = threading.Event()

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        seen.set()
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    return seen


def _show(messages: Iterable[Message], given: dict[str, Any], newest: int) -> int:
    """Show messages. Returns the newest sequence that was shown."""
    console = output()
    for message in messages:
        newest = message.sequence
        if given["json"]:
            write_json(message_json(message, given["conversation"]))
        else:
            print_set_in(console, message_line(message))
    return newest


def _show_conversations(conversations: Sequence[ConversationRecord], given: dict[str, Any]) -> None:
    if given["json"]:
        for conversation in conversations:
            write_json(_json(conversation))
        return
    if not conversations:
        return
    columns = (
        Column("updated", [local_time(found.update_time) for found in conversations], "text"),
        Column("conversation", [printable(found.id) for found in conversations], "id"),
        Column("user", [printable(found.user_id) for found in conversations], "id"),
        Column("messages", [f"{found.message_count:,}" for found in conversations], "number"),
        Column("title", [printable(found.title) for found in conversations], "title"),
    )
    print_table(output(), columns)


def _json(conversation: ConversationRecord) -> dict[str, object]:
    return {
        "conversation_id": conversation.id,
        "user_id": conversation.user_id,
        "resource_id": conversation.resource_id,
        "title": conversation.title,
        "message_count": conversation.message_count,
        "last_sequence": conversation.last_sequence,
        "create_time": conversation.create_time.isoformat(),
        "update_time": conversation.update_time.isoformat(),
    }
