"""Memory items: what a user's agents chose to remember, each by itself, and what a search among them finds."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, ClassVar, Self, TypeAlias

from remora import _json, _refusals
from remora._arguments import checked_fields
from remora._bounds import Between, Items, Name, OptionalId, Size, Time
from remora._printable import printable, ranked
from remora._times import optional_time, to_duration, to_timestamp
from remora._views import Decoders, View, unchanged, view
from remora.attributes import scalar_to_proto
from remora.filters import Where, where_to_proto
from remora.messages import shortened
from remora.v1 import memory_item_pb2, memory_service_pb2

METADATA_BYTES = 64 << 10
LEAST_TTL, MOST_TTL = 0.001, 3_155_760_000
"""Seconds that an item may live: up to 100 years."""

Tag: TypeAlias = Annotated[str, Name(256)]
"""1 to 256 bytes."""
Spoken: TypeAlias = Mapping[str, str]
"""What somebody said: `{"role": "user", "content": "Tea, please"}`."""


def _said(message: Spoken) -> memory_item_pb2.SpokenMessage:
    other = {name: scalar_to_proto(value) for name, value in message.items() if name not in {"role", "content"}}
    return memory_item_pb2.SpokenMessage(role=message.get("role", ""), content=message.get("content", ""), other=other)


def _message(said: memory_item_pb2.SpokenMessage) -> dict[str, str]:
    return {"role": said.role, "content": said.content, **{name: value.text for name, value in said.other.items()}}


@checked_fields
@view
@dataclass(frozen=True, init=False)
class MemoryItem(View):
    """Something to remember about a user: `MemoryItem("Sarah is vegan", tags=["food"], metadata={"source": "chat"})`.

    Attributes:
        text: What is remembered, in words, up to 64 KiB. Without one, it is made of the `conversation`.
        conversation: What was said, up to 256 messages, each a dict with `role` and `content`.
        tags: Words to filter by, up to 64.
        metadata: A dict that JSON can hold, up to 64 KiB. Filters see the values in it.
        id: Unique for its user; None: the server makes one. Adding a known id replaces the item.
        expire_time: From when on it is gone; None: never.
        user_id: Whose item it is. Set by the server.
        create_time: When it was first written. Set by the server.
        update_time: When it was last written. Set by the server.
    """

    text: str
    conversation: tuple[Spoken, ...]
    tags: tuple[str, ...]
    metadata: Mapping[str, Any]
    id: str
    expire_time: datetime | None
    user_id: str = field(init=False)
    create_time: datetime | None = field(init=False)
    update_time: datetime | None = field(init=False)

    def __init__(
        self,
        text: Annotated[str, Size(64 << 10)] = "",
        *,
        conversation: Annotated[Collection[Spoken], Items(256)] = (),
        tags: Annotated[Collection[Tag], Items(64)] = (),
        metadata: Mapping[str, Any] | None = None,
        id: OptionalId | None = None,  # noqa: A002 - the field's name
        expire_time: Time | None = None,
        ttl: Annotated[float, Between(LEAST_TTL, MOST_TTL)] | None = None,
    ) -> None:
        """`ttl` is how many seconds the item lives from its write on, instead of an `expire_time`: up to 100 years."""
        if ttl is not None and expire_time is not None:
            raise _refusals.invalid("ttl", "is not taken beside expire_time: one of them says how long it lives")
        wire = memory_item_pb2.MemoryItem(
            id=id or "",
            text=text,
            conversation=map(_said, conversation),
            tags=tags,
            metadata=_json.to_opaque(dict(metadata) if metadata else None, "metadata", METADATA_BYTES),
        )
        if expire_time is not None:
            wire.expire_time.CopyFrom(to_timestamp(expire_time))
        if ttl is not None:
            wire.ttl.CopyFrom(to_duration(ttl))
        self.__dict__["_wire"] = wire

    def to_proto(self) -> memory_item_pb2.MemoryItem:
        """The item on the wire."""
        kept = self.__dict__.get("_wire")
        if isinstance(kept, memory_item_pb2.MemoryItem):
            return kept
        return MemoryItem(
            self.text,
            conversation=self.conversation,
            tags=self.tags,
            metadata=self.metadata,
            id=self.id,
            expire_time=self.expire_time,
        ).to_proto()

    @classmethod
    def from_proto(cls, item: memory_item_pb2.MemoryItem) -> Self:
        """The item from the wire, which must not change from then on."""
        return cls._of(item)

    _decoders: ClassVar[Decoders] = {
        **unchanged("id", "text", "user_id"),
        "conversation": lambda wire: tuple(map(_message, wire.conversation)),
        "tags": lambda wire: tuple(wire.tags),
        "metadata": lambda wire: _json.loads(wire.metadata) if wire.metadata else {},
        "expire_time": lambda wire: optional_time(wire, "expire_time"),
        "create_time": lambda wire: optional_time(wire, "create_time"),
        "update_time": lambda wire: optional_time(wire, "update_time"),
    }


@view
@dataclass(frozen=True)
class MemoryItemHit(View):
    """An item that was found. `print` shows it as a line.

    Attributes:
        item: The item.
        score: From 0 to 1: how well it answers the query, by its vector and by its words.
    """

    item: MemoryItem
    score: float

    def __str__(self) -> str:
        return f"{self.score:.3f}  {printable(shortened(' '.join(self.item.text.split())))}"

    @classmethod
    def from_proto(cls, hit: memory_service_pb2.MemoryItemHit) -> Self:
        """The hit from the wire, which must not change from then on."""
        return cls._of(hit)

    _decoders: ClassVar[Decoders] = {
        **unchanged("score"),
        "item": lambda wire: MemoryItem.from_proto(wire.item),
    }


@dataclass(frozen=True, slots=True)
class MemoryItemSearchResult:
    """The items that answer a text best, best first. `print` shows a line of each.

    Attributes:
        hits: The hits, best first.
        revision: The revision that the result shows.
        truncated: Whether hits are missing because the reply would be larger than 3 MiB.
        words_only: Whether words alone counted: there is no model, or it cannot be reached.
        pending: How many of the user's items have no vector of the model, and are found by words alone.
    """

    hits: tuple[MemoryItemHit, ...]
    revision: int
    truncated: bool
    words_only: bool
    pending: int

    def __len__(self) -> int:
        """How many hits there are."""
        return len(self.hits)

    def __iter__(self) -> Iterator[MemoryItemHit]:
        """The hits."""
        return iter(self.hits)

    def __str__(self) -> str:
        return "\n".join([*ranked(self.hits), *(["searched by words only"] if self.words_only else [])])

    def __getitem__(self, position: int) -> MemoryItemHit:
        """The hit at a position."""
        return self.hits[position]

    @classmethod
    def from_proto(cls, response: memory_service_pb2.SearchMemoryItemsResponse) -> Self:
        """The result from the wire, which must not change from then on."""
        return cls(
            hits=tuple(map(MemoryItemHit.from_proto, response.hits)),
            revision=response.revision,
            truncated=response.truncated,
            words_only=response.index.words_only,
            pending=response.index.pending,
        )


def item_filter(tags: Collection[str], where: Where) -> memory_item_pb2.MemoryItemFilter:
    """Which items are meant, on the wire."""
    return memory_item_pb2.MemoryItemFilter(tags=tags, where=where_to_proto(where))
