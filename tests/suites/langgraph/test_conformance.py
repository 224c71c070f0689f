"""LangGraph's own conformance tests of checkpointers: all of them, none skipped."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from langgraph.checkpoint.conformance import checkpointer_test, validate
from tests.suites.conftest import Server
from tests.suites.langgraph.conftest import patient_saver

from remora.langgraph import RemoraSaver

TESTS = 81


async def test_every_conformance_test_passes(server: Server, tenant: str) -> None:
    @checkpointer_test(name="RemoraSaver")
    async def saver() -> AsyncGenerator[RemoraSaver, None]:
        async with patient_saver(server.endpoint, tenant=tenant) as opened:
            yield opened

    report = await validate(saver)

    results = report.results.values()
    assert [failure for result in results for failure in result.failures or ()] == []
    assert sum(result.tests_passed for result in results) == TESTS
    assert all(result.passed for result in results)
