"""The RPCs of memory items."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from remora.v1 import memory_service_pb2 as pb
from remora.v1.memory_item_pb2 import MemoryItem, MemoryItemFilter
from remora_server import wire
from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.memory_items import FoundItems, ItemDraft, ItemFilter, ItemHit, ItemQuery, MemoryItemStore
from remora_server.domain.replies import fitting
from remora_server.domain.workflows import PartPosition
from remora_server.rpc.calls import Call
from remora_server.rpc.handlers import decode, encode
from remora_server.rpc.handlers.page_tokens import PageTokens
from remora_server.rpc.methods import quick


class Memory(Protocol):
    """Makes vectors of what is written and searched for: `domain.memory_items.ItemMemory`."""

    def add(self, write: Write, user_id: str, drafts: list[ItemDraft]) -> Outcome: ...

    def search(self, read: Read, user_id: str, query: ItemQuery) -> FoundItems: ...


class MemoryItemHandlers(Struct, frozen=True):
    """Answers the RPCs of memory items."""

    memory: Memory
    items: MemoryItemStore
    page_tokens: PageTokens

    def add_memory_items(self, call: Call, request: pb.AddMemoryItemsRequest) -> pb.AddMemoryItemsResponse:
        write = call.write(request)
        outcome = self.memory.add(write, request.user_id, list(map(decode.memory_item, request.items)))
        return pb.AddMemoryItemsResponse(ids=[placed.id for placed in outcome.messages], revision=outcome.revision)

    def search_memory_items(self, call: Call, request: pb.SearchMemoryItemsRequest) -> bytes:
        found = self.memory.search(call.read(request), request.user_id, _query(request))
        hits = fitting(map(_hit, found.hits), len)
        rest = pb.SearchMemoryItemsResponse(
            truncated=len(hits) < len(found.hits), revision=found.revision, index=encode.index_state(found.index)
        )
        return wire.elements(pb.SearchMemoryItemsResponse.HITS_FIELD_NUMBER, hits) + rest.SerializeToString()

    @quick
    def get_memory_item(self, call: Call, request: pb.GetMemoryItemRequest) -> pb.GetMemoryItemResponse:
        encoded, revision = self.items.get(call.read(request), request.user_id, request.item_id)
        return pb.GetMemoryItemResponse(item=_shown(encoded), revision=revision)

    def list_memory_items(self, call: Call, request: pb.ListMemoryItemsRequest) -> pb.ListMemoryItemsResponse:
        after = self.page_tokens.position(call, request, PartPosition)
        size = decode.page_size(request.page_size)
        page = self.items.list(call.read(request), request.user_id, _filter(request.filter), after, size)
        token = self.page_tokens.make(call, request, page.following) if page.following else ""
        return pb.ListMemoryItemsResponse(
            items=map(_shown, page.encoded), next_page_token=token, revision=page.revision
        )

    def delete_memory_items(self, call: Call, request: pb.DeleteMemoryItemsRequest) -> pb.DeleteMemoryItemsResponse:
        write = call.write(request)
        if request.HasField("filter"):
            outcome = self.items.delete_where(write, request.user_id, _filter(request.filter))
        else:
            outcome = self.items.delete(write, request.user_id, request.ids.ids)
        return pb.DeleteMemoryItemsResponse(deleted_items=outcome.deleted_records, revision=outcome.revision)


def _query(request: pb.SearchMemoryItemsRequest) -> ItemQuery:
    return ItemQuery(
        text=request.query,
        k=request.k or decode.DEFAULT_HITS,
        threshold=request.threshold if request.HasField("threshold") else None,
        filter=_filter(request.filter),
    )


def _filter(given: MemoryItemFilter) -> ItemFilter:
    return ItemFilter(tuple(given.tags), decode.value_filter(given.where) if given.HasField("where") else None)


def _hit(hit: ItemHit) -> bytes:
    return pb.MemoryItemHit(item=_shown(hit.encoded), score=hit.score).SerializeToString()


def _shown(encoded: bytes) -> MemoryItem:
    """An item as it is returned, without what only the server reads."""
    item = MemoryItem.FromString(encoded)
    for name in ("values", "indexed", "model"):
        item.ClearField(name)
    return item
