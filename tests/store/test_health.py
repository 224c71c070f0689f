"""What any store says of itself."""

from tests.store.asking import Tenant


def test_status_counts_what_is_stored(tenant: Tenant) -> None:
    before = tenant.store.health.status()
    written = tenant.append("a", "b").revision
    tenant.store.conversations.count(tenant.read, "", "")

    after = tenant.store.health.status()

    assert (after.conversations, after.messages) == (before.conversations + 1, before.messages + 2)
    assert after.revision >= written > before.revision
    assert after.store_id == tenant.store.id
    assert (after.failure, tenant.store.health.failure()) == ("", "")


def test_a_stores_secret_has_32_bytes(tenant: Tenant) -> None:
    assert len(tenant.store.secret) == 32
