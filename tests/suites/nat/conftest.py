"""Editors over a server, and workflows of the toolkit that use it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.patience import PATIENCE
from tests.suites.conftest import Server

from remora import AsyncRemora
from remora.nat import RemoraEditor


@pytest.fixture
async def client(server: Server, tenant: str) -> AsyncIterator[AsyncRemora]:
    """A client in a tenant of its own, which is patient."""
    async with AsyncRemora(server.endpoint, tenant=tenant, timeout=PATIENCE) as client:
        yield client


@pytest.fixture
def editor(client: AsyncRemora) -> RemoraEditor:
    """An editor as a workflow has it."""
    return RemoraEditor(client)
