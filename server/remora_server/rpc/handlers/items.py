"""The RPCs of the store's items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from msgspec import Struct

from remora.v1 import store_service_pb2 as pb
from remora.v1.store_item_pb2 import ItemKey, StoreItem
from remora_server import wire
from remora_server.domain.calls import Read, Write
from remora_server.domain.items import (
    ItemChange,
    ItemDraft,
    ItemHit,
    ItemPlace,
    ItemQuery,
    ItemSearch,
    ItemStore,
    LabelMatch,
    Namespace,
    NamespaceListing,
    ReadItems,
    Similarity,
)
from remora_server.domain.replies import REPLY_BYTES, fitting
from remora_server.domain.text_vectors import TextVectors
from remora_server.rpc.calls import Call
from remora_server.rpc.handlers import decode
from remora_server.rpc.handlers.page_tokens import PageTokens
from remora_server.rpc.methods import quick

_SIMILARITIES = {
    pb.SIMILARITY_UNSPECIFIED: Similarity.COSINE,
    pb.SIMILARITY_COSINE: Similarity.COSINE,
    pb.SIMILARITY_INNER_PRODUCT: Similarity.INNER_PRODUCT,
    pb.SIMILARITY_L2: Similarity.L2,
}
_OUTPUT_ONLY = ("expire_time", "create_time", "update_time", "revision")


class ItemHandlers(Struct, frozen=True):
    """Answers the RPCs of items."""

    items: ItemStore
    texts: TextVectors
    page_tokens: PageTokens

    @quick
    def execute_operations(self, call: Call, request: pb.ExecuteOperationsRequest) -> pb.ExecuteOperationsResponse:
        write, read = call.write(request), call.read(request)
        kinds = [str(each.WhichOneof("kind")) for each in request.operations]
        self._embed(write, [each.put for each in request.operations if each.HasField("put")])
        self._embed_queries(read, [each.search for each in request.operations if each.HasField("search")])
        results = _Results(len(kinds))
        self._get_each(read, request.operations, results)
        for index, kind in enumerate(kinds):
            if kind == "search":
                results.add_hits(index, self._found(read, request.operations[index].search, results))
            elif kind == "list_namespaces":
                results.add_namespaces(index, self._listed(read, request.operations[index].list_namespaces, results))
        changes = [_change(each) for each, kind in zip(request.operations, kinds, strict=True) if kind in _WRITES]
        if changes:
            results.revision = self.items.write(write, changes).revision
        return results.reply()

    def _get_each(self, read: Read, operations: Sequence[pb.Operation], results: _Results) -> None:
        """The gets of some operations: those with the same options together. Waits for the revision even if there are
        none.
        """
        alike: dict[tuple[bool, bool], dict[int, ItemPlace]] = {}
        for index, each in enumerate(operations):
            if each.HasField("get"):
                options = (each.get.refresh_expiry, each.get.include_expired)
                alike.setdefault(options, {})[index] = _place(each.get.key)
        if not alike:
            alike[False, False] = {}
        for (refreshes, sees_expired), chosen in alike.items():
            found = self.items.get(read, list(chosen.values()), refreshes=refreshes, sees_expired=sees_expired)
            results.add_items(list(chosen), found)

    def _found(self, read: Read, search: pb.ItemSearch, results: _Results) -> tuple[ItemHit, ...]:
        found = self.items.search(read, self._search(search))
        results.revision = max(results.revision, found.revision)
        return found.hits

    def _listed(self, read: Read, query: pb.NamespaceQuery, results: _Results) -> tuple[Namespace, ...]:
        listed = self.items.namespaces(read, _listing(query, query.limit, query.skip))
        results.revision = max(results.revision, listed.revision)
        return listed.namespaces

    @quick
    def put_items(self, call: Call, request: pb.PutItemsRequest) -> pb.PutItemsResponse:
        write = call.write(request)
        self._embed(write, request.items)
        return pb.PutItemsResponse(revision=self.items.write(write, list(map(_draft, request.items))).revision)

    @quick
    def get_items(self, call: Call, request: pb.GetItemsRequest) -> bytes:
        places = list(map(_place, request.keys))
        found = self.items.get(
            call.read(request), places, refreshes=request.refresh_expiry, sees_expired=request.include_expired
        )
        there = [each for each in found.encoded if each is not None]
        held = fitting(there, len)
        is_cut = len(held) < len(there) or len(found.encoded) < len(places)
        rest = pb.GetItemsResponse(truncated=is_cut, revision=found.revision)
        return wire.elements(pb.GetItemsResponse.ITEMS_FIELD_NUMBER, held) + rest.SerializeToString()

    @quick
    def search_items(self, call: Call, request: pb.SearchItemsRequest) -> bytes:
        read = call.read(request)
        self._embed_queries(read, [request.search])
        found = self.items.search(read, self._search(request.search))
        hits = fitting(map(_hit, found.hits), len)
        rest = pb.SearchItemsResponse(truncated=len(hits) < len(found.hits), revision=found.revision)
        return wire.elements(pb.SearchItemsResponse.HITS_FIELD_NUMBER, hits) + rest.SerializeToString()

    @quick
    def list_namespaces(self, call: Call, request: pb.ListNamespacesRequest) -> pb.ListNamespacesResponse:
        begin = self.page_tokens.position(call, request, int) or request.query.skip
        size = decode.page_size(request.page_size)
        listed = self.items.namespaces(call.read(request), _listing(request.query, size, begin))
        page = fitting(map(_namespace, listed.namespaces), pb.Namespace.ByteSize)
        more = listed.more or len(page) < len(listed.namespaces)
        token = self.page_tokens.make(call, request, begin + len(page)) if more else ""
        return pb.ListNamespacesResponse(namespaces=page, next_page_token=token, revision=listed.revision)

    @quick
    def delete_items(self, call: Call, request: pb.DeleteItemsRequest) -> pb.DeleteItemsResponse:
        outcome = self.items.write(call.write(request), list(map(_place, request.keys)))
        return pb.DeleteItemsResponse(deleted_items=outcome.deleted_records, revision=outcome.revision)

    def delete_namespaces(self, call: Call, request: pb.DeleteNamespacesRequest) -> pb.DeleteNamespacesResponse:
        outcome = self.items.delete_namespaces(call.write(request), tuple(request.namespace_prefix))
        return pb.DeleteNamespacesResponse(revision=outcome.revision)

    def delete_expired_items(self, call: Call, request: pb.DeleteExpiredItemsRequest) -> pb.DeleteExpiredItemsResponse:
        outcome = self.items.delete_expired(call.write(request))
        return pb.DeleteExpiredItemsResponse(deleted_items=outcome.deleted_records, revision=outcome.revision)

    def _embed(self, write: Write, items: Iterable[StoreItem]) -> None:
        """Replace all texts by their vectors, unless it is a repeat, which writes nothing."""
        given = [vector for item in items for vector in item.vectors if vector.HasField("text")]
        if given and self.items.repeated(write) is None:
            model, values = self.texts.of_all(write, [vector.text for vector in given])
            for vector, made in zip(given, values, strict=True):
                vector.model, vector.values = model, made

    def _embed_queries(self, read: Read, searches: Iterable[pb.ItemSearch]) -> None:
        given = [search for search in searches if search.HasField("text")]
        if given:
            model, values = self.texts.of_all(read, [search.text for search in given])
            for search, made in zip(given, values, strict=True):
                search.model, search.vector = model, made

    def _search(self, given: pb.ItemSearch) -> ItemSearch:
        query = ItemQuery(given.vector, given.model, _SIMILARITIES[given.similarity])
        return ItemSearch(
            prefix=tuple(given.namespace_prefix),
            filter=decode.value_filter(given.filter) if given.HasField("filter") else None,
            query=query if given.HasField("vector") else None,
            limit=min(given.limit or decode.DEFAULT_HITS, decode.MAX_HITS),
            skip=given.skip,
            refreshes=given.refresh_expiry,
            sees_expired=given.include_expired,
        )


_WRITES = ("put", "delete")


class _Results:
    """The results of operations, as many as a reply holds."""

    def __init__(self, count: int) -> None:
        self.revision = 0
        self._results = [pb.OperationResult() for _ in range(count)]
        self._room = REPLY_BYTES

    def add_items(self, indexes: Sequence[int], found: ReadItems) -> None:
        """The items of gets."""
        self.revision = max(self.revision, found.revision)
        for index, encoded in zip(indexes, found.encoded, strict=False):
            if encoded is not None and self._fits(index, len(encoded)):
                self._results[index].item.ParseFromString(encoded)
        for index in islice(indexes, len(found.encoded), None):
            self._results[index].truncated = True

    def add_hits(self, index: int, hits: Iterable[ItemHit]) -> None:
        """The items of a search."""
        self._results[index].hits.SetInParent()
        for hit in hits:
            if not self._fits(index, len(hit.encoded)):
                return
            self._results[index].hits.hits.add().ParseFromString(_hit(hit))

    def add_namespaces(self, index: int, namespaces: Iterable[Namespace]) -> None:
        """Namespaces of a list."""
        self._results[index].namespaces.SetInParent()
        for encoded in map(_namespace, namespaces):
            if not self._fits(index, encoded.ByteSize()):
                return
            self._results[index].namespaces.namespaces.append(encoded)

    def _fits(self, index: int, size: int) -> bool:
        """Whether there is room for an element of a result. After the first one without room there is no more room."""
        fits = size <= self._room or self._room == REPLY_BYTES
        self._room = self._room - size if fits else 0
        self._results[index].truncated |= not fits
        return fits

    def reply(self) -> pb.ExecuteOperationsResponse:
        return pb.ExecuteOperationsResponse(results=self._results, revision=self.revision)


def _change(operation: pb.Operation) -> ItemChange:
    return _draft(operation.put) if operation.HasField("put") else _place(operation.delete)


def _draft(given: StoreItem) -> ItemDraft:
    """An item of a write. Uses the item up."""
    place = ItemPlace(tuple(given.namespace), given.key)
    for name in _OUTPUT_ONLY:
        given.ClearField(name)  # type: ignore[arg-type]
    ttl = given.ttl.ToMicroseconds() if given.HasField("ttl") else None
    return ItemDraft(place, given.SerializeToString(), ttl)


def _place(key: ItemKey) -> ItemPlace:
    return ItemPlace(tuple(key.namespace), key.key)


def _listing(query: pb.NamespaceQuery, limit: int, skip: int) -> NamespaceListing:
    return NamespaceListing(
        matches=tuple(map(_match, query.matches)),
        max_depth=query.max_depth or None,
        limit=decode.page_size(limit),
        skip=skip,
        sees_expired=query.include_expired,
    )


def _match(given: pb.NamespaceMatch) -> LabelMatch:
    at_end = given.HasField("suffix")
    return LabelMatch(tuple(given.suffix.labels if at_end else given.prefix.labels), at_end=at_end)


def _namespace(labels: Namespace) -> pb.Namespace:
    return pb.Namespace(labels=labels)


def _hit(hit: ItemHit) -> bytes:
    item = wire.elements(pb.ItemHit.ITEM_FIELD_NUMBER, [hit.encoded])
    return item if hit.score is None else item + pb.ItemHit(score=hit.score).SerializeToString()
