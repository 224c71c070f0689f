"""Searches: how they rank and filter, and what they find."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self, TypeAlias, TypedDict

from remora._bounds import Between, Finite, Items, Name
from remora._printable import ranked
from remora._times import TimeBounds, put_bounds, to_duration
from remora._views import Decoders, View, unchanged, view
from remora.embeddings import Embedding
from remora.filters import Where, where_to_proto
from remora.messages import Message
from remora.roles import RoleName
from remora.v1 import memory_service_pb2

Profile: TypeAlias = Literal["hybrid", "hybrid_late", "vector", "lexical"]
"""How messages are ranked: by the components of `Weights` (`late` only in hybrid_late), cosine, or words (BM25)."""

_PROFILES: Mapping[Profile | None, memory_service_pb2.Profile.ValueType] = {
    None: memory_service_pb2.PROFILE_UNSPECIFIED,
    "hybrid": memory_service_pb2.PROFILE_HYBRID,
    "hybrid_late": memory_service_pb2.PROFILE_HYBRID_LATE,
    "vector": memory_service_pb2.PROFILE_VECTOR,
    "lexical": memory_service_pb2.PROFILE_LEXICAL,
}
_PROFILE_NAMES = {value: name for name, value in _PROFILES.items() if name}

WordsOnlyReason: TypeAlias = Literal["profile", "no_model", "model_unreachable"]
"""Why a ranking is by words alone: the profile is, the tenant has no model, or it gave no vector in time."""

_REASONS: Mapping[int, WordsOnlyReason] = {
    memory_service_pb2.WORDS_ONLY_REASON_PROFILE: "profile",
    memory_service_pb2.WORDS_ONLY_REASON_NO_MODEL: "no_model",
    memory_service_pb2.WORDS_ONLY_REASON_MODEL_UNREACHABLE: "model_unreachable",
}


Weight: TypeAlias = Annotated[float, Between(0, 100)]


class Weights(TypedDict, total=False):
    """Weights of the components of a hybrid score, each from 0 to 100; unset: the profile's own.

    Experimental: in a minor version a weight may get another name, meaning or default, or may go.

    Attributes:
        cosine: Of the cosine of meanings. Default 1; 0.53 in hybrid_late.
        late: Of the meanings of single words. Default 0.47; only in hybrid_late.
        bm25: Of shared words. Default 0.2; 0.1 in hybrid_late.
        answer: Of following a matching question. Default 0.3.
        next: Of preceding a matching message. Default 0.1.
        speaker: Of a speaker whom the query names. Default 0.3.
        temporal: Of mentioning a time, if the query asks when. Default 0.2.
        date: Of being sent around a date that the query names. Default 0.3; 0.4 in hybrid_late.
        named: Of containing a name, if the query asks for one. Default 0.15.
        session: Of the best message around it in the same session. Default 0.3.
        passage: Of the words of the message and its neighbours together. Default 0.2.
        nearby: Of the best of its neighbours. Default 0.15.
        exact: Of having all words of the query. Default 0.8.
        identifier: Of having the identifiers that the query names: numbers, codes, files, addresses. Default 0.6.
        newer: Of saying later what now holds of what one of the best says. Default 1.
        recency: Of being recent, with `recency_half_life`. Default 0.3.
    """

    cosine: Weight
    late: Weight
    bm25: Weight
    answer: Weight
    next: Weight
    speaker: Weight
    temporal: Weight
    date: Weight
    named: Weight
    session: Weight
    passage: Weight
    nearby: Weight
    exact: Weight
    identifier: Weight
    newer: Weight
    recency: Weight


Query: TypeAlias = Annotated[str, Name(32_768)]
"""A text to search for, 1 byte to 32 KiB."""


class SearchOptions(TimeBounds, total=False):
    """How a search ranks and filters; the server chooses what is left out.

    Attributes:
        k: How many hits at most, 1 to 1,000. Default 10. Of a search, on each page.
        profile: How messages are ranked: `hybrid` (the default), `hybrid_late`, `vector` or `lexical`.
        threshold: Only hits with at least this score, on the profile's own scale.
        weights: The weights of the components, as in `Weights`; only for the hybrid profiles.
        recency_half_life: In how many seconds a message loses half of what it gets for being recent, counted from the
            newest message: `timedelta(days=30).total_seconds()`. Without it, being recent counts for nothing. Only for
            the hybrid profiles.
        roles: Only messages of these roles, at most 16.
        where: Only messages whose attributes match: a dict of attributes and their values, or a `Filter`, or several,
            which must all hold.
        sent_after: Only messages sent after this time, by the callers' clocks.
        sent_before: Only messages sent before this time, by the callers' clocks.
        received_after: Only messages that the server first stored after this time.
        received_before: Only messages that the server first stored before this time.
    """

    k: Annotated[int, Between(1, 1000)]
    profile: Profile
    threshold: Annotated[float, Finite()]
    weights: Weights
    recency_half_life: Annotated[float, Between(0.001, 3_155_760_000)]
    roles: Annotated[Collection[RoleName], Items(16)]
    where: Where


def options_to_proto(options: SearchOptions) -> memory_service_pb2.SearchOptions:
    """The options on the wire."""
    where = where_to_proto(options.get("where", ()))
    message_filter = memory_service_pb2.MessageFilter(roles=options.get("roles", ()), where=where)
    put_bounds(options, message_filter)
    half_life = options.get("recency_half_life")
    return memory_service_pb2.SearchOptions(
        k=options.get("k", 0),
        profile=_PROFILES[options.get("profile")],
        threshold=options.get("threshold"),
        weights=memory_service_pb2.Weights(**options["weights"]) if "weights" in options else None,
        filter=message_filter,
        recency_half_life=None if half_life is None else to_duration(half_life),
    )


@dataclass(frozen=True, slots=True)
class Component:
    """One part of a score: `similarity` in the vector profile, else named as in `Weights`.

    Attributes:
        name: What it measures.
        value: Its value.
        weight: Its weight: 0 to 100.
    """

    name: str
    value: float
    weight: float


@view
@dataclass(frozen=True)
class Hit(View):
    """One message found. `print` shows it as a line.

    Attributes:
        message: The message.
        conversation_id: Its conversation.
        score: On the profile's own scale.
        components: With `explain`: the parts; the sum of their values times their weights is the score.
    """

    message: Message
    conversation_id: str
    score: float
    components: tuple[Component, ...]

    def __str__(self) -> str:
        return f"{self.score:.3f}  {self.message}"

    @classmethod
    def from_proto(cls, hit: memory_service_pb2.Hit) -> Self:
        """The hit from the wire, which must not change from then on."""
        return cls._of(hit)

    _decoders: ClassVar[Decoders] = {
        **unchanged("conversation_id", "score"),
        "message": lambda wire: Message.from_proto(wire.message),
        "components": lambda wire: tuple(Component(part.name, part.value, part.weight) for part in wire.components),
    }


@dataclass(frozen=True, slots=True)
class IndexState:
    """The state of the index, and how it was used.

    Attributes:
        model: The model of the vectors; empty if there is none.
        pending: How many messages wait for a vector of the tenant's model and are found by words only until then.
        words_only: Whether the ranking is by words alone.
        words_only_reason: Why it is; None if it is not.
    """

    model: str
    pending: int
    words_only: bool
    words_only_reason: WordsOnlyReason | None = None

    @classmethod
    def from_proto(cls, index: memory_service_pb2.IndexState) -> Self:
        """The state from the wire."""
        return cls(index.model, index.pending, index.words_only, _REASONS.get(index.words_only_reason))


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The hits of a search, best first. `print` shows a line of each.

    Attributes:
        hits: The hits, best first.
        profile: The profile that ranked.
        index: The state of the index, and how it was used.
        revision: The revision that the result shows.
        truncated: Whether the last hits were left out because the reply would be larger than 3 MiB; the next page has
            them.
        next_page_token: The `page_token` of the next page, with the same query and options; empty at the end, which is
            after 1,000 hits at the latest.
        receipt_id: The receipt of this page, for `Remora.receipts`; empty if it left none.
    """

    hits: tuple[Hit, ...]
    profile: Profile
    index: IndexState
    revision: int
    truncated: bool = False
    next_page_token: str = ""
    receipt_id: str = ""

    def __getitem__(self, position: int) -> Hit:
        return self.hits[position]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __str__(self) -> str:
        why = self.index.words_only_reason
        is_unwanted = why in ("no_model", "model_unreachable")
        return "\n".join([*ranked(self.hits), *([f"searched by words only: {why}"] if is_unwanted else [])])

    @classmethod
    def from_proto(cls, response: memory_service_pb2.SearchMessagesResponse) -> Self:
        """The result from the wire."""
        return cls(
            hits=tuple(Hit.from_proto(hit) for hit in response.hits),
            profile=_PROFILE_NAMES.get(response.profile, "hybrid"),
            index=IndexState.from_proto(response.index),
            revision=response.revision,
            truncated=response.truncated,
            next_page_token=response.next_page_token,
            receipt_id=response.receipt_id,
        )


def recall_to_proto(recall: bool | SearchOptions) -> memory_service_pb2.SearchOptions | None:
    """The options by which a context recalls; None if it does not."""
    if recall is False:
        return None
    return options_to_proto({} if recall is True else recall)


def search_request(
    query: Query | Embedding, options: SearchOptions, *, explain: bool, index_wait: float | None, page_token: str
) -> memory_service_pb2.SearchMessagesRequest:
    """A request for a text or a vector, without its scope."""
    request = memory_service_pb2.SearchMessagesRequest(
        options=options_to_proto(options),
        explain=explain,
        page_token=page_token,
        index_wait=None if index_wait is None else to_duration(index_wait),
    )
    if isinstance(query, str):
        request.text = query
    else:
        request.embedding.CopyFrom(query.to_proto())
    return request
