"""What is wrong with a history."""

from __future__ import annotations

from hypothesis import given
from tests.domain.histories import HISTORIES, Said, SaidHistory

from remora_server.domain.chat_faults import Fault, FaultKind, faults
from remora_server.domain.tool_pairs import uses_of


def found(*messages: tuple[int, list[str], list[str]]) -> list[tuple[int, FaultKind, str]]:
    """What is wrong with messages of these indexes, calls and results."""
    uses = [use for message in messages for use in uses_of(*message)]
    return [(fault.index, fault.kind, fault.id) for fault in faults([], uses)]


def test_a_history_whose_calls_are_answered_has_no_faults() -> None:
    assert found((1, ["a", "b"], []), (2, [], ["a"]), (5, [], ["b"]), (6, ["a"], []), (7, [], ["a"])) == []


def test_each_fault_is_named_with_its_message() -> None:
    assert found((0, [], ["a"])) == [(0, FaultKind.ORPHAN_RESULT, "a")]
    assert found((0, ["a"], [])) == [(0, FaultKind.DANGLING_CALL, "a")]
    assert found((0, ["a"], []), (1, [], ["a"]), (2, [], ["a"])) == [(2, FaultKind.DUPLICATE_RESULT, "a")]
    assert found((0, ["a", "a"], []), (1, [], ["a"])) == [(0, FaultKind.DUPLICATE_CALL_ID, "a")]


def test_a_result_before_its_call_is_none_of_that_call() -> None:
    assert found((0, [], ["a"]), (3, ["a"], [])) == [
        (0, FaultKind.RESULT_BEFORE_CALL, "a"),
        (3, FaultKind.DANGLING_CALL, "a"),
    ]


def test_a_call_with_the_id_of_an_open_one_leaves_that_one_dangling() -> None:
    assert found((0, ["a"], []), (1, ["a"], []), (2, [], ["a"])) == [
        (0, FaultKind.DANGLING_CALL, "a"),
        (1, FaultKind.DUPLICATE_CALL_ID, "a"),
    ]


def test_an_id_of_two_messages_is_named_with_the_first() -> None:
    (fault,) = faults(["m", "", "n", "", "m"], [])

    assert fault == Fault(4, FaultKind.DUPLICATE_MESSAGE_ID, "m", "The message has the id 'm' of message 0.")


@given(HISTORIES)
def test_faults_come_by_index_and_name_an_id_of_their_message(messages: list[Said]) -> None:
    reported = faults([], SaidHistory(messages).tool_uses(0, len(messages)))

    assert [fault.index for fault in reported] == sorted(fault.index for fault in reported)
    for fault in reported:
        message = messages[fault.index]
        assert fault.id in (*message.calls, *message.answers)
