"""Facts: what holds of a user, or did, and what a search among them finds."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, ClassVar, Self

from remora import _refusals
from remora._arguments import checked_fields
from remora._bounds import Between, Finite, Name, OptionalId, Size, Time
from remora._printable import printable, ranked
from remora._times import optional_time, to_timestamp
from remora._views import Decoders, View, unchanged, view
from remora.v1 import fact_pb2, memory_service_pb2


@checked_fields
@dataclass(frozen=True, slots=True)
class FactSource:
    """The message in which a fact was said.

    Attributes:
        conversation_id: The conversation.
        message_id: The message. The same message adds to the confidence of a fact once.
        sent_time: When it was sent; the fact holds since then.
    """

    conversation_id: Annotated[str, Size(512)] = ""
    message_id: Annotated[str, Size(512)] = ""
    sent_time: Time | None = None

    def to_proto(self) -> fact_pb2.FactSource:
        """The source on the wire."""
        source = fact_pb2.FactSource(conversation_id=self.conversation_id, message_id=self.message_id)
        if self.sent_time is not None:
            source.sent_time.CopyFrom(to_timestamp(self.sent_time))
        return source

    @classmethod
    def from_proto(cls, source: fact_pb2.FactSource) -> Self:
        """The source from the wire."""
        return cls(source.conversation_id, source.message_id, optional_time(source, "sent_time"))


@checked_fields
@view
@dataclass(frozen=True, init=False)
class Fact(View):
    """Something that holds of a user: `Fact("user", "lives in", "Berlin", exclusive=True)`. `print` shows a line.

    Attributes:
        subject: Whom or what it is about; `user` for the user.
        predicate: What it says of the subject.
        object: The rest of what it says.
        text: The fact in words: a search goes by it, and a context shows it. Empty: subject, predicate and object.
        confidence: How sure it is, above 0 to 1. It grows if the fact is said again.
        exclusive: Whether only one object holds at a time of this subject and predicate: another one ends this one. A
            fact that is said again so becomes exclusive, and ends what holds beside it.
        valid_from: From when on it holds; None in a write: since it was said.
        valid_to: From when on it no longer holds; None: it still does.
        extractor: What found it.
        id: Set by the server.
        user_id: Whose fact it is. Set by the server.
        sources: Where it was said, up to 16 messages. Set by the server.
        mentions: How many times it was said. Set by the server.
        record_time: Since when it is recorded so. Set by the server.
        cease_time: Since when it is no longer recorded so; None: it still is. Set by the server.
        corrects: The id of the fact that it corrects. Set by the server.
    """

    subject: str
    predicate: str
    object: str
    text: str
    confidence: float
    exclusive: bool
    valid_from: datetime | None
    valid_to: datetime | None
    extractor: str
    id: str = field(init=False)
    user_id: str = field(init=False)
    sources: tuple[FactSource, ...] = field(init=False)
    mentions: int = field(init=False)
    record_time: datetime | None = field(init=False)
    cease_time: datetime | None = field(init=False)
    corrects: str = field(init=False)

    def __init__(
        self,
        subject: Annotated[str, Name(512)],
        predicate: Annotated[str, Name(512)],
        object: Annotated[str, Name(4096)],  # noqa: A002 - the field's name
        *,
        text: Annotated[str, Size(8192)] = "",
        confidence: Annotated[float, Finite(above=0), Between(0, 1)] = 1.0,
        exclusive: bool = False,
        valid_from: Time | None = None,
        valid_to: Time | None = None,
        extractor: Annotated[str, Size(256)] = "",
    ) -> None:
        wire = fact_pb2.Fact(
            subject=subject,
            predicate=predicate,
            object=object,
            text=text,
            confidence=confidence,
            exclusive=exclusive,
            extractor=extractor,
        )
        if valid_from is not None:
            wire.valid_from.CopyFrom(to_timestamp(valid_from))
        if valid_to is not None:
            wire.valid_to.CopyFrom(to_timestamp(valid_to))
        self.__dict__["_wire"] = wire

    def __str__(self) -> str:
        text = self.text or f"{self.subject} {self.predicate} {self.object}"
        since = f", since {self.valid_from:%Y-%m-%d}" if self.valid_from else ""
        until = f", until {self.valid_to:%Y-%m-%d}" if self.valid_to else ""
        return f"{printable(text)}  (confidence {self.confidence:.2f}{since}{until})"

    def to_proto(self) -> fact_pb2.Fact:
        """The fact on the wire."""
        kept = self.__dict__.get("_wire")
        if isinstance(kept, fact_pb2.Fact):
            return kept
        return Fact(
            self.subject,
            self.predicate,
            self.object,
            text=self.text,
            confidence=self.confidence,
            exclusive=self.exclusive,
            valid_from=self.valid_from,
            valid_to=self.valid_to,
            extractor=self.extractor,
        ).to_proto()

    @classmethod
    def from_proto(cls, fact: fact_pb2.Fact) -> Self:
        """The fact from the wire, which must not change from then on."""
        return cls._of(fact)

    _decoders: ClassVar[Decoders] = {
        **unchanged("subject", "predicate", "object", "text", "confidence", "exclusive", "extractor"),
        **unchanged("id", "user_id", "mentions", "corrects"),
        "sources": lambda wire: tuple(map(FactSource.from_proto, wire.sources)),
        "valid_from": lambda wire: optional_time(wire, "valid_from"),
        "valid_to": lambda wire: optional_time(wire, "valid_to"),
        "record_time": lambda wire: optional_time(wire, "record_time"),
        "cease_time": lambda wire: optional_time(wire, "cease_time"),
    }


class ExtractedFacts(list[Fact]):
    """The facts that were found in what a user said. `print` shows a line of each.

    Attributes:
        ended: Facts on record that ended because the user says that they no longer hold.
        model_failure: Why patterns found them although the server has a chat model; empty: it found them, or there is
            none.
    """

    def __init__(self, facts: Iterable[Fact] = (), ended: Iterable[Fact] = (), model_failure: str = "") -> None:
        super().__init__(facts)
        self.ended = list(ended)
        self.model_failure = model_failure

    def __str__(self) -> str:
        lines = [*map(str, self), *(f"ended: {fact}" for fact in self.ended)] or ["no facts"]
        failure = [f"found by patterns: {printable(self.model_failure)}"] if self.model_failure else []
        return "\n".join([*lines, *failure])


@view
@dataclass(frozen=True)
class FactHit(View):
    """A fact that was found. `print` shows it as a line.

    Attributes:
        fact: The fact.
        score: From 0 to 1: how well it answers the query, by its vector and by its words.
    """

    fact: Fact
    score: float

    def __str__(self) -> str:
        return f"{self.score:.3f}  {self.fact}"

    @classmethod
    def from_proto(cls, hit: memory_service_pb2.FactHit) -> Self:
        """The hit from the wire, which must not change from then on."""
        return cls._of(hit)

    _decoders: ClassVar[Decoders] = {
        **unchanged("score"),
        "fact": lambda wire: Fact.from_proto(wire.fact),
    }


@dataclass(frozen=True, slots=True)
class FactSearchResult:
    """The facts that answer a text best, best first. `print` shows a line of each.

    Attributes:
        hits: The hits, best first.
        revision: The revision that the result shows.
        truncated: Whether hits are missing because the reply would be larger than 3 MiB.
        words_only: Whether words alone counted: there is no model, or it cannot be reached.
        pending: How many of the user's facts have no vector of the model, and are found by words alone.
        picked_by: The chat model that picked the facts, and in whose order they are; empty: none did.
        model_failure: Why the chat model did not pick; empty: it did, or was not asked.
    """

    hits: tuple[FactHit, ...]
    revision: int
    truncated: bool
    words_only: bool
    pending: int
    picked_by: str = ""
    model_failure: str = ""

    def __len__(self) -> int:
        """How many hits there are."""
        return len(self.hits)

    def __iter__(self) -> Iterator[FactHit]:
        """The hits."""
        return iter(self.hits)

    def __getitem__(self, position: int) -> FactHit:
        """The hit at a position."""
        return self.hits[position]

    def __str__(self) -> str:
        return "\n".join([*ranked(self.hits), *(["searched by words only"] if self.words_only else [])])

    @classmethod
    def from_proto(cls, response: memory_service_pb2.SearchFactsResponse) -> Self:
        """The result from the wire, which must not change from then on."""
        return cls(
            hits=tuple(map(FactHit.from_proto, response.hits)),
            revision=response.revision,
            truncated=response.truncated,
            words_only=response.index.words_only,
            pending=response.index.pending,
            picked_by=response.picked_by,
            model_failure=response.model_failure,
        )


@checked_fields
@dataclass(frozen=True, slots=True)
class StaticFact:
    """Something that holds for all users: `StaticFact("The office is open from 9 to 5")`.

    Attributes:
        content: The fact in words.
        id: Unique among the tenant's static facts; None in a write: the server makes one.
    """

    content: Annotated[str, Name(8192)]
    id: OptionalId | None = None

    def to_proto(self) -> fact_pb2.StaticFact:
        """The fact on the wire."""
        return fact_pb2.StaticFact(id=self.id or "", content=self.content)

    @classmethod
    def from_proto(cls, fact: fact_pb2.StaticFact) -> Self:
        """The fact from the wire."""
        return cls(fact.content, fact.id)


def fact_times(valid_at: datetime | None, recorded_at: datetime | None, *, at_any_time: bool) -> fact_pb2.FactTimes:
    """As of when facts are meant, on the wire."""
    if at_any_time and valid_at is not None:
        raise _refusals.invalid("valid_at", "is given beside at_any_time; give one, not both")
    times = fact_pb2.FactTimes(at_any_time=at_any_time)
    if valid_at is not None:
        times.valid_at.CopyFrom(to_timestamp(valid_at))
    if recorded_at is not None:
        times.recorded_at.CopyFrom(to_timestamp(recorded_at))
    return times
