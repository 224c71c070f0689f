"""Backups, in any store that makes them."""

from __future__ import annotations

import hashlib
import time

import pytest
from tests.store.asking import Tenant

from remora_server.domain.errors import BackupNotFound, BackupUnavailable, InvalidField


def test_a_backup_is_read_in_parts_and_deleted_once(tenant: Tenant) -> None:
    written = tenant.append("a").revision
    backups = tenant.store.backups
    try:
        made = backups.create(time.monotonic() + 600)
    except BackupUnavailable:
        pytest.skip("this store keeps nothing")

    content = bytearray()
    while part := backups.read(made.id, len(content)):
        content += part
    assert (len(content), hashlib.sha256(content).digest()) == (made.size, made.sha256)
    for offset in (made.size + 1, 2**62, 2**63 - 1):
        with pytest.raises(InvalidField, match="offset"):
            backups.read(made.id, offset)
    assert made.revision >= written
    assert made.rows["messages"] >= 1
    assert [backups.delete(made.id), backups.delete(made.id)] == [True, False]
    with pytest.raises(BackupNotFound):
        backups.read(made.id, 0)


def test_an_unknown_backup_is_not_found(tenant: Tenant) -> None:
    with pytest.raises(BackupNotFound):
        tenant.store.backups.read("unknown", 0)
    assert not tenant.store.backups.delete("unknown")
