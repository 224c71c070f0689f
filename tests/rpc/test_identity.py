"""Tokens and the tenants that they stand for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora_server.domain.errors import InvalidField, TenantMismatch, Unauthenticated
from remora_server.rpc.identity import Identity, OperatorToken, TokenFileError, Tokens

WORDS = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="#"), min_size=1)


@given(st.dictionaries(WORDS, WORDS, min_size=1), WORDS)
def test_every_token_of_a_file_names_its_tenant_and_no_other_does(tenants: dict[str, str], other: str) -> None:
    tokens = Tokens.parse(["# tokens", "", *(f"  {token}\t{tenant} " for token, tenant in tenants.items())])

    assert {token: tokens.tenant(f"Bearer {token}") for token in tenants} == tenants
    if other not in tenants:
        with pytest.raises(Unauthenticated):
            tokens.tenant(f"Bearer {other}")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["a t", "secret"], "line 2"),
        (["secret t x"], "line 1"),
        (["secret t", "secret u"], "line 2"),
        (["# secret"], "no token"),
        (["# x", "secret t\xe9n"], "line 2: the tenant is not printable ASCII"),
        (["secret " + "t" * 513], "line 1: the tenant has 513 bytes"),
        (["secret\xfc t"], "line 1: the token is not printable ASCII"),
        (["\ufeffsecret t"], "line 1: the token is not printable ASCII"),
        ([], "no token"),
    ],
)
def test_a_malformed_file_is_refused_without_naming_a_token(lines: list[str], words: str) -> None:
    with pytest.raises(TokenFileError, match=words) as refusal:
        Tokens.parse(lines)

    assert "secret" not in str(refusal.value)


def test_tokens_are_not_shown() -> None:
    assert "secret" not in repr(Identity(Tokens.parse(["secret t"])))


TOKENS = Tokens.parse(["secret acme"])
OPERATOR = OperatorToken.of("the operator")


def test_the_operator_names_any_tenant() -> None:
    identity = Identity(TOKENS, OPERATOR)
    shown = ("authorization", "bearer  the operator ")

    assert identity.is_operator([shown])
    assert identity.tenant([shown, ("remora-tenant", "other")]) == "other"
    assert identity.tenant([shown]) == "default"


def test_a_tenants_token_is_not_the_operators() -> None:
    identity = Identity(TOKENS, OPERATOR)
    own = ("authorization", "Bearer secret")

    assert not identity.is_operator([own])
    assert identity.tenant([own]) == identity.tenant([own, ("remora-tenant", "acme")]) == "acme"
    with pytest.raises(TenantMismatch, match="'other'"):
        identity.tenant([own, ("remora-tenant", "other")])
    with pytest.raises(Unauthenticated):
        identity.tenant([("authorization", "Bearer the operator's"), ("remora-tenant", "other")])


@pytest.mark.parametrize("tenant", ["t\xe9n", "a\tb", "\ufffd", "t" * 513])
def test_a_name_that_no_tenant_has_is_refused_and_not_taken_for_none(tenant: str) -> None:
    with pytest.raises(InvalidField, match="remora-tenant: "):
        Identity().tenant([("remora-tenant", tenant)])


def test_nobody_is_the_operator_of_a_server_without_one() -> None:
    assert not Identity().is_operator([("authorization", "Bearer ")])
    assert not Identity(TOKENS).is_operator([])
