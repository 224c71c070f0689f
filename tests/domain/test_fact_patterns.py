"""Facts found by patterns: what is stated is found, what is not stated by the speaker never is, on any text."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from re._constants import MAX_REPEAT, MAXREPEAT, MIN_REPEAT, POSSESSIVE_REPEAT  # type: ignore[import-not-found]
from re._parser import SubPattern  # type: ignore[import-not-found]
from re._parser import parse as sre_parse
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remora_server.domain import fact_endings, fact_objects, fact_patterns, fact_rules, statements
from remora_server.domain.fact_patterns import EXCLUSIVE, SHARED, FoundFact, facts_in, found_in, has_named
from remora_server.domain.fact_words import PLURALS, RELATIONS


def told(text: str) -> list[tuple[str, str, str]]:
    return [(fact.subject, fact.predicate, fact.object) for fact in facts_in(text)]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("My name is José.", "José"),
        ("Hi, I'm Zoë and I need help.", "Zoë"),
        ("my name is fatima", "fatima"),
        ("My name's Siobhán O'Brien.", "Siobhán O'Brien"),
        ("I'm called Pieter van der Berg.", "Pieter van der Berg"),
        ("My name is Łukasz Żółć.", "Łukasz Żółć"),
    ],
)
def test_names_of_all_languages_are_whole(text: str, name: str) -> None:
    assert told(text) == [("user", "is named", name)]


def test_a_place_ends_where_its_clause_does() -> None:
    assert told("I live in Berlin with my wife.") == [("user", "lives in", "Berlin")]
    assert told("I live in the Netherlands since 2019.") == [("user", "lives in", "Netherlands")]
    assert told("We live in Portland, Oregon, near the river.") == [("user", "lives in", "Portland, Oregon")]


@pytest.mark.parametrize(
    ("text", "things"),
    [
        ("I like tea, the laptop is in room 3.", ["tea"]),
        ("I like coffee and the office was near a café.", ["coffee"]),
        ("I am allergic to nuts, shrimp was fine yesterday.", ["nuts"]),
        ("I like jazz, please play some.", ["jazz"]),
        ("I like dogs and people who are kind.", ["dogs", "people"]),
        ("I'm allergic to shellfish, by the way.", ["shellfish"]),
        ("I'm allergic to shellfish, sadly", ["shellfish"]),
        ("I like tea and cake, to be honest.", ["tea", "cake"]),
        ("I'm allergic to nuts, BTW", ["nuts"]),
        ("I'm allergic to nuts, obviously, shellfish and eggs.", ["nuts", "shellfish", "eggs"]),
        ("I'm allergic to nuts, shellfish, and unfortunately cats.", ["nuts", "shellfish", "cats"]),
        ("I like tea, too, and coffee.", ["tea", "coffee"]),
    ],
)
def test_a_list_ends_where_another_clause_begins(text: str, things: list[str]) -> None:
    assert [found for _, _, found in told(text)] == things


def test_a_move_says_where_somebody_lives_now() -> None:
    found = facts_in("I moved from Berlin to Munich last year.")

    assert found == [
        FoundFact("user", "lives in", "Munich", True, 0.9, "I moved from Berlin to Munich last year."),
    ]


def test_one_sentence_may_state_several_facts() -> None:
    assert told("I live in Leeds and work as a nurse at St. Mary's Hospital.") == [
        ("user", "lives in", "Leeds"),
        ("user", "works at", "St. Mary's Hospital"),
        ("user", "works as", "nurse"),
    ]


def test_lists_are_a_fact_for_each_part() -> None:
    assert [each for *_, each in told("I love hiking, tennis and fish and chips.")] == [
        "hiking",
        "tennis",
        "fish and chips",
    ]


def test_relatives_are_known_by_their_names_or_by_their_relation() -> None:
    assert told("My sister Zoë lives in Rome.") == [("user", "has a sister named", "Zoë"), ("Zoë", "lives in", "Rome")]
    assert told("My boss lives in Rome.") == [("user's boss", "lives in", "Rome")]


def test_what_is_said_of_one_of_several_sisters_excludes_nothing() -> None:
    [sister] = facts_in("My sister lives in Rome.")
    [mother] = facts_in("My mother lives in Rome.")

    assert not sister.exclusive
    assert mother.exclusive


def test_dates_are_as_said() -> None:
    assert told("My birthday is on the 4th of May.") == [("user", "was born on", "4th of May")]
    assert told("I was born on 4 May 1985 in Lisbon.") == [
        ("user", "was born on", "4 May 1985"),
        ("user", "was born in", "Lisbon"),
    ]


def test_why_somebody_is_told_is_no_condition() -> None:
    allergic = [("user", "is allergic to", "shellfish")]

    assert told("And remember that I am allergic to shellfish, in case you book dinner on board.") == allergic
    assert told("I'm allergic to shellfish, in case anyone cooks.") == allergic
    assert told("In case I am allergic to shellfish, call a doctor.") == []
    assert told("Call me in case I move to Berlin.") == []
    assert told("I moved to Munich, in case it works out.") == []


def test_what_precedes_a_question_is_stated() -> None:
    assert told("I live in Berlin, can you recommend a restaurant?") == [("user", "lives in", "Berlin")]


def test_the_sentence_is_given_as_it_was_said() -> None:
    [fact] = facts_in('He said "no". Well,  I\u2019m vegan! Bye.')

    assert fact.sentence == "Well,  I\u2019m vegan!"


@pytest.mark.parametrize(
    ("text", "over"),
    [
        ("I no longer live in Munich.", ("user", "lives in", "Munich")),
        ("I don't live in Munich anymore.", ("user", "lives in", "Munich")),
        ("I do not live in Munich any more, sadly.", ("user", "lives in", "Munich")),
        ("We are no longer living in Munich.", ("user", "lives in", "Munich")),
        ("I used to live in Munich.", ("user", "lives in", "Munich")),
        ("I moved out of Munich last year.", ("user", "lives in", "Munich")),
        ("I have moved away from Munich.", ("user", "lives in", "Munich")),
        ("I am not vegetarian any longer.", ("user", "follows a diet", "vegetarian")),
        ("I used to be a vegetarian.", ("user", "follows a diet", "vegetarian")),
        ("I used to work at Acme.", ("user", "works at", "Acme")),
        ("I stopped working at Acme.", ("user", "works at", "Acme")),
        ("I finally quit my job at Acme.", ("user", "works at", "Acme")),
        ("I've left Acme for Globex.", ("user", "works at", "Acme")),
        ("I was laid off from Acme in May.", ("user", "works at", "Acme")),
        ("I'm not a nurse anymore.", ("user", "works as", "nurse")),
        ("I used to like sushi.", ("user", "likes", "sushi")),
        ("I don't like coffee any more.", ("user", "likes", "coffee")),
        ("I stopped playing the violin years ago.", ("user", "plays", "violin")),
        ("We no longer have a dog named Rex.", ("user", "has a dog named", "Rex")),
        ("I'm no longer allergic to nuts.", ("user", "is allergic to", "nuts")),
        ("I sold my Tesla to my brother.", ("user", "owns", "Tesla")),
        ("My sister no longer lives in Rome.", ("user's sister", "lives in", "Rome")),
        ("My boss isn't vegan anymore.", ("user's boss", "follows a diet", "vegan")),
        ("My brother left Acme.", ("user's brother", "works at", "Acme")),
        ("My favorite color is no longer blue.", ("user's favorite color", "is", "blue")),
        ("My favorite band isn't Queen anymore.", ("user's favorite band", "is", "Queen")),
        ("I don't live in Munich.", ("user", "lives in", "Munich")),
        ("I don't live in Munich but near it.", ("user", "lives in", "Munich")),
        ("I'm not allergic to nuts.", ("user", "is allergic to", "nuts")),
        ("I am not a vegetarian, sadly.", ("user", "follows a diet", "vegetarian")),
        ("I don't have a dog named Rex.", ("user", "has a dog named", "Rex")),
        ("I don't speak any German.", ("user", "speaks", "German")),
        ("My name isn't Bob.", ("user", "is named", "Bob")),
        ("My favorite color is not blue.", ("user's favorite color", "is", "blue")),
        ("My sister does not live in Rome.", ("user's sister", "lives in", "Rome")),
        ("My wife and I don't live in Rome.", ("user", "lives in", "Rome")),
        ("I don't have a dog named Rex but a cat named Tom.", ("user", "has a dog named", "Rex")),
        ("I don't speak French, only German.", ("user", "speaks", "French")),
        ("I no longer speak French - only German.", ("user", "speaks", "French")),
        ("In 2020 I left Acme.", ("user", "works at", "Acme")),
        ("At Christmas I no longer live in Munich.", ("user", "lives in", "Munich")),
        ("In fact I don't live in Munich.", ("user", "lives in", "Munich")),
        ("I don't hate cats, I love them.", ("user", "dislikes", "cats")),
        ("I no longer work at Acme and I love it!", ("user", "works at", "Acme")),
    ],
)
def test_what_no_longer_holds_ends_and_is_no_fact(text: str, over: tuple[str, str, str]) -> None:
    assert over in ends_in(text)
    assert told(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "I don't live in Munich in winter. I'm not only a nurse. I'm not a nurse yet. I don't like sushi that much.",
        "I don't speak much French. I don't speak French well. I don't like coffee any more than you do.",
        "I have not joined Acme. I never worked at Acme. I don't like jazz, I love it! My name isn't just Bob.",
        "I don't love coffee, but I like it. I don't like coffee because of its taste, but to wake up.",
        "I don't permanently live in Munich. I'm not officially diabetic. I'm not 100% vegan.",
        "I don't speak perfect French. I'm not fluent in French. I don't live in the center of Munich.",
        "I'm not a nurse at Acme. I'm not the CEO of Acme. I don't work at Acme as a nurse.",
        "I don't work as a nurse at Acme. I'm not studying law at Lincoln High. I'm not a fan of living in Munich.",
        "In winter I don't live in Munich. On weekends, I don't work at Acme. On days I don't work at Acme, I sleep.",
        "At home I don't speak French. This week I don't work at Acme. Officially, I'm not vegan.",
        "I don't think I live in Munich. Pretend I don't live in Munich. You said I don't live in Munich.",
        "If I don't live in Munich, tell me. I don't live in Munich? It's not that I don't like jazz.",
        "I don't teach math at Lincoln High. I no longer teach math at Lincoln High.",
        "I never stopped working at Acme. I almost quit my job at Acme. I haven't left Acme.",
        "I don't live in Munich anymore, said Anna.",
        "Anna says I no longer live in Munich. If I no longer live in Munich, tell me.",
        "Do I no longer live in Munich? I no longer live in Munich?",
        "I left Acme a voicemail. I left Acme at five. I left Acme off the list. I left Acme with a smile.",
        "I don't like coffee any more than tea. I don't want to live in Munich anymore.",
        "I no longer work full-time at Acme. I no longer live alone in Munich. I no longer only work at Acme.",
        "I no longer play tennis on Sundays. I don't speak German to my kids anymore. I like coffee less.",
        "I'm no longer a strict vegan. I'm no longer severely allergic to nuts.",
        "I stopped working at Acme at five. I stopped in Munich. I got used to living in Munich.",
        "I think I no longer live in Munich. I would no longer live in Munich.",
        "I moved out of my flat in Munich. I moved out of Munich for a week.",
        "I used to live in Munich and I live there again. I used to work at Acme, and now I'm back at Acme.",
        '"I no longer live in Munich."',
    ],
)
def test_what_may_still_hold_does_not_end(text: str) -> None:
    assert ends_in(text) == []


def test_what_has_ended_is_found_in_the_order_of_saying() -> None:
    text = "I no longer live in Munich, I live in Berlin. I used to like tea, and I stopped working at Acme."

    assert [(fact.object, fact.ends) for fact in found_in(text)] == [
        ("Munich", True),
        ("Berlin", False),
        ("tea", True),
        ("Acme", True),
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("I live in Munich. I no longer live in Munich.", [False, True]),
        ("I no longer live in Munich. I live in Munich again.", [False]),
        ("I live in Munich. I no longer live in Munich. I live in Munich again.", [False]),
        ("I no longer live in Munich. I no longer live in Munich.", [True]),
    ],
)
def test_what_a_text_says_last_of_a_fact_holds(text: str, found: list[bool]) -> None:
    assert [fact.ends for fact in found_in(text)] == found


def test_of_what_is_said_again_the_last_place_counts() -> None:
    assert [each for *_, each in told("I live in Bern. I moved to Rome. I live in Bern again.")] == ["Rome", "Bern"]


def test_what_ends_takes_no_names_with_it() -> None:
    assert ends_in("My sister Anna no longer lives in Rome.") == [("Anna", "lives in", "Rome")]
    assert ends_in("I no longer live in Rome, with my wife Ada.") == [("user", "lives in", "Rome")]


def test_what_stands_beside_what_ends_is_found() -> None:
    assert told("I live in Berlin and no longer work at Acme.") == [("user", "lives in", "Berlin")]
    assert ends_in("I live in Berlin and no longer work at Acme.") == [("user", "works at", "Acme")]


def ends_in(text: str) -> list[tuple[str, str, str]]:
    return [(fact.subject, fact.predicate, fact.object) for fact in found_in(text) if fact.ends]


@pytest.mark.parametrize(
    "text",
    [
        "I don't live in Berlin.",
        "I no longer live in Berlin.",
        "I used to live in Berlin.",
        "Not that I live in Berlin.",
        "I live in Berlin no longer.",
        "She said: I live in Paris. I work at Renault.",
        "He told me he works at Renault.",
        "My brother thinks I live in Paris.",
        "I live in Paris, she said.",
        "According to the letter, I live in Paris.",
        "John: I live in Paris.",
        "If I lived in Rome, I would work at Ferrari.",
        "I would like to live in Rome and work at Ferrari.",
        "I wish I lived in Rome.",
        "I might move to Rome.",
        "I'm moving to Rome next year.",
        "Imagine the following. I live in Rome.",
        "In my dream I live in Rome.",
        "Do I live in Rome?",
        "Should I say that I work at Renault?",
        "As long as I live in Rome, I pay rent.",
        "For example, I live in Rome.",
        "In theory I live in Rome.",
        "I think I'm allergic to nuts.",
        "I hope that I live in Rome.",
        "My doctor thinks that I'm allergic to nuts.",
        "Tell them my name is Bob.",
        "Nobody knows that I live in Rome.",
        "I have no dog named Rex.",
        "Neither my wife nor I live in Rome.",
        "My sister said she lives in Rome.",
        "My sister's boss lives in Rome.",
        "My character lives in Rome and works as a spy.",
        "I work as hard as I can. I work out at the gym. I work for a living. I work at a desk.",
        "I'm a terrible cook. I'm a bad driver. I'm a writer at heart. I'm no doctor.",
        "I moved to Finance. We moved to Postgres. I moved to tears.",
        "I like this one. I like your idea. I love that song. I hate to bother you. I like option B.",
        "I have a flat tire. I have a phone interview. I have a dog walker. I have the house to myself.",
        "I play it safe. I play by the rules. I drive a hard bargain. I own my mistakes.",
        "I'm from HR. I'm from the future. I come from a family of doctors.",
        "I moved to step 3. I moved from sales to marketing. I started at Line 10. I joined the tables on id.",
        "I work at scale. I work in VS Code. I work as expected. I study the logs. I'm from the QA team.",
        "I play the video and it freezes. I have a child process named Worker. I have a pet project called Zephyr.",
        "I like the approach in the second snippet. I own the repo? I'm married to the idea. Call me ASAP.",
        "I'm Java-certified. I'm German-speaking. I am 5 minutes late. I am 30% done. I speak no German.",
        "I have a history of diabetes in my family. I eat raw fish. I'm in Rome. I have no allergies.",
        "I LIVE IN ROME",
        "I Am Looking For A Job",
        "I live in Rome, do I not?",
        "```\nI live in Rome.\n```",
        "`I live in Rome`",
        "> I live in Rome.",
        "“I live in Rome”",
        "'I live in Rome' is a sentence.",
        "Translate this:\nI live in Rome.",
        "Translate this:\n\nI live in Rome.",
        "I like it. I love you. I have a question. I work from home. I'm tired.",
        "",
    ],
)
def test_what_is_not_stated_is_no_fact(text: str) -> None:
    assert told(text) == []


STATED = st.sampled_from(
    [
        "I live in Lisbon",
        "I work at Siemens",
        "I work as a baker",
        "my name is Ada",
        "I like tennis",
        "I am allergic to nuts",
        "I speak Polish",
        "my sister lives in Rome",
        "I was born on 4 May 1985",
        "I have two dogs",
    ]
)
UNSTATED = st.sampled_from(
    [
        'She wrote "{}."',
        "He said: {}.",
        "“{}”, that is the title.",
        "`{}`",
        "> {}.",
        "```\n{}\n```",
        "It is not true that {}.",
        "It's false that {}.",
        "If {}, tell me.",
        "I wish that {}.",
        "Is it known that {}?",
        "My boss says {}.",
        "Pretend that {}.",
        "I never said that {}.",
        "I don't think {}.",
        "Anna says, {}.",
    ]
)


@given(STATED)
def test_a_plain_statement_is_found(sentence: str) -> None:
    assert told(f"{sentence}.")


@given(UNSTATED, STATED)
def test_nothing_of_a_quoted_denied_or_imagined_statement_is_found(template: str, sentence: str) -> None:
    assert told(template.format(sentence)) == []


WORDS = st.lists(
    st.sampled_from(
        "I my name is am live in work at and , . ? ! : ; \" ' “ ” ` ``` \n > Anna van 4 May not if said have a dog "
        "named sister's".split(" ")
    ),
    max_size=60,
).map(" ".join)


@given(st.one_of(st.text(), WORDS))
def test_any_text_is_read_and_facts_are_of_the_vocabulary(text: str) -> None:
    for fact in found_in(text):
        known = EXCLUSIVE | SHARED | {has_named(each) for each in RELATIONS | set(PLURALS.values())}
        assert fact.predicate in known
        assert fact.subject
        assert fact.object
        assert fact.sentence in text
        assert 0 < fact.confidence < 1


HOSTILE = [
    '"',
    "'",
    "'a",
    "“",
    "«",
    "`",
    "`a",
    "```\n",
    ".",
    ".)",
    "! ",
    "\n",
    " \n",
    "a",
    "I live in ",
    "I live in Rome. ",
    "I live in A. ",
    "my sister ",
    "I, ",
    "a: ",
    "and I ",
    "> ",
    "- ",
    "\t",
    "I have a a a a, ",
    "I'm ",
    " ",
]


@pytest.mark.parametrize("part", HOSTILE)
def test_a_long_text_of_anything_is_read(part: str) -> None:
    facts_in(part * (2**17 // len(part)))


@pytest.mark.slow
def test_a_mebibyte_of_everything_is_read() -> None:
    every = "".join(part * 20 + "\n\n" for part in HOSTILE)

    facts_in(every * (2**20 // len(every)))


def calls(text: str) -> int:
    """How many functions are called, built-in ones among them, to find the facts of a text."""
    count = 0

    def profile(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        facts_in(text)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("part", HOSTILE)
def test_twice_the_text_takes_at_most_about_twice_the_calls(part: str) -> None:
    facts_in(part * 10)
    once, twice = calls(part * 2_000), calls(part * 4_000)

    assert twice <= 2.1 * once + 100


def test_no_pattern_repeats_without_bound_what_it_repeats_without_bound() -> None:
    patterns = [
        each
        for module in (fact_endings, fact_objects, fact_patterns, fact_rules, statements)
        for each in patterns_of(vars(module).values())
    ]

    assert len(patterns) > 50
    assert [pattern.pattern for pattern in patterns if depth(sre_parse(pattern.pattern, pattern.flags)) > 1] == []


def patterns_of(values: Iterable[object]) -> list[re.Pattern[str]]:
    """The patterns among values, in tuples and in rules."""
    found: list[re.Pattern[str]] = []
    for value in values:
        if isinstance(value, re.Pattern):
            found.append(value)
        elif isinstance(value, fact_rules.Rule):
            found.append(value.head)
        elif isinstance(value, tuple):
            found += patterns_of(value)
    return found


def depth(parsed: object) -> int:
    """How many repetitions without a bound stand within each other at most."""
    if isinstance(parsed, tuple) and parsed and parsed[0] in (MAX_REPEAT, MIN_REPEAT, POSSESSIVE_REPEAT):
        _, most, repeated = parsed[1]
        return (most is MAXREPEAT) + depth(repeated)
    if isinstance(parsed, SubPattern):
        parsed = parsed.data
    return max(map(depth, parsed), default=0) if isinstance(parsed, tuple | list) else 0
