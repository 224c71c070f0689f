"""A Remora server that holds records: how they get there, and loads of them beside others."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from benchmarks.engines.record_calls import (
    CONVERSATIONS,
    KEYS,
    RECORD_BYTES,
    RUNS_A_TURN,
    USERS,
    puts,
    puts_to_conversations,
    run_saves,
)
from benchmarks.engines.remora import Remora
from benchmarks.engines.server import Calls
from benchmarks.loading import NUMBER_PLACE, Driven
from benchmarks.slices import Measured
from benchmarks.texts import texts

from remora.v1.history_service_pb2 import ListStepsRequest, SaveStepsRequest
from remora.v1.history_service_pb2_grpc import HistoryServiceStub
from remora.v1.memory_service_pb2 import GetWorkingMemoryRequest
from remora.v1.memory_service_pb2_grpc import MemoryServiceStub
from remora.v1.step_pb2 import STEP_TYPE_TEXT, Step
from remora.v1.workflow_service_pb2 import ListWorkflowRunsRequest
from remora.v1.workflow_service_pb2_grpc import WorkflowServiceStub
from remora.v1.working_memory_pb2 import WorkingMemoryScope

FILL_SECONDS = 300.0
CALL_SECONDS = 60.0
FILL_CONNECTIONS, FILL_STREAMS = 8, 32
"""As many calls at a time as find room."""

FILL_BATCH = 20_000
STEPS_BATCH, STEP_WRITERS = 1_000, 4
APPENDING, PUTTING = 4, 4
"""Clients that write beside reads."""

MARGIN_SECONDS = 0.3
"""So long before the reads the writers begin, and so long after them they end."""


class RemoraRecords(Remora):
    """`remora serve --model none`, filled with records."""

    def fill_hot(self) -> None:
        """Store a record of each of USERS and of each of CONVERSATIONS."""
        created = [
            self.append_request(conversation, user, texts(0, 1))
            for conversation, user in zip(CONVERSATIONS, USERS, strict=True)
        ]
        for calls in (Calls(self.append_path, created), puts(USERS), puts_to_conversations(CONVERSATIONS)):
            self.call(FILL_SECONDS, calls, turns=1)

    def fill_users(self, count: int) -> Sequence[str]:
        """Store the records of at least so many users; the ids of those of whom it is known."""
        users: list[str] = []
        stored = 0
        while stored < count:
            driven = self._put_new_users(min(count - stored, FILL_BATCH))
            stored += len(driven.spans)
            if driven.failures:  # which of them were refused is not known
                self.applied()
            else:
                users += [f"stored-{driven.first + number:016}" for number in range(len(driven.spans))]
        return users

    def _put_new_users(self, count: int) -> Driven:
        """Puts to the records of so many users, or of few more, who are named by the load's numbers."""
        return self._fill_by(puts([f"stored-{NUMBER_PLACE}"]), math.ceil(count / FILL_CONNECTIONS))

    def fill_runs(self, count: int) -> None:
        """Store at least so many workflow runs of 500 bytes, one in RUNS_A_TURN of them suspended."""
        stored = 0
        while stored < count:
            missing = min(count - stored, FILL_BATCH)
            driven = self._fill_by(run_saves(), math.ceil(missing / (FILL_CONNECTIONS * RUNS_A_TURN)))
            stored += len(driven.spans)
            if driven.failures:
                self.applied()

    def _fill_by(self, each: Calls, turns: int) -> Driven:
        """The calls, so many times on each connection."""
        return self.load.run(
            self.socket,
            self.wire,
            each.path,
            [each.requests] * FILL_CONNECTIONS,
            seconds=FILL_SECONDS,
            streams=FILL_STREAMS,
            turns=turns,
        )

    def fill_steps(self, conversation: str, count: int, operation_length: int) -> Sequence[str]:
        """Store so many steps of 500 bytes in a conversation of its own; the ids of their operations, each so long."""
        contents = texts(1, KEYS)

        def step(number: int) -> Step:
            return Step(
                id=f"step-{number}",
                conversation_id=conversation,
                operation_id=_operation(number, operation_length),
                step_index=number % operation_length,
                type=STEP_TYPE_TEXT,
                role="assistant",
                content=contents[number % KEYS],
            )

        created = self.append_request(conversation, conversation, texts(0, 1))
        self.call(FILL_SECONDS, Calls(self.append_path, [created]), turns=1)
        with self.channel() as channel, ThreadPoolExecutor(STEP_WRITERS) as pool:
            save = HistoryServiceStub(channel).SaveSteps
            batches = [range(count)[at : at + STEPS_BATCH] for at in range(0, count, STEPS_BATCH)]
            list(pool.map(lambda batch: save(SaveStepsRequest(steps=map(step, batch)), timeout=CALL_SECONDS), batches))
        return [_operation(number, operation_length) for number in range(0, count, operation_length)]

    def check_user(self, user: str) -> None:
        """A user's record is there, whole. Raises RuntimeError."""
        request = GetWorkingMemoryRequest(scope=WorkingMemoryScope(user_id=user))
        with self.channel() as channel:
            found = MemoryServiceStub(channel).GetWorkingMemory(request, timeout=CALL_SECONDS)
        if len(found.content) != RECORD_BYTES:
            raise RuntimeError(f"the record of {user} is not what was put")

    def check_steps(self, calls: Calls, count: int) -> None:
        """The first of the lists holds so many steps. Raises RuntimeError."""
        with self.channel() as channel:
            request = ListStepsRequest.FromString(calls.requests[0])
            found = HistoryServiceStub(channel).ListSteps(request, timeout=CALL_SECONDS)
        if len(found.steps) != count:
            raise RuntimeError(f"{len(found.steps)} steps are listed, not {count}")

    def check_runs(self, calls: Calls, count: int) -> None:
        """The first of the lists holds so many runs, all with its status. Raises RuntimeError."""
        request = ListWorkflowRunsRequest.FromString(calls.requests[0])
        with self.channel() as channel:
            found = WorkflowServiceStub(channel).ListWorkflowRuns(request, timeout=CALL_SECONDS)
        right = sum(run.status == request.status for run in found.runs)
        if (len(found.runs), right) != (count, count):
            raise RuntimeError(f"{right} of {len(found.runs)} listed runs have the status, not {count}")

    def beside_writers(self, calls: Calls, seconds: float) -> Measured:
        """Reads of one client while others append and put. What the server takes for them alone is not known."""
        lasting = seconds + 2 * MARGIN_SECONDS
        appending = [Calls(self.append_path, self.append_requests(KEYS + client)) for client in range(APPENDING)]
        putting = [puts([f"writer-{client}"]) for client in range(PUTTING)]
        with ThreadPoolExecutor(2) as pool:
            writers = [pool.submit(self.call, lasting, *clients) for clients in (appending, putting)]
            time.sleep(MARGIN_SECONDS)
            read = self.call(seconds, calls)
            for writer in writers:
                writer.result()
        self.settle()
        return Measured(read.spans, math.nan)

    def restart(self) -> None:
        """Stop and start: nothing is in memory that was not asked for."""
        self.stop()
        self.start()


def _operation(step: int, length: int) -> str:
    return f"operation-{step // length}"
