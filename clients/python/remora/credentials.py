"""The metadata that identifies the caller."""

from dataclasses import dataclass
from typing import Annotated, TypeAlias

from remora import _refusals
from remora._bounds import Name, NotBlank, Secret


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
Tenant: TypeAlias = Annotated[str, Sendable(), Name(512), NotBlank()]
"""The name of a tenant: printable ASCII, 1 to 512 bytes, not white space alone."""


def credentials(token: str | None, tenant: str | None) -> list[tuple[str, str]]:
    """The metadata of a token and a tenant, if given."""
    metadata = []
    if token is not None:
        metadata.append(("authorization", f"Bearer {token}"))
    if tenant is not None:
        metadata.append(("remora-tenant", tenant))
    return metadata
