"""What writes make of facts in two times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from remora_server.domain.errors import FactNotFound, InvalidField
from remora_server.domain.facts import Fact, FactDraft, FactSource, Ledger, without_conversation

HOME = FactDraft("user", "lives in", "Berlin", exclusive=True, confidence=0.8)
MUNICH = replace(HOME, object="Munich")
TEA = FactDraft("user", "likes", "tea", confidence=0.5)


def said(draft: FactDraft, message: str, at: int, conversation: str = "c") -> FactDraft:
    return replace(draft, source=FactSource(conversation, message, at))


def ended(draft: FactDraft, message: str, at: int) -> FactDraft:
    return replace(said(draft, message, at), ends=True)


class Book:
    """All that was recorded, in the order of its writes."""

    def __init__(self) -> None:
        self.recorded: dict[str, Fact] = {}
        self.ceased: list[Fact] = []

    def write(self, now: int, *drafts: FactDraft) -> list[str]:
        ledger = Ledger(self.recorded.values(), now)
        ids = [fact_id for fact_id, _ in ledger.say(drafts)]
        self.keep(ledger)
        return ids

    def keep(self, ledger: Ledger) -> None:
        self.recorded = {key: fact for key, fact in self.recorded.items() if key not in ledger.removed}
        self.recorded.update({fact.id: fact for fact in ledger.written})
        self.ceased += ledger.ceased

    def times(self) -> list[tuple[str, int, int | None]]:
        """What is recorded: objects, and when they hold."""
        return sorted(((fact.object, fact.valid_from, fact.valid_to) for fact in self.recorded.values()), key=str)

    def objects(self, *, valid: int, recorded: int) -> set[str]:
        """What was known at a time of what held at a time."""
        versions = [fact for fact in (*self.recorded.values(), *self.ceased) if fact.recorded <= recorded]
        shown = [fact for fact in versions if fact.ceased is None or recorded < fact.ceased]
        return {fact.object for fact in shown if fact.holds_at(valid)}


def test_a_fact_holds_from_when_it_was_said() -> None:
    book = Book()
    (fact_id,) = book.write(100, said(HOME, "m", at=40))

    fact = book.recorded[fact_id]
    assert (fact.valid_from, fact.valid_to, fact.recorded, fact.text) == (40, None, 100, "user lives in Berlin")


def test_the_same_fact_again_is_one_fact_that_is_surer() -> None:
    book = Book()
    first = book.write(1, said(TEA, "m1", 1))
    again = book.write(2, said(replace(TEA, object="  TEA "), "m2", 2))

    (fact,) = book.recorded.values()
    assert again == first
    assert (fact.mentions, fact.confidence, [source.message_id for source in fact.sources]) == (2, 0.75, ["m1", "m2"])


def test_the_same_message_counts_once() -> None:
    book = Book()
    book.write(1, said(TEA, "m1", 1))
    book.write(2, said(TEA, "m1", 1), said(TEA, "m1", 1))

    (fact,) = book.recorded.values()
    assert (fact.mentions, fact.confidence) == (1, 0.5)


def test_of_many_sources_the_newest_are_kept() -> None:
    book = Book()
    for number in range(40):
        book.write(number + 1, said(TEA, f"m{number}", number))

    (fact,) = book.recorded.values()
    assert (fact.mentions, len(fact.sources), fact.sources[-1].message_id) == (40, 16, "m39")


def test_an_exclusive_fact_ends_the_one_before_it_in_both_times() -> None:
    book = Book()
    book.write(10, said(HOME, "m1", 5))
    book.write(20, said(MUNICH, "m2", 15))

    assert book.objects(valid=16, recorded=20) == {"Munich"}
    assert book.objects(valid=14, recorded=20) == {"Berlin"}
    assert book.objects(valid=16, recorded=19) == {"Berlin"}
    assert book.objects(valid=16, recorded=9) == set()


def test_what_is_heard_late_of_long_ago_ends_when_the_later_fact_begins() -> None:
    book = Book()
    book.write(10, said(MUNICH, "m2", 8))
    book.write(20, said(HOME, "m1", 3))

    assert book.objects(valid=5, recorded=20) == {"Berlin"}
    assert book.objects(valid=9, recorded=20) == {"Munich"}


def test_a_place_may_be_a_home_twice() -> None:
    book = Book()
    first = book.write(1, said(HOME, "m1", 1))
    book.write(2, said(MUNICH, "m2", 10))
    second = book.write(3, said(HOME, "m3", 20))

    assert first != second
    assert [book.objects(valid=time, recorded=9) for time in (5, 15, 25)] == [{"Berlin"}, {"Munich"}, {"Berlin"}]


def test_a_fact_that_is_not_exclusive_ends_none() -> None:
    book = Book()
    book.write(1, said(TEA, "m1", 1), said(replace(TEA, object="coffee"), "m1", 1))

    assert book.objects(valid=2, recorded=1) == {"tea", "coffee"}


def test_a_fact_becomes_exclusive_when_it_is_said_again_so_and_ends_what_holds_beside_it() -> None:
    book = Book()
    book.write(1, said(replace(HOME, exclusive=False), "m1", 1))
    book.write(2, said(replace(MUNICH, exclusive=False), "m2", 2))
    book.write(5, said(HOME, "m3", 5))

    assert [fact.exclusive for fact in book.recorded.values()] == [True, False]
    assert [book.objects(valid=time, recorded=5) for time in (1, 4, 5)] == [
        {"Berlin"},
        {"Berlin", "Munich"},
        {"Berlin"},
    ]
    assert book.objects(valid=5, recorded=4) == {"Berlin", "Munich"}


def test_an_exclusive_fact_stays_so_and_goes_on_when_it_is_said_again_without_that() -> None:
    book = Book()
    book.write(1, said(HOME, "m1", 1))
    book.write(2, said(replace(MUNICH, exclusive=False), "m2", 2))
    book.write(3, said(replace(HOME, exclusive=False), "m3", 3), said(replace(MUNICH, exclusive=False), "m3", 3))

    assert [fact.exclusive for fact in book.recorded.values()] == [True, False]
    assert book.objects(valid=9, recorded=3) == {"Berlin", "Munich"}


def test_an_exclusive_fact_that_is_said_again_goes_on_and_ends_what_holds_beside_it() -> None:
    book = Book()
    book.write(1, said(HOME, "m1", 1))
    book.write(2, said(replace(MUNICH, exclusive=False), "m2", 2))
    book.write(3, said(HOME, "m3", 3))

    assert [book.objects(valid=time, recorded=3) for time in (2, 3)] == [{"Berlin", "Munich"}, {"Berlin"}]


def test_a_fact_that_is_said_to_have_held_alone_before_it_was_known_holds_alone_from_when_it_was() -> None:
    book = Book()
    book.write(1, said(replace(MUNICH, exclusive=False), "m1", 1), said(replace(HOME, exclusive=False), "m3", 3))
    book.write(5, said(HOME, "m2", 2))

    assert [book.objects(valid=time, recorded=5) for time in (2, 3)] == [{"Munich"}, {"Berlin"}]


def test_of_two_that_begin_at_once_the_later_write_holds() -> None:
    book = Book()
    book.write(1, said(HOME, "m1", 1), said(MUNICH, "m1", 1))

    assert book.objects(valid=1, recorded=1) == {"Munich"}
    assert book.ceased == []


@pytest.mark.parametrize("at_once", [True, False])
def test_of_two_that_begin_at_once_the_earlier_one_is_past(at_once: bool) -> None:
    book = Book()
    steps = (said(HOME, "m1", 1), said(MUNICH, "m2", 1))
    ids = book.write(2, *steps) if at_once else [book.write(now, step)[0] for now, step in enumerate(steps, 2)]

    assert sorted(book.recorded) == sorted(ids)
    assert book.times() == [("Berlin", 1, 1), ("Munich", 1, None)]
    assert book.recorded[ids[0]].is_past
    assert [fact.object for fact in book.ceased] == ([] if at_once else ["Berlin"])


def test_what_is_past_since_it_began_goes_on_when_it_is_said_again_and_is_the_same_fact() -> None:
    book = Book()
    first = book.write(1, said(HOME, "m1", 1), said(MUNICH, "m2", 1), said(HOME, "m3", 1))

    assert first[0] == first[2]
    assert book.times() == [("Berlin", 1, None), ("Munich", 1, 1)]
    assert book.recorded[first[0]].mentions == 2


def test_what_has_ended_ends_in_both_times() -> None:
    book = Book()
    book.write(10, said(HOME, "m1", 5))
    assert book.write(20, ended(replace(HOME, object=" BERLIN "), "m2", 15)) == []

    assert book.times() == [("Berlin", 5, 15)]
    assert [book.objects(valid=time, recorded=20) for time in (14, 15)] == [{"Berlin"}, set()]
    assert book.objects(valid=15, recorded=19) == {"Berlin"}
    (fact,) = book.recorded.values()
    assert (fact.mentions, [source.message_id for source in fact.sources]) == (1, ["m1"])


@pytest.mark.parametrize(
    "draft",
    [
        ended(MUNICH, "m2", 15),
        ended(replace(HOME, predicate="works at"), "m2", 15),
        ended(replace(HOME, subject="user's sister"), "m2", 15),
        ended(HOME, "m0", 4),
    ],
)
def test_what_is_not_recorded_or_began_later_does_not_end(draft: FactDraft) -> None:
    book = Book()
    book.write(10, said(HOME, "m1", 5))
    ledger = Ledger(book.recorded.values(), 20)

    assert ledger.say([draft]) == []
    assert (ledger.written, ledger.ceased, ledger.ended) == ([], [], [])


def test_what_was_said_again_later_does_not_end_by_what_was_said_before() -> None:
    book = Book()
    book.write(10, said(HOME, "m1", 5), said(HOME, "m3", 9))
    book.write(20, ended(HOME, "m2", 7))

    assert book.times() == [("Berlin", 5, None)]


def test_without_a_source_a_fact_ends_now() -> None:
    book = Book()
    book.write(10, HOME)
    book.write(20, replace(HOME, ends=True))

    assert book.times() == [("Berlin", 10, 20)]


def test_what_ended_may_begin_again() -> None:
    book = Book()
    book.write(10, said(HOME, "m1", 5), ended(HOME, "m2", 6), ended(HOME, "m3", 7), said(HOME, "m4", 8))

    assert book.times() == [("Berlin", 5, 6), ("Berlin", 8, None)]


def test_a_text_ends_what_it_said_before_and_not_what_it_says_afterwards() -> None:
    book = Book()
    book.write(10, said(HOME, "m1", 5), ended(HOME, "m1", 5), said(MUNICH, "m1", 5))
    book.write(10, ended(TEA, "m1", 5), said(TEA, "m1", 5))

    assert book.times() == [("Berlin", 5, 5), ("Munich", 5, None), ("tea", 5, None)]


def test_a_ledger_tells_what_ended_of_what_was_recorded_and_of_what_it_records() -> None:
    book = Book()
    (home,) = book.write(10, said(HOME, "m1", 5))
    ledger = Ledger(book.recorded.values(), 20)
    [(tea, _), _] = ledger.say(
        [said(TEA, "m2", 15), ended(TEA, "m3", 16), said(MUNICH, "m3", 16), ended(HOME, "m3", 16)]
    )

    assert (ledger.ended, ledger.ended_before) == ([tea, home], [home])


def test_what_another_one_ends_is_not_told() -> None:
    book = Book()
    book.write(10, said(HOME, "m1", 5))
    ledger = Ledger(book.recorded.values(), 20)
    ledger.say([said(MUNICH, "m3", 16)])

    assert ledger.ended == []


def test_a_fact_that_is_given_an_end_was_recorded_without_one() -> None:
    book = Book()
    book.write(10, replace(TEA, valid_from=1))
    book.write(20, replace(TEA, valid_from=1, valid_to=15))

    assert book.objects(valid=16, recorded=20) == set()
    assert book.objects(valid=16, recorded=19) == {"tea"}


def test_a_fact_cannot_end_before_it_begins() -> None:
    with pytest.raises(InvalidField, match=r"facts\[1\]\.valid_to"):
        Book().write(10, TEA, replace(HOME, valid_from=9, valid_to=9))


def test_when_a_fact_began_that_had_ended_is_not_known() -> None:
    book = Book()
    book.write(10, replace(HOME, valid_to=9))

    assert [fact.valid_from for fact in book.recorded.values()] == [9]
    assert book.objects(valid=9, recorded=10) == set()


@pytest.mark.parametrize("ended", [5, 8])
def test_what_had_ended_when_it_was_said_ends_no_other(ended: int) -> None:
    book = Book()
    book.write(10, replace(MUNICH, valid_from=5))
    book.write(20, replace(HOME, valid_to=ended))

    assert [book.objects(valid=time, recorded=20) for time in (5, 8, 20)] == [{"Munich"}] * 3


def test_what_had_ended_stays_when_another_begins_and_ends_none_that_is_said_again() -> None:
    book = Book()
    book.write(10, replace(HOME, valid_to=5), replace(HOME, object="Bern", valid_to=8))
    book.write(20, replace(MUNICH, valid_from=5))
    book.write(30, said(MUNICH, "m", 25), replace(HOME, valid_to=5))

    assert [book.objects(valid=time, recorded=30) for time in (5, 8, 30)] == [{"Munich"}] * 3
    assert sorted((fact.object, fact.mentions) for fact in book.recorded.values()) == [
        ("Berlin", 2),
        ("Bern", 1),
        ("Munich", 2),
    ]


def test_what_had_ended_may_begin_again_at_once() -> None:
    book = Book()
    book.write(10, replace(HOME, valid_to=5))
    book.write(20, replace(HOME, valid_from=5))

    assert [book.objects(valid=time, recorded=20) for time in (4, 5, 20)] == [set(), {"Berlin"}, {"Berlin"}]


def test_what_had_ended_when_it_was_said_can_be_corrected() -> None:
    book = Book()
    (wrong,) = book.write(10, replace(HOME, valid_to=9))
    ledger = Ledger(book.recorded.values(), 20)
    right = ledger.correct(wrong, MUNICH)
    book.keep(ledger)

    assert [(fact.id, fact.valid_from, fact.valid_to) for fact in book.recorded.values()] == [(right, 9, 9)]


def test_a_correction_may_say_that_a_fact_had_ended_before() -> None:
    book = Book()
    (wrong,) = book.write(10, replace(HOME, valid_from=5))
    ledger = Ledger(book.recorded.values(), 20)
    with pytest.raises(InvalidField, match=r"fact\.valid_to"):
        ledger.correct(wrong, replace(HOME, valid_from=4, valid_to=3))
    ledger.correct(wrong, replace(HOME, valid_to=3))
    book.keep(ledger)

    assert [(fact.valid_from, fact.valid_to) for fact in book.recorded.values()] == [(3, 3)]


def test_a_retracted_fact_was_recorded_until_now() -> None:
    book = Book()
    (fact_id,) = book.write(10, TEA)
    ledger = Ledger(book.recorded.values(), 20)

    assert (ledger.retract(fact_id), ledger.retract(fact_id), ledger.retract("x")) == (True, False, False)
    book.keep(ledger)
    assert (book.objects(valid=30, recorded=19), book.objects(valid=30, recorded=20)) == ({"tea"}, set())


def test_a_correction_holds_since_what_it_corrects_did() -> None:
    book = Book()
    (wrong,) = book.write(10, said(HOME, "m", 4))
    ledger = Ledger(book.recorded.values(), 20)
    right = ledger.correct(wrong, replace(HOME, object="Bern"))
    book.keep(ledger)

    assert (book.recorded[right].corrects, book.recorded[right].valid_from) == (wrong, 4)
    assert (book.objects(valid=5, recorded=19), book.objects(valid=5, recorded=20)) == ({"Berlin"}, {"Bern"})
    with pytest.raises(FactNotFound):
        ledger.correct("x", HOME)


def test_facts_whose_texts_have_a_nul_in_another_place_are_two() -> None:
    book = Book()
    book.write(1, replace(TEA, subject="a\0b", predicate="c"), replace(TEA, subject="a", predicate="b\0c"))

    assert len(book.recorded) == 2


def test_a_fact_without_its_conversation_stays_only_if_it_was_said_elsewhere() -> None:
    book = Book()
    book.write(1, said(TEA, "m1", 1, "a"), said(TEA, "m2", 2, "b"), said(HOME, "m1", 0, "a"), MUNICH)
    kept = [without_conversation(fact, "a") for fact in book.recorded.values()]

    assert [fact and (fact.object, len(fact.sources)) for fact in kept] == [("tea", 1), None, ("Munich", 0)]


def test_a_fact_that_a_caller_told_too_stays_without_the_conversation_that_said_it() -> None:
    book = Book()
    book.write(1, TEA, said(TEA, "m1", 1, "a"), said(TEA, "m2", 2, "a"))

    [kept] = [without_conversation(fact, "a") for fact in book.recorded.values()]

    assert kept is not None
    assert (kept.mentions, kept.sources) == (1, ())


def test_a_fact_that_one_conversation_repeats_stays_with_what_another_said_before() -> None:
    book = Book()
    repeats = [said(TEA, f"m{number}", number, "b") for number in range(2, 20)]
    book.write(1, said(TEA, "m1", 1, "a"), *repeats)
    [fact] = book.recorded.values()

    assert (fact.mentions, len(fact.sources), len(fact.earlier)) == (19, 16, 3)
    kept = without_conversation(fact, "b")
    assert kept is not None
    assert (kept.mentions, kept.sources, kept.earlier) == (1, (), fact.earlier[:1])
    assert without_conversation(kept, "a") is None
    [*_, other] = [without_conversation(fact, "a")]
    assert other is not None
    assert without_conversation(other, "b") is None


def test_a_fact_that_one_conversation_said_more_often_than_is_kept_goes_with_it() -> None:
    book = Book()
    book.write(1, TEA, *[said(TEA, f"m{number}", number, "a") for number in range(1_020)])

    [fact] = book.recorded.values()
    assert (fact.mentions, len(fact.earlier)) == (1_021, 1_000)
    assert without_conversation(fact, "a") is None


@pytest.mark.parametrize("count", [10, 40])
def test_messages_that_are_read_again_are_counted_once(count: int) -> None:
    book = Book()
    drafts = [said(TEA, f"m{number}", number, "a") for number in range(count)]
    for time in range(3):
        book.write(time + 1, *drafts)

    [fact] = book.recorded.values()
    newest = [f"m{number}" for number in range(count)][-16:]
    assert (fact.mentions, [source.message_id for source in fact.sources]) == (count, newest)


TIMES = st.integers(0, 12)


CITIES = st.sampled_from(["Berlin", "Munich", "Bern"])
HOMES = st.builds(
    lambda city, begins, ends, sent: replace(
        HOME, object=city, valid_from=begins, valid_to=ends, source=FactSource("c", f"m{sent}", sent)
    ),
    CITIES,
    st.none() | TIMES,
    st.none() | TIMES,
    TIMES,
)
ENDINGS = st.builds(lambda city, sent: ended(replace(HOME, object=city), f"m{sent}", sent), CITIES, TIMES)
RETRACTED = "retracted"
STEPS = st.lists(
    st.lists(HOMES | ENDINGS, min_size=1, max_size=2) | st.just(RETRACTED) | CITIES, min_size=1, max_size=8
)
"""What is said at once; or the oldest fact is retracted, or has another city."""


@given(STEPS)
def test_at_no_time_two_homes_are_known_and_what_was_known_does_not_change(steps: list[list[FactDraft] | str]) -> None:
    book, before = Book(), {}
    for now, step in enumerate(steps, 100):
        ledger = Ledger(book.recorded.values(), now)
        try:
            entered(ledger, step, min(book.recorded, default=""))
        except InvalidField:
            continue
        book.keep(ledger)
        before[now] = [book.objects(valid=time, recorded=now) for time in range(14)]
        assert all(sum(fact.holds_at(time) for fact in book.recorded.values()) <= 1 for time in range(14))

    for now, known in before.items():
        assert [book.objects(valid=time, recorded=now) for time in range(14)] == known


@given(st.lists(st.tuples(HOMES, st.booleans()), min_size=1, max_size=8))
def test_what_is_said_to_hold_alone_holds_alone_when_it_is_said(steps: list[tuple[FactDraft, bool]]) -> None:
    book = Book()
    for now, (draft, exclusive) in enumerate(steps, 100):
        try:
            (fact_id,) = book.write(now, replace(draft, exclusive=exclusive))
        except InvalidField:
            continue
        start = (
            draft.valid_from
            if draft.valid_from is not None
            else now
            if draft.source is None
            else draft.source.sent_time
        )
        assert start is not None
        if exclusive and (draft.valid_to is None or start < draft.valid_to):  # what had ended ends nothing
            fact = book.recorded[fact_id]
            assert fact.exclusive
            assert book.objects(valid=max(start, fact.valid_from), recorded=now) == {draft.object}


DRINKS = st.builds(
    lambda begins, ends, sent: replace(TEA, valid_from=begins, valid_to=ends, source=FactSource("c", f"m{sent}", sent)),
    st.none() | TIMES,
    st.none() | TIMES,
    TIMES,
) | st.builds(lambda sent: ended(TEA, f"m{sent}", sent), TIMES)


@given(st.lists(DRINKS, min_size=1, max_size=8))
def test_at_no_time_the_same_is_known_twice(drafts: list[FactDraft]) -> None:
    book = Book()
    for now, draft in enumerate(drafts, 100):
        try:
            book.write(now, draft)
        except InvalidField:
            continue
        assert all(sum(fact.holds_at(time) for fact in book.recorded.values()) <= 1 for time in range(14))


MESSAGES = st.lists(st.tuples(CITIES, st.booleans(), st.integers(0, 1)), min_size=1, max_size=8)
"""In the order of saying: a city, whether living there ends, and how much time passed."""


@given(MESSAGES, st.booleans(), st.integers(1, 8))
def test_what_is_read_again_in_its_order_changes_nothing(
    messages: list[tuple[str, bool, int]], exclusive: bool, at_once: int
) -> None:
    book, drafts, time = Book(), [], 0
    for number, (city, ends, passed) in enumerate(messages):
        time += passed
        drafts.append(said(replace(HOME, object=city, exclusive=exclusive, ends=ends), f"m{number}", time))
    for begin in range(0, len(drafts), at_once):
        book.write(100 + begin, *drafts[begin : begin + at_once])
    ledger = Ledger(book.recorded.values(), 200)
    ledger.say(drafts)

    assert (ledger.written, ledger.ceased, ledger.ended, ledger.removed) == ([], [], [], [])


@given(MESSAGES)
def test_a_home_is_the_last_that_was_said_and_has_not_ended(messages: list[tuple[str, bool, int]]) -> None:
    book, time, home = Book(), 0, set[str]()
    for number, (city, ends, passed) in enumerate(messages):
        time += passed
        book.write(100 + number, said(replace(HOME, object=city, ends=ends), f"m{number}", time))
        home = home - {city} if ends else {city}
        assert book.objects(valid=time, recorded=100 + number) == home

    stated = {city for city, ends, *_ in messages if not ends}
    assert {fact.object for fact in book.recorded.values()} == stated, "none is lost, and none made of what ends"


def test_what_had_ended_gets_no_period_of_its_own_when_it_is_said_again() -> None:
    book = Book()
    book.write(20, replace(MUNICH, valid_from=4), replace(HOME, valid_to=6), replace(HOME, valid_from=5, valid_to=10))
    book.write(30, replace(TEA, valid_to=6), replace(TEA, valid_from=6, valid_to=11))
    book.write(40, replace(TEA, valid_from=5, valid_to=10))

    assert [book.objects(valid=time, recorded=40) for time in (4, 5, 9)] == [{"Munich"}, *[{"Berlin", "tea"}] * 2]
    assert sum(fact.holds_at(7) for fact in book.recorded.values()) == 2


def test_an_end_is_that_of_what_began_last() -> None:
    book = Book()
    book.write(1, replace(TEA, valid_from=1, valid_to=3), replace(TEA, valid_from=5))
    book.write(2, replace(TEA, valid_from=2, valid_to=9))

    assert [bool(book.objects(valid=time, recorded=2)) for time in (1, 3, 5, 8, 9)] == [True] * 4 + [False]


def entered(ledger: Ledger, step: list[FactDraft] | str, oldest: str) -> None:
    match step:
        case _ if step == RETRACTED:
            ledger.retract(oldest)
        case str():
            if oldest:
                ledger.correct(oldest, replace(HOME, object=step))
        case drafts:
            ledger.say(drafts)


def test_a_home_that_is_given_a_later_end_ends_when_the_next_one_begins() -> None:
    book = Book()
    book.write(1, replace(HOME, valid_from=0), replace(MUNICH, valid_from=4))
    book.write(2, replace(HOME, valid_from=0, valid_to=9))

    assert [book.objects(valid=time, recorded=2) for time in (3, 4, 10)] == [{"Berlin"}, {"Munich"}, {"Munich"}]


def test_what_had_ended_before_a_fact_began_does_not_end_it() -> None:
    book = Book()
    book.write(1, replace(TEA, valid_from=5))
    book.write(2, replace(TEA, valid_from=0, valid_to=5))

    assert all(book.objects(valid=time, recorded=2) == {"tea"} for time in (0, 4, 5, 9))
