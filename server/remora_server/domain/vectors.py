"""Vectors of collections: little-endian f32, of at least one dimension, with what they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.filters import Filter

FLOAT_BYTES = 4
MAX_DIMENSION = 4_096


class VectorScope(Struct, frozen=True):
    """The vectors that a call sees: those of a user in a collection, or (without a user) those without a user."""

    collection_id: str
    user_id: str = ""


class VectorDraft(Struct, frozen=True):
    """A vector as its caller gives it. `body` is the whole of it in wire form; `field` is where the request has it."""

    id: str
    dimension: int
    body: bytes
    field: str


class VectorQuery(Struct, frozen=True):
    """What to look for: the `k` vectors that are nearest to `values`. `field` is where the request has these."""

    values: bytes
    k: int = 10
    threshold: float | None = None
    filter: Filter | None = None
    field: str = "vector"


class VectorHit(Struct, frozen=True):
    """A vector that was found, in wire form; `score` is (1 + cosine) / 2."""

    score: float
    encoded: bytes


class NearestVectors(Struct, frozen=True):
    """The nearest vectors, the nearest first; ties by id."""

    hits: tuple[VectorHit, ...]
    revision: int


class FoundVectors(Struct, frozen=True):
    """Vectors in wire form. `truncated` says that a reply has no room for all."""

    encoded: tuple[bytes, ...]
    truncated: bool
    revision: int


class CollectionDraft(Struct, frozen=True):
    """A collection as its caller gives it. Without a dimension (0), its first vector decides."""

    id: str
    dimension: int = 0


class StoredCollection(Struct, frozen=True):
    """A collection in wire form, how many vectors it has, and how many bytes these take where they are stored."""

    encoded: bytes
    vectors: int
    bytes: int
    revision: int


class CollectionPage(Struct, frozen=True):
    """A page of collections in wire form. `following`: the id behind which the next begins; None at the end."""

    encoded: tuple[bytes, ...]
    following: str | None
    revision: int


class VectorStore(Protocol):
    """Keeps vectors: see `domain.store`."""

    def upsert(self, write: Write, scope: VectorScope, drafts: Sequence[VectorDraft]) -> Outcome:
        """Add or replace all or none; of two with the same id, the last wins. Raises DimensionMismatch."""

    def search(self, read: Read, scope: VectorScope, query: VectorQuery) -> NearestVectors:
        """The nearest vectors. Raises DimensionMismatch, VectorsTooLarge."""

    def get(self, read: Read, scope: VectorScope, ids: Sequence[str]) -> FoundVectors:
        """The existing vectors among some ids, in their order."""

    def delete(self, write: Write, scope: VectorScope, ids: Sequence[str]) -> Outcome:
        """Delete vectors by their ids; `deleted_records`."""

    def delete_where(self, write: Write, scope: VectorScope, passing: Filter) -> Outcome:
        """Delete the vectors that pass; `deleted_records`. Raises VectorsTooLarge."""

    def count(self, read: Read, scope: VectorScope, passing: Filter | None) -> tuple[int, int]:
        """How many vectors pass, and the revision that this shows. Raises VectorsTooLarge."""


class CollectionStore(Protocol):
    """Keeps collections: see `domain.store`."""

    def create(self, write: Write, draft: CollectionDraft) -> Outcome:
        """Create. Raises CollectionExists."""

    def get(self, read: Read, collection_id: str) -> StoredCollection:
        """Raises CollectionNotFound."""

    def list(self, read: Read, after: str, limit: int) -> CollectionPage:
        """Collections behind an id."""

    def clear(self, write: Write, collection_id: str) -> Outcome:
        """Delete the vectors of a collection, if there is one."""

    def delete(self, write: Write, collection_id: str, *, allow_missing: bool) -> Outcome:
        """Delete with all vectors; `deleted`. Raises CollectionNotFound."""
