"""Memory items: single texts that a user's agents chose to remember."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.embedded import ItemVector, question, vectors
from remora_server.domain.filters import Filter
from remora_server.domain.models import PerTenant
from remora_server.domain.search import Embedder, IndexState
from remora_server.domain.workflows import PartPosition

LONGEST_TEXT = 64 << 10
"""Bytes of an item's text."""


class ItemDraft(Struct, frozen=True):
    """An item as its caller gives it. `body` is the whole of it in wire form, `said` what is to be embedded.

    `lifetime` is in microseconds after the write. It is None if the body has the expire time, or if the item never
    expires.
    """

    id: str
    body: bytes
    said: str
    lifetime: int | None = None
    vector: ItemVector | None = None


class ItemFilter(Struct, frozen=True):
    """Selects items that have all of these tags and metadata that passes the filter."""

    tags: tuple[str, ...] = ()
    where: Filter | None = None

    def __bool__(self) -> bool:
        """Whether it has conditions."""
        return bool(self.tags or self.where)


class ItemQuery(Struct, frozen=True):
    """What to look for: the `k` items of a user that answer a text best.

    `model` is the tenant's: only vectors of it are compared with `vector`. Without `vector`, words alone count.
    """

    text: str
    k: int = 10
    threshold: float | None = None
    filter: ItemFilter = ItemFilter()
    model: str = ""
    vector: bytes | None = None


class ItemHit(Struct, frozen=True):
    """An item that was found, in wire form; `score` is from 0 to 1."""

    score: float
    encoded: bytes


class RankedItems(Struct, frozen=True):
    """The best items, best first, ties by id. `pending` is the number of the user's items without a vector of the
    model.
    """

    hits: tuple[ItemHit, ...]
    pending: int
    revision: int


class FoundItems(Struct, frozen=True):
    """The same, with the use of the index."""

    hits: tuple[ItemHit, ...]
    index: IndexState
    revision: int


class ItemPage(Struct, frozen=True):
    """A page of items in wire form. `following`: the position behind which the next begins; None at the end."""

    encoded: tuple[bytes, ...]
    following: PartPosition | None
    revision: int


class MemoryItemStore(Protocol):
    """Keeps memory items: see `domain.store`."""

    def add(self, write: Write, user_id: str, drafts: Sequence[ItemDraft]) -> Outcome:
        """Add or replace all or none; of two with the same id, the last wins. `messages` has the ids, in this order."""

    def search(self, read: Read, user_id: str, query: ItemQuery) -> RankedItems:
        """The best items. Raises VectorsTooLarge."""

    def get(self, read: Read, user_id: str, item_id: str) -> tuple[bytes, int]:
        """An item in wire form, and the revision that this shows. Raises MemoryItemNotFound."""

    def list(self, read: Read, user_id: str, passing: ItemFilter, after: PartPosition | None, limit: int) -> ItemPage:
        """Items by their create time, the newest first, behind a position. Raises VectorsTooLarge."""

    def delete(self, write: Write, user_id: str, ids: Sequence[str]) -> Outcome:
        """Delete items by their ids, of a user or (if empty) of any; `deleted_records`."""

    def delete_where(self, write: Write, user_id: str, passing: ItemFilter) -> Outcome:
        """Delete the items that pass; `deleted_records`. Raises VectorsTooLarge."""


def readable(conversation: Iterable[tuple[str, str]]) -> str:
    """The messages of roles as lines, as far as they fit into an item's text."""
    return _held("\n".join(f"{role}: {content}" if role else content for role, content in conversation))


def spoken(conversation: Iterable[tuple[str, str]]) -> str:
    """The same without the roles, which would influence the vector."""
    return _held("\n".join(content for _, content in conversation))


def _held(text: str) -> str:
    return text.encode()[:LONGEST_TEXT].decode(errors="ignore")


class ItemMemory:
    """Adds and finds items: it makes the vectors of what they say, by the model of the tenant."""

    def __init__(self, items: MemoryItemStore, embedders: PerTenant[Embedder | None]) -> None:
        self._items = items
        self._embedders = embedders

    def add(self, write: Write, user_id: str, drafts: Sequence[ItemDraft]) -> Outcome:
        """Add items, with vectors where the model makes them in time."""
        made = vectors(self._embedders.of(write.tenant_id), [draft.said for draft in drafts], write.deadline)
        complete = [replace(draft, vector=vector) for draft, vector in zip(drafts, made, strict=True)]
        return self._items.add(write, user_id, complete)

    def search(self, read: Read, user_id: str, query: ItemQuery) -> FoundItems:
        """The best items: by vectors and words, or by words alone if there is no vector of the query."""
        asked = question(self._embedders.of(read.tenant_id), query.text, read.deadline)
        found = self._items.search(read, user_id, replace(query, model=asked.model, vector=asked.vector))
        return FoundItems(found.hits, IndexState(asked.model, found.pending, asked.words_only), found.revision)
