"""How many runs a page of those that pass a filter looks at."""

from __future__ import annotations

from contextlib import closing

import pytest
from tests.storage.opening import TENANT
from tests.store.asking import Tenant
from tests.store.implementations import local
from tests.store.test_workflows import at_path, save

from remora.v1.workflow_service_pb2 import ListWorkflowRunsResponse
from remora_server.domain.workflows import PartPosition, RunQuery
from remora_server.storage.nouns import workflow_runs

RUNS = 11


def test_a_page_ends_after_so_many_runs_and_says_where_the_next_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workflow_runs, "SCANNED_AT_ONCE", 2)
    monkeypatch.setattr(workflow_runs, "MOST_SCANNED", 4)
    pages: list[list[str]] = []
    after: PartPosition | None = None

    with closing(local(None, window_bytes=1)) as store:
        tenant = Tenant(store, TENANT)
        for number in range(RUNS):
            save(tenant, f"r{number}", metadata=b'{"number": %d}' % number)
        while not pages or after is not None:
            query = RunQuery(filter=at_path("number", value=3), after=after)
            page = store.workflow_runs.list(tenant.read, query)
            pages.append([run.id for run in ListWorkflowRunsResponse.FromString(page.encoded).runs])
            after = page.following

    assert pages == [[], ["r3"], []]
