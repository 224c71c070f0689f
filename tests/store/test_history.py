"""Entries of agents' history and their steps, as any store keeps them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.store.asking import Tenant
from tests.store.test_workflows import add, at, event, events, imported
from tests.store.test_workflows import save as save_run
from tests.store.test_workflows import save_steps as save_run_steps
from tests.store.test_workflows import step as run_step
from tests.store.test_workflows import steps as run_steps

from remora.v1 import history_service_pb2
from remora.v1.history_entry_pb2 import EntryStep, HistoryEntry
from remora_server.domain.calls import Outcome
from remora_server.domain.errors import (
    EntryStepNotFound,
    HistoryEntryExists,
    HistoryEntryNotFound,
    InvalidField,
    RequestTooLarge,
)
from remora_server.domain.history import EntryDraft, EntryQuery
from remora_server.domain.workflows import PartDraft, PartName, PartPosition, PartQuery


def entry_draft(entry_id: str = "h", **fields: Any) -> EntryDraft:  # noqa: ANN401 - of any type
    return EntryDraft(entry_id, HistoryEntry(id=entry_id, **fields).SerializeToString())


def save(tenant: Tenant, entry_id: str = "h", agent_id: str = "a", **fields: Any) -> int:  # noqa: ANN401 - of any type
    draft = entry_draft(entry_id, agent_id=agent_id, **fields)
    return tenant.store.history_entries.save(tenant.write, draft).revision


def update(tenant: Tenant, entry_id: str, *mask: str, **fields: Any) -> Outcome:  # noqa: ANN401 - of any type
    draft = entry_draft(entry_id, **fields)
    return tenant.store.history_entries.update(tenant.write, draft, frozenset(mask or fields))


def entry(tenant: Tenant, entry_id: str = "h") -> HistoryEntry:
    return HistoryEntry.FromString(tenant.store.history_entries.get(tenant.read, entry_id)[0])


def listed(tenant: Tenant, **wanted: Any) -> list[str]:  # noqa: ANN401 - of any type
    """The ids of the entries of a query, page by page, of which each says how many there are."""
    found: list[str] = []
    totals = set()
    after: PartPosition | None = None
    skip = wanted.pop("skip", 0)
    while True:
        query = EntryQuery(**{"limit": 2, **wanted}, after=after, skip=0 if after else skip)
        shown = tenant.store.history_entries.list(tenant.read, query)
        totals.add(shown.total)
        reply = history_service_pb2.ListHistoryEntriesResponse.FromString(shown.page.encoded)
        found += [one.id for one in reply.entries]
        after = shown.page.following
        if after is None:
            assert totals == {len(found) + skip}
            return found


def step(step_id: str, index: int = 0, entry_id: str = "h", **fields: Any) -> PartDraft:  # noqa: ANN401 - of any type
    body = EntryStep(id=step_id, entry_id=entry_id, step_index=index, **fields).SerializeToString()
    return PartDraft(PartName(step_id, entry_id), body)


def save_steps(tenant: Tenant, *drafts: PartDraft) -> int:
    return tenant.store.entry_steps.save(tenant.write, drafts).revision


def steps(tenant: Tenant, entry_id: str = "h", limit: int = 2) -> list[EntryStep]:
    found: list[EntryStep] = []
    after: PartPosition | None = None
    while True:
        page = tenant.store.entry_steps.list(tenant.read, PartQuery(entry_id, limit, after))
        found += history_service_pb2.ListEntryStepsResponse.FromString(page.encoded).steps
        after = page.following
        if after is None:
            return found


def step_ids(tenant: Tenant, entry_id: str = "h") -> list[str]:
    return [one.id for one in steps(tenant, entry_id)]


def test_an_entry_comes_back_whole_with_its_times(tenant: Tenant) -> None:
    given: dict[str, Any] = {
        "user_id": "sarah",
        "conversation_id": "nowhere",
        "status": "working",
        "input": b"\0\xff",
        "usage": b"{}",
        "start_time": at(1.000001),
        "end_time": at(3),
        "create_time": at(2.5),
        "update_time": at(4),
    }

    save(tenant, **given)

    assert entry(tenant) == HistoryEntry(id="h", agent_id="a", **given)


def test_times_that_are_not_given_are_the_stores_and_stay(tenant: Tenant) -> None:
    save(tenant, input=b"i")
    before = entry(tenant)
    save(tenant, output=b"o")
    after = entry(tenant)

    assert before.create_time == before.start_time == before.update_time
    assert (after.create_time, after.start_time) == (before.create_time, before.start_time)
    assert after.update_time.ToMicroseconds() >= before.update_time.ToMicroseconds()
    assert (after.input, after.output) == (b"", b"o")


def test_an_updated_entry_keeps_what_the_mask_does_not_name(tenant: Tenant) -> None:
    save(tenant, user_id="sarah", input=b"in", usage=b"u", end_time=at(3), update_time=at(1))

    outcome = update(tenant, "h", "output", "end_time", output=b"out")

    found = entry(tenant)
    assert (found.user_id, found.input, found.usage, found.output) == ("sarah", b"in", b"u", b"out")
    assert not found.HasField("end_time")
    assert found.update_time.ToMicroseconds() == outcome.time > 1_000_000


def test_an_update_sets_the_times_that_it_names(tenant: Tenant) -> None:
    save(tenant, create_time=at(1), start_time=at(1))

    update(tenant, "h", "update_time", "create_time", "start_time", update_time=at(7), start_time=at(5))

    found = entry(tenant)
    assert (found.update_time, found.create_time, found.start_time) == (at(7), at(1), at(5))


def test_an_entry_that_is_not_there_is_not_found(tenant: Tenant) -> None:
    for missing in (lambda: entry(tenant), lambda: update(tenant, "h", output=b"o")):
        with pytest.raises(HistoryEntryNotFound):
            missing()
    assert not tenant.store.history_entries.delete(tenant.write, "h").deleted


@pytest.mark.parametrize("user", ["tom", ""])
def test_an_entry_stays_its_users(tenant: Tenant, user: str) -> None:
    save(tenant, user_id="sarah", input=b"hers")

    with pytest.raises(HistoryEntryExists):
        save(tenant, user_id=user, input=b"another's")

    assert entry(tenant).input == b"hers"


def test_a_replaced_entry_keeps_its_steps(tenant: Tenant) -> None:
    save(tenant)
    save_steps(tenant, step("s"))
    save(tenant, status="completed")

    assert step_ids(tenant) == ["s"]


def test_an_entry_that_grows_too_large_is_refused(tenant: Tenant) -> None:
    save(tenant, input=bytes(1 << 20), output=bytes(1 << 20), metadata=bytes(1 << 20))

    with pytest.raises(RequestTooLarge):
        update(tenant, "h", usage=bytes(2 << 20))

    assert entry(tenant).usage == b""


def test_entries_are_listed_by_start_time_the_newest_first(tenant: Tenant) -> None:
    for number, agent in ((3, "a"), (1, "b"), (2, "a"), (5, "a"), (4, "b")):
        save(tenant, str(number), agent, start_time=at(number), user_id="tom" if number == 5 else "sarah")

    assert listed(tenant) == ["5", "4", "3", "2", "1"]
    assert listed(tenant, agent_id="a") == ["5", "3", "2"]
    assert listed(tenant, agent_id="a", user_id="sarah") == ["3", "2"]
    assert listed(tenant, agent_id="a", skip=1) == ["3", "2"]
    assert listed(tenant, agent_id="a", skip=1, limit=1) == ["3", "2"]
    assert listed(tenant, agent_id="none") == []


def test_a_page_behind_the_last_entry_says_how_many_there_are(tenant: Tenant) -> None:
    save(tenant)

    shown = tenant.store.history_entries.list(tenant.read, EntryQuery(skip=5))

    assert (shown.page.encoded, shown.total) == (b"", 1)


def test_an_entry_goes_with_its_steps_and_events(tenant: Tenant) -> None:
    for name in ("h", "g"):
        save(tenant, name)
        save_steps(tenant, step("s", entry_id=name))
        add(tenant, event("e", run_id=name))

    assert tenant.store.history_entries.delete(tenant.write, "h").deleted

    assert listed(tenant) == ["g"]
    assert (step_ids(tenant, "h"), events(tenant, "h")) == ([], [])
    assert (step_ids(tenant, "g"), [one.id for one in events(tenant, "g")]) == (["s"], ["e"])
    save(tenant)
    assert steps(tenant) == []


def test_steps_are_listed_by_index_then_in_the_order_of_adding(tenant: Tenant) -> None:
    save(tenant)
    save_steps(tenant, step("d", 1), step("c"), step("a"))
    save_steps(tenant, step("b"))

    assert step_ids(tenant) == ["c", "a", "b", "d"]


def test_a_step_keeps_its_place_when_it_changes(tenant: Tenant) -> None:
    save(tenant)
    save_steps(tenant, *(step(name) for name in "abcd"))
    before = {one.id: one.create_time for one in steps(tenant)}

    save_steps(tenant, step("b", name="replaced"))
    tenant.store.entry_steps.update(tenant.write, step("a", name="updated"), frozenset({"name"}))

    assert [(one.id, one.name) for one in steps(tenant)] == [("a", "updated"), ("b", "replaced"), ("c", ""), ("d", "")]
    assert {one.id: one.create_time for one in steps(tenant)} == before


def test_of_two_steps_with_one_id_the_last_wins(tenant: Tenant) -> None:
    save(tenant)
    save_steps(tenant, step("s", content=b"first"), step("s", content=b"last"))

    assert [one.content for one in steps(tenant)] == [b"last"]


def test_steps_of_a_missing_entry_are_refused_all_of_them(tenant: Tenant) -> None:
    save(tenant)

    with pytest.raises(HistoryEntryNotFound):
        save_steps(tenant, step("s"), step("s", entry_id="missing"))

    assert (steps(tenant), steps(tenant, "missing")) == ([], [])


def test_an_updated_step_keeps_what_the_mask_does_not_name(tenant: Tenant) -> None:
    save(tenant)
    save_steps(tenant, step("s", 1, arguments=b"in", end_time=at(2), create_time=at(1), update_time=at(1)))

    given = PartDraft(PartName("s", "h"), EntryStep(result=b"out").SerializeToString())
    tenant.store.entry_steps.update(tenant.write, given, frozenset({"result", "end_time", "create_time"}))

    [found] = steps(tenant)
    assert (found.arguments, found.result, found.step_index, found.create_time) == (b"in", b"out", 1, at(1))
    assert not found.HasField("end_time")
    assert found.update_time != at(1)


def test_a_step_is_found_by_its_id_alone_the_newest_of_several(tenant: Tenant) -> None:
    read, write, store = tenant.read, tenant.write, tenant.store.entry_steps
    for name in ("h", "g"):
        save(tenant, name)
        save_steps(tenant, step("s", entry_id=name))

    assert EntryStep.FromString(store.get(read, PartName("s"))[0]).entry_id == "g"
    store.update(write, PartDraft(PartName("s"), EntryStep(result=b"o").SerializeToString()), frozenset({"result"}))
    assert [one.result for one in (*steps(tenant, "g"), *steps(tenant, "h"))] == [b"o", b""]
    assert store.delete(write, PartName("s")).deleted
    assert (step_ids(tenant, "g"), step_ids(tenant, "h")) == ([], ["s"])


def test_a_step_that_is_not_there_is_not_found(tenant: Tenant) -> None:
    save(tenant)
    for name in (PartName("s"), PartName("s", "h"), PartName("s", "missing")):
        with pytest.raises(EntryStepNotFound):
            tenant.store.entry_steps.get(tenant.read, name)
        with pytest.raises(EntryStepNotFound):
            tenant.store.entry_steps.update(tenant.write, PartDraft(name, b""), frozenset())
        assert not tenant.store.entry_steps.delete(tenant.write, name).deleted


def test_an_event_may_come_before_its_entry_and_takes_its_user_from_it(tenant: Tenant) -> None:
    add(tenant, event("early", 1, "h"))
    save(tenant, user_id="sarah")
    add(tenant, event("late", 2, "h"))

    assert [(one.id, one.user_id) for one in events(tenant, "h")] == [("early", ""), ("late", "sarah")]


def test_the_history_of_a_user_goes_with_the_user(tenant: Tenant) -> None:
    for user in ("sarah", "tom"):
        save(tenant, user, user_id=user)
        save_steps(tenant, step("s", entry_id=user))
        add(tenant, event("e", run_id=user))

    tenant.store.users.delete(tenant.write, "sarah")

    assert listed(tenant) == ["tom"]
    assert (steps(tenant, "sarah"), events(tenant, "sarah")) == ([], [])
    assert (step_ids(tenant, "tom"), [one.id for one in events(tenant, "tom")]) == (["s"], ["e"])


def test_what_came_before_its_run_or_entry_goes_with_the_user_of_that(tenant: Tenant, other: Tenant) -> None:
    for each in (tenant, other):
        add(each, event("early", run_id="h"), event("toms", run_id="h", user_id="tom"), event("early", run_id="r"))
        save_run_steps(each, run_step("early", run_id="r"))
        add(each, event("early", run_id="nobodys"))
        save(each, "h", user_id="sarah")
        save_run(each, "r", user_id="sarah")

    tenant.store.users.delete(tenant.write, "sarah")

    assert [one.id for one in events(tenant, "h")] == ["toms"]
    assert (events(tenant, "r"), run_steps(tenant, "r")) == ([], [])
    assert [one.id for one in events(tenant, "nobodys")] == ["early"]
    assert [one.id for one in events(other, "r")] == ["early"]


def test_the_history_of_another_tenant_is_not_seen(tenant: Tenant, other: Tenant) -> None:
    save(tenant)
    save_steps(tenant, step("s"))

    assert (listed(other), steps(other)) == ([], [])
    with pytest.raises(HistoryEntryNotFound):
        entry(other)
    with pytest.raises(HistoryEntryNotFound):
        save_steps(other, step("s"))
    with pytest.raises(EntryStepNotFound):
        other.store.entry_steps.get(other.read, PartName("s"))


def test_a_repeated_save_of_steps_is_answered_as_the_first(tenant: Tenant) -> None:
    save(tenant)
    write = tenant.request("steps")

    first = tenant.store.entry_steps.save(write, [step("s")])
    tenant.store.entry_steps.delete(tenant.write, PartName("s", "h"))
    again = tenant.store.entry_steps.save(write, [step("s")])

    assert again == first
    assert steps(tenant) == []


def test_history_is_exported_and_imported(tenant: Tenant, other: Tenant) -> None:
    save(tenant, user_id="sarah", input=b"\0\xff")
    save_steps(tenant, step("b", 1, content=b"c"), step("a"))
    records = tenant.exported()

    outcomes = [imported(other, records).imported_records for _ in range(2)]

    assert [one.WhichOneof("kind") for one in records] == ["history_entry", "entry_step", "entry_step"]
    assert outcomes == [3, 0]
    assert (entry(other), steps(other)) == (entry(tenant), steps(tenant))
    assert other.exported() == records
    other.store.users.delete(other.write, "sarah")
    assert (listed(other), steps(other)) == ([], [])


def test_a_step_is_not_imported_without_its_entry(tenant: Tenant, other: Tenant) -> None:
    save(tenant)
    save_steps(tenant, step("s"))
    [_, own] = tenant.exported()

    with pytest.raises(InvalidField):
        imported(other, [own])
