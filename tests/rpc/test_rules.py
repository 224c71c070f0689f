"""The rules that need more than a table."""

from __future__ import annotations

import contextlib
import math
import struct
from functools import partial

import pytest
from google.protobuf.duration_pb2 import Duration
from hypothesis import given
from hypothesis import strategies as st

from remora.v1.conversation_pb2 import Conversation
from remora.v1.message_pb2 import Embedding
from remora.v1.working_memory_pb2 import WorkingMemoryScope
from remora_server.rpc.checks.limits import _is_vector
from remora_server.rpc.checks.rules import (
    REMEMBERED_BYTES,
    MessageRules,
    Rule,
    Violation,
    duration,
    each,
    remembered,
    text,
)

IS_VECTOR = partial(_is_vector, lambda _model: 0)


def accepts(rule: Rule, value: object) -> bool:
    with contextlib.suppress(Violation):
        rule(value)
        return True
    return False


def test_a_duration_is_told_its_bounds_in_seconds() -> None:
    rule = duration(Duration(nanos=1_000_000), Duration(seconds=315_360_000))

    with pytest.raises(Violation, match=r"must be from 0\.001 to 315360000 s"):
        rule(Duration(nanos=999_999))


@given(st.text(max_size=40), st.integers(0, 80))
def test_a_texts_size_is_that_of_its_utf_8(value: str, maximum: int) -> None:
    assert accepts(text(maximum), value) == (len(value.encode()) <= maximum)


@given(st.lists(st.floats(width=32), min_size=1, max_size=50))
def test_a_vector_is_accepted_where_it_is_finite_and_not_all_zero(values: list[float]) -> None:
    good = all(map(math.isfinite, values)) and any(values)

    assert accepts(IS_VECTOR, Embedding(model="m", values=struct.pack(f"<{len(values)}f", *values))) == good


@given(st.lists(st.booleans(), max_size=20))
def test_the_first_element_that_breaks_a_rule_is_named(good: list[bool]) -> None:
    found = ""
    try:
        each(text(1, minimum=1))(["x" if is_good else "" for is_good in good])
    except Violation as violation:
        found = violation.path

    assert found == (f"[{good.index(False)}]" if False in good else "")


def test_what_passed_is_not_checked_again_unless_it_is_long() -> None:
    asked: list[str] = []

    def check(value: Conversation) -> None:
        asked.append(value.id)
        if not value.id:
            raise Violation("is required", "id")

    rule = remembered(check, Conversation)
    long = "c" * REMEMBERED_BYTES
    for name in ("c", "c", long, long):
        rule(Conversation(id=name))
    for _ in range(2):
        with pytest.raises(Violation, match="is required"):
            rule(Conversation())

    assert asked == ["c", long, long, "", ""]


def test_where_a_oneof_is_required_its_fields_are_named() -> None:
    rules = MessageRules()
    rules.require(WorkingMemoryScope.DESCRIPTOR, "owner")

    with pytest.raises(Violation, match="is required: set one of conversation_id, user_id") as refused:
        rules(WorkingMemoryScope())

    assert refused.value.path == "owner"
