"""Each test of the contract runs on every store, in a tenant of its own."""

import math
import uuid
from collections.abc import Iterator

import pytest
from tests.store.asking import Tenant
from tests.store.implementations import IMPLEMENTATIONS

from remora_server.domain.store import Store
from remora_server.storage.records import expiry


@pytest.fixture(scope="session", autouse=True)
def no_sweeps() -> Iterator[None]:
    """What has expired stays until a test deletes it: no store removes it behind a test that looks at it."""
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(expiry, "SWEEP_SECONDS", math.inf)
        yield


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
