"""Recollection: which messages a text or a vector brings back. It decides how to rank and embeds what is asked."""

from __future__ import annotations

from msgspec.structs import replace

from remora_server.domain.calls import Read
from remora_server.domain.errors import ModelUnavailable, ModelUnreachable, RemoraError
from remora_server.domain.models import PerTenant
from remora_server.domain.search import (
    Embedder,
    EmbeddingFailed,
    MessageIndex,
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
    """Searches of messages. Without the tenant's embedder, or while it makes no vectors, words alone find them."""

    def __init__(self, index: MessageIndex, embedders: PerTenant[Embedder | None]) -> None:
        self._index = index
        self._embedders = embedders

    def search(self, read: Read, query: SearchQuery) -> SearchResult:
        """Search by the query's text or the caller's vector; a vector selects the vector profile.

        Raises ModelUnavailable where the vector profile has only a text and there is no model, ModelUnreachable where
        that is not reached, and what the index does.
        """
        return self._index.search(read, self._ranked(read, query))

    def _ranked(self, read: Read, query: SearchQuery) -> SearchQuery:
        """The query with what its profile needs."""
        if query.vector is not None:
            return replace(query, text="", options=_weighted(replace(query.options, profile=Profile.VECTOR)))
        if query.options.profile is Profile.LEXICAL:
            query = replace(query, words_only=WordsOnly.PROFILE)
        else:
            query = _as_far_as_possible(self._embedded(read, query))
        return replace(query, options=_weighted(query.options))

    def _embedded(self, read: Read, query: SearchQuery) -> SearchQuery:
        """The query with the vector of its text, or why there is none. Like is compared with like: names do not count,
        unless the text is nothing else.
        """
        embedder = self._embedders.of(read.tenant_id)
        if embedder is None:
            return _without_vector(query, WordsOnly.NO_MODEL, ModelUnavailable())
        text = self._index.without_names(read, query.scope, query.text)
        try:
            made = _made(embedder, text if text.strip() else query.text, read.deadline)
        except EmbeddingFailed as failure:
            return _without_vector(query, WordsOnly.MODEL_UNREACHABLE, ModelUnreachable(str(failure), failure.wait))
        vector = QueryVector(embedder.model, made.values, made.pieces or b"")
        # What an embedder that fails has still to do does not come while a search waits.
        return replace(query, vector=vector, index_wait=0.0 if embedder.status().failure else query.index_wait)


def _made(embedder: Embedder, text: str, deadline: float | None) -> TextVector:
    """The vector of a text. Raises EmbeddingFailed where the embedder has none to give now."""
    made = embedder.embed_query(text, deadline)
    if not made.values:
        raise EmbeddingFailed("it refuses the query")
    return made


def _without_vector(query: SearchQuery, cause: WordsOnly, error: RemoraError) -> SearchQuery:
    """The query by words, where its profile has them. Raises the error where it has none."""
    if query.options.profile is Profile.VECTOR:
        raise error
    return replace(query, words_only=cause)


def _as_far_as_possible(query: SearchQuery) -> SearchQuery:
    """The query, by its other components where there are no word pieces to compare."""
    if query.options.profile is not Profile.HYBRID_LATE or (query.vector is not None and query.vector.pieces):
        return query
    return replace(query, options=replace(query.options, profile=Profile.HYBRID))


def _weighted(options: SearchOptions) -> SearchOptions:
    """The options with a weight for every component of the profile. Where another profile was asked for, the weights
    given may leave this one nothing: then it has its own.
    """
    given = {} if leave_nothing(options.profile, options.weights) else options.weights
    return replace(options, weights=weights_of(options.profile, given))
