"""Receipts: what a context or a search was made of, the same reply again, and how two of them differ."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Self

from remora._printable import printable
from remora._times import optional_time
from remora._views import Decoders, View, unchanged, view
from remora.context import SECTIONS, Context, Section
from remora.search import SearchResult
from remora.v1 import memory_service_pb2 as wire


@view
@dataclass(frozen=True)
class ReceiptItem(View):
    """One message of a receipt, or one fact.

    Attributes:
        conversation_id: Its conversation; empty if it is the system text of the request, a fact or the user's working
            memory.
        message_id: The message, or the fact; `working-memory` for the user's; empty if it is the system text of the
            request, a summary or the conversation's working memory.
        sequence: Its place in the conversation; 0 if it is no message of one.
        message_revision: The revision that the message had.
        section: Of a context: which part of it the message belongs to; None of a search.
        score: Its score, if it was found by the query.
        tokens: Of a context: its cost as rendered.
        reason: Of a context: why it was chosen, for people.
        partial: Of a context: whether its text was truncated.
    """

    conversation_id: str
    message_id: str
    sequence: int
    message_revision: int
    section: Section | None
    score: float | None
    tokens: int
    reason: str
    partial: bool

    @classmethod
    def from_proto(cls, item: wire.ReceiptItem) -> Self:
        """The item from the wire, which must not change from then on."""
        return cls._of(item)

    _decoders: ClassVar[Decoders] = {
        **unchanged("conversation_id", "message_id", "sequence", "message_revision", "tokens", "reason", "partial"),
        "section": lambda wire: SECTIONS.get(wire.section),
        "score": lambda wire: wire.score if wire.HasField("score") else None,
    }


@view
@dataclass(frozen=True)
class Receipt(View):
    """What a reply was made of. `print` shows it.

    Attributes:
        id: The `receipt_id` of the reply.
        user_id: Whose it is: the user whose messages were read; empty: a search of all users.
        conversation_id: The conversation of the context or the search; empty if it was a search of a user's or of all.
        create_time: When the reply was made.
        expire_time: From when on the receipt is gone.
        revision: The revision that the reply showed.
        is_context: Whether the reply is a context; otherwise it is of a search.
        request: What was asked for, as it was sent; None in lists, and if it was erased.
        items: What the reply was made of, in its order; empty in lists.
        item_count: How many items there are.
        tokens_used: Of a context: its cost.
        overhead_tokens: Of a context: tokens that belong to no single item.
        left_out: Of a context: how many candidate messages did not fit.
    """

    id: str
    user_id: str
    conversation_id: str
    create_time: datetime | None
    expire_time: datetime | None
    revision: int
    is_context: bool
    request: wire.AssembleContextRequest | wire.SearchMessagesRequest | None
    items: tuple[ReceiptItem, ...]
    item_count: int
    tokens_used: int
    overhead_tokens: int
    left_out: int

    @classmethod
    def from_proto(cls, receipt: wire.Receipt) -> Self:
        """The receipt from the wire, which must not change from then on."""
        return cls._of(receipt)

    @property
    def query(self) -> str:
        """The text that was searched for, if the request had one and is still there."""
        if isinstance(self.request, wire.AssembleContextRequest):
            return self.request.query
        return self.request.text if self.request is not None else ""

    @property
    def max_tokens(self) -> int | None:
        """The budget of a context; None of a search, in lists, and if the request was erased."""
        return self.request.max_tokens if isinstance(self.request, wire.AssembleContextRequest) else None

    def __str__(self) -> str:
        return "\n".join(map(printable, _lines(self)))

    _decoders: ClassVar[Decoders] = {
        **unchanged(
            "id",
            "user_id",
            "conversation_id",
            "revision",
            "is_context",
            "item_count",
            "tokens_used",
            "overhead_tokens",
            "left_out",
        ),
        "create_time": lambda wire: optional_time(wire, "create_time"),
        "expire_time": lambda wire: optional_time(wire, "expire_time"),
        "request": lambda wire: getattr(wire, chosen) if (chosen := wire.WhichOneof("request")) else None,
        "items": lambda wire: tuple(map(ReceiptItem.from_proto, wire.items)),
    }


@dataclass(frozen=True, slots=True)
class Replay:
    """The reply of a receipt, given again from the messages as they were then.

    Attributes:
        context: The context, if the receipt is of one.
        search: The result of the search, if the receipt is of one.
        erased: The items that are missing, because they were erased since.
        identical: Whether the reply is, byte for byte, what was given then.
    """

    context: Context | None
    search: SearchResult | None
    erased: tuple[ReceiptItem, ...]
    identical: bool

    @classmethod
    def from_proto(cls, response: wire.ReplayContextResponse, max_tokens: int | None) -> Self:
        """The replay from the wire. `max_tokens` is the budget of the context, if it is known."""
        kind = response.WhichOneof("reply")
        return cls(
            context=Context.from_proto(response.context, max_tokens) if kind == "context" else None,
            search=SearchResult.from_proto(response.search) if kind == "search" else None,
            erased=tuple(map(ReceiptItem.from_proto, response.erased)),
            identical=response.identical,
        )


@dataclass(frozen=True, slots=True)
class ContextChange:
    """An item that differs between two receipts.

    Attributes:
        before: The item as the earlier receipt has it, if it does.
        after: The item as the later receipt has it, if it does.
        why: Why it came in, went out or changed, for people.
    """

    before: ReceiptItem | None
    after: ReceiptItem | None
    why: str

    @classmethod
    def from_proto(cls, change: wire.ContextChange) -> Self:
        """The change from the wire."""
        return cls(
            before=ReceiptItem.from_proto(change.before) if change.HasField("before") else None,
            after=ReceiptItem.from_proto(change.after) if change.HasField("after") else None,
            why=change.why,
        )


@dataclass(frozen=True, slots=True)
class ContextDiff:
    """How two receipts differ. Items are the same if they are the same message. `print` shows it.

    Attributes:
        came_in: Items that only the later receipt has, in its order.
        went_out: Items that only the earlier receipt has, in its order.
        changed: Items that both have, with another text, section, score or cost.
        unchanged: How many items both have unchanged.
        differences: What differs between the requests and between the replies as a whole, for people.
    """

    came_in: tuple[ContextChange, ...]
    went_out: tuple[ContextChange, ...]
    changed: tuple[ContextChange, ...]
    unchanged: int
    differences: tuple[str, ...]

    @classmethod
    def from_proto(cls, response: wire.DiffContextsResponse) -> Self:
        """The difference from the wire."""
        return cls(
            came_in=tuple(map(ContextChange.from_proto, response.came_in)),
            went_out=tuple(map(ContextChange.from_proto, response.went_out)),
            changed=tuple(map(ContextChange.from_proto, response.changed)),
            unchanged=response.unchanged,
            differences=tuple(response.differences),
        )

    def __str__(self) -> str:
        return "\n".join(map(printable, _difference_lines(self)))


def _lines(receipt: Receipt) -> Iterator[str]:
    """What a person wants to see of a receipt."""
    kind = "context" if receipt.is_context else "search"
    where = receipt.conversation_id or (f"user {receipt.user_id}" if receipt.user_id else "all users")
    yield f"{kind} of {where} at revision {receipt.revision}, {receipt.create_time:%Y-%m-%d %H:%M:%S}, {receipt.id}"
    if receipt.query:
        yield f"asked: {receipt.query}"
    if receipt.is_context:
        of = "" if receipt.max_tokens is None else f" of {receipt.max_tokens:,}"
        yield f"{receipt.tokens_used:,}{of} tokens, {receipt.overhead_tokens:,} of them around the messages"
    yield from map(_item_line, receipt.items)
    if receipt.left_out:
        yield f"{receipt.left_out:,} did not fit"


def _item_line(item: ReceiptItem) -> str:
    what: list[str] = [item.section or "found"]
    if item.message_id:
        what.append(item.message_id)
    if item.sequence:
        what.append(f"{item.conversation_id}#{item.sequence}")
    if item.score is not None:
        what.append(f"score {item.score:.3f}")
    if item.tokens:
        what.append(f"{item.tokens:,} tokens")
    if item.partial:
        what.append("truncated")
    if item.reason:
        what.append(item.reason)
    return f"  {'  '.join(what)}"


def _difference_lines(found: ContextDiff) -> Iterator[str]:
    """What a person wants to see of a difference."""
    yield from found.differences
    for mark, changes in (("-", found.went_out), ("+", found.came_in), ("~", found.changed)):
        for change in changes:
            item = change.after or change.before
            if item is not None:
                why = "" if change.why == item.reason else f": {change.why}"
                yield f"{mark}{_item_line(item)[1:]}{why}"
    yield f"{found.unchanged:,} unchanged"
