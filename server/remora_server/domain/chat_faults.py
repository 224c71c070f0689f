"""Faults for which a provider may refuse a history: calls without results, results without calls, repeated ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

from msgspec import Struct

from remora_server.domain.tool_pairs import ToolUse, pair_tools


class FaultKind(Enum):
    """What is wrong with a message."""

    ORPHAN_RESULT = "orphan_result"
    RESULT_BEFORE_CALL = "result_before_call"
    DUPLICATE_RESULT = "duplicate_result"
    DANGLING_CALL = "dangling_call"
    DUPLICATE_CALL_ID = "duplicate_call_id"
    DUPLICATE_MESSAGE_ID = "duplicate_message_id"


class Fault(Struct, frozen=True):
    """A fault of the message with an index. `id` is that of the call or the message."""

    index: int
    kind: FaultKind
    id: str
    description: str


def faults(ids: Sequence[str], uses: Sequence[ToolUse]) -> list[Fault]:
    """The faults of messages, by index, given their ids (empty: none) and their tool calls and results."""
    return sorted((*_of_tools(uses), *_of_ids(ids)), key=lambda fault: fault.index)


def _of_tools(uses: Sequence[ToolUse]) -> Iterator[Fault]:
    pairing = pair_tools(uses)
    last_calls = {call_id: index for index, call_id, is_result in uses if not is_result}
    for index, call_id in pairing.orphans:
        later = last_calls.get(call_id)
        if later is None:
            description = f"The tool result {call_id!r} answers no call."
            yield Fault(index, FaultKind.ORPHAN_RESULT, call_id, description)
        else:
            description = f"The tool result {call_id!r} stands before its call in message {later}."
            yield Fault(index, FaultKind.RESULT_BEFORE_CALL, call_id, description)
    for caller, index, call_id in pairing.repeats:
        description = f"The tool call {call_id!r} of message {caller} has a result already."
        yield Fault(index, FaultKind.DUPLICATE_RESULT, call_id, description)
    for index, call_id in pairing.dangling:
        description = f"The tool call {call_id!r} has no result."
        yield Fault(index, FaultKind.DANGLING_CALL, call_id, description)
    for index, call_id in pairing.renewed:
        description = f"The tool call {call_id!r} has the id of a call without a result."
        yield Fault(index, FaultKind.DUPLICATE_CALL_ID, call_id, description)


def _of_ids(ids: Sequence[str]) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for index, message_id in enumerate(ids):
        if message_id and first.setdefault(message_id, index) != index:
            description = f"The message has the id {message_id!r} of message {first[message_id]}."
            yield Fault(index, FaultKind.DUPLICATE_MESSAGE_ID, message_id, description)
