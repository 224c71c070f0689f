"""`remora context`: what a context or a search was made of, and how two of them differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from rich.text import Text

from remora import ContextChange, ContextDiff, Message, Receipt, ReceiptItem, Replay
from remora._printable import printable
from remora_server.commands.connecting import add_connection_flags, connected
from remora_server.commands.messages import local_time, message_line
from remora_server.commands.numbers import counted, positive
from remora_server.commands.output import add_json_flag, diagnostics, output, print_cut, print_set_in, write_json
from remora_server.commands.parsing import Parser, name

Place: TypeAlias = tuple[str | None, str, int, str]
"""What identifies an item of a receipt: its section, its conversation, its sequence and its message."""


def fill(parser: Parser) -> None:
    """Add the command's arguments."""
    parser.set_defaults(run=parser.show_help)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser)
    listing = commands.add_parser("list", help="list receipts, the newest first")
    listing.set_defaults(run=run, action=_list)
    listing.add_argument("--user", type=name, help="only this user's receipts")
    listing.add_argument("--conversation", type=name, help="only receipts of this conversation's contexts and searches")
    listing.add_argument(
        "--limit", type=positive, default=20, metavar="COUNT", help="the most receipts to show (default: 20)"
    )
    show = commands.add_parser("show", help="show what a context or a search was made of, and why")
    show.set_defaults(run=run, action=_show)
    show.add_argument("receipt", type=name, metavar="RECEIPT", help="its receipt_id")
    diff = commands.add_parser("diff", help="show what came in, went out and changed from one to another, and why")
    diff.set_defaults(run=run, action=_diff)
    diff.add_argument("before", type=name, metavar="BEFORE", help="the receipt_id of the earlier one")
    diff.add_argument("after", type=name, metavar="AFTER", help="the receipt_id of the later one")
    for command in (listing, show, diff):
        add_json_flag(command)
        add_connection_flags(command)


def run(given: dict[str, Any]) -> None:
    """Do what was asked for."""
    given.pop("action")(given)


def _list(given: dict[str, Any]) -> None:
    """List receipts."""
    with connected(given) as client:
        found = client.receipts.list_receipts(
            user_id=given["user"], conversation_id=given["conversation"], limit=given["limit"]
        )
    for receipt in found:
        if given["json"]:
            write_json(_receipt_json(receipt))  # without the request, which lists leave out
        else:
            what = f"{_what(receipt)}, {counted(receipt.item_count, 'message')}"
            rest = Text(printable(f"  {local_time(receipt.create_time)}  {what}"))
            print_cut(output(), rest, begin=printable(receipt.id))
    if not found and not given["json"]:
        diagnostics().print("there are no receipts")


def _show(given: dict[str, Any]) -> None:
    """Show a receipt, with its messages as they were."""
    with connected(given) as client:
        receipt = client.receipts.get(given["receipt"])
        messages = _messages(receipt, client.receipts.replay(given["receipt"]))
    if given["json"]:
        items = [{**_item_json(item), "text": _text(messages.get(_place(item)))} for item in receipt.items]
        write_json({**_receipt_json(receipt), **_request_json(receipt), "items": items})
        return
    _print(f"{_what(receipt)} at revision {receipt.revision}, {local_time(receipt.create_time)}", style="bold")
    asked = receipt.query if receipt.request is not None else "what was asked for is erased"
    if asked:
        _print(f"asked: {asked}")
    if receipt.is_context:
        budget = "" if receipt.max_tokens is None else f" of {receipt.max_tokens:,}"
        left_out = f"; {counted(receipt.left_out, 'message')} did not fit" if receipt.left_out else ""
        _print(f"{receipt.tokens_used:,}{budget} tokens, {receipt.overhead_tokens:,} around the messages{left_out}")
    for item in receipt.items:
        _print("  ".join([*_standing(item), item.reason]).rstrip(), style="dim")
        message = messages.get(_place(item))
        print_set_in(output(), Text("(erased)", "red") if message is None else message_line(message))


def _diff(given: dict[str, Any]) -> None:
    """Show how two receipts differ."""
    with connected(given) as client:
        found = client.receipts.diff(given["before"], given["after"])
        before, after = (
            _messages(client.receipts.get(given[which]), client.receipts.replay(given[which]))
            for which in ("before", "after")
        )
    if given["json"]:
        write_json(_diff_json(found))
        return
    for difference in found.differences:
        _print(difference)
    for mark, style, changes in (("-", "red", found.went_out), ("+", "green", found.came_in), ("~", "", found.changed)):
        for change in changes:
            item = _item(change)
            _print(f"{mark} {'  '.join([*_standing(item), change.why])}", style=style)
            message = (before if change.after is None else after).get(_place(item))
            print_cut(output(), Text("(erased)", "red") if message is None else message_line(message))
    _print(f"{found.unchanged:,} unchanged", style="dim")


def _print(line: str, *, style: str = "") -> None:
    output().print(Text(printable(line), style), soft_wrap=True)


def _what(receipt: Receipt) -> str:
    """What a receipt is of."""
    kind = "context" if receipt.is_context else "search"
    if receipt.conversation_id:
        return f"{kind} of {receipt.conversation_id}"
    return f"{kind} of user {receipt.user_id}" if receipt.user_id else f"{kind} of all users"


def _standing(item: ReceiptItem) -> list[str]:
    """Where a message stands, and what it costs."""
    score = "" if item.score is None else f"score {item.score:.3f}"
    tokens = counted(item.tokens, "token") if item.tokens else ""
    partial = "truncated" if item.partial else ""
    return [told for told in (item.section or "found", score, tokens, partial) if told]


def _messages(receipt: Receipt, replay: Replay) -> Mapping[Place, Message]:
    """The messages of a receipt's items; erased ones are missing.

    They are told apart by their order: system texts, summaries and working memories have no ids as messages.
    """
    items = replay.context.items if replay.context is not None else ()
    hits = replay.search.hits if replay.search is not None else ()
    erased = set(map(_place, replay.erased))
    places = [place for place in map(_place, receipt.items) if place not in erased]
    messages = [*(item.message for item in items), *(hit.message for hit in hits)]
    return dict(zip(places, messages, strict=True))


def _place(item: ReceiptItem) -> Place:
    return item.section, item.conversation_id, item.sequence, item.message_id


def _text(message: Message | None) -> str | None:
    return None if message is None else message.text


def _receipt_json(receipt: Receipt) -> dict[str, object]:
    return {
        "receipt_id": receipt.id,
        "kind": "context" if receipt.is_context else "search",
        "user_id": receipt.user_id,
        "conversation_id": receipt.conversation_id,
        "create_time": None if receipt.create_time is None else receipt.create_time.isoformat(),
        "expire_time": None if receipt.expire_time is None else receipt.expire_time.isoformat(),
        "revision": receipt.revision,
        "tokens_used": receipt.tokens_used,
        "overhead_tokens": receipt.overhead_tokens,
        "left_out": receipt.left_out,
        "item_count": receipt.item_count,
    }


def _request_json(receipt: Receipt) -> dict[str, object]:
    """What was asked for; null if it was erased."""
    query = None if receipt.request is None else receipt.query
    return {"query": query, "max_tokens": receipt.max_tokens}


def _item_json(item: ReceiptItem) -> dict[str, object]:
    return {
        "conversation_id": item.conversation_id,
        "message_id": item.message_id,
        "sequence": item.sequence,
        "message_revision": item.message_revision,
        "section": item.section,
        "score": item.score,
        "tokens": item.tokens,
        "reason": item.reason,
        "partial": item.partial,
    }


def _item(change: ContextChange) -> ReceiptItem:
    """The item of a change: the later one, if there is one."""
    item = change.after or change.before
    if item is None:
        raise ValueError("a change has an item before or after it")
    return item


def _diff_json(found: ContextDiff) -> dict[str, object]:
    def told(changes: tuple[ContextChange, ...]) -> list[dict[str, object]]:
        return [{**_item_json(_item(change)), "why": change.why} for change in changes]

    return {
        "came_in": told(found.came_in),
        "went_out": told(found.went_out),
        "changed": told(found.changed),
        "unchanged": found.unchanged,
        "differences": list(found.differences),
    }
