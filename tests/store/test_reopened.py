"""A store that keeps what it has, opened again: nothing of it is in memory before the first call."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import asdict, replace
from tests.patience import PATIENCE
from tests.store.asking import Tenant, count_tokens, step_draft
from tests.store.implementations import IMPLEMENTATIONS, KEEPING
from tests.store.model import open_model
from tests.store.test_calls import READS, WRITES, Ask, everything, filled

from remora_server.domain.calls import Outcome, Read
from remora_server.domain.errors import RequestIdReused
from remora_server.domain.store import Store

Reopen = Callable[[Callable[[Tenant], object]], Tenant]

ITS_OWN = ("revision", "time", "conversation_id", "messages")
"""Of an outcome, what is another in each store."""


@pytest.fixture(params=sorted(KEEPING))
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Reopen:
    """Opens a store, has it filled, closes it and opens it again."""

    def reopened(fill: Callable[[Tenant], object]) -> Tenant:
        before = IMPLEMENTATIONS[request.param](tmp_path / "data")
        fill(Tenant(before, "acme"))
        before.close()
        after = IMPLEMENTATIONS[request.param](tmp_path / "data")
        request.addfinalizer(after.close)
        return Tenant(after, "acme")

    return reopened


def full(tenant: Tenant) -> None:
    """All that a write may change or find."""
    filled(tenant)
    tenant.append("theirs", user="tom")
    tenant.store.steps.save(tenant.write, [step_draft("s"), step_draft("t", user="tom")])


def result(outcome: Outcome) -> tuple[object, ...]:
    fields = {name: value for name, value in asdict(outcome).items() if name not in ITS_OWN}
    return fields, [(place.sequence, place.replaced) for place in outcome.messages]


@pytest.mark.parametrize("ask", WRITES.values(), ids=WRITES)
def test_the_first_write_does_what_it_does_in_any_store(reopen: Reopen, ask: Ask) -> None:
    model = Tenant(open_model(count_tokens), "acme")
    full(model)
    tenant = reopen(full)

    outcome = ask(tenant.store, replace(tenant.write, deadline=time.monotonic() + PATIENCE))

    assert result(outcome) == result(ask(model.store, model.write))
    assert [record.WhichOneof("kind") for record in tenant.exported()] == [
        record.WhichOneof("kind") for record in model.exported()
    ]


@pytest.mark.parametrize("ask", READS.values(), ids=READS)
def test_the_first_read_shows_what_was_written(reopen: Reopen, ask: Callable[[Store, Read], int]) -> None:
    written: list[int] = []

    def fill(tenant: Tenant) -> None:
        full(tenant)
        written.append(tenant.append("last").revision)

    tenant = reopen(fill)

    assert ask(tenant.store, replace(tenant.read, min_revision=written[0])) >= written[0]


def test_all_is_as_it_was(reopen: Reopen) -> None:
    before: list[object] = []

    def fill(tenant: Tenant) -> None:
        full(tenant)
        before.extend([everything(tenant), tenant.store.id, tenant.store.secret])

    tenant = reopen(fill)

    assert [everything(tenant), tenant.store.id, tenant.store.secret] == before


@pytest.mark.parametrize("ask", WRITES.values(), ids=WRITES)
def test_a_repeat_is_recognised(reopen: Reopen, ask: Ask) -> None:
    first: list[Outcome] = []

    def fill(tenant: Tenant) -> None:
        full(tenant)
        first.append(ask(tenant.store, tenant.request("r")))

    tenant = reopen(fill)

    assert ask(tenant.store, tenant.request("r")) == first[0]
    with pytest.raises(RequestIdReused):
        ask(tenant.store, tenant.request("r", b"x" * 16))
