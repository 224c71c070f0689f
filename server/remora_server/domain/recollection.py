"""Recollection: finds messages by a text or a vector. It chooses the ranking and embeds the query."""

from __future__ import annotations

from msgspec.structs import replace

from remora_server.domain.calls import Read
from remora_server.domain.errors import ModelUnavailable, ModelUnreachable
from remora_server.domain.models import PerTenant
from remora_server.domain.search import (
    Embedder,
    EmbeddingFailed,
    MessageIndex,
    OpenScope,
    Profile,
    QueryVector,
    SearchOptions,
    SearchQuery,
    SearchResult,
    TextVector,
    WordsOnly,
    leave_nothing,
    weights_of,
)


class Recollection:
    """Searches messages, by words alone if the tenant has no embedder or this makes no vectors now."""

    def __init__(self, index: MessageIndex, embedders: PerTenant[Embedder | None]) -> None:
        self._index = index
        self._embedders = embedders

    def search(self, read: Read, query: SearchQuery) -> SearchResult:
        """Search by the query's text or the caller's vector; a vector selects the vector profile.

        Raises ModelUnavailable if the vector profile has only a text and there is no model, ModelUnreachable if the
        model is not reached, and the errors of the index.
        """
        if query.vector is not None:
            query = replace(query, text="", options=replace(query.options, profile=Profile.VECTOR))
        embedder = self._embedder(read, query)
        with self._index.open(read, query.scope) as scope:
            return scope.search(_ranked(query, embedder, scope, read.deadline))

    def _embedder(self, read: Read, query: SearchQuery) -> Embedder | None:
        """The embedder of the query's text, or None. Raises ModelUnavailable if the profile needs one."""
        if query.vector is not None or query.options.profile is Profile.LEXICAL:
            return None
        embedder = self._embedders.of(read.tenant_id)
        if embedder is None and query.options.profile is Profile.VECTOR:
            raise ModelUnavailable
        return embedder


def _ranked(query: SearchQuery, embedder: Embedder | None, scope: OpenScope, deadline: float | None) -> SearchQuery:
    """The query with what its profile needs."""
    if query.vector is None:
        query = _embedded(query, embedder, scope, deadline)
        query = _as_far_as_possible(_doubting(query, embedder))
    return replace(query, options=_weighted(query.options))


def _embedded(query: SearchQuery, embedder: Embedder | None, scope: OpenScope, deadline: float | None) -> SearchQuery:
    """The query with the vector of its text, or why there is none. Names are stripped, as in the texts of messages,
    unless nothing else is left.
    """
    if embedder is None:
        is_wanted = query.options.profile is not Profile.LEXICAL
        return replace(query, words_only=WordsOnly.NO_MODEL if is_wanted else WordsOnly.PROFILE)
    text = scope.without_names(query.text)
    try:
        made = _made(embedder, text if text.strip() else query.text, deadline)
    except EmbeddingFailed as failure:
        if query.options.profile is Profile.VECTOR:
            raise ModelUnreachable(str(failure), failure.wait) from failure
        return replace(query, words_only=WordsOnly.MODEL_UNREACHABLE)
    vector = QueryVector(embedder.model, made.values, made.pieces or b"")
    # A failing embedder will not make the missing vectors while a search waits.
    return replace(query, vector=vector, index_wait=0.0 if embedder.status().failure else query.index_wait)


def _doubting(query: SearchQuery, embedder: Embedder | None) -> SearchQuery:
    """The query with its words that may be typing errors. Its vector is that of the text as it was typed."""
    return replace(query, doubtful=tuple(embedder.unknown_words(query.text))) if embedder else query


def _made(embedder: Embedder, text: str, deadline: float | None) -> TextVector:
    """The vector of a text. Raises EmbeddingFailed if the embedder cannot make one now."""
    made = embedder.embed_query(text, deadline)
    if not made.values:
        raise EmbeddingFailed("it refuses the query")
    return made


def _as_far_as_possible(query: SearchQuery) -> SearchQuery:
    """The query, with only its other components if there are no word pieces to compare."""
    if query.options.profile is not Profile.HYBRID_LATE or (query.vector is not None and query.vector.pieces):
        return query
    return replace(query, options=replace(query.options, profile=Profile.HYBRID))


def _weighted(options: SearchOptions) -> SearchOptions:
    """The options with a weight for every component of the profile. Weights for another profile may all be zero for
    this one; then it uses its own.
    """
    given = {} if leave_nothing(options.profile, options.weights) else options.weights
    return replace(options, weights=weights_of(options.profile, given))
