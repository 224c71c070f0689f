"""Outcomes of writes."""

from dataclasses import fields, replace

from remora_server.domain.calls import Outcome, Placed


def test_an_outcome_at_a_revision_is_the_same_in_all_else() -> None:
    outcome = Outcome(0, "c", 1, (Placed("m", 1, 1, replaced=False),), True, True, 2, 3, 4, 5)

    assert all(getattr(outcome, field.name) for field in fields(Outcome) if field.name != "revision")
    assert outcome.at(7) == replace(outcome, revision=7)
