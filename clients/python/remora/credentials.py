"""The metadata that identifies the caller: the token and the tenant that are given, else those of the environment."""

import os
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from remora import _refusals
from remora._bounds import Name, NotBlank, Secret

TOKEN_VARIABLE = "REMORA_TOKEN"  # noqa: S105 - a variable's name
TENANT_VARIABLE = "REMORA_TENANT"


@dataclass(frozen=True, slots=True)
class Sendable:
    """Printable ASCII, at least one character: what metadata can hold. Refusals do not show it: a token is a secret."""

    def require(self, value: str, field: str) -> None:
        """Raises InvalidFieldError for anything else."""
        if not value:
            raise _refusals.invalid(field, "is empty; give one, or leave it out")
        if not value.isascii() or not value.isprintable():
            raise _refusals.invalid(field, "must be printable ASCII")


Token: TypeAlias = Annotated[str, Secret(), Sendable()]
"""A bearer token."""
_TENANT_FORMS = (Sendable(), Name(512), NotBlank())
Tenant: TypeAlias = Annotated[str, Sendable(), Name(512), NotBlank()]
"""The name of a tenant: printable ASCII, 1 to 512 bytes, not white space alone."""


def resolve_credentials(token: str | None, tenant: str | None) -> list[tuple[str, str]]:
    """The metadata of a token and a tenant, of which $REMORA_TOKEN and $REMORA_TENANT stand for one that is not given.

    Beside a given token, $REMORA_TENANT is not read; an empty variable is as good as none. Raises InvalidFieldError for
    a variable that cannot be sent.
    """
    if token is None:
        tenant = tenant or _variable(TENANT_VARIABLE, *_TENANT_FORMS)
        token = _variable(TOKEN_VARIABLE, Sendable())
    return credentials(token, tenant)


def _variable(name: str, *forms: Sendable | Name | NotBlank) -> str | None:
    """What the environment has there, which the forms allow; None where it is empty or missing."""
    value = os.environ.get(name)
    if not value:
        return None
    for form in forms:
        form.require(value, f"${name}")
    return value


def credentials(token: str | None, tenant: str | None) -> list[tuple[str, str]]:
    """The metadata of a token and a tenant, if given."""
    metadata = []
    if token is not None:
        metadata.append(("authorization", f"Bearer {token}"))
    if tenant is not None:
        metadata.append(("remora-tenant", tenant))
    return metadata
