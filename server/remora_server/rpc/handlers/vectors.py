"""The RPCs of vectors and their collections."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from remora.v1 import vector_service_pb2 as pb
from remora.v1.vector_pb2 import Vector, VectorCollection
from remora_server import wire
from remora_server.domain.calls import Read
from remora_server.domain.replies import fitting
from remora_server.domain.text_vectors import TextVectors
from remora_server.domain.vectors import (
    FLOAT_BYTES,
    CollectionDraft,
    CollectionStore,
    VectorDraft,
    VectorHit,
    VectorQuery,
    VectorScope,
    VectorStore,
)
from remora_server.rpc.calls import Call
from remora_server.rpc.handlers import decode
from remora_server.rpc.handlers.page_tokens import PageTokens
from remora_server.rpc.methods import batched, quick

_Scoped: TypeAlias = (
    pb.UpsertVectorsRequest
    | pb.SearchVectorsRequest
    | pb.GetVectorsRequest
    | pb.DeleteVectorsRequest
    | pb.CountVectorsRequest
)


class VectorHandlers(Struct, frozen=True):
    """Answers the RPCs of vectors."""

    vectors: VectorStore
    collections: CollectionStore
    texts: TextVectors
    page_tokens: PageTokens

    @batched
    @quick
    def upsert_vectors(self, call: Call, request: pb.UpsertVectorsRequest) -> pb.UpsertVectorsResponse:
        write, scope = call.write(request), _scope(request)
        drafts = [_draft(f"vectors[{index}].values", given, scope) for index, given in enumerate(request.vectors)]
        return pb.UpsertVectorsResponse(revision=self.vectors.upsert(write, scope, drafts).revision)

    def search_vectors(self, call: Call, request: pb.SearchVectorsRequest) -> bytes:
        read = call.read(request)
        found = self.vectors.search(read, _scope(request), self._query(read, request))
        hits = fitting((_hit(hit, omit_values=request.omit_values) for hit in found.hits), len)
        rest = pb.SearchVectorsResponse(truncated=len(hits) < len(found.hits), revision=found.revision)
        return wire.elements(pb.SearchVectorsResponse.HITS_FIELD_NUMBER, hits) + rest.SerializeToString()

    def _query(self, read: Read, request: pb.SearchVectorsRequest) -> VectorQuery:
        by_text = request.WhichOneof("query") == "text"
        return VectorQuery(
            values=self.texts.of(read, request.text) if by_text else request.vector,
            k=request.k or decode.DEFAULT_HITS,
            threshold=request.threshold if request.HasField("threshold") else None,
            filter=decode.attribute_filter(request.filter) if request.HasField("filter") else None,
            field="text" if by_text else "vector",
        )

    @quick
    def get_vectors(self, call: Call, request: pb.GetVectorsRequest) -> bytes:
        found = self.vectors.get(call.read(request), _scope(request), request.ids)
        rest = pb.GetVectorsResponse(truncated=found.truncated, revision=found.revision)
        return wire.elements(pb.GetVectorsResponse.VECTORS_FIELD_NUMBER, found.encoded) + rest.SerializeToString()

    def delete_vectors(self, call: Call, request: pb.DeleteVectorsRequest) -> pb.DeleteVectorsResponse:
        write, scope = call.write(request), _scope(request)
        if request.HasField("filter"):
            outcome = self.vectors.delete_where(write, scope, decode.attribute_filter(request.filter))
        else:
            outcome = self.vectors.delete(write, scope, request.ids.ids)
        return pb.DeleteVectorsResponse(deleted_vectors=outcome.deleted_records, revision=outcome.revision)

    def count_vectors(self, call: Call, request: pb.CountVectorsRequest) -> pb.CountVectorsResponse:
        passing = decode.attribute_filter(request.filter) if request.HasField("filter") else None
        count, revision = self.vectors.count(call.read(request), _scope(request), passing)
        return pb.CountVectorsResponse(vectors=count, revision=revision)

    @quick
    def create_collection(self, call: Call, request: pb.CreateCollectionRequest) -> pb.CreateCollectionResponse:
        write, given = call.write(request), request.collection
        outcome = self.collections.create(write, CollectionDraft(given.id, given.dimension))
        return pb.CreateCollectionResponse(revision=outcome.revision)

    def get_collection(self, call: Call, request: pb.GetCollectionRequest) -> pb.GetCollectionResponse:
        found = self.collections.get(call.read(request), request.collection_id)
        return pb.GetCollectionResponse(
            collection=VectorCollection.FromString(found.encoded),
            vectors=found.vectors,
            bytes=found.bytes,
            revision=found.revision,
        )

    def list_collections(self, call: Call, request: pb.ListCollectionsRequest) -> bytes:
        size, after = decode.page_size(request.page_size), self.page_tokens.position(call, request, str)
        page = self.collections.list(call.read(request), after or "", size)
        token = self.page_tokens.make(call, request, page.following) if page.following else ""
        rest = pb.ListCollectionsResponse(next_page_token=token, revision=page.revision)
        return wire.elements(wire.LIST_FIELD, page.encoded) + rest.SerializeToString()

    def clear_collection(self, call: Call, request: pb.ClearCollectionRequest) -> pb.ClearCollectionResponse:
        outcome = self.collections.clear(call.write(request), request.collection_id)
        return pb.ClearCollectionResponse(revision=outcome.revision)

    def delete_collection(self, call: Call, request: pb.DeleteCollectionRequest) -> pb.DeleteCollectionResponse:
        write = call.write(request)
        outcome = self.collections.delete(write, request.collection_id, allow_missing=request.allow_missing)
        return pb.DeleteCollectionResponse(deleted=outcome.deleted, revision=outcome.revision)


def _scope(request: _Scoped) -> VectorScope:
    return VectorScope(request.collection_id, request.user_id)


def _draft(field: str, given: Vector, scope: VectorScope) -> VectorDraft:
    """A vector of a write. Uses the vector up."""
    given.collection_id, given.user_id = scope.collection_id, scope.user_id
    given.ClearField("update_time")
    given.ClearField("revision")
    return VectorDraft(given.id, len(given.values) // FLOAT_BYTES, given.SerializeToString(), field)


def _hit(hit: VectorHit, *, omit_values: bool) -> bytes:
    encoded = hit.encoded
    if omit_values:
        vector = Vector.FromString(encoded)
        vector.ClearField("values")
        encoded = vector.SerializeToString()
    return (
        wire.elements(pb.VectorHit.VECTOR_FIELD_NUMBER, [encoded]) + pb.VectorHit(score=hit.score).SerializeToString()
    )
