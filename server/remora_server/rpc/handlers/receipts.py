"""The RPCs of receipts: what a context or a search was made of, its replay, and the difference of two receipts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Protocol

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message as ProtobufMessage
from msgspec import Struct

from remora.v1 import memory_service_pb2 as pb
from remora.v1.message_pb2 import Message
from remora_server import wire
from remora_server.domain.calls import Read
from remora_server.domain.context import Section
from remora_server.domain.context_messages import SYSTEM, ContextMessage, MessageReader
from remora_server.domain.memory_list import KNOWN_ROLE
from remora_server.domain.receipts import (
    OF_MEMORY,
    OF_SUMMARY,
    Change,
    Content,
    Receipt,
    ReceiptItem,
    ReceiptQuery,
    ReceiptStore,
    Standing,
    TextForm,
    Texts,
    compare,
    texts_of,
)
from remora_server.domain.renderings import EARLIER_ROLE
from remora_server.domain.workflows import PartPosition
from remora_server.rpc.calls import Call
from remora_server.rpc.handlers import decode, encode
from remora_server.rpc.handlers.page_tokens import PageTokens

QUOTED = 80
"""How many characters of a query are quoted."""
_TOLD_OTHERWISE = {"max_tokens", "query", "text", "min_revision"}
"""Fields of a request that have their own description of a difference, or are described by the revisions that were
read.
"""


class Settling(Protocol):
    """Waits for receipts that are still to be written: `engine.receipt_book.ReceiptBook`."""

    def settle(self, deadline: float | None, *receipt_ids: str) -> None: ...


class ReceiptHandlers(Struct, frozen=True):
    """Answers the RPCs of receipts."""

    receipts: ReceiptStore
    book: Settling
    reader: MessageReader
    page_tokens: PageTokens

    def get_receipt(self, call: Call, request: pb.GetReceiptRequest) -> pb.GetReceiptResponse:
        self.book.settle(call.deadline, request.receipt_id)
        found, revision = self.receipts.get(call.read(request), request.receipt_id, request.user_id)
        return pb.GetReceiptResponse(receipt=_whole(found), revision=revision)

    def list_receipts(self, call: Call, request: pb.ListReceiptsRequest) -> bytes:
        self.book.settle(call.deadline)
        after = self.page_tokens.position(call, request, PartPosition)
        size = decode.page_size(request.page_size)
        query = ReceiptQuery(request.user_id, request.conversation_id, size, after)
        page = self.receipts.list(call.read(request), query)
        token = self.page_tokens.make(call, request, page.following) if page.following else ""
        rest = pb.ListReceiptsResponse(next_page_token=token, revision=page.revision)
        receipts = (_summary(receipt).SerializeToString() for receipt in page.receipts)
        return wire.elements(pb.ListReceiptsResponse.RECEIPTS_FIELD_NUMBER, receipts) + rest.SerializeToString()

    def replay_context(self, call: Call, request: pb.ReplayContextRequest) -> bytes:
        self.book.settle(call.deadline, request.receipt_id)
        read = call.read(request)
        found, revision = self.receipts.get(read, request.receipt_id, request.user_id)
        contents = self.receipts.contents(read, found)
        erased = [_item(found, item) for item, content in zip(found.items, contents, strict=True) if content is None]
        texts = self._texts(found, contents)
        reply = _reply(found, contents, texts)
        identical = not erased and texts.digest == found.text_digest
        rest = pb.ReplayContextResponse(erased=erased, identical=identical, revision=revision)
        fields = pb.ReplayContextResponse
        field = fields.CONTEXT_FIELD_NUMBER if found.is_context else fields.SEARCH_FIELD_NUMBER
        return wire.elements(field, [reply]) + rest.SerializeToString()

    def _texts(self, receipt: Receipt, contents: Sequence[Content | None]) -> Texts:
        """The texts of a reply, rendered again from the messages that still exist."""
        if not receipt.is_context:
            return Texts()
        messages: dict[Section, list[ContextMessage]] = defaultdict(list)
        for item, content in zip(receipt.items, contents, strict=True):
            if content is not None:
                shown = pb.Item.FromString(item.rest)
                message = self.reader.message(shown.conversation_id, content.message)
                messages[Section[_section(shown)]].append(message)
        return texts_of(receipt.text_form, receipt.conversation_id, messages)

    def diff_contexts(self, call: Call, request: pb.DiffContextsRequest) -> pb.DiffContextsResponse:
        self.book.settle(call.deadline, request.before_receipt_id, request.after_receipt_id)
        read = call.read(request)
        before, _ = self.receipts.get(read, request.before_receipt_id, request.user_id)
        after, revision = self.receipts.get(read, request.after_receipt_id, request.user_id)
        found = compare(_standings(before), _standings(after), erased=self._erased(read, before))
        return pb.DiffContextsResponse(
            came_in=[_change(before, after, change) for change in found.came_in],
            went_out=[_change(before, after, change) for change in found.went_out],
            changed=[_change(before, after, change) for change in found.changed],
            unchanged=found.unchanged,
            differences=_differences(before, after),
            revision=revision,
        )

    def _erased(self, read: Read, receipt: Receipt) -> frozenset[int]:
        contents = self.receipts.contents(read, receipt)
        return frozenset(number for number, content in enumerate(contents) if content is None)


def _reply(receipt: Receipt, contents: Sequence[Content | None], texts: Texts) -> bytes:
    """The reply with the items that still exist, built as it was then."""
    items = zip(receipt.items, contents, strict=True)
    if not receipt.is_context:
        hits = [wire.with_element(pb.Hit.MESSAGE_FIELD_NUMBER, each.message, item.rest) for item, each in items if each]
        return wire.elements(pb.SearchMessagesResponse.HITS_FIELD_NUMBER, hits) + receipt.reply
    shown = [
        wire.with_element(pb.Item.MESSAGE_FIELD_NUMBER, each.message, encode.with_fact(each.fact, item.rest))
        for item, each in items
        if each
    ]
    rest = pb.AssembleContextResponse.FromString(receipt.reply)
    rest.text = texts.whole
    if texts.memory:
        role = SYSTEM if receipt.text_form is TextForm.SYSTEM else KNOWN_ROLE
        rest.memory.CopyFrom(Message(role=role, text=texts.memory))
    if texts.earlier:
        rest.earlier.CopyFrom(Message(role=EARLIER_ROLE, text=texts.earlier))
    return wire.elements(pb.AssembleContextResponse.ITEMS_FIELD_NUMBER, shown) + rest.SerializeToString()


def _summary(receipt: Receipt) -> pb.Receipt:
    """A receipt without its request and its items."""
    encoded = pb.Receipt(
        id=receipt.id,
        user_id=receipt.user_id,
        conversation_id=receipt.conversation_id,
        create_time=wire.timestamp(receipt.create_time),
        expire_time=wire.timestamp(receipt.expire_time),
        revision=receipt.revision,
        is_context=receipt.is_context,
        item_count=len(receipt.items),
    )
    if receipt.is_context:
        reply = pb.AssembleContextResponse.FromString(receipt.reply)
        encoded.tokens_used = reply.tokens_used
        encoded.overhead_tokens = reply.overhead_tokens
        encoded.left_out = reply.left_out
    return encoded


def _whole(receipt: Receipt) -> pb.Receipt:
    encoded = _summary(receipt)
    encoded.items.extend(_item(receipt, item) for item in receipt.items)
    if receipt.request is not None and receipt.is_context:
        encoded.context.ParseFromString(receipt.request)
    elif receipt.request is not None:
        encoded.search.ParseFromString(receipt.request)
    return encoded


def _item(receipt: Receipt, item: ReceiptItem) -> pb.ReceiptItem:
    encoded = pb.ReceiptItem(
        conversation_id=item.conversation_id,
        conversation_uid=item.uid if item.sequence else 0,
        message_id=item.message_id,
        sequence=0 if item.sequence in (OF_SUMMARY, OF_MEMORY) else item.sequence,
        message_revision=item.revision,
    )
    if not receipt.is_context:
        hit = pb.Hit.FromString(item.rest)
        encoded.score = hit.score
        encoded.components.extend(hit.components)
        return encoded
    shown = pb.Item.FromString(item.rest)
    encoded.section, encoded.tokens = shown.section, shown.tokens
    encoded.reason, encoded.partial = shown.reason, shown.partial
    if shown.HasField("score"):
        encoded.score = shown.score
    return encoded


def _section(item: pb.Item | pb.ReceiptItem) -> str:
    return pb.Section.Name(item.section).removeprefix("SECTION_")


def _standings(receipt: Receipt) -> list[Standing]:
    """The items of a receipt as they are compared."""
    shown = [(item, _item(receipt, item)) for item in receipt.items]
    return [
        Standing(
            item=item,
            section=_section(encoded) if receipt.is_context else "FOUND",
            score=encoded.score if encoded.HasField("score") else None,
            tokens=encoded.tokens,
            reason=encoded.reason or "the query found it",
            partial=encoded.partial,
        )
        for item, encoded in shown
    ]


def _change(before: Receipt, after: Receipt, change: Change) -> pb.ContextChange:
    return pb.ContextChange(
        before=None if change.before is None else _item(before, before.items[change.before]),
        after=None if change.after is None else _item(after, after.items[change.after]),
        why=change.why,
    )


def _differences(before: Receipt, after: Receipt) -> Iterator[str]:
    """What differs between requests and between replies, in words."""
    if before.is_context != after.is_context:
        yield "one is a context, the other a search"
    for receipt, which in ((before, "earlier"), (after, "later")):
        if receipt.request is None:
            yield f"the request of the {which} one was erased"
    if before.is_context and after.is_context:
        yield from _context_differences(before, after)
    if not (before.is_context or after.is_context):
        yield from _search_differences(before, after)
    if before.revision != after.revision:
        yield f"revision {before.revision} was read, then {after.revision}"


def _context_differences(before: Receipt, after: Receipt) -> Iterator[str]:
    old = pb.AssembleContextRequest.FromString(before.request or b"")
    new = pb.AssembleContextRequest.FromString(after.request or b"")
    if before.request is not None and after.request is not None:
        if old.max_tokens != new.max_tokens:
            yield f"the budget was {old.max_tokens} tokens and is {new.max_tokens}"
        if old.query != new.query:
            yield f"the query was {_asked(old)} and is {_asked(new)}"
        yield from _field_differences(old, new, pb.AssembleContextRequest.DESCRIPTOR.fields)
    then, now = (pb.AssembleContextResponse.FromString(receipt.reply) for receipt in (before, after))
    if then.tokens_used != now.tokens_used:
        yield f"{then.tokens_used} tokens were used, then {now.tokens_used}"


def _search_differences(before: Receipt, after: Receipt) -> Iterator[str]:
    if before.request is None or after.request is None:
        return
    old, new = (pb.SearchMessagesRequest.FromString(request) for request in (before.request, after.request))
    if old.text != new.text:
        yield f"the query was {_searched(old)} and is {_searched(new)}"
    yield from _field_differences(old, new, pb.SearchMessagesRequest.DESCRIPTOR.fields)


def _searched(request: pb.SearchMessagesRequest) -> str:
    return _quoted(request.text) if request.text else "a vector"


def _field_differences(old: ProtobufMessage, new: ProtobufMessage, fields: Sequence[FieldDescriptor]) -> Iterator[str]:
    """The other fields that differ between two requests."""
    for field in fields:
        if field.name not in _TOLD_OTHERWISE and _value(old, field) != _value(new, field):
            yield f"`{field.name}` of the request differs"


def _asked(request: pb.AssembleContextRequest) -> str:
    """Without a query, the text of the newest message of the role user is one."""
    if request.HasField("query_embedding"):
        return "a vector"
    return _quoted(request.query) if request.query else "the newest user message"


def _quoted(query: str) -> str:
    """The beginning of a query."""
    return f"`{query}`" if len(query) <= QUOTED else f"`{query[:QUOTED]}…`"


def _value(request: ProtobufMessage, field: FieldDescriptor) -> object:
    """A field of a request; None where it has presence and is not set."""
    return None if field.has_presence and not request.HasField(field.name) else getattr(request, field.name)
