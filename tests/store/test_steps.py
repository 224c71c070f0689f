"""Steps, in any store."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace
from tests.store.asking import Tenant, contents, step_draft, steps_of

from remora_server.domain.errors import ConversationNotFound
from remora_server.domain.steps import StepQuery


def test_steps_are_read_back_complete(tenant: Tenant) -> None:
    tenant.append("a")

    outcome = tenant.store.steps.save(
        tenant.write, [step_draft("s", operation="o", content="x"), replace(step_draft("t"), create_time=None)]
    )

    [first, second] = tenant.steps(StepQuery("c"))
    assert (first.id, first.conversation_id, first.user_id, first.operation_id, first.content) == (
        "s", "c", "sarah", "o", "x",
    )  # fmt: skip
    assert (first.create_time.ToMicroseconds(), second.create_time.ToMicroseconds()) == (1, outcome.time)
    assert tenant.store.steps.list(tenant.read, StepQuery("c")).revision >= outcome.revision


def test_a_step_touches_its_conversation(tenant: Tenant) -> None:
    tenant.append("a")

    outcome = tenant.store.steps.save(tenant.write, [step_draft("s")])

    found, _ = tenant.store.conversations.get(tenant.read, "c", "")
    assert (found.revision, found.update_time) == (outcome.revision, outcome.time)


def test_steps_are_listed_by_index_then_by_the_order_of_saving(tenant: Tenant) -> None:
    tenant.append("a")
    tenant.store.steps.save(
        tenant.write, [step_draft("2", index=2, content="2"), step_draft("1", index=1, content="1")]
    )
    tenant.store.steps.save(tenant.write, [step_draft("0", index=1, content="1 later"), step_draft("n", index=-1)])

    assert contents(tenant.steps(StepQuery("c"))) == ["", "1", "1 later", "2"]


def test_a_known_step_is_replaced_and_counts_as_saved_last(tenant: Tenant) -> None:
    tenant.append("a")
    tenant.store.steps.save(tenant.write, [step_draft("s", content="old"), step_draft("t", content="t")])
    tenant.store.steps.save(tenant.write, [step_draft("s", content="new")])

    assert contents(tenant.steps(StepQuery("c"))) == ["t", "new"]


def test_the_last_of_one_id_in_a_request_stays(tenant: Tenant) -> None:
    tenant.append("a")
    tenant.store.steps.save(tenant.write, [step_draft("s", content="1"), step_draft("s", content="2")])

    assert contents(tenant.steps(StepQuery("c"))) == ["2"]


def test_the_last_of_one_id_in_a_request_counts_as_saved_where_it_comes(tenant: Tenant) -> None:
    tenant.append("a")
    given = [step_draft("s", content="1"), step_draft("t", content="t"), step_draft("s", content="2")]
    tenant.store.steps.save(tenant.write, given)

    assert contents(tenant.steps(StepQuery("c"))) == ["t", "2"]


def test_users_steps_of_one_id_are_apart(tenant: Tenant) -> None:
    tenant.append("a")
    tenant.store.steps.save(tenant.write, [step_draft("s", content="own"), step_draft("s", user="tom", content="his")])

    assert contents(tenant.steps(StepQuery("c"))) == ["own"]
    assert contents(tenant.steps(StepQuery("c", "tom"))) == ["his"]


def test_steps_of_several_conversations_are_saved_together_or_not_at_all(tenant: Tenant) -> None:
    tenant.append("a")
    tenant.append("a", conversation="d", user="tom")

    tenant.store.steps.save(tenant.write, [step_draft("s"), step_draft("s", "d")])
    with pytest.raises(ConversationNotFound):
        tenant.store.steps.save(tenant.write, [step_draft("t"), step_draft("t", "nowhere")])

    assert [step.id for step in tenant.steps(StepQuery("c"))] == ["s"]
    assert [step.user_id for step in tenant.steps(StepQuery("d"))] == ["tom"]


PAGES: list[tuple[StepQuery, list[str], bool]] = [
    (StepQuery("c"), ["0", "1", "2", "3", "4"], False),
    (StepQuery("c", limit=2), ["0", "1"], True),
    (StepQuery("c", limit=2, skip=3), ["3", "4"], False),
    (StepQuery("c", last=3), ["2", "3", "4"], False),
    (StepQuery("c", last=3, skip=1, limit=1), ["3"], True),
    (StepQuery("c", last=9), ["0", "1", "2", "3", "4"], False),
    (StepQuery("c", operation_id="even"), ["0", "2", "4"], False),
    (StepQuery("c", operation_id="even", last=2), ["2", "4"], False),
    (StepQuery("c", operation_id="none"), [], False),
    (StepQuery("c", skip=9), [], False),
]


@pytest.mark.parametrize(("query", "expected", "more"), PAGES)
def test_a_page_has_what_its_query_names(tenant: Tenant, query: StepQuery, expected: list[str], more: bool) -> None:
    tenant.append("a")
    tenant.store.steps.save(
        tenant.write,
        [step_draft(str(n), index=n, operation="odd" if n % 2 else "even", content=str(n)) for n in range(5)],
    )

    assert contents(tenant.steps(query)) == expected
    assert (tenant.store.steps.list(tenant.read, query).following is not None) == more


def test_a_page_holds_three_mebibytes_and_one_step_at_least(tenant: Tenant) -> None:
    tenant.append("a")
    long = "x" * (7 << 18)
    for number, content in enumerate([2 * long, long, "short"]):
        tenant.store.steps.save(tenant.write, [step_draft(str(number), index=number, content=content)])

    first = tenant.store.steps.list(tenant.read, StepQuery("c"))
    second = tenant.store.steps.list(tenant.read, StepQuery("c", after=first.following))
    assert [len(steps_of(page)) for page in (first, second)] == [1, 2]
    assert second.following is None


def test_pages_go_on_behind_a_step_whatever_is_saved_meanwhile(tenant: Tenant) -> None:
    tenant.append("a")
    tenant.store.steps.save(tenant.write, [step_draft(str(n), index=n, content=str(n)) for n in range(1, 6)])
    first = tenant.store.steps.list(tenant.read, StepQuery("c", skip=2, limit=2))
    tenant.store.steps.save(tenant.write, [step_draft(str(n), index=n, content=str(n)) for n in (0, 6)])

    second = tenant.store.steps.list(tenant.read, StepQuery("c", skip=2, limit=9, after=first.following))

    assert [contents(steps_of(page)) for page in (first, second)] == [["3", "4"], ["5", "6"]]


def test_all_pages_of_the_last_steps_have_no_more_of_them_whatever_is_saved_meanwhile(tenant: Tenant) -> None:
    tenant.append("a")
    tenant.store.steps.save(tenant.write, [step_draft(str(n), index=n, content=str(n)) for n in range(4)])
    query, found = StepQuery("c", last=4, skip=1, limit=2), []
    page = tenant.store.steps.list(tenant.read, query)
    for number in itertools.count(4):
        found += contents(steps_of(page))
        if page.following is None:
            break
        tenant.store.steps.save(tenant.write, [step_draft(str(number), index=number, content=str(number))])
        page = tenant.store.steps.list(tenant.read, replace(query, after=page.following))

    assert found == ["1", "2", "3"]


def test_steps_of_no_conversation_are_not_found(tenant: Tenant) -> None:
    with pytest.raises(ConversationNotFound):
        tenant.store.steps.list(tenant.read, StepQuery("c"))
