"""Which way a search takes, by what is asked and what the server has."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from remora_server.domain.calls import Read
from remora_server.domain.errors import ModelUnavailable
from remora_server.domain.recollection import Recollection
from remora_server.domain.search import (
    IndexState,
    OfTenant,
    Profile,
    QueryVector,
    SearchOptions,
    SearchQuery,
    SearchResult,
)

READ = Read("acme")


@dataclass
class Index:
    """Remembers what it is asked."""

    asked: list[SearchQuery] = field(default_factory=list)

    def search(self, read: Read, query: SearchQuery) -> SearchResult:
        self.asked.append(query)
        return SearchResult((), IndexState("", 0, words_only=query.vector is None), query.options.profile, 1)


class Model:
    """Embeds a text as its own bytes."""

    model = "bytes"
    dimension = 4

    def embed(self, texts: list[str]) -> list[bytes]:
        return [text.encode() for text in texts]


def search(embedder: Model | None, profile: Profile, vector: QueryVector | None = None) -> SearchQuery:
    index = Index()
    query = SearchQuery(OfTenant(), "tea", vector, SearchOptions(profile=profile), index_wait=0.0)
    Recollection(index, embedder).search(READ, query)
    return index.asked[0]


@pytest.mark.parametrize("profile", [Profile.HYBRID, Profile.VECTOR])
def test_a_text_is_embedded_where_vectors_rank(profile: Profile) -> None:
    asked = search(Model(), profile)
    assert (asked.vector, asked.text, asked.options.profile) == (QueryVector("bytes", b"tea"), "tea", profile)


def test_words_alone_need_no_vector() -> None:
    assert search(Model(), Profile.LEXICAL).vector is None


def test_without_a_model_words_alone_rank() -> None:
    asked = search(None, Profile.HYBRID)
    assert (asked.vector, asked.options.profile) == (None, Profile.HYBRID)


def test_without_a_model_the_vector_profile_is_refused() -> None:
    with pytest.raises(ModelUnavailable):
        search(None, Profile.VECTOR)


@pytest.mark.parametrize("profile", list(Profile))
@pytest.mark.parametrize("embedder", [None, Model()])
def test_a_vector_of_the_caller_selects_the_vector_profile(embedder: Model | None, profile: Profile) -> None:
    vector = QueryVector("theirs", b"....")
    asked = search(embedder, profile, vector)
    assert (asked.vector, asked.text, asked.options.profile) == (vector, "", Profile.VECTOR)
