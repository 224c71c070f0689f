# Derived from remora/_async/vectors.py by tools/derive_sync.py. Do not edit: edit that, and run `make gen`.
"""One collection of vectors."""

from collections.abc import Collection
from typing import Annotated

from remora import _refusals
from remora._arguments import checked
from remora._bounds import OF_CLIENT, Between, Finite, Id, Items, Name, RequestId, Timeout
from remora._sync.calls import LARGEST_PAGE, Calls
from remora.embeddings import Embedding
from remora.filters import Where, where_to_proto
from remora.v1 import vector_pb2
from remora.v1 import vector_service_pb2 as wire
from remora.vectors import (
    ACCEPTED,
    CollectionStats,
    Dimension,
    Numbers,
    Vector,
    VectorSearchResult,
    packed,
)

_TEXT = Name(1 << 20)


@checked
class Vectors:
    """A handle on a collection of vectors; making one makes no call. `timeout` is in seconds; left out: the client's.

    A collection comes into being with its first vector, which gives it its dimension.
    """

    _settled = _refusals.users_handle("memory.vectors(id, user_id=...)")

    def __init__(self, calls: Calls, collection_id: str, user_id: str = "") -> None:
        self._calls = calls
        self.id = collection_id
        """The collection's id."""
        self.user_id = user_id
        """Whose vectors the handle sees; empty: those that are nobody's."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, user_id={self.user_id!r})"

    def upsert(
        self,
        vectors: Vector | Annotated[Collection[Vector], Items(10_000, least=1)],
        *,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> None:
        """Stores one or several `vectors`, all or none: at most 10,000, and 1/64 of the server's memory (4 to 36 MiB).

        One with a known id is replaced. Raises DimensionMismatchError if one has another dimension than the collection.
        """
        several = [vectors] if isinstance(vectors, Vector) else vectors
        request = wire.UpsertVectorsRequest(
            collection_id=self.id, user_id=self.user_id, vectors=[vector.to_proto() for vector in several]
        )
        self._calls.write(self._calls.stubs.vectors.UpsertVectors, request, timeout, request_id)

    def search(
        self,
        query: str | Numbers | Embedding,
        *,
        k: Annotated[int, Between(1, 1000)] = 10,
        threshold: Annotated[float, Finite()] | None = None,
        where: Where = (),
        omit_values: bool = False,
        timeout: Timeout = OF_CLIENT,
    ) -> VectorSearchResult:
        """The `k` vectors nearest to a vector or a text, by cosine, the nearest first. Results are exact.

        The `query` is a list of numbers, an array or an `Embedding`, or a text, which the tenant's model embeds as
        `embed` does. Only vectors whose score is at least `threshold`, and whose attributes match `where`: a dict of
        attributes and their values, or a `Filter`, or several. With `omit_values` they come without their values.

        Raises DimensionMismatchError if the query has another dimension than the collection.
        """
        request = wire.SearchVectorsRequest(
            collection_id=self.id,
            user_id=self.user_id,
            k=k,
            threshold=threshold,
            filter=where_to_proto(where),
            omit_values=omit_values,
        )
        if isinstance(query, str):
            _TEXT.require(query, "query")
            request.text = query
        else:
            request.vector = packed(query, "query", f"a str, {ACCEPTED}")
        response = self._calls.read(self._calls.stubs.vectors.SearchVectors, request, timeout)
        return VectorSearchResult.from_proto(response)

    def get(self, ids: Id | Collection[Id], *, timeout: Timeout = OF_CLIENT) -> list[Vector]:
        """The vectors of these `ids`, in their order; those of no vector are left out.

        Each page, of up to 1,000 vectors and 3 MiB, has the timeout.
        """
        rest = list(dict.fromkeys([ids] if isinstance(ids, str) else ids))
        found: list[Vector] = []
        while rest:
            request = wire.GetVectorsRequest(collection_id=self.id, user_id=self.user_id, ids=rest[:LARGEST_PAGE])
            response = self._calls.read(self._calls.stubs.vectors.GetVectors, request, timeout)
            found.extend(map(Vector.from_proto, response.vectors))
            rest = rest[rest.index(found[-1].id) + 1 :] if response.truncated else rest[LARGEST_PAGE:]
        return found

    def delete(
        self, ids: Id | Collection[Id], *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT
    ) -> int:
        """Deletes the vectors of these `ids`, at most 10,000, all or none; returns how many there were."""
        selected = wire.VectorIds(ids=[ids] if isinstance(ids, str) else ids)
        request = wire.DeleteVectorsRequest(collection_id=self.id, user_id=self.user_id, ids=selected)
        response = self._calls.write(self._calls.stubs.vectors.DeleteVectors, request, timeout, request_id)
        return response.deleted_vectors

    def delete_where(self, where: Where, *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT) -> int:
        """Deletes the vectors whose attributes match `where`, all or none; returns how many there were."""
        selected = where_to_proto(where)
        if selected is None:
            raise _refusals.invalid("where", "has no condition; clear_collection() deletes all vectors")
        request = wire.DeleteVectorsRequest(collection_id=self.id, user_id=self.user_id, filter=selected)
        response = self._calls.write(self._calls.stubs.vectors.DeleteVectors, request, timeout, request_id)
        return response.deleted_vectors

    def count(self, *, where: Where = (), timeout: Timeout = OF_CLIENT) -> int:
        """How many vectors there are, or how many whose attributes match `where`."""
        request = wire.CountVectorsRequest(collection_id=self.id, user_id=self.user_id, filter=where_to_proto(where))
        response = self._calls.read(self._calls.stubs.vectors.CountVectors, request, timeout)
        return response.vectors

    def create_collection(
        self,
        *,
        dimension: Dimension | None = None,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> None:
        """Creates the collection, which then has this `dimension` for good; None: that of its first vector.

        Raises CollectionExistsError if there is one.
        """
        collection = vector_pb2.VectorCollection(id=self.id, dimension=dimension or 0)
        request = wire.CreateCollectionRequest(collection=collection)
        self._calls.write(self._calls.stubs.vectors.CreateCollection, request, timeout, request_id)

    def get_collection(self, *, timeout: Timeout = OF_CLIENT) -> CollectionStats:
        """The collection with its statistics, which are of all users. A missing one raises CollectionNotFoundError."""
        request = wire.GetCollectionRequest(collection_id=self.id)
        response = self._calls.read(self._calls.stubs.vectors.GetCollection, request, timeout)
        return CollectionStats.from_proto(response)

    def clear_collection(self, *, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT) -> None:
        """Deletes all vectors of the collection, of all users.

        Unless it was created with a dimension, its next vector may have any.
        """
        request = wire.ClearCollectionRequest(collection_id=self.id)
        self._calls.write(self._calls.stubs.vectors.ClearCollection, request, timeout, request_id)

    def delete_collection(
        self, *, allow_missing: bool = False, request_id: RequestId | None = None, timeout: Timeout = OF_CLIENT
    ) -> bool:
        """Deletes the collection with all of its vectors, of all users; returns whether there was one.

        A missing collection raises CollectionNotFoundError, unless `allow_missing`.
        """
        request = wire.DeleteCollectionRequest(collection_id=self.id, allow_missing=allow_missing)
        response = self._calls.write(self._calls.stubs.vectors.DeleteCollection, request, timeout, request_id)
        return response.deleted
