"""`remora search`: messages that answer a query, best first."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from functools import partial
from itertools import chain, islice
from typing import Any

from rich.text import Text

from remora import Hit, Remora
from remora._printable import printable
from remora.search import SearchResult, WordsOnlyReason
from remora_server.commands.connecting import add_connection_flags, connected
from remora_server.commands.failures import Misused
from remora_server.commands.messages import message_json, message_line
from remora_server.commands.numbers import counted, positive
from remora_server.commands.output import add_json_flag, diagnostics, output, print_cut, write_json
from remora_server.commands.parsing import name

SHORTEST_WORD = 3
MOST_HITS = 1_000
FOUND_WORD = "bold underline"
WHY_WORDS_ONLY: dict[WordsOnlyReason, str] = {
    "profile": "as was asked",
    "no_model": "the server has no embedding model",
    "model_unreachable": "the embedding model did not answer in time",
}


def fill(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("query", type=name, metavar="QUERY", help="a question, or words")
    parser.add_argument("--user", type=name, help="only this user's messages")
    parser.add_argument("--conversation", type=name, help="only this conversation's messages")
    parser.add_argument("--all-users", action="store_true", help="the messages of all users of the tenant")
    parser.add_argument(
        "--limit",
        type=partial(positive, most=MOST_HITS),
        default=10,
        metavar="COUNT",
        help=f"the most messages to show, at most {MOST_HITS:,} (default: 10)",
    )
    add_json_flag(parser)
    add_connection_flags(parser)


def run(given: dict[str, Any]) -> None:
    """Search, and show what was found."""
    _require_scope(given)
    with connected(given) as client:
        pages = _pages(client, given)
        first = next(pages)
        for hit in islice(chain(first, chain.from_iterable(pages)), given["limit"]):
            _show(hit, given)
    if not given["json"]:
        _note(first)


def _require_scope(given: dict[str, Any]) -> None:
    """Raises Misused: what is forgotten must not show the messages of others."""
    is_limited = given["user"] is not None or given["conversation"] is not None
    if not is_limited and not given["all_users"]:
        raise Misused("say whose messages to search: --user USER, --conversation ID, or --all-users")
    if is_limited and given["all_users"]:
        raise Misused("--all-users searches all messages: leave out --user and --conversation")


def _pages(client: Remora, given: dict[str, Any]) -> Iterator[SearchResult]:
    """What is found, as much at a time as one reply has room for."""
    result = _search(client, given, "")
    yield result
    while result.next_page_token:
        result = _search(client, given, result.next_page_token)
        yield result


def _search(client: Remora, given: dict[str, Any], page_token: str) -> SearchResult:
    query, user, k = given["query"], given["user"], given["limit"]
    if given["conversation"] is not None:
        return client.conversation(given["conversation"], user_id=user).search(query, k=k, page_token=page_token)
    if user is not None:
        return client.user(user).search(query, k=k, page_token=page_token)
    return client.search_all_users(query, k=k, page_token=page_token)


def _show(hit: Hit, given: dict[str, Any]) -> None:
    if given["json"]:
        write_json({"score": hit.score, **message_json(hit.message, hit.conversation_id)})
        return
    line = message_line(hit.message)
    words = [re.escape(word) for word in re.findall(r"\w+", given["query"]) if len(word) >= SHORTEST_WORD]
    if words:
        line.highlight_regex(rf"(?i)\b(?:{'|'.join(words)})\w*", FOUND_WORD)
    console = output()
    print_cut(console, Text("", "dim"), begin=f"{hit.score:.3f}  {printable(hit.conversation_id)}")
    print_cut(console, line)


def _note(result: SearchResult) -> None:
    """What a reader should know of the result, on standard error."""
    if not len(result):
        diagnostics().print("nothing was found")
    why = result.index.words_only_reason
    if why is not None:
        diagnostics().print(f"found by words only: {WHY_WORDS_ONLY[why]}", style="dim")
    elif result.index.pending:
        diagnostics().print(
            f"{counted(result.index.pending, 'message is', 'messages are')} still to be embedded", style="dim"
        )
