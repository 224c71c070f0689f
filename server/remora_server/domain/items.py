"""Items of the store: JSON values under keys in namespaces. A namespace is a tuple of labels, the outermost first."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Protocol, TypeAlias

from msgspec import Struct

from remora_server.domain.calls import Outcome, Read, Write
from remora_server.domain.filters import Filter

Namespace: TypeAlias = tuple[str, ...]


class ItemPlace(Struct, frozen=True):
    """Where an item is."""

    namespace: Namespace
    key: str


class ItemDraft(Struct, frozen=True):
    """An item as its caller gives it. `body` is the whole of it in wire form; `ttl` is in microseconds."""

    place: ItemPlace
    body: bytes
    ttl: int | None = None


ItemChange: TypeAlias = ItemDraft | ItemPlace
"""An item to write, or one to delete."""


class Similarity(Enum):
    """How two vectors are compared. More is nearer."""

    COSINE = "cosine"
    INNER_PRODUCT = "inner_product"
    L2 = "l2"
    """The negative Euclidean distance."""


class ItemQuery(Struct, frozen=True):
    """What vectors of a model are compared with."""

    values: bytes
    model: str = ""
    similarity: Similarity = Similarity.COSINE


class ItemSearch(Struct, frozen=True):
    """Which items to find: nearest to a query or, without one, written last; after the first `skip`.

    `refreshes`: those that are found live for their ttl from now. The keys of the filter are paths: see `path_key`.
    """

    prefix: Namespace = ()
    filter: Filter | None = None
    query: ItemQuery | None = None
    limit: int = 10
    skip: int = 0
    refreshes: bool = False


class ItemHit(Struct, frozen=True):
    """An item that was found, in wire form. `score` is None in a search without a query."""

    encoded: bytes
    score: float | None


class FoundItems(Struct, frozen=True):
    """Items that a search found, in their order."""

    hits: tuple[ItemHit, ...]
    revision: int


class ReadItems(Struct, frozen=True):
    """Items by the places that were asked for, in wire form, None where there is none.

    There are fewer of them than places if a reply does not hold all.
    """

    encoded: tuple[bytes | None, ...]
    revision: int


class LabelMatch(Struct, frozen=True):
    """Labels with which a namespace begins or ends; `*` is any one label."""

    labels: tuple[str, ...]
    at_end: bool = False


class NamespaceListing(Struct, frozen=True):
    """Which namespaces to list, each cut to `max_depth` labels, and once: after the first `skip`."""

    matches: tuple[LabelMatch, ...] = ()
    max_depth: int | None = None
    limit: int = 100
    skip: int = 0


class ListedNamespaces(Struct, frozen=True):
    """Namespaces by code point, and whether more follow."""

    namespaces: tuple[Namespace, ...]
    more: bool
    revision: int


class ItemStore(Protocol):
    """Keeps items: see `domain.store`. What has expired is not there."""

    def write(self, write: Write, given: Sequence[ItemChange]) -> Outcome:
        """Write and delete all or none; of several changes of one item, the last wins. `deleted_records`."""

    def get(self, read: Read, places: Sequence[ItemPlace], *, refreshes: bool = False) -> ReadItems:
        """Items by their places."""

    def search(self, read: Read, search: ItemSearch) -> FoundItems:
        """The items of a search. Raises ItemsTooLarge."""

    def namespaces(self, read: Read, listing: NamespaceListing) -> ListedNamespaces:
        """The namespaces that have an item. Raises ItemsTooLarge."""

    def delete_namespaces(self, write: Write, prefix: Namespace) -> Outcome:
        """Delete all items of the namespaces that begin so."""

    def delete_expired(self, write: Write) -> Outcome:
        """Delete what has expired; `deleted_records`. Raises ItemsTooLarge."""
