"""Names in certificates and the tenants that they stand for."""

from __future__ import annotations

from pathlib import Path

import pytest

from remora_server.domain.errors import TenantMismatch, Unauthenticated
from remora_server.rpc.client_certificates import CertificateTenants, TenantFileError
from remora_server.rpc.identity import Identity, OperatorToken, Tokens

URI = "spiffe://example.org/Agent"
TENANTS = CertificateTenants.parse(["# agents", "", "Agent.Example acme", f"{URI} umbrella", "other.example acme"])


@pytest.mark.parametrize(
    ("names", "tenant"),
    [
        (["agent.example"], "acme"),
        ([URI], "umbrella"),
        ([URI.lower()], None),
        (["agent.example", "other.example"], "acme"),
        (["agent.example", "unknown.example"], "acme"),
        (["agent.example", URI], None),
        (["x.agent.example"], None),
        ([], None),
    ],
)
def test_a_certificate_has_the_tenant_of_its_names_if_they_agree(names: list[str], tenant: str | None) -> None:
    assert TENANTS.tenant(names) == tenant


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["a t", "b"], "line 2"),
        (["a t x"], "line 1"),
        (["a t", "A u"], "line 2"),
        (["a " + "t" * 513], "line 1: the tenant has 513 bytes"),
        (["# a"], "no name"),
    ],
)
def test_a_malformed_file_is_refused(lines: list[str], words: str) -> None:
    with pytest.raises(TenantFileError, match=words):
        CertificateTenants.parse(lines)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(TenantFileError, match=str(tmp_path / "none")):
        CertificateTenants.read(tmp_path / "none")


def test_a_connection_that_needed_no_certificate_is_told_as_without_any() -> None:
    identity = Identity(certificates=TENANTS)

    assert identity.tenant([("remora-tenant", "any")]) == "any"
    with pytest.raises(Unauthenticated):
        identity.tenant([("remora-tenant", "any")], ["unknown.example"])


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ([], "no tenant, because it has no DNS name and no URI"),
        (["a.example"], r"no name with a tenant \(a.example\) in the file of the server's --tls-client-tenants"),
        (["a", "b", "c"], r"no name with a tenant \(a, b, c\)"),
        (["a", "b", "c", "d", "e"], r"no name with a tenant \(a, b, c, \.\.\.\)"),
        (["agent.example", URI], rf"names of different tenants \(agent.example, {URI}\)"),
    ],
)
def test_a_certificate_without_one_tenant_is_told_why_and_of_no_token(names: list[str], said: str) -> None:
    identity = Identity(certificates=TENANTS)

    with pytest.raises(Unauthenticated, match=f"^the client certificate has {said}") as refused:
        identity.tenant([], names)

    assert "token" not in str(refused.value)


def test_a_name_of_another_tenant_than_the_certificates_is_refused_and_told_of_no_token() -> None:
    identity = Identity(certificates=TENANTS)
    said = (
        "the client certificate is not of the tenant 'umbrella': leave the name out, or give that tenant's client cert"
    )

    with pytest.raises(TenantMismatch, match=f"^{said}") as refused:
        identity.tenant([("remora-tenant", "umbrella")], ["agent.example"])

    assert "token" not in str(refused.value)


def test_a_certificate_that_stands_in_for_a_token_is_what_a_refusal_names() -> None:
    identity = Identity(Tokens.parse(["secret acme"]), certificates=TENANTS)

    with pytest.raises(TenantMismatch, match=r"^the client certificate is not of the tenant 'umbrella'"):
        identity.tenant([("remora-tenant", "umbrella")], ["agent.example"])
    with pytest.raises(TenantMismatch, match=r"^the token is not of the tenant 'umbrella'"):
        identity.tenant([("authorization", "Bearer secret"), ("remora-tenant", "umbrella")], ["agent.example"])


def test_the_operator_needs_no_tenant_of_its_certificate() -> None:
    identity = Identity(operator=OperatorToken.of("secret"), certificates=TENANTS)

    assert identity.tenant([("authorization", "Bearer secret"), ("remora-tenant", "any")], ["unknown"]) == "any"


def test_a_token_and_a_certificate_of_two_tenants_are_refused() -> None:
    identity = Identity(Tokens.parse(["secret umbrella"]), certificates=TENANTS)

    with pytest.raises(
        TenantMismatch, match=r"^the client certificate is not of the tenant 'umbrella': leave the token out"
    ):
        identity.tenant([("authorization", "Bearer secret")], ["agent.example"])
