"""Each test of the contract runs on every store, in a tenant of its own."""

import uuid
from collections.abc import Iterator

import pytest
from tests.store.asking import Tenant
from tests.store.implementations import IMPLEMENTATIONS

from remora_server.domain.store import Store


@pytest.fixture(scope="session", params=IMPLEMENTATIONS)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    opened = IMPLEMENTATIONS[request.param](tmp_path_factory.mktemp("store") / "data")
    yield opened
    opened.close()


@pytest.fixture
def tenant(store: Store) -> Tenant:
    return Tenant(store, uuid.uuid4().hex)


@pytest.fixture
def other(store: Store) -> Tenant:
    return Tenant(store, uuid.uuid4().hex)
