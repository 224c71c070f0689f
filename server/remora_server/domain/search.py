"""Searching messages: what to ask, and what is found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from enum import Enum
from typing import Protocol, TypeAlias

from msgspec import Struct, field

from remora_server.domain.calls import Read
from remora_server.domain.filters import Filter
from remora_server.domain.models import ServedModel
from remora_server.domain.status import ModelStatus
from remora_server.domain.times import ANY_TIME, Between


class Profile(Enum):
    """How messages are ranked."""

    HYBRID = "hybrid"
    HYBRID_LATE = "hybrid_late"
    VECTOR = "vector"
    LEXICAL = "lexical"


_RULES = {
    "answer": 0.3,
    "next": 0.1,
    "speaker": 0.3,
    "temporal": 0.2,
    "date": 0.3,
    "named": 0.15,
    "passage": 0.2,
    "session": 0.3,
    "nearby": 0.15,
    "identifier": 0.6,
    "newer": 1.0,
    "recency": 0.3,
}

WEIGHTS: Mapping[Profile, Mapping[str, float]] = {
    Profile.HYBRID: {"cosine": 1.0, "bm25": 0.2, "exact": 0.8, **_RULES},
    Profile.HYBRID_LATE: {"cosine": 0.5, "late": 0.5, "bm25": 0.1, "exact": 0.8, **_RULES, "date": 0.4},
    Profile.VECTOR: {},
    Profile.LEXICAL: {},
}
"""Each profile's own weights, by component; a profile of one component has none.

Those of the hybrid ones are round on purpose: they were chosen on some conversations and not fitted further to these.
memory_service.proto, `Weights`, explains the components.
"""
UNASKED = frozenset({"answer", "next", "session", "nearby", "newer", "recency"})
"""Components that spread the scores of others, and the one that asks nothing of the query. Alone they rank nothing."""


def weights_of(profile: Profile, given: Mapping[str, float]) -> dict[str, float]:
    """A weight for every component of the profile: the one given, or its own."""
    own = WEIGHTS[profile]
    return {**own, **{name: weight for name, weight in given.items() if name in own}}


def leave_nothing(profile: Profile, given: Mapping[str, float]) -> bool:
    """Whether the weights given leave the profile nothing to rank by: no message would score above 0."""
    weights = weights_of(profile, given)
    return bool(weights) and not any(weights[name] for name in weights.keys() - UNASKED)


class MessageFilter(Struct, frozen=True):
    """Which messages are candidates: of which roles, sent and first stored when, with which attributes."""

    roles: tuple[str, ...] = ()
    sent: Between = ANY_TIME
    received: Between = ANY_TIME
    where: Filter | None = None


class InConversation(Struct, frozen=True):
    """One user's messages of one conversation; an empty user is the conversation's own."""

    conversation_id: str
    user_id: str = ""


class OfUser(Struct, frozen=True):
    """All messages of a user."""

    user_id: str


class OfTenant(Struct, frozen=True):
    """All messages of the tenant."""


Scope: TypeAlias = InConversation | OfUser | OfTenant


class SearchOptions(Struct, frozen=True):
    """How to rank and filter. `weights` replaces those of WEIGHTS, by component; with a `half_life`, in seconds,
    being recent counts.
    """

    k: int = 10
    profile: Profile = Profile.HYBRID
    threshold: float | None = None
    filter: MessageFilter = field(default_factory=MessageFilter)
    weights: Mapping[str, float] = field(default_factory=dict)
    half_life: float | None = None


class QueryVector(Struct, frozen=True):
    """A vector to search with, and the model of the vectors that it is compared to. Little-endian f32.

    `pieces` are the query's word pieces, as `TextVector` has them; empty where they are not to be used. Where a caller
    gave the vector, `field` is where the request has it.
    """

    model: str
    values: bytes
    pieces: bytes = b""
    field: str = "embedding"


class SearchQuery(Struct, frozen=True):
    """A search of messages: by text (empty: none), by the caller's vector, or both where the server embeds the text.

    `index_wait` is how many seconds to wait for messages that are not embedded yet. Messages in `exclude` and in
    `seen`, as (conversation uid, sequence), are no candidates; those in `exclude` pass nothing on to others either.
    `words_only` is why there is no vector. Each hit comes with as many messages before and after it as `around` says.
    """

    scope: Scope
    text: str
    vector: QueryVector | None
    options: SearchOptions
    index_wait: float
    exclude: tuple[tuple[int, int], ...] = ()
    seen: tuple[tuple[int, int], ...] = ()
    words_only: WordsOnly | None = None
    around: int = 0


class Component(Struct, frozen=True):
    """One summand of a score: value times weight."""

    name: str
    value: float
    weight: float


class Hit(Struct, frozen=True):
    """One message found; `encoded` is the message in wire form.

    `before` and `after` are its user's messages around it in the conversation, by sequence: see SearchQuery.
    """

    conversation_uid: int
    conversation_id: str
    sequence: int
    score: float
    components: tuple[Component, ...]
    encoded: bytes
    before: Sequence[bytes] = ()
    after: Sequence[bytes] = ()


class WordsOnly(Enum):
    """Why words alone rank."""

    PROFILE = "profile"
    NO_MODEL = "no_model"
    MODEL_UNREACHABLE = "model_unreachable"


class IndexState(Struct, frozen=True):
    """The state of a scope's index: the model of the vectors, and how many messages are still to get one of it.

    `words_only` says why words alone ranked; None where vectors did, too.
    """

    model: str
    pending: int
    words_only: WordsOnly | None


class Background(Struct, frozen=True):
    """What the scope of a search as a whole has of the query, for its hits to be compared with; of hybrid profiles.

    `messages` is how many there are, `whole` what the query's words weigh together (idf), `most` what those weigh
    that one message has, at most, and `cosine` the mean of all messages.
    """

    messages: float = 0.0
    whole: float = 0.0
    most: float = 0.0
    cosine: float = 0.0


class SearchResult(Struct, frozen=True):
    """Hits, best first; ties by conversation uid, then sequence."""

    hits: tuple[Hit, ...]
    index: IndexState
    profile: Profile
    revision: int
    background: Background = Background()


class TextVector(Struct, frozen=True):
    """What a model makes of a text: a vector of unit length, little-endian f32, and the text's word pieces for late
    interaction, as the engine writes them; None where they are not made.

    `values` are empty where the model refuses the text: it will make no vector of it.
    """

    values: bytes
    pieces: bytes | None = None


class EmbeddingFailed(Exception):
    """No vectors were made, of whatever text; later some may be. `wait` is after how many seconds at the earliest.

    The text says why, without what was to be embedded.
    """

    def __init__(self, cause: str, wait: float = 0.0) -> None:
        super().__init__(cause)
        self.wait = wait


class Embedder(Protocol):
    """Makes vectors of texts. `model` is the name that they bear."""

    @property
    def model(self) -> str: ...

    def status(self) -> ModelStatus: ...

    def embed(self, texts: Sequence[str]) -> list[TextVector]:
        """Embed in the background, without a deadline. Raises EmbeddingFailed."""

    def embed_now(self, texts: Sequence[str], deadline: float | None, /) -> list[TextVector]:
        """Embed for a caller who waits, before a deadline (of the monotonic clock). Raises EmbeddingFailed."""

    def embed_query(self, text: str, deadline: float | None, /) -> TextVector:
        """Embed a query. Fail early rather than late: the search goes on without the vector. Raises EmbeddingFailed."""


class OpenScope(Protocol):
    """A scope that is in memory."""

    def without_names(self, text: str) -> str:
        """The text without the names of those who speak in the scope, as the texts of its messages are embedded."""

    def search(self, query: SearchQuery) -> SearchResult:
        """Search. `query.vector` is set where vectors are to be used."""


class MessageIndex(Protocol):
    """Searches the messages of a store."""

    def open(self, read: Read, scope: Scope) -> AbstractContextManager[OpenScope]:
        """Have a scope in memory while it is searched. Entering raises ConversationNotFound, SearchTooLarge."""


class Unembedded(Struct, frozen=True):
    """A message with text that has no vector of its tenant's model.

    `revision` is the message's own. `text` is what is to be embedded: without the names of those who speak beside it.
    """

    tenant_id: str
    conversation_uid: int
    conversation_id: str
    user_id: str
    sequence: int
    revision: int
    text: str


class MessageVector(Struct, frozen=True):
    """What a model of the server made of a message: see TextVector."""

    message: Unembedded
    values: bytes
    pieces: bytes | None = None


class Lane(Enum):
    """Which of the messages that wait for a vector are taken."""

    WANTED = "wanted"
    """Those of scopes whose searches wait for them now."""
    ALL = "all"
    """All: new ones before those that were left behind by an earlier process, an import or another model."""


class Portion(Struct, frozen=True):
    """The largest group that is taken at once: no message is added once the group has so many characters of text."""

    messages: int
    characters: int

    def has_room_after(self, taken: Sequence[Unembedded]) -> bool:
        """Whether one more may be taken."""
        return len(taken) < self.messages and sum(len(message.text) for message in taken) < self.characters


class EmbeddingQueue(Protocol):
    """Where indexers find their work and leave it. Messages that came with the caller's embedding never wait."""

    def next_unembedded(self, lane: Lane, portion: Portion, timeout: float) -> list[Unembedded]:
        """Take the next messages that wait for a vector.

        Waits up to `timeout` seconds for the first. What is taken is not given again by this process.
        """

    def put_embeddings(self, vectors: Sequence[MessageVector]) -> None:
        """Record vectors, durably; ignored where the message has changed or gone. Raises StoreFull, StoreFailed."""


class EmbeddingQueues(Protocol):
    """The queue of each model that embeds messages."""

    def of(self, model: ServedModel) -> EmbeddingQueue:
        """The queue of a model. KeyError where it embeds no tenant's messages."""

    def dimension(self, model: ServedModel) -> int:
        """The dimension of the vectors that a model has made so far; 0 where there are none."""
