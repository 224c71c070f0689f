"""The metadata that identifies the caller."""


def credentials(token: str | None, tenant: str | None) -> list[tuple[str, str]]:
    """The metadata of a token and a tenant, if given. Raises ValueError for what metadata cannot hold."""
    metadata = []
    if token:
        _require_sendable("token", token)
        metadata.append(("authorization", f"Bearer {token}"))
    if tenant:
        _require_sendable("tenant", tenant)
        metadata.append(("remora-tenant", tenant))
    return metadata


def _require_sendable(field: str, value: str) -> None:
    """The text does not show the value: a token is a secret."""
    if not value.isascii() or not value.isprintable():
        raise ValueError(f"the {field} must be printable ASCII")
