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
    """How two vectors are compared. A greater result is nearer."""

    COSINE = "cosine"
    INNER_PRODUCT = "inner_product"
    L2 = "l2"
    """The negative Euclidean distance."""


class ItemQuery(Struct, frozen=True):
    """The query of a search: it is compared with vectors of a model."""

    values: bytes
    model: str = ""
    similarity: Similarity = Similarity.COSINE


class ItemSearch(Struct, frozen=True):
    """Which items to find: nearest to a query or, without one, written last; after the first `skip`.

    `refreshes`: those that are found live for their ttl from now, except what has expired. `sees_expired`: what has
    expired is found until it is deleted. The keys of the filter are paths: see `path_key`.
    """

    prefix: Namespace = ()
    filter: Filter | None = None
    query: ItemQuery | None = None
    limit: int = 10
    skip: int = 0
    refreshes: bool = False
    sees_expired: bool = False


class ItemHit(Struct, frozen=True):
    """An item that was found, in wire form. `score` is None in a search without a query."""

    encoded: bytes
    score: float | None


class FoundItems(Struct, frozen=True):
    """Items that a search found, in their order."""

    hits: tuple[ItemHit, ...]
    revision: int


class ReadItems(Struct, frozen=True):
    """Items by the requested places, in wire form; None if there is none.

    There are fewer of them than places if a reply does not hold all.
    """

    encoded: tuple[bytes | None, ...]
    revision: int


class LabelMatch(Struct, frozen=True):
    """Labels with which a namespace begins or ends; `*` is any one label."""

    labels: tuple[str, ...]
    at_end: bool = False


class NamespaceListing(Struct, frozen=True):
    """Which namespaces to list, each cut to `max_depth` labels, and once: after the first `skip`.

    `sees_expired`: one all of whose items have expired is there until they are deleted.
    """

    matches: tuple[LabelMatch, ...] = ()
    max_depth: int | None = None
    limit: int = 100
    skip: int = 0
    sees_expired: bool = False


class ListedNamespaces(Struct, frozen=True):
    """Namespaces by code point, and whether more follow."""

    namespaces: tuple[Namespace, ...]
    more: bool
    revision: int


class ItemStore(Protocol):
    """Keeps items: see `domain.store`. What has expired is not there, except for reads with `sees_expired`."""

    def write(self, write: Write, given: Sequence[ItemChange]) -> Outcome:
        """Write and delete all or none; of several changes of one item, the last wins. `deleted_records`."""

    def repeated(self, write: Write) -> Outcome | None:
        """The outcome of the same request where it came before."""

    def get(
        self, read: Read, places: Sequence[ItemPlace], *, refreshes: bool = False, sees_expired: bool = False
    ) -> ReadItems:
        """Items by their places. What has expired is not refreshed."""

    def search(self, read: Read, search: ItemSearch) -> FoundItems:
        """The items of a search. Raises ItemsTooLarge."""

    def namespaces(self, read: Read, listing: NamespaceListing) -> ListedNamespaces:
        """The namespaces that have an item. Raises ItemsTooLarge."""

    def delete_namespaces(self, write: Write, prefix: Namespace) -> Outcome:
        """Delete all items of the namespaces with this prefix."""

    def delete_expired(self, write: Write) -> Outcome:
        """Delete what has expired; `deleted_records`. Raises ItemsTooLarge."""
