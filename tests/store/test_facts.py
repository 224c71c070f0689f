"""Facts, as any store keeps them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace
from tests.store.asking import Tenant
from tests.store.asking import draft as message_draft

from remora.v1.fact_pb2 import Fact
from remora.v1.transfer_service_pb2 import Record
from remora_server import wire
from remora_server.domain.calls import Outcome
from remora_server.domain.conversations import ConversationDraft
from remora_server.domain.embedded import ItemVector
from remora_server.domain.errors import FactNotFound, InvalidField, RecordConflict
from remora_server.domain.facts import FactDraft, FactFilter, FactQuery, FactSource, FactTimes, Reading, StaticFact
from remora_server.domain.messages import Replace
from remora_server.domain.transfers import Import, ImportedRecord
from remora_server.domain.windows import WindowMoved

MODEL = "m"
HOME = FactDraft("user", "lives in", "Berlin", exclusive=True, valid_from=10)
MUNICH = replace(HOME, object="Munich", valid_from=20)
TEA = FactDraft("user", "likes", "tea", valid_from=1, confidence=0.5)
ALWAYS = FactTimes(at_any_time=True)


def said(draft: FactDraft, message: str, conversation: str = "c") -> FactDraft:
    return replace(draft, source=FactSource(conversation, message, 5))


def add(tenant: Tenant, *drafts: FactDraft, user: str = "sarah") -> list[str]:
    outcome = tenant.store.facts.add(tenant.write, user, drafts)
    return [placed.id for placed in outcome.messages]


def got(tenant: Tenant, fact_id: str, user: str = "sarah") -> Fact:
    return Fact.FromString(tenant.store.facts.get(tenant.read, user, fact_id)[0])


def listed(tenant: Tenant, passing: FactFilter | None = None, *, user: str = "sarah", limit: int = 100) -> list[Fact]:
    """The facts of all pages, the newest first."""
    facts: list[Fact] = []
    after = None
    while True:
        page = tenant.store.facts.list(tenant.read, user, passing or FactFilter(), after, limit)
        assert len(page.encoded) <= limit
        facts += map(Fact.FromString, page.encoded)
        after = page.following
        if after is None:
            return facts


def objects(tenant: Tenant, times: FactTimes = ALWAYS, user: str = "sarah") -> list[str]:
    return sorted(fact.object for fact in listed(tenant, FactFilter(times=times), user=user))


def found(tenant: Tenant, text: str, vector: Sequence[float] | None = None, times: FactTimes = ALWAYS) -> list[str]:
    packed = None if vector is None else struct.pack(f"<{len(vector)}f", *vector)
    query = FactQuery(text, times=times, model=MODEL, vector=packed)
    return [Fact.FromString(hit.encoded).object for hit in tenant.store.facts.search(tenant.read, "sarah", query).hits]


def recorded(tenant: Tenant, fact_id: str) -> int:
    return wire.micros(got(tenant, fact_id).record_time)


def test_a_fact_comes_back_as_it_was_written(tenant: Tenant) -> None:
    (fact_id,) = add(tenant, said(replace(HOME, extractor="patterns", text="Sarah lives in Berlin"), "m"))

    fact = got(tenant, fact_id)
    assert (fact.user_id, fact.subject, fact.predicate, fact.object) == ("sarah", "user", "lives in", "Berlin")
    assert (fact.text, fact.extractor, fact.confidence) == ("Sarah lives in Berlin", "patterns", 1.0)
    assert (fact.exclusive, fact.mentions, fact.HasField("valid_to")) == (True, 1, False)
    assert [(source.conversation_id, source.message_id) for source in fact.sources] == [("c", "m")]


def test_a_fact_is_found_right_after_it_was_added(tenant: Tenant) -> None:
    for number in range(10):
        add(tenant, replace(TEA, object=f"word{number}x"))
        assert found(tenant, f"word{number}x")[0] == f"word{number}x"


def test_a_fact_is_found_by_its_vector(tenant: Tenant) -> None:
    near, far = (ItemVector(MODEL, struct.pack("<2f", *values)) for values in ((1, 0), (0, 1)))
    add(tenant, replace(TEA, vector=far), replace(TEA, object="juice", vector=near))

    assert found(tenant, "x", [1, 0]) == ["juice", "tea"]


def test_facts_are_of_one_user(tenant: Tenant) -> None:
    (fact_id,) = add(tenant, TEA)

    assert objects(tenant, user="tom") == []
    with pytest.raises(FactNotFound):
        got(tenant, fact_id, "tom")
    assert tenant.store.facts.forget(tenant.write, "tom", [fact_id]).deleted_records == 0
    assert objects(tenant) == ["tea"]


def test_the_newest_fact_is_listed_first_on_pages(tenant: Tenant) -> None:
    for number in range(7):
        add(tenant, replace(TEA, object=str(number)), replace(HOME, object=f"home {number}", exclusive=False))

    facts = [fact.object for fact in listed(tenant, FactFilter(predicate="LIKES", subject=" User "), limit=2)]
    assert facts == [str(number) for number in range(6, -1, -1)]
    assert len(listed(tenant, FactFilter(predicate="likes", subject="tom"))) == 0


def test_a_contradiction_ends_a_fact_and_both_times_can_be_asked_for(tenant: Tenant) -> None:
    (home,) = add(tenant, HOME)
    before = recorded(tenant, home)
    (munich,) = add(tenant, MUNICH)
    after = recorded(tenant, munich)

    assert objects(tenant, FactTimes()) == ["Munich"]
    assert objects(tenant, FactTimes(valid_at=15)) == ["Berlin"]
    assert objects(tenant, FactTimes(recorded_at=before)) == ["Berlin"]
    assert objects(tenant, FactTimes(valid_at=25, recorded_at=after)) == ["Munich"]
    assert objects(tenant, FactTimes(valid_at=25, recorded_at=before - 1)) == []
    assert objects(tenant) == ["Berlin", "Munich"]
    assert found(tenant, "lives", times=FactTimes()) == ["Munich"]
    assert found(tenant, "lives", times=FactTimes(valid_at=15)) == ["Berlin"]


def test_the_same_fact_again_is_surer(tenant: Tenant) -> None:
    first, again = add(tenant, said(TEA, "m1")), add(tenant, said(TEA, "m2"))

    fact = got(tenant, first[0])
    assert first == again
    assert (fact.mentions, fact.confidence, len(fact.sources)) == (2, 0.75, 2)


def test_a_fact_that_has_ended_is_told_beside_those_that_are_added(tenant: Tenant) -> None:
    (tea,) = add(tenant, TEA)
    drafts = [said(replace(TEA, ends=True, valid_from=None), "m"), HOME, replace(HOME, object="Bern", ends=True)]
    ending, _ = tenant.store.facts.ending(tenant.read, "sarah", drafts)
    before = recorded(tenant, tea)
    outcome = tenant.store.facts.add(tenant.write, "sarah", drafts)

    [home] = [placed.id for placed in outcome.messages]
    assert (list(ending), outcome.ended) == ([tea], (tea,))
    assert (wire.micros(got(tenant, tea).valid_to), got(tenant, home).object) == (5, "Berlin")
    assert objects(tenant, FactTimes(valid_at=7)) == []
    assert objects(tenant, FactTimes(valid_at=7, recorded_at=before)) == ["tea"]


def test_what_ends_no_fact_is_no_write(tenant: Tenant) -> None:
    before = tenant.store.facts.static(tenant.read)[2]
    outcome = tenant.store.facts.add(tenant.write, "sarah", [replace(HOME, ends=True)])

    assert (outcome.revision, outcome.messages, outcome.ended) == (before, (), ())


def test_all_or_none_are_added(tenant: Tenant) -> None:
    with pytest.raises(InvalidField, match="valid_to"):
        add(tenant, TEA, replace(HOME, valid_from=3, valid_to=3))

    assert objects(tenant) == []


def test_a_retracted_fact_was_known_before(tenant: Tenant) -> None:
    (tea,) = add(tenant, TEA)
    known = recorded(tenant, tea)

    assert tenant.store.facts.retract(tenant.write, "sarah", [tea, tea, "lost"]).deleted_records == 1
    assert tenant.store.facts.retract(tenant.write, "sarah", [tea]).deleted_records == 0
    assert objects(tenant) == []
    assert objects(tenant, FactTimes(recorded_at=known)) == ["tea"]
    with pytest.raises(FactNotFound):
        got(tenant, tea)


def test_a_corrected_fact_is_another_one(tenant: Tenant) -> None:
    (wrong,) = add(tenant, HOME)
    outcome = tenant.store.facts.correct(tenant.write, "sarah", wrong, replace(HOME, object="Bern", valid_from=None))

    right = got(tenant, outcome.messages[0].id)
    assert (right.object, right.corrects, wire.micros(right.valid_from)) == ("Bern", wrong, 10)
    assert objects(tenant) == ["Bern"]
    with pytest.raises(FactNotFound):
        tenant.store.facts.correct(tenant.write, "sarah", wrong, HOME)


def test_what_is_forgotten_was_never_recorded(tenant: Tenant) -> None:
    (home,) = add(tenant, HOME)
    known = recorded(tenant, home)
    add(tenant, MUNICH, TEA)

    assert tenant.store.facts.forget(tenant.write, "sarah", [home, "lost"]).deleted_records == 1
    assert objects(tenant) == ["Munich", "tea"]
    assert objects(tenant, FactTimes(recorded_at=known)) == []
    assert tenant.store.facts.forget(tenant.write, "sarah", [home]).deleted_records == 0


def test_a_conversation_takes_along_what_only_it_supports(tenant: Tenant) -> None:
    add(tenant, said(TEA, "m", "a"), said(HOME, "m", "a"), replace(TEA, object="juice"))
    (tea,) = add(tenant, said(TEA, "m", "b"))

    assert tenant.store.facts.forget_conversation(tenant.write, "sarah", "a").deleted_records == 1
    assert objects(tenant) == ["juice", "tea"]
    assert [source.conversation_id for source in got(tenant, tea).sources] == ["b"]
    assert tenant.store.facts.forget_conversation(tenant.write, "sarah", "a").deleted_records == 0


def test_all_facts_of_a_user_go(tenant: Tenant) -> None:
    add(tenant, HOME, TEA)
    add(tenant, MUNICH)
    add(tenant, TEA, user="tom")

    assert tenant.store.facts.forget_all(tenant.write, "sarah").deleted_records == 3
    assert tenant.store.facts.forget_all(tenant.write, "sarah").deleted_records == 0
    assert (objects(tenant), objects(tenant, user="tom")) == ([], ["tea"])


def test_facts_go_with_their_user(tenant: Tenant) -> None:
    add(tenant, HOME)
    add(tenant, MUNICH)
    tenant.store.users.delete(tenant.write, "sarah")

    assert objects(tenant) == found(tenant, "lives") == []


def test_static_facts_are_of_the_tenant(tenant: Tenant) -> None:
    assert tenant.store.facts.static(tenant.read)[:2] == ((), None)
    outcome = set_static(tenant, StaticFact("hours", "Open 9 to 5"), StaticFact("", "Closed on Sundays"))

    facts, time, _ = tenant.store.facts.static(tenant.read)
    assert [fact.content for fact in facts] == ["Open 9 to 5", "Closed on Sundays"]
    assert [fact.id for fact in facts] == [placed.id for placed in outcome.messages]
    assert time == outcome.time

    set_static(tenant)
    assert tenant.store.facts.static(tenant.read)[0] == ()


def set_static(tenant: Tenant, *facts: StaticFact) -> Outcome:
    return tenant.store.facts.set_static(tenant.write, facts)


def test_no_static_facts_in_place_of_none_are_no_write(tenant: Tenant) -> None:
    before = tenant.store.facts.static(tenant.read)[2]

    assert set_static(tenant).revision == before


def test_facts_are_exported_and_imported_in_all_their_versions(tenant: Tenant) -> None:
    (home,) = add(tenant, HOME)
    known = recorded(tenant, home)
    add(tenant, MUNICH)
    set_static(tenant, StaticFact("hours", "Open 9 to 5"))
    records = tenant.exported()
    tenant.store.users.delete(tenant.write, "sarah")

    assert take(tenant, records) == 3
    assert take(tenant, records) == 0
    assert objects(tenant, FactTimes()) == ["Munich"]
    assert objects(tenant, FactTimes(recorded_at=known)) == ["Berlin"]
    assert found(tenant, "lives", times=FactTimes(valid_at=15)) == ["Berlin"]


def test_another_fact_of_the_same_id_is_not_imported(tenant: Tenant) -> None:
    add(tenant, HOME)
    (record,) = tenant.exported()
    record.fact.object = "Bern"

    with pytest.raises(RecordConflict):
        take(tenant, [record])


def take(tenant: Tenant, records: Sequence[Record]) -> int:
    """Import facts, without what filters see of them."""
    given = []
    for number, record in enumerate(records):
        kind = str(record.WhichOneof("kind"))
        body = getattr(record, kind)
        if kind == "fact":
            body.ClearField("indexed")
        given.append(ImportedRecord(f"records[{number}]", kind, body.SerializeToString()))
    return tenant.store.imports.store(tenant.write, Import("", records=tuple(given))).imported_records


def read_of(tenant: Tenant, through: int) -> Reading:
    """Sarah's messages of c, as they are now."""
    conversation, revision = tenant.store.conversations.get(tenant.read, "c", "")
    return Reading(revision, conversation.uid, through)


@pytest.mark.parametrize(
    "change",
    [
        lambda tenant: tenant.store.messages.delete(tenant.write, "c", "sarah", ["a"]),
        lambda tenant: tenant.store.messages.edit(
            tenant.write, "c", "sarah", [Replace(message_draft("a", "other"))], allow_missing=False
        ),
        lambda tenant: tenant.store.messages.clear(tenant.write, "c", "sarah"),
        lambda tenant: tenant.store.conversations.delete(tenant.write, "c", "", allow_missing=False),
        lambda tenant: tenant.store.users.clear(tenant.write, "sarah"),
        lambda tenant: tenant.store.users.delete(tenant.write, "sarah"),
    ],
    ids=["deleted", "replaced", "cleared", "conversation deleted", "cleared everywhere", "user deleted"],
)
def test_facts_of_messages_that_have_changed_since_they_were_read_are_not_added(
    tenant: Tenant, change: Callable[[Tenant], object]
) -> None:
    tenant.append("a", "b")
    reading = read_of(tenant, 2)
    change(tenant)

    with pytest.raises(WindowMoved):
        tenant.store.facts.add(tenant.write, "sarah", [said(TEA, "a")], reading)

    assert listed(tenant) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda tenant: tenant.store.messages.delete(tenant.write, "c", "tom", ["a"]),
        lambda tenant: tenant.store.messages.edit(
            tenant.write, "c", "tom", [Replace(message_draft("a", "other"))], allow_missing=False
        ),
        lambda tenant: tenant.store.messages.clear(tenant.write, "c", "tom"),
    ],
    ids=["deleted", "replaced", "cleared"],
)
def test_facts_of_messages_in_another_users_conversation_are_not_added_either(
    tenant: Tenant, change: Callable[[Tenant], object]
) -> None:
    tenant.append("first")
    tenant.append("a", "b", user="tom")
    reading = read_of(tenant, 3)
    change(tenant)

    with pytest.raises(WindowMoved):
        tenant.store.facts.add(tenant.write, "tom", [said(TEA, "a")], reading)

    assert objects(tenant, user="tom") == []


@pytest.mark.parametrize("user", ["sarah", "tom"])
def test_facts_of_a_message_that_is_replaced_and_pruned_in_one_write_are_not_added(tenant: Tenant, user: str) -> None:
    tenant.append("a", user=user, create=ConversationDraft("", user_id="sarah", storage_limit=2))
    reading = read_of(tenant, 1)
    drafts = [message_draft("a", "other"), message_draft("b", "b"), message_draft("c", "c")]
    tenant.store.messages.append(tenant.write, "c", user, drafts, None)

    with pytest.raises(WindowMoved):
        tenant.store.facts.add(tenant.write, user, [said(TEA, "a")], reading)

    assert objects(tenant, user=user) == []


def test_facts_of_a_user_who_is_deleted_since_are_not_added(tenant: Tenant) -> None:
    tenant.append("theirs", user="tom")
    reading = replace(read_of(tenant, 1), uid=0)
    tenant.store.users.delete(tenant.write, "sarah")

    with pytest.raises(WindowMoved):
        tenant.store.facts.add(tenant.write, "sarah", [TEA], reading)
    tenant.store.facts.add(tenant.write, "tom", [TEA], reading)

    assert (objects(tenant), objects(tenant, user="tom")) == ([], ["tea"])


def test_facts_of_messages_are_added_whatever_is_said_after_them(tenant: Tenant) -> None:
    tenant.append("a")
    reading = read_of(tenant, 1)
    tenant.append("b")
    tenant.store.messages.delete(tenant.write, "c", "sarah", ["b"])

    tenant.store.facts.add(tenant.write, "sarah", [said(TEA, "a")], reading)

    assert objects(tenant) == ["tea"]
