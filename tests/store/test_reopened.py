"""A store that keeps what it has, opened again: nothing of it is in memory before the first call of a tenant."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import asdict, replace
from tests.patience import PATIENCE
from tests.store.asking import Tenant, count_tokens, step_draft
from tests.store.every_call import READS, WRITES, calls_of, everything, filled, nouns
from tests.store.implementations import IMPLEMENTATIONS, KEEPING
from tests.store.model import open_model

from remora_server.domain.calls import Outcome
from remora_server.domain.errors import RequestIdReused
from remora_server.domain.store import Store

ITS_OWN = ("revision", "time", "conversation_id", "messages")
"""Of an outcome, what is another in each store."""
OF_THREADS = {"checkpoint", "channel_blob", "checkpoint_write", "checkpoint_part"}


class Reopened(Struct, frozen=True):
    """A store with tenants for what is tried, which has not been asked for them since; and what was before."""

    store: Store
    first: dict[str, Outcome]
    """Of each write, the outcome, in the tenant that repeats those of its noun."""
    last: dict[str, int]
    """Of each read, the revision of the last write of the tenant that is for those of its noun."""
    whole: tuple[object, ...]
    """What the tenant `whole` had, with the store's id and secret."""

    def tenant(self, purpose: str) -> Tenant:
        return Tenant(self.store, purpose)


@pytest.fixture(scope="module", params=sorted(KEEPING))
def reopened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reopened]:
    directory = tmp_path_factory.mktemp("reopened") / "data"
    before = IMPLEMENTATIONS[request.param](directory)
    first, last = {}, {}
    for noun in nouns(WRITES):
        full(before, f"write {noun}")
        tenant = full(before, f"repeat {noun}")
        for name, ask in calls_of(noun, WRITES).items():
            first[name] = ask(before, tenant.request(name))
    for noun in nouns(READS):
        tenant = full(before, f"read {noun}")
        last[noun] = tenant.append("last").revision
    whole = (everything(full(before, "whole")), before.id, before.secret)
    before.close()
    after = IMPLEMENTATIONS[request.param](directory)
    yield Reopened(after, first, last, whole)
    after.close()


def full(store: Store, name: str) -> Tenant:
    """A tenant with all that a write may change or find."""
    tenant = filled(Tenant(store, name))
    tenant.append("theirs", user="tom")
    tenant.store.steps.save(tenant.write, [step_draft("s"), step_draft("t", user="tom")])
    return tenant


def result(outcome: Outcome) -> tuple[object, ...]:
    fields = {name: value for name, value in asdict(outcome).items() if name not in ITS_OWN}
    return fields, [(place.sequence, place.replaced) for place in outcome.messages]


def kinds(tenant: Tenant) -> list[Any]:
    """The kinds of what is exported, but those of checkpoints, which the model does not store as they are exported."""
    found = [record.WhichOneof("kind") for record in tenant.exported()]
    return [kind for kind in found if kind not in OF_THREADS]


@pytest.mark.parametrize("noun", nouns(WRITES))
def test_the_first_writes_do_what_they_do_in_any_store(reopened: Reopened, noun: str) -> None:
    model, tenant = full(open_model(count_tokens), f"write {noun}"), reopened.tenant(f"write {noun}")

    for name, ask in calls_of(noun, WRITES).items():
        outcome = ask(tenant.store, replace(tenant.write, deadline=time.monotonic() + PATIENCE))

        assert result(outcome) == result(ask(model.store, model.write)), name
    assert kinds(tenant) == kinds(model)


@pytest.mark.parametrize("noun", nouns(READS))
def test_the_first_reads_show_what_was_written(reopened: Reopened, noun: str) -> None:
    tenant, last = reopened.tenant(f"read {noun}"), reopened.last[noun]

    for name, ask in calls_of(noun, READS).items():
        assert ask(tenant.store, replace(tenant.read, min_revision=last)) >= last, name


def test_all_is_as_it_was(reopened: Reopened) -> None:
    store = reopened.store

    assert (everything(reopened.tenant("whole")), store.id, store.secret) == reopened.whole


@pytest.mark.parametrize("noun", nouns(WRITES))
def test_repeats_are_recognised(reopened: Reopened, noun: str) -> None:
    tenant = reopened.tenant(f"repeat {noun}")

    for name, ask in calls_of(noun, WRITES).items():
        assert ask(tenant.store, tenant.request(name)) == reopened.first[name], name
        with pytest.raises(RequestIdReused):
            ask(tenant.store, tenant.request(name, b"x" * 16))
