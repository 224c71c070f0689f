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
    Profile.HYBRID_LATE: {"cosine": 0.53, "late": 0.47, "bm25": 0.1, "exact": 0.8, **_RULES, "date": 0.4},
    Profile.VECTOR: {},
    Profile.LEXICAL: {},
}
"""Each profile's own weights, by component; a profile of one component has none.

The weights of the hybrid profiles are round on purpose, so that they do not fit the conversations on which they were
chosen too closely.
memory_service.proto, `Weights`, explains the components.
"""
UNASKED = frozenset({"answer", "next", "session", "nearby", "newer", "recency"})
"""Components that only pass on the scores of others, and the one that ignores the query. Alone they rank nothing."""


def weights_of(profile: Profile, given: Mapping[str, float]) -> dict[str, float]:
    """A weight for every component of the profile: the one given, or its own."""
    own = WEIGHTS[profile]
    return {**own, **{name: weight for name, weight in given.items() if name in own}}


def leave_nothing(profile: Profile, given: Mapping[str, float]) -> bool:
    """Whether the given weights let no message score above 0."""
    weights = weights_of(profile, given)
    return bool(weights) and not any(weights[name] for name in weights.keys() - UNASKED)


class MessageFilter(Struct, frozen=True):
    """Which messages are candidates: by role, sent time, create time and attributes."""

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
    """How to rank and filter. `weights` replace those of WEIGHTS, by component. With a `half_life`, in seconds, recent
    messages score more.
    """

    k: int = 10
    profile: Profile = Profile.HYBRID
    threshold: float | None = None
    filter: MessageFilter = field(default_factory=MessageFilter)
    weights: Mapping[str, float] = field(default_factory=dict)
    half_life: float | None = None


class QueryVector(Struct, frozen=True):
    """A vector to search with, and the model of the vectors that it is compared to. Little-endian f32.

    `pieces` are the query's word pieces, as in `TextVector`; empty if they are not used. If a caller gave the vector,
    `field` is the field of the request.
    """

    model: str
    values: bytes
    pieces: bytes = b""
    field: str = "embedding"


class SearchQuery(Struct, frozen=True):
    """A search of messages: by text (empty: none), by the caller's vector, or by both if the server embeds the text.

    `index_wait` is the longest wait in seconds for messages that are not embedded yet. Messages in `exclude` and in
    `seen`, as (conversation uid, sequence), are not candidates; those in `exclude` pass nothing on to others either.
    Messages of `without_roles` are not candidates. `words_only` is why there is no vector. `around` says how many
    messages before and after each hit come with it. `doubtful` are the words of the text, in lower case, that may be
    typing errors; `source`, as (conversation uid, sequence), is the message whose text it is.
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
    without_roles: tuple[str, ...] = ()
    doubtful: tuple[str, ...] = ()
    source: tuple[int, int] | None = None


class Component(Struct, frozen=True, gc=False):
    """One summand of a score: value times weight."""

    name: str
    value: float
    weight: float


class Side(Protocol):
    """The messages on one side of a hit, by sequence. Each is copied out of the engine when it is looked at."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> bytes: ...


class Hit(Struct, frozen=True, gc=False):
    """One message found; `encoded` is the message in wire form.

    `before` and `after` are its user's messages around it in the conversation, by sequence: see SearchQuery.
    """

    conversation_uid: int
    conversation_id: str
    sequence: int
    score: float
    components: tuple[Component, ...]
    encoded: bytes
    before: Side = ()
    after: Side = ()


class WordsOnly(Enum):
    """Why the search goes by words alone."""

    PROFILE = "profile"
    NO_MODEL = "no_model"
    MODEL_UNREACHABLE = "model_unreachable"


class IndexState(Struct, frozen=True):
    """The state of a scope's index: the model of the vectors, and how many messages wait for one.

    `words_only` says why the search went by words alone; None if it used vectors.
    """

    model: str
    pending: int
    words_only: WordsOnly | None


class Background(Struct, frozen=True):
    """The background of a search with a hybrid profile, with which its hits are compared.

    `messages` is the number of messages in the scope, `whole` the weight of all words of the query (idf), `most` the
    greatest weight of the query's words in one message, and `cosine` the mean cosine of all messages.
    """

    messages: float = 0.0
    whole: float = 0.0
    most: float = 0.0
    cosine: float = 0.0


class SearchResult(Struct, frozen=True):
    """Hits, best first; ties by conversation uid, then sequence. `user_id` is whose messages were searched, empty for
    the tenant's; `uid` is that of the conversation that was searched, 0 if it was not one.
    """

    hits: tuple[Hit, ...]
    index: IndexState
    profile: Profile
    revision: int
    background: Background = Background()
    user_id: str = ""
    uid: int = 0


class TextVector(Struct, frozen=True):
    """A model's output for a text: a vector of unit length, little-endian f32, and the text's word pieces for late
    interaction, as the engine writes them; None if they are not made.

    `values` are empty if the model refuses the text, which then never gets a vector.
    """

    values: bytes
    pieces: bytes | None = None


class EmbeddingFailed(Exception):
    """The model cannot make vectors now, whatever the text. `wait` is the least pause in seconds before a retry.

    The message says why, without the texts.
    """

    def __init__(self, cause: str, wait: float = 0.0) -> None:
        super().__init__(cause)
        self.wait = wait


class Embedder(Protocol):
    """Makes vectors of texts. `model` is the name of the vectors."""

    @property
    def model(self) -> str: ...

    def status(self) -> ModelStatus: ...

    def embed(self, texts: Sequence[str]) -> list[TextVector]:
        """Embed in the background, without a deadline. Raises EmbeddingFailed."""

    def embed_now(self, texts: Sequence[str], deadline: float | None, /) -> list[TextVector]:
        """Embed for a caller who waits, before a deadline (of the monotonic clock). Raises EmbeddingFailed."""

    def embed_query(self, text: str, deadline: float | None, /) -> TextVector:
        """Embed a query, and fail early, because the search can go on without the vector. Raises EmbeddingFailed."""

    def unknown_words(self, text: str, /) -> list[str]:
        """The words of a text that the model does not know, in lower case: some are typing errors. Empty where it is
        not known which words it knows.
        """


class OpenScope(Protocol):
    """A scope that is in memory."""

    def without_names(self, text: str) -> str:
        """The text without the names of the scope's speakers. The texts of messages are embedded without them, too."""

    def search(self, query: SearchQuery) -> SearchResult:
        """Search. `query.vector` is set where vectors are to be used."""


class MessageIndex(Protocol):
    """Searches the messages of a store."""

    def open(self, read: Read, scope: Scope) -> AbstractContextManager[OpenScope]:
        """Have a scope in memory while it is searched. Entering raises ConversationNotFound, SearchTooLarge."""


class Unembedded(Struct, frozen=True):
    """A message with text that has no vector of its tenant's model.

    `revision` is the message's own. `text` is the text to embed, without the names of the speakers around it.
    """

    tenant_id: str
    conversation_uid: int
    conversation_id: str
    user_id: str
    sequence: int
    revision: int
    text: str


class MessageVector(Struct, frozen=True):
    """A model's output for a message: see TextVector."""

    message: Unembedded
    values: bytes
    pieces: bytes | None = None


class Lane(Enum):
    """Which of the messages that wait for a vector are taken."""

    WANTED = "wanted"
    """Messages of scopes for which a search waits now."""
    ALL = "all"
    """All messages. New ones come before those that an earlier process, an import or a change of the model left behind.
    """


class Portion(Struct, frozen=True):
    """The largest group that is taken at once. No message is added once the group has this many characters of text."""

    messages: int
    characters: int

    def has_room_after(self, taken: Sequence[Unembedded]) -> bool:
        """Whether one more may be taken."""
        return len(taken) < self.messages and sum(len(message.text) for message in taken) < self.characters


class EmbeddingQueue(Protocol):
    """Where indexers take messages and put vectors. Messages that came with the caller's embedding never wait."""

    def next_unembedded(self, lane: Lane, portion: Portion, timeout: float) -> list[Unembedded]:
        """Take the next messages that wait for a vector.

        Waits up to `timeout` seconds for the first one. Messages that were taken are not given again by this process.
        """

    def put_embeddings(self, vectors: Sequence[MessageVector]) -> None:
        """Record vectors durably; ignored if the message has changed or is deleted. Raises StoreFull, StoreFailed."""


class EmbeddingQueues(Protocol):
    """The queue of each model that embeds messages."""

    def of(self, model: ServedModel) -> EmbeddingQueue:
        """The queue of a model. Raises KeyError if it embeds no tenant's messages."""

    def dimension(self, model: ServedModel) -> int:
        """The dimension of the vectors that a model has made so far; 0 if there are none."""
