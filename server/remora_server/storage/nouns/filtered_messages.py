"""Pages of messages with attributes that pass a filter: each unfiltered page without the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from remora_server import _native, wire
from remora_server.domain.filters import Filter
from remora_server.domain.messages import MessagePage, MessageQuery
from remora_server.domain.replies import fitting
from remora_server.storage.schema.expressions import expression

MOST_SCANNED = 10_000
"""Messages that one call looks at, so that its time is bounded; with those of the last page it looked at."""
SCANNED_AT_ONCE = 1_000

_Entry: TypeAlias = tuple[int, bytes]


def filtered_page(query: MessageQuery, where: Filter, listed: Callable[[MessageQuery], MessagePage]) -> MessagePage:
    """The page of a query of the messages that pass; `listed` gives one of all messages.

    After MOST_SCANNED messages it ends, and may be short or empty though `more` says that others follow.
    """
    wanted = expression(where)
    rest = replace(query, filter=None, limit=SCANNED_AT_ONCE)
    page = listed(rest)
    revision, scanned, found = page.revision, page.count, _passing(page, wanted, newest=query.newest)
    while page.more and scanned < MOST_SCANNED and len(found) < query.limit:
        rest = _behind(rest, _far_side(page, newest=query.newest))
        page = listed(rest)
        scanned += page.count
        found += _passing(page, wanted, newest=query.newest)
    kept = fitting(found[: query.limit], lambda entry: len(entry[1]))
    cut = len(kept) < len(found)
    edge = kept[-1][0] if cut else _far_side(page, newest=query.newest)
    return _page(query, kept, edge, more=cut or page.more, revision=revision, uid=page.uid)


def _passing(page: MessagePage, wanted: tuple[object, ...], *, newest: bool) -> list[_Entry]:
    """The entries of a page that pass, from its near side on."""
    passing = _native.passing_messages(page.encoded, wanted)
    entries = [(sequence, wire.elements(wire.LIST_FIELD, [message])) for sequence, message in passing]
    return entries[::-1] if newest else entries


def _far_side(page: MessagePage, *, newest: bool) -> int:
    return page.first_sequence if newest else page.last_sequence


def _behind(query: MessageQuery, sequence: int) -> MessageQuery:
    return replace(query, before_sequence=sequence) if query.newest else replace(query, after_sequence=sequence)


def _page(
    query: MessageQuery, kept: Sequence[_Entry], edge: int, *, more: bool, revision: int, uid: int
) -> MessagePage:
    """The page of the messages that pass. Its far side is the last sequence that was looked at."""
    near = kept[0][0] if kept else edge
    first, last = (edge, near) if query.newest else (near, edge)
    ascending = kept[::-1] if query.newest else kept
    return MessagePage(b"".join(entry for _, entry in ascending), len(kept), first, last, more, revision, uid)
