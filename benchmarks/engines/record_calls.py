"""Calls of Remora that put, get and list records.

A record is the working memory of a user or of a conversation; steps are the records of a conversation that are listed,
workflow runs those that are listed across all that is stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.engines.remora import SERVICE as CONVERSATION_SERVICE
from benchmarks.engines.server import Calls
from benchmarks.loading import NUMBER_PLACE
from benchmarks.texts import texts

from remora.v1.conversation_service_pb2 import GetConversationRequest, ListMessagesRequest
from remora.v1.history_service_pb2 import ListStepsRequest
from remora.v1.memory_service_pb2 import GetWorkingMemoryRequest, SetWorkingMemoryRequest
from remora.v1.workflow_pb2 import (
    WORKFLOW_STATUS_COMPLETED,
    WORKFLOW_STATUS_ERROR,
    WORKFLOW_STATUS_RUNNING,
    WORKFLOW_STATUS_SUSPENDED,
    WorkflowRun,
    WorkflowStatus,
)
from remora.v1.workflow_service_pb2 import ListWorkflowRunsRequest, SaveWorkflowRunRequest
from remora.v1.working_memory_pb2 import WorkingMemoryScope

MEMORY_SERVICE, HISTORY_SERVICE = "/remora.v1.MemoryService", "/remora.v1.HistoryService"
WORKFLOW_SERVICE = "/remora.v1.WorkflowService"

RECORD_BYTES = 600
KEYS = 64
USERS = [f"user-{number}" for number in range(KEYS)]
CONVERSATIONS = [f"conversation-of-{user}" for user in USERS]
CONTENTS = [NUMBER_PLACE + text for text in texts(RECORD_BYTES, KEYS, RECORD_BYTES - len(NUMBER_PLACE))]
"""Each with a number of the load, so that no put stores what is there."""
RUN_BYTES, RUNS_A_TURN = 500, 100
SELDOM = WORKFLOW_STATUS_SUSPENDED
OFTEN = (WORKFLOW_STATUS_RUNNING, WORKFLOW_STATUS_COMPLETED, WORKFLOW_STATUS_ERROR)


def puts(users: Sequence[str]) -> Calls:
    """A put to the record of each user."""
    return _puts([WorkingMemoryScope(user_id=user) for user in users])


def puts_to_conversations(conversations: Sequence[str]) -> Calls:
    """A put to the record of each conversation."""
    return _puts([WorkingMemoryScope(conversation_id=conversation) for conversation in conversations])


def _puts(scopes: Sequence[WorkingMemoryScope]) -> Calls:
    requests = [
        SetWorkingMemoryRequest(
            scope=scope,
            content=CONTENTS[number % len(CONTENTS)].encode(),
            request_id=NUMBER_PLACE * 2,  # as long as the client's
        )
        for number, scope in enumerate(scopes)
    ]
    return Calls(f"{MEMORY_SERVICE}/SetWorkingMemory", [request.SerializeToString() for request in requests])


def gets(users: Sequence[str]) -> Calls:
    """A get of the record of each user."""
    return _gets([WorkingMemoryScope(user_id=user) for user in users])


def gets_of_conversations(conversations: Sequence[str]) -> Calls:
    """A get of the record of each conversation."""
    return _gets([WorkingMemoryScope(conversation_id=conversation) for conversation in conversations])


def _gets(scopes: Sequence[WorkingMemoryScope]) -> Calls:
    requests = [GetWorkingMemoryRequest(scope=scope) for scope in scopes]
    return Calls(f"{MEMORY_SERVICE}/GetWorkingMemory", [request.SerializeToString() for request in requests])


def conversation_gets(conversations: Sequence[str]) -> Calls:
    """A read of each conversation itself."""
    requests = [GetConversationRequest(conversation_id=conversation) for conversation in conversations]
    return Calls(f"{CONVERSATION_SERVICE}/GetConversation", [request.SerializeToString() for request in requests])


def newest_messages(conversation: str, count: int) -> Calls:
    """A list of a conversation's newest messages."""
    request = ListMessagesRequest(conversation_id=conversation, page_size=count)
    return Calls(f"{CONVERSATION_SERVICE}/ListMessages", [request.SerializeToString()])


def newest_steps(conversation: str, count: int) -> Calls:
    """A list of a conversation's newest steps."""
    return _step_lists([ListStepsRequest(conversation_id=conversation, limit=count)])


def steps_of_operations(conversation: str, operations: Sequence[str]) -> Calls:
    """A list of the steps of each of the operations in a conversation."""
    return _step_lists([ListStepsRequest(conversation_id=conversation, operation_id=one) for one in operations])


def _step_lists(requests: Sequence[ListStepsRequest]) -> Calls:
    return Calls(f"{HISTORY_SERVICE}/ListSteps", [request.SerializeToString() for request in requests])


def run_saves() -> Calls:
    """Saves of RUNS_A_TURN new workflow runs, one of them suspended."""
    contents = texts(2, RUNS_A_TURN, RUN_BYTES)
    runs = [
        WorkflowRun(
            id=f"run-{NUMBER_PLACE}",
            workflow_id=f"workflow-{number % 10}",
            status=OFTEN[number % len(OFTEN)] if number else SELDOM,
            workflow_state=contents[number].encode(),
        )
        for number in range(RUNS_A_TURN)
    ]
    requests = [SaveWorkflowRunRequest(run=run, request_id=NUMBER_PLACE * 2) for run in runs]
    return Calls(f"{WORKFLOW_SERVICE}/SaveWorkflowRun", [request.SerializeToString() for request in requests])


def runs_by_status(status: WorkflowStatus.ValueType, count: int) -> Calls:
    """A list of the newest runs with a status, of any workflow."""
    request = ListWorkflowRunsRequest(status=status, page_size=count)
    return Calls(f"{WORKFLOW_SERVICE}/ListWorkflowRuns", [request.SerializeToString()])
