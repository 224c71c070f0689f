"""The RPCs of steps: what reaches the store, and what comes back."""

from __future__ import annotations

from typing import cast

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from tests.rpc.running_server import RunningServer

from remora.v1 import history_service_pb2 as pb
from remora.v1.step_pb2 import STEP_TYPE_TEXT, Step
from remora_server.domain.calls import Outcome
from remora_server.domain.steps import StepCursor, StepDraft, StepPage, StepPosition, StepQuery

STEP = Step(
    id="s",
    conversation_id="c",
    user_id="u",
    operation_id="o",
    step_index=3,
    type=STEP_TYPE_TEXT,
    content="é",
    arguments=b"\x00a",
    create_time=Timestamp(seconds=1, nanos=2_000),
)


def test_a_step_reaches_the_store_whole(server: RunningServer) -> None:
    server.store.outcome = Outcome(revision=4)

    reply = server.call("SaveSteps", pb.SaveStepsRequest(steps=[STEP]))

    assert server.store.asked["save_steps"][1] == [
        StepDraft("s", "c", "u", "o", 3, 1_000_002, STEP.SerializeToString())
    ]
    assert reply == pb.SaveStepsResponse(revision=4)


def test_a_steps_time_is_cut_to_microseconds(server: RunningServer) -> None:
    step = Step()
    step.CopyFrom(STEP)
    step.create_time.nanos = 2_999

    server.call("SaveSteps", pb.SaveStepsRequest(steps=[step]))

    (draft,) = cast("list[StepDraft]", server.store.asked["save_steps"][1])
    assert draft.create_time == 1_000_002
    assert Step.FromString(draft.body) == STEP


def test_a_step_without_a_time_has_none(server: RunningServer) -> None:
    server.call("SaveSteps", pb.SaveStepsRequest(steps=[Step(id="s", conversation_id="c", type=STEP_TYPE_TEXT)]))

    (draft,) = cast("list[StepDraft]", server.store.asked["save_steps"][1])
    assert draft.create_time is None


CURSOR = StepCursor(StepPosition(-3, 2**64 - 1, 7), 4)


def query_of(server: RunningServer, **fields: object) -> StepQuery:
    server.call("ListSteps", pb.ListStepsRequest(**{"conversation_id": "c", **fields}))  # type: ignore[arg-type]
    return cast("StepQuery", server.store.asked["list_steps"][1])


def test_all_steps_are_listed_unless_asked_otherwise(server: RunningServer) -> None:
    assert query_of(server) == StepQuery("c", last=None, limit=100, skip=0)


def test_steps_are_listed_as_asked(server: RunningServer) -> None:
    query = query_of(server, user_id="u", operation_id="o", limit=5, page_size=2, skip=1)

    assert query == StepQuery("c", "u", "o", last=5, limit=2, skip=1)


@pytest.mark.parametrize("count", [0, 1, 200])
def test_a_page_holds_the_stores_steps_as_they_are(server: RunningServer, count: int) -> None:
    steps = [Step(id=str(number), content="x" * number) for number in range(count)]
    encoded = pb.ListStepsResponse(steps=steps).SerializeToString()
    server.store.steps = StepPage(encoded, following=None, revision=6)

    reply = server.call("ListSteps", pb.ListStepsRequest(conversation_id="c"))

    assert reply == pb.ListStepsResponse(steps=steps, revision=6)


def test_the_next_page_begins_behind_this_one(server: RunningServer) -> None:
    server.store.steps = StepPage(b"", following=CURSOR, revision=6)
    fields = {"conversation_id": "c", "page_size": 3, "skip": 10}

    first = cast("pb.ListStepsResponse", server.call("ListSteps", pb.ListStepsRequest(**fields)))  # type: ignore[arg-type]
    second_query = query_of(server, **fields, page_token=first.next_page_token)

    assert second_query.after == CURSOR
