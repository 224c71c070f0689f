"""Messages, in any store."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace
from tests.store.asking import NEW, Tenant, draft, listed, step_draft

from remora.v1 import scalar_pb2
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.errors import ConversationNotFound, MessageNotFound
from remora_server.domain.filters import Condition, Negated, Operator
from remora_server.domain.messages import Append, Edit, Keep, MessageDraft, MessageQuery, Remove, Replace
from remora_server.domain.steps import StepQuery
from remora_server.domain.times import Between

TEN = [str(number) for number in range(10)]


def edit(tenant: Tenant, *edits: Edit, allow_missing: bool = False) -> object:
    return tenant.store.messages.edit(tenant.write, "c", "sarah", edits, allow_missing=allow_missing)


def test_an_append_creates_its_conversation_where_that_is_asked_for(tenant: Tenant) -> None:
    with pytest.raises(ConversationNotFound):
        tenant.append("a", create=None)

    first = tenant.append("a", create=ConversationDraft("", title="Trip"))
    second = tenant.append("b", create=ConversationDraft("", title="Another"))

    found, _ = tenant.store.conversations.get(tenant.read, "c", "")
    assert (first.created, second.created) == (True, False)
    assert (found.draft.title, found.draft.user_id, found.uid) == ("Trip", "sarah", first.revision)
    assert found.revision == second.revision > first.revision


def test_messages_are_placed_in_order(tenant: Tenant) -> None:
    first, second = tenant.append("a", "b"), tenant.append("c")

    placed = [*first.messages, *second.messages]
    assert [(place.id, place.sequence, place.replaced) for place in placed] == [
        ("a", 1, False),
        ("b", 2, False),
        ("c", 3, False),
    ]
    assert sorted(place.create_time for place in placed) == [place.create_time for place in placed]
    found = tenant.messages()
    assert [(message.id, message.sequence, message.user_id) for message in found] == [
        ("a", 1, "sarah"),
        ("b", 2, "sarah"),
        ("c", 3, "sarah"),
    ]
    assert [message.revision for message in found] == [first.revision, first.revision, second.revision]
    assert [message.token_count for message in found] == [1, 1, 1]


def test_ids_that_are_not_given_are_made(tenant: Tenant) -> None:
    outcome = tenant.store.messages.append(tenant.write, "c", "sarah", [draft(), draft()], NEW)

    made = [place.id for place in outcome.messages]
    assert len(set(made)) == 2
    assert [message.id for message in tenant.messages()] == made


def test_an_empty_append_creates_the_conversation_alone(tenant: Tenant) -> None:
    assert tenant.append().created
    assert tenant.texts() == []
    assert tenant.store.conversations.get(tenant.read, "c", "")[0].last_sequence == 0


def test_a_known_id_is_replaced_in_its_place(tenant: Tenant) -> None:
    first = tenant.append("a", "b")

    again = tenant.store.messages.append(tenant.write, "c", "sarah", [draft("a", "new"), draft("d", "d")], None)

    assert [(place.sequence, place.replaced) for place in again.messages] == [(1, True), (3, False)]
    assert again.messages[0].create_time == first.messages[0].create_time
    found = tenant.messages()
    assert [message.text for message in found] == ["new", "b", "d"]
    assert (found[0].revision, found[1].revision) == (again.revision, first.revision)
    assert found[0].update_time.ToMicroseconds() >= found[0].create_time.ToMicroseconds()
    assert tenant.store.conversations.get(tenant.read, "c", "")[0].message_count == 3


def test_the_last_of_one_id_in_a_request_stays(tenant: Tenant) -> None:
    outcome = tenant.store.messages.append(tenant.write, "c", "sarah", [draft("a", "1"), draft("a", "2")], NEW)

    assert [place.sequence for place in outcome.messages] == [1, 1]
    assert tenant.texts() == ["2"]


def test_users_have_ids_of_their_own(tenant: Tenant) -> None:
    tenant.append("a")
    outcome = tenant.append("a", user="tom")

    assert (outcome.messages[0].sequence, outcome.messages[0].replaced) == (2, False)
    assert (tenant.texts(), tenant.texts(user="tom")) == (["a"], ["a"])
    assert [message.user_id for message in tenant.messages(user="tom")] == ["tom"]


def test_without_a_user_it_is_the_conversations_own(tenant: Tenant) -> None:
    tenant.append("a")
    tenant.append("b", user="")

    assert tenant.texts(user="") == tenant.texts() == ["a", "b"]


QUERIES: list[tuple[MessageQuery, list[str]]] = [
    (MessageQuery("c"), TEN),
    (MessageQuery("c", limit=3), TEN[-3:]),
    (MessageQuery("c", limit=3, newest=False), TEN[:3]),
    (MessageQuery("c", before_sequence=4), TEN[:3]),
    (MessageQuery("c", before_sequence=4, limit=2), TEN[1:3]),
    (MessageQuery("c", after_sequence=8), TEN[8:]),
    (MessageQuery("c", after_sequence=2, before_sequence=6, newest=False, limit=2), TEN[2:4]),
    (MessageQuery("c", after_sequence=5, before_sequence=6), []),
    (MessageQuery("c", roles=("tool",)), TEN[::3]),
    (MessageQuery("c", roles=("tool", "user"), limit=4), TEN[-4:]),
    (MessageQuery("c", roles=("nobody",)), []),
]


@pytest.mark.parametrize(("query", "expected"), QUERIES)
def test_a_page_has_what_its_query_names_oldest_first(
    tenant: Tenant, query: MessageQuery, expected: Sequence[str]
) -> None:
    drafts = [draft(text, text, role="user" if number % 3 else "tool") for number, text in enumerate(TEN)]
    written = tenant.store.messages.append(tenant.write, "c", "sarah", drafts, NEW).revision

    page = tenant.store.messages.list(tenant.read, query)

    found = [message.text for message in listed(tenant.store, tenant.read, query)]
    everything = listed(tenant.store, tenant.read, replace(query, limit=1_000))
    assert found == list(expected)
    assert page.more == (len(found) < len(everything))
    assert page.revision >= written


def test_pages_are_cut_by_the_time_at_which_messages_were_received(tenant: Tenant) -> None:
    placed = [tenant.append(text).messages[0] for text in "abc"]
    middle = placed[1].create_time

    for bounds in (Between(after=middle), Between(before=middle), Between(middle - 1, middle + 1)):
        expected = [place.id for place in placed if is_within(bounds, place.create_time)]
        for query in (MessageQuery("c", received=bounds), MessageQuery("c", sent=bounds)):
            assert [message.id for message in listed(tenant.store, tenant.read, query)] == expected


def is_within(bounds: Between, time: int) -> bool:
    return (bounds.after is None or time > bounds.after) and (bounds.before is None or time < bounds.before)


def test_pages_are_cut_by_the_time_at_which_messages_were_sent(tenant: Tenant) -> None:
    drafts = [draft("a", sent=7), draft("b"), draft("c", sent=-7), draft("d", sent=0)]
    tenant.store.messages.append(tenant.write, "c", "sarah", drafts, NEW)

    def found(**bounds: int) -> list[str]:
        query = MessageQuery("c", sent=Between(**bounds))
        return [message.id for message in listed(tenant.store, tenant.read, query)]

    assert found(after=-7) == ["a", "b", "d"]
    assert found(before=7) == ["c", "d"]
    assert found(after=-1, before=7) == ["d"]
    assert found(after=7) == ["b"]


def test_pages_of_either_direction_have_every_message_once(tenant: Tenant) -> None:
    tenant.append(*TEN)
    backwards: list[str] = []
    query = MessageQuery("c", limit=3)
    while page := listed(tenant.store, tenant.read, query):
        backwards = [message.text for message in page] + backwards
        query = replace(query, before_sequence=page[0].sequence)
    forwards: list[str] = []
    query = MessageQuery("c", limit=3, newest=False)
    while page := listed(tenant.store, tenant.read, query):
        forwards += [message.text for message in page]
        query = replace(query, after_sequence=page[-1].sequence)

    assert backwards == forwards == TEN


def test_a_page_holds_three_mebibytes_and_one_message_at_least(tenant: Tenant) -> None:
    long = "x" * (1 << 20)
    tenant.store.messages.append(tenant.write, "c", "sarah", [draft(name, long) for name in "abc"], NEW)
    tenant.store.messages.append(tenant.write, "c", "sarah", [draft("d", 3 * long + "x")], NEW)

    last = tenant.store.messages.list(tenant.read, MessageQuery("c", limit=10))
    before = tenant.store.messages.list(tenant.read, MessageQuery("c", limit=10, before_sequence=4))
    oldest = tenant.store.messages.list(tenant.read, MessageQuery("c", limit=10, newest=False))

    assert (last.first_sequence, last.count, last.more) == (4, 1, True)
    assert (before.first_sequence, before.last_sequence, before.more) == (2, 3, True)
    assert (oldest.first_sequence, oldest.last_sequence, oldest.more) == (1, 2, True)


def test_deleted_messages_leave_their_sequences_behind(tenant: Tenant) -> None:
    tenant.append("a", "b", "c")

    outcome = tenant.store.messages.delete(tenant.write, "c", "sarah", ["c", "unknown", "a", "c"])

    assert outcome.deleted_messages == 2
    assert tenant.texts() == ["b"]
    assert tenant.append("c").messages[0].sequence == 4
    assert tenant.store.conversations.get(tenant.read, "c", "")[0].message_count == 2


def test_a_delete_that_finds_nothing_changes_nothing(tenant: Tenant) -> None:
    written = tenant.append("a").revision

    outcome = tenant.store.messages.delete(tenant.write, "c", "tom", ["a"])

    assert (outcome.deleted_messages, tenant.texts()) == (0, ["a"])
    assert outcome.revision >= written
    assert tenant.store.conversations.get(tenant.read, "c", "")[0].revision == written


def test_a_clear_takes_a_users_messages_and_steps(tenant: Tenant) -> None:
    tenant.append("a", "b")
    tenant.append("c", user="tom")
    tenant.store.steps.save(tenant.write, [step_draft("s"), step_draft("s", user="tom")])

    outcome = tenant.store.messages.clear(tenant.write, "c", "")

    assert outcome.deleted_messages == 2
    assert (tenant.texts(), tenant.texts(user="tom")) == ([], ["c"])
    assert tenant.steps(StepQuery("c", "sarah")) == []
    assert len(tenant.steps(StepQuery("c", "tom"))) == 1
    assert tenant.append("d").messages[0].sequence == 4


def test_what_is_not_there_is_not_found(tenant: Tenant) -> None:
    with pytest.raises(ConversationNotFound):
        tenant.messages()
    with pytest.raises(ConversationNotFound):
        tenant.store.messages.delete(tenant.write, "c", "", ["a"])
    with pytest.raises(ConversationNotFound):
        tenant.store.messages.clear(tenant.write, "c", "")
    with pytest.raises(ConversationNotFound):
        edit(tenant, Remove("a"), allow_missing=True)


def test_the_oldest_go_beyond_the_storage_limit(tenant: Tenant) -> None:
    limited = ConversationDraft("", storage_limit=3)
    first = tenant.append("a", create=limited)
    tenant.append("b", user="tom")

    outcome = tenant.append("c", "d", "e")

    assert (first.pruned_messages, outcome.pruned_messages) == (0, 2)
    assert (tenant.texts(), tenant.texts(user="tom")) == (["c", "d", "e"], [])
    assert [place.sequence for place in outcome.messages] == [3, 4, 5]


def test_more_than_the_limit_in_one_append_prunes_its_own(tenant: Tenant) -> None:
    outcome = tenant.append("a", "b", "c", create=ConversationDraft("", storage_limit=2))

    assert outcome.pruned_messages == 1
    assert tenant.texts() == ["b", "c"]
    assert tenant.append("d").messages[0].sequence == 4


EDITS: list[tuple[list[Edit], list[str]]] = [
    ([Append(draft("d", "d"))], ["a", "b", "c", "d"]),
    ([Append(draft("b", "B"))], ["a", "B", "c"]),
    ([Replace(draft("a", "A"))], ["A", "b", "c"]),
    ([Remove("b")], ["a", "c"]),
    ([Keep(1, None)], ["b", "c"]),
    ([Keep(-2, -1)], ["b"]),
    ([Keep(0, 0), Append(draft("d", "d"))], ["d"]),
    ([Remove("a"), Append(draft("a", "A")), Keep(0, 2)], ["b", "c"]),
    ([Append(draft("d", "d")), Replace(draft("d", "D")), Remove("c")], ["a", "b", "D"]),
]


@pytest.mark.parametrize(("edits", "expected"), EDITS)
def test_edits_are_made_in_order(tenant: Tenant, edits: list[Edit], expected: list[str]) -> None:
    tenant.append("a", "b", "c")
    tenant.append("theirs", user="tom")

    outcome = tenant.store.messages.edit(tenant.write, "c", "sarah", edits, allow_missing=False)

    assert tenant.texts() == expected
    assert tenant.texts(user="tom") == ["theirs"]
    sequences = [message.sequence for message in tenant.messages()]
    assert outcome.deleted_messages == len({1, 2, 3}.difference(sequences))
    assert sequences == sorted(sequences)


@pytest.mark.parametrize("missing", [Remove("x"), Replace(draft("x", "x"))])
def test_an_edit_of_nothing_is_refused_unless_it_is_allowed(tenant: Tenant, missing: Edit) -> None:
    tenant.append("a")

    with pytest.raises(MessageNotFound):
        edit(tenant, Append(draft("b", "b")), missing)
    assert tenant.texts() == ["a"], "edits are made all or none"
    edit(tenant, Append(draft("b", "b")), missing, allow_missing=True)
    assert tenant.texts() == ["a", "b"]


def test_edits_that_change_nothing_leave_the_conversation_alone(tenant: Tenant) -> None:
    written = tenant.append("a").revision

    edit(tenant, Keep(None, None), Remove("x"), allow_missing=True)

    assert tenant.store.conversations.get(tenant.read, "c", "")[0].revision == written


def numbered(number: int) -> MessageDraft:
    """A message that says whether its number is divisible by 3, of a user where it is even."""
    attributes = {"fizz": scalar_pb2.Scalar(boolean=True)} if number % 3 == 0 else None
    return draft(str(number), role="tool" if number % 2 else "user", attributes=attributes)


FIZZ = Condition("fizz", Operator.EQ, (True,))


@pytest.mark.parametrize("newest", [True, False])
def test_pages_of_a_filter_hold_every_message_that_passes_once(tenant: Tenant, newest: bool) -> None:
    drafts = [numbered(number) for number in range(31)]
    tenant.store.messages.append(tenant.write, "c", "sarah", drafts, NEW)
    query = MessageQuery("c", newest=newest, limit=4, filter=FIZZ)

    pages = []
    more = True
    while more:
        page = tenant.store.messages.list(tenant.read, query)
        pages.append([message.id for message in listed(tenant.store, tenant.read, query)])
        more = page.more
        bound = {"before_sequence": page.first_sequence} if newest else {"after_sequence": page.last_sequence}
        query = replace(query, **bound)

    assert max(map(len, pages)) <= 4
    expected = [str(number) for number in range(0, 31, 3)]
    assert [key for page in (reversed(pages) if newest else pages) for key in page] == expected


def test_a_filter_holds_beside_roles_and_bounds(tenant: Tenant) -> None:
    drafts = [numbered(number) for number in range(20)]
    tenant.store.messages.append(tenant.write, "c", "sarah", drafts, NEW)

    query = MessageQuery("c", roles=("user",), after_sequence=1, before_sequence=19, filter=Negated(FIZZ))

    found = [int(message.id) for message in listed(tenant.store, tenant.read, query)]
    assert found == [number for number in range(1, 18) if number % 3 and number % 2 == 0]
