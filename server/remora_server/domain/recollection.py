"""Recollection: which messages a text or a vector brings back. It decides how to rank and embeds what is asked."""

from __future__ import annotations

from dataclasses import replace

from remora_server.domain.calls import Read
from remora_server.domain.errors import ModelUnavailable
from remora_server.domain.search import (
    WEIGHTS,
    Embedder,
    MessageIndex,
    Profile,
    QueryVector,
    SearchOptions,
    SearchQuery,
    SearchResult,
)


class Recollection:
    """Searches of messages. Without an embedder, words alone find them."""

    def __init__(self, index: MessageIndex, embedder: Embedder | None) -> None:
        self._index = index
        self._embedder = embedder

    def search(self, read: Read, query: SearchQuery) -> SearchResult:
        """Search by the query's text or the caller's vector; a vector selects the vector profile.

        Raises ModelUnavailable where the vector profile has only a text and there is no model, and what the index does.
        """
        return self._index.search(read, self._ranked(read, query))

    def _ranked(self, read: Read, query: SearchQuery) -> SearchQuery:
        """The query with what its profile needs."""
        if query.vector is not None:
            return replace(query, text="", options=_weighted(replace(query.options, profile=Profile.VECTOR)))
        if query.options.profile is not Profile.LEXICAL:
            query = _as_far_as_possible(replace(query, vector=self._embed(read, query)))
        return replace(query, options=_weighted(query.options))

    def _embed(self, read: Read, query: SearchQuery) -> QueryVector | None:
        """The vector of the query's text without names: like is compared with like."""
        if self._embedder is not None:
            text = self._index.without_names(read, query.scope, query.text)
            [made] = self._embedder.embed([text])
            return QueryVector(self._embedder.model, made.values, made.pieces or b"")
        if query.options.profile is Profile.VECTOR:
            raise ModelUnavailable
        return None


def _as_far_as_possible(query: SearchQuery) -> SearchQuery:
    """The query, by its other components where there are no word pieces to compare."""
    if query.options.profile is not Profile.HYBRID_LATE or (query.vector is not None and query.vector.pieces):
        return query
    return replace(query, options=replace(query.options, profile=Profile.HYBRID))


def _weighted(options: SearchOptions) -> SearchOptions:
    """The options with a weight for every component of the profile."""
    own = WEIGHTS[options.profile]
    given = {name: weight for name, weight in options.weights.items() if name in own}
    return replace(options, weights={**own, **given})
