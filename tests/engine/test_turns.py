"""Turns of background work: whose is next, and who waits for the end of a pause."""

from __future__ import annotations

from tests.patience import PATIENCE

from remora_server.engine.turns import Turns

ONE, TWO = ("acme", "one"), ("acme", "two")


def failed(turns: Turns, wait: float = 0.0) -> None:
    """A turn of the first conversation that fails."""
    turns.wait(ONE, 1)
    assert turns.next() == (ONE, 1)
    turns.failed(ONE, "the model is down", wait)
    turns.over(ONE)


def test_what_is_written_during_a_pause_does_not_end_it() -> None:
    turns = Turns()
    failed(turns, wait=2 * PATIENCE)

    turns.wait(ONE, 2)
    turns.wait(TWO, 3)

    assert turns.next() == (TWO, 3)


def test_the_turn_after_a_pause_sees_what_was_written_during_it() -> None:
    turns = Turns()
    failed(turns)

    turns.wait(ONE, 2)

    assert turns.next() == (ONE, 2)


def test_a_turn_after_a_pause_that_is_queued_again_comes_at_once() -> None:
    turns = Turns()
    failed(turns)
    assert turns.next() == (ONE, 0)

    turns.wait(ONE, 4)
    turns.over(ONE)

    assert turns.next() == (ONE, 4)
    assert turns.succeeded(ONE)


def test_a_conversation_has_one_turn_at_a_time() -> None:
    turns = Turns()
    turns.wait(ONE, 1)
    assert turns.next() == (ONE, 1)

    turns.wait(ONE, 2)
    turns.wait(TWO, 3)

    assert turns.next() == (TWO, 3)
    turns.over(ONE)
    assert turns.next() == (ONE, 2)
