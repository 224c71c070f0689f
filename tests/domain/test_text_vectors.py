"""The vector of a text that is searched for, by the model of the tenant."""

from __future__ import annotations

import pytest
from tests.domain.fake_recall import REFUSED, FakeEmbedder, vector_of

from remora_server.domain.calls import Read
from remora_server.domain.errors import InvalidField, ModelUnavailable, ModelUnreachable
from remora_server.domain.models import PerTenant
from remora_server.domain.search import Embedder, EmbeddingFailed
from remora_server.domain.text_vectors import TextVectors

READ = Read("acme")


def vectors_by(embedder: Embedder | None) -> TextVectors:
    return TextVectors(PerTenant(None, {"acme": embedder}))


def test_a_text_has_the_vector_of_its_tenants_model() -> None:
    assert vectors_by(FakeEmbedder()).of(READ, "night train") == vector_of("night train")


def test_a_tenant_without_a_model_gets_none() -> None:
    with pytest.raises(ModelUnavailable):
        vectors_by(FakeEmbedder()).of(Read("another"), "night train")


def test_a_model_that_fails_now_says_when_to_come_again() -> None:
    with pytest.raises(ModelUnreachable) as raised:
        vectors_by(FakeEmbedder(EmbeddingFailed("it is down", 3.0))).of(READ, "night train")

    assert raised.value.wait == 3.0


def test_a_text_that_the_model_refuses_is_named() -> None:
    with pytest.raises(InvalidField) as raised:
        vectors_by(FakeEmbedder()).of(READ, REFUSED)

    assert raised.value.field == "text"
