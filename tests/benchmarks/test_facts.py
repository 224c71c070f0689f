"""The statements about people, and how well their facts are found."""

from __future__ import annotations

import pytest
from benchmarks.facts.scoring import PARTS, Part, Statement, measure, statements

from remora_server.domain.fact_patterns import EXCLUSIVE, SHARED, has_named
from remora_server.domain.fact_words import RELATIONS

PREDICATES = EXCLUSIVE | SHARED | {has_named(relation) for relation in RELATIONS}


@pytest.mark.parametrize("part", PARTS)
def test_one_statement_in_six_states_no_fact(part: Part) -> None:
    stated = statements(part)

    assert len(stated) == len({each.text for each in stated}) >= 150
    assert 6 * sum(not each.facts for each in stated) == len(stated)


def test_no_statement_is_in_both_halves() -> None:
    development, held_out = ({each.text for each in statements(part)} for part in PARTS)

    assert not development & held_out


@pytest.mark.parametrize("part", PARTS)
def test_facts_are_stated_in_the_vocabulary(part: Part) -> None:
    facts = [fact for each in statements(part) for fact in each.facts]

    assert len(facts) > 125
    assert {predicate for _, predicate, _ in facts} <= PREDICATES


def test_rules_keep_their_precision_and_recall_on_the_development_half() -> None:
    quality = measure(statements("development"))

    assert quality.precision >= 0.98
    assert quality.recall >= 0.95


def test_of_what_is_held_out_nine_facts_in_ten_are_right() -> None:
    assert measure(statements("held_out")).precision >= 0.9


@pytest.mark.parametrize("part", PARTS)
def test_nothing_is_found_where_nothing_is_stated(part: Part) -> None:
    nothing = [each for each in statements(part) if not each.facts]

    assert nothing
    assert measure(nothing).found == 0


def test_a_wrong_and_a_missed_fact_are_counted() -> None:
    quality = measure(
        [
            Statement("I live in  Rome.", frozenset({("user", "lives in", "rome"), ("user", "likes", "figs")})),
            Statement("I speak Greek.", frozenset()),
        ]
    )

    assert (quality.statements, quality.stated, quality.found, quality.right) == (2, 2, 2, 1)
    assert (quality.precision, quality.recall) == (0.5, 0.5)
    assert [each.wrong for each in quality.mistakes] == [frozenset(), {("user", "speaks", "greek")}]
