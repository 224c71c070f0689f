"""Which way a search takes, by what is asked and what the server has."""

from __future__ import annotations

import pytest
from tests.domain.fake_recall import MISTYPED, NAME, REFUSED, FakeEmbedder, FakeIndex, vector_of

from remora.v1 import memory_service_pb2
from remora_server.domain.calls import Read
from remora_server.domain.errors import ModelUnavailable, ModelUnreachable
from remora_server.domain.models import PerTenant
from remora_server.domain.recollection import Recollection
from remora_server.domain.search import (
    UNASKED,
    WEIGHTS,
    EmbeddingFailed,
    OfTenant,
    Profile,
    QueryVector,
    SearchOptions,
    SearchQuery,
    WordsOnly,
    leave_nothing,
)

READ = Read("acme")


def search(
    embedder: FakeEmbedder | None, profile: Profile, vector: QueryVector | None = None, text: str = NAME + "tea"
) -> SearchQuery:
    return asked_for(embedder, SearchOptions(profile=profile), vector, text)


def asked_for(
    embedder: FakeEmbedder | None, options: SearchOptions, vector: QueryVector | None = None, text: str = NAME + "tea"
) -> SearchQuery:
    index = FakeIndex()
    query = SearchQuery(OfTenant(), text, vector, options, index_wait=0.0)
    Recollection(index, PerTenant(embedder)).search(READ, query)
    return index.queries[0]


@pytest.mark.parametrize("profile", [Profile.HYBRID, Profile.VECTOR])
def test_a_text_is_embedded_without_names_where_vectors_rank(profile: Profile) -> None:
    asked = search(FakeEmbedder(), profile)
    assert (asked.vector, asked.text, asked.options.profile) == (
        QueryVector("minilm", vector_of("tea")),
        NAME + "tea",
        profile,
    )


def test_a_text_of_names_alone_is_embedded_as_it_is() -> None:
    assert search(FakeEmbedder(), Profile.HYBRID, text=NAME).vector == QueryVector("minilm", vector_of(NAME))


@pytest.mark.parametrize("failure", [None, EmbeddingFailed("down")])
def test_words_that_the_model_does_not_know_may_be_typing_errors(failure: EmbeddingFailed | None) -> None:
    asked = search(FakeEmbedder(failure), Profile.HYBRID, text=MISTYPED)
    assert (asked.text, asked.doubtful) == (MISTYPED, (MISTYPED,))
    assert asked.vector == (None if failure else QueryVector("minilm", vector_of(MISTYPED)))


@pytest.mark.parametrize(("embedder", "profile"), [(None, Profile.HYBRID), (FakeEmbedder(), Profile.LEXICAL)])
def test_words_alone_are_searched_as_they_were_typed(embedder: FakeEmbedder | None, profile: Profile) -> None:
    assert search(embedder, profile, text=MISTYPED).doubtful == ()


def test_nobody_waits_for_messages_while_the_model_embeds_none() -> None:
    index, model = FakeIndex(), FakeEmbedder()
    query = SearchQuery(OfTenant(), "tea", None, SearchOptions(), index_wait=3.0)
    for model.told in ("", "down"):
        Recollection(index, PerTenant(model)).search(READ, query)
    assert [asked.index_wait for asked in index.queries] == [3.0, 0.0]
    assert all(asked.vector for asked in index.queries), "this one was kept"


def test_a_search_opens_its_scope_once() -> None:
    index = FakeIndex()
    query = SearchQuery(OfTenant(), "tea", None, SearchOptions(), index_wait=0.0)
    Recollection(index, PerTenant(FakeEmbedder())).search(READ, query)
    assert index.opened == 1


def test_words_alone_need_no_vector() -> None:
    assert search(FakeEmbedder(), Profile.LEXICAL).vector is None


def test_without_a_model_words_alone_rank() -> None:
    asked = search(None, Profile.HYBRID)
    assert (asked.vector, asked.options.profile) == (None, Profile.HYBRID)


NO_VECTOR = [(FakeEmbedder(EmbeddingFailed("down", 3.0)), "tea"), (FakeEmbedder(), REFUSED)]


@pytest.mark.parametrize("profile", [Profile.HYBRID, Profile.HYBRID_LATE])
@pytest.mark.parametrize(("model", "text"), NO_VECTOR)
def test_while_the_model_gives_no_vector_words_alone_rank(model: FakeEmbedder, text: str, profile: Profile) -> None:
    asked = search(model, profile, text=text)
    assert (asked.vector, asked.options.profile) == (None, Profile.HYBRID)
    assert asked.words_only is WordsOnly.MODEL_UNREACHABLE


@pytest.mark.parametrize(
    ("model", "text", "cause", "wait"), [(*NO_VECTOR[0], "down", 3.0), (*NO_VECTOR[1], "refuses the query", 0.0)]
)
def test_while_the_model_gives_no_vector_the_vector_profile_is_refused(
    model: FakeEmbedder, text: str, cause: str, wait: float
) -> None:
    with pytest.raises(ModelUnreachable, match=cause) as raised:
        search(model, Profile.VECTOR, text=text)
    assert raised.value.wait == wait


def test_why_words_alone_rank_is_told() -> None:
    assert search(None, Profile.HYBRID).words_only is WordsOnly.NO_MODEL
    assert search(FakeEmbedder(), Profile.LEXICAL).words_only is WordsOnly.PROFILE
    assert search(FakeEmbedder(), Profile.HYBRID).words_only is None


def test_each_tenant_has_its_own_model() -> None:
    index = FakeIndex()
    recollection = Recollection(index, PerTenant(None, {"acme": FakeEmbedder()}))
    query = SearchQuery(OfTenant(), "tea", None, SearchOptions(), index_wait=0.0)

    recollection.search(READ, query)
    recollection.search(Read("other"), query)

    assert [asked.vector for asked in index.queries] == [QueryVector("minilm", vector_of("tea")), None]


def test_without_a_model_the_vector_profile_is_refused() -> None:
    index = FakeIndex()
    query = SearchQuery(OfTenant(), "tea", None, SearchOptions(profile=Profile.VECTOR), index_wait=0.0)
    with pytest.raises(ModelUnavailable):
        Recollection(index, PerTenant(None)).search(READ, query)
    assert not index.opened


@pytest.mark.parametrize("profile", list(Profile))
@pytest.mark.parametrize("embedder", [None, FakeEmbedder()])
def test_a_vector_of_the_caller_selects_the_vector_profile(embedder: FakeEmbedder | None, profile: Profile) -> None:
    vector = QueryVector("theirs", b"....")
    asked = search(embedder, profile, vector)
    assert (asked.vector, asked.text, asked.options.profile) == (vector, "", Profile.VECTOR)


def test_word_pieces_are_compared_where_the_model_makes_them() -> None:
    asked = search(FakeEmbedder(late=True), Profile.HYBRID_LATE)
    assert asked.vector == QueryVector("minilm", vector_of("tea"), b"pieces")
    assert (asked.options.profile, asked.options.weights) == (Profile.HYBRID_LATE, WEIGHTS[Profile.HYBRID_LATE])


@pytest.mark.parametrize("embedder", [None, FakeEmbedder()])
def test_without_word_pieces_the_other_components_rank(embedder: FakeEmbedder | None) -> None:
    options = SearchOptions(profile=Profile.HYBRID_LATE, weights={"late": 1.0, "date": 0.0})
    asked = asked_for(embedder, options)
    assert asked.options.profile is Profile.HYBRID
    assert asked.options.weights == {**WEIGHTS[Profile.HYBRID], "date": 0.0}


@pytest.mark.parametrize("embedder", [None, FakeEmbedder()])
def test_without_word_pieces_weights_for_these_alone_leave_the_others_their_own(embedder: FakeEmbedder | None) -> None:
    weights = {name: float(name == "late") for name in WEIGHTS[Profile.HYBRID_LATE]}
    asked = asked_for(embedder, SearchOptions(profile=Profile.HYBRID_LATE, weights=weights))
    assert (asked.options.profile, asked.options.weights) == (Profile.HYBRID, WEIGHTS[Profile.HYBRID])


@pytest.mark.parametrize("profile", [Profile.HYBRID, Profile.HYBRID_LATE])
def test_components_that_pass_on_what_others_give_leave_nothing_without_these(profile: Profile) -> None:
    nothing = dict.fromkeys(WEIGHTS[profile], 0.0)
    assert leave_nothing(profile, nothing)
    for name in nothing:
        assert leave_nothing(profile, {**nothing, name: 1.0}) == (name in UNASKED)
        assert not leave_nothing(profile, {name: 0.0})
    assert not leave_nothing(profile, {})


@pytest.mark.parametrize("profile", [Profile.VECTOR, Profile.LEXICAL])
def test_a_profile_of_one_component_needs_no_weights(profile: Profile) -> None:
    assert not leave_nothing(profile, {})


def test_the_contract_has_every_weight_of_a_profile() -> None:
    fields = memory_service_pb2.Weights.DESCRIPTOR.fields_by_name
    assert set(WEIGHTS[Profile.HYBRID_LATE]) == set(fields)
    assert set(WEIGHTS[Profile.HYBRID]) == set(fields) - {"late"}
    assert set(WEIGHTS) == set(Profile)


@pytest.mark.parametrize("embedder", [None, FakeEmbedder()])
def test_a_hybrid_score_has_all_components_unless_asked_otherwise(embedder: FakeEmbedder | None) -> None:
    given = {"bm25": 2.0, "speaker": 0.0}
    own = WEIGHTS[Profile.HYBRID]
    assert asked_for(embedder, SearchOptions()).options.weights == own
    assert asked_for(embedder, SearchOptions(weights=given)).options.weights == {**own, **given}


@pytest.mark.parametrize("profile", [Profile.VECTOR, Profile.LEXICAL])
def test_weights_of_a_profile_that_has_none_have_no_effect(profile: Profile) -> None:
    assert asked_for(FakeEmbedder(), SearchOptions(profile=profile, weights={"bm25": 2.0})).options.weights == {}
