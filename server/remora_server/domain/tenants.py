"""Names of tenants: printable ASCII, because gRPC metadata carries them."""

from __future__ import annotations

MAX_TENANT_BYTES = 512


def complaint(tenant: str) -> str:
    """What is wrong with a tenant's name; empty if nothing is."""
    if not tenant.isascii() or not tenant.isprintable():
        return "is not printable ASCII"
    if len(tenant) > MAX_TENANT_BYTES:
        return f"has {len(tenant):,} bytes; at most {MAX_TENANT_BYTES} are allowed"
    return ""
