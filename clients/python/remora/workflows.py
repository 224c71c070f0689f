"""Runs of workflows and their steps."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Annotated, Any, ClassVar, Literal, Self, TypeAlias, TypedDict

from remora import _records
from remora._arguments import checked_fields
from remora._bounds import Between, Id, OptionalId, Size, Time
from remora._records import KIB, MIB, Field, Fields, Index, JsonObject, Label, Sequence64
from remora._times import optional_time
from remora._views import Decoders, View, view
from remora.v1 import workflow_pb2, workflow_service_pb2

WorkflowStatus: TypeAlias = Literal["running", "suspended", "completed", "cancelled", "error", "other"]
"""How far a run is."""
WorkflowStepStatus: TypeAlias = Literal[
    "pending", "running", "completed", "error", "skipped", "suspended", "cancelled", "other"
]
"""How far a step is."""
RunOrder: TypeAlias = Literal["create_time", "start_time"]
"""By which time runs are listed."""
Reason: TypeAlias = Annotated[str, Size(4096)]

STATUSES: dict[WorkflowStatus, workflow_pb2.WorkflowStatus.ValueType] = {
    "running": workflow_pb2.WORKFLOW_STATUS_RUNNING,
    "suspended": workflow_pb2.WORKFLOW_STATUS_SUSPENDED,
    "completed": workflow_pb2.WORKFLOW_STATUS_COMPLETED,
    "cancelled": workflow_pb2.WORKFLOW_STATUS_CANCELLED,
    "error": workflow_pb2.WORKFLOW_STATUS_ERROR,
    "other": workflow_pb2.WORKFLOW_STATUS_OTHER,
}
_STEP_STATUSES: dict[WorkflowStepStatus, workflow_pb2.WorkflowStepStatus.ValueType] = {
    "pending": workflow_pb2.WORKFLOW_STEP_STATUS_PENDING,
    "running": workflow_pb2.WORKFLOW_STEP_STATUS_RUNNING,
    "completed": workflow_pb2.WORKFLOW_STEP_STATUS_COMPLETED,
    "error": workflow_pb2.WORKFLOW_STEP_STATUS_ERROR,
    "skipped": workflow_pb2.WORKFLOW_STEP_STATUS_SKIPPED,
    "suspended": workflow_pb2.WORKFLOW_STEP_STATUS_SUSPENDED,
    "cancelled": workflow_pb2.WORKFLOW_STEP_STATUS_CANCELLED,
    "other": workflow_pb2.WORKFLOW_STEP_STATUS_OTHER,
}
ORDERS: dict[RunOrder | None, workflow_service_pb2.WorkflowRunOrder.ValueType] = {
    None: workflow_service_pb2.WORKFLOW_RUN_ORDER_UNSPECIFIED,
    "create_time": workflow_service_pb2.WORKFLOW_RUN_ORDER_CREATE_TIME,
    "start_time": workflow_service_pb2.WORKFLOW_RUN_ORDER_START_TIME,
}

_SUSPENSION: Fields = {
    **_records.times("suspend_time"),
    **_records.plain("reason", "step_index"),
    **_records.optional("last_event_sequence"),
    **_records.opaque(MIB, "checkpoint", "suspend_data"),
}


@checked_fields
@view
@dataclass(frozen=True)
class Suspension(View):
    """Why and where a run waits.

    Attributes:
        suspend_time: When it was suspended.
        reason: Why, up to 4,096 bytes.
        step_index: The index of the step that waits.
        last_event_sequence: The sequence of the last event before it.
        checkpoint: What the run needs to continue, up to 1 MiB: bytes, or what JSON can hold. Bytes of compact JSON are
            returned parsed.
        suspend_data: What the step told those who wait for it, likewise.
    """

    suspend_time: Time | None = field(default=None, kw_only=True)
    reason: Reason = field(default="", kw_only=True)
    step_index: Annotated[int, Between(-(2**31), 2**31 - 1)] = field(default=0, kw_only=True)
    last_event_sequence: Sequence64 | None = field(default=None, kw_only=True)
    checkpoint: Any = field(default=None, kw_only=True)
    suspend_data: Any = field(default=None, kw_only=True)

    def to_proto(self) -> workflow_pb2.WorkflowSuspension:
        """The suspension on the wire."""
        return workflow_pb2.WorkflowSuspension(**_records.encoded(_SUSPENSION, _records.values_of(self, _SUSPENSION)))

    @classmethod
    def from_proto(cls, suspension: workflow_pb2.WorkflowSuspension) -> Self:
        """The suspension from the wire, which must not change from then on."""
        return cls._of(suspension)

    _decoders: ClassVar[Decoders] = _records.decoders(_SUSPENSION)


@checked_fields
@dataclass(frozen=True, slots=True)
class Cancellation:
    """Why and when a run was cancelled.

    Attributes:
        cancel_time: When it was cancelled.
        reason: Why, up to 4,096 bytes.
    """

    cancel_time: Time | None = field(default=None, kw_only=True)
    reason: Reason = field(default="", kw_only=True)

    def to_proto(self) -> workflow_pb2.WorkflowCancellation:
        """The cancellation on the wire."""
        cancellation = workflow_pb2.WorkflowCancellation(reason=self.reason)
        if self.cancel_time is not None:
            cancellation.cancel_time.FromDatetime(self.cancel_time)
        return cancellation

    @classmethod
    def from_proto(cls, cancellation: workflow_pb2.WorkflowCancellation) -> Self:
        """The cancellation from the wire."""
        return cls(cancel_time=optional_time(cancellation, "cancel_time"), reason=cancellation.reason)


def _part(kind: type[Suspension] | type[Cancellation]) -> Field:
    return Field(
        lambda value, _name: None if value is None else value.to_proto(),
        lambda wire, name: kind.from_proto(getattr(wire, name)) if wire.HasField(name) else None,
    )


_CHANGEABLE_RUN: Fields = {
    **_records.word("status", STATUSES, "running"),
    **_records.plain("other_status", "workflow_name", "user_id", "conversation_id"),
    **_records.plain("replayed_from_run_id", "replay_from_step_id"),
    **_records.opaque(MIB, "input", "output", "context", "workflow_state", "events"),
    "suspension": _part(Suspension),
    "cancellation": _part(Cancellation),
    **_records.json_objects(64 * KIB, "metadata"),
    **_records.times("start_time", "end_time", "create_time", "update_time"),
}
_RUN: Fields = {**_records.plain("id", "workflow_id"), **_CHANGEABLE_RUN, **_records.given_back("revision")}


class WorkflowRunFields(TypedDict, total=False):
    """The fields of a run that an update can replace; None clears one.

    Attributes:
        status: How far the run is.
        workflow_name: The workflow's name.
        user_id: Whose run it is; it is deleted with this user.
        conversation_id: The conversation in which it was started.
        input: What the run was given, up to 1 MiB: bytes, or what JSON can hold.
        output: What the run came to, likewise.
        context: The caller's context, likewise.
        workflow_state: The state that the run's steps share, likewise.
        suspension: Why and where the run waits.
        events: What happened so far, likewise up to 1 MiB. Timeline events are kept apart from it.
        cancellation: Why and when the run was cancelled.
        replayed_from_run_id: The run that this one repeats.
        replay_from_step_id: The step from which on it repeats that run.
        metadata: A dict that JSON can hold, up to 64 KiB; `list_runs` compares its members.
        start_time: When the run began.
        end_time: When the run ended.
        create_time: When the run was created.
        update_time: When the run was last changed; if left out, now.
        other_status: How far the run is in the caller's words, if `status` is `other`, up to 64 bytes.
    """

    status: WorkflowStatus
    workflow_name: OptionalId
    user_id: OptionalId
    conversation_id: OptionalId
    input: Any
    output: Any
    context: Any
    workflow_state: Any
    suspension: Suspension | None
    events: Any
    cancellation: Cancellation | None
    replayed_from_run_id: OptionalId
    replay_from_step_id: OptionalId
    metadata: JsonObject | None
    start_time: Time | None
    end_time: Time | None
    create_time: Time
    update_time: Time
    other_status: Label


@checked_fields
@view
@dataclass(frozen=True)
class WorkflowRun(View):
    """One run of a workflow: what it was given, how far it is, and what it needs to be resumed. At most 4 MB in all.

    Attributes:
        id: Unique in the tenant, 1 to 512 bytes. Saving a known id replaces the run.
        workflow_id: The workflow, 1 to 512 bytes.
        status: How far the run is; `other`: what `other_status` says.
        workflow_name: The workflow's name, up to 512 bytes.
        user_id: Whose run it is; it is deleted with this user. Empty: nobody's.
        conversation_id: The conversation in which it was started. It need not exist, and the run outlives it.
        input: What the run was given, up to 1 MiB: bytes, or what JSON can hold. Bytes of compact JSON are returned
            parsed.
        output: What the run came to, likewise.
        context: The caller's context, likewise.
        workflow_state: The state that the run's steps share, likewise.
        suspension: Why and where the run waits; None: it does not.
        events: What happened so far, likewise up to 1 MiB. Timeline events are kept apart from it.
        cancellation: Why and when the run was cancelled; None: it was not.
        replayed_from_run_id: The run that this one repeats.
        replay_from_step_id: The step from which on it repeats that run.
        metadata: A dict that JSON can hold, up to 64 KiB; `list_runs` compares its members.
        start_time: When the run began; None: when it was created.
        end_time: When the run ended; None: it has not.
        create_time: When the run was created. None in a save: that of the run which is replaced, or now.
        update_time: When the run was last changed. None in a save: now.
        revision: The revision that last wrote the run, for `expected_revision`; a save ignores it.
        other_status: How far the run is in the caller's words, such as `paused`, if `status` is `other`; up to 64
            bytes.
    """

    id: Id
    workflow_id: Id
    status: WorkflowStatus = "running"
    workflow_name: OptionalId = field(default="", kw_only=True)
    user_id: OptionalId = field(default="", kw_only=True)
    conversation_id: OptionalId = field(default="", kw_only=True)
    input: Any = field(default=None, kw_only=True)
    output: Any = field(default=None, kw_only=True)
    context: Any = field(default=None, kw_only=True)
    workflow_state: Any = field(default=None, kw_only=True)
    suspension: Suspension | None = field(default=None, kw_only=True)
    events: Any = field(default=None, kw_only=True)
    cancellation: Cancellation | None = field(default=None, kw_only=True)
    replayed_from_run_id: OptionalId = field(default="", kw_only=True)
    replay_from_step_id: OptionalId = field(default="", kw_only=True)
    metadata: JsonObject | None = field(default=None, kw_only=True)
    start_time: Time | None = field(default=None, kw_only=True)
    end_time: Time | None = field(default=None, kw_only=True)
    create_time: Time | None = field(default=None, kw_only=True)
    update_time: Time | None = field(default=None, kw_only=True)
    revision: int = field(default=0, kw_only=True)
    other_status: Label = field(default="", kw_only=True)

    def to_proto(self) -> workflow_pb2.WorkflowRun:
        """The run on the wire."""
        return workflow_pb2.WorkflowRun(**_records.encoded(_RUN, _records.values_of(self, _RUN)))

    @classmethod
    def from_proto(cls, run: workflow_pb2.WorkflowRun) -> Self:
        """The run from the wire, which must not change from then on."""
        return cls._of(run)

    _decoders: ClassVar[Decoders] = _records.decoders(_RUN)


def changed_run(run_id: str, changes: WorkflowRunFields) -> workflow_pb2.WorkflowRun:
    """A run on the wire with nothing but these changes."""
    return workflow_pb2.WorkflowRun(id=run_id, **_records.encoded(_CHANGEABLE_RUN, {**changes}))


_CHANGEABLE_STEP: Fields = {
    **_records.word("status", _STEP_STATUSES, "pending"),
    **_records.plain("other_status", "name", "type", "step_index", "agent_execution_id", "parallel_parent_step_id"),
    **_records.opaque(MIB, "input", "output", "error"),
    **_records.opaque(64 * KIB, "metadata"),
    **_records.optional("parallel_index"),
    **_records.times("start_time", "end_time", "create_time", "update_time"),
}
_STEP: Fields = {**_records.plain("id", "run_id", "user_id", "step_id"), **_CHANGEABLE_STEP}


class WorkflowStepFields(TypedDict, total=False):
    """The fields of a run's step that an update can replace; None clears one. Its `step_id` stays.

    Attributes:
        status: How far the step is.
        name: The step's name.
        type: What sort of step it is, such as `agent`, up to 64 bytes.
        step_index: Its place in the run, from 0.
        input: What it was given, up to 1 MiB: bytes, or what JSON can hold.
        output: What it came to, likewise.
        error: Why it failed, likewise.
        agent_execution_id: The execution of the agent that did it.
        parallel_index: Its place among those that run beside it, from 0.
        parallel_parent_step_id: The step that runs it beside others.
        metadata: Anything else, likewise, up to 64 KiB.
        start_time: When it began.
        end_time: When it ended.
        create_time: When it was created.
        update_time: When it was last changed; if left out, now.
        other_status: How far the step is in the caller's words, if `status` is `other`, up to 64 bytes.
    """

    status: WorkflowStepStatus
    name: OptionalId
    type: Label
    step_index: Index
    input: Any
    output: Any
    error: Any
    agent_execution_id: OptionalId
    parallel_index: Index | None
    parallel_parent_step_id: OptionalId
    metadata: Any
    start_time: Time | None
    end_time: Time | None
    create_time: Time
    update_time: Time
    other_status: Label


@checked_fields
@view
@dataclass(frozen=True)
class WorkflowStep(View):
    """One step of a run. At most 4 MB in all.

    Attributes:
        id: Unique in its run, 1 to 512 bytes. Saving a known id replaces the step.
        run_id: The run, 1 to 512 bytes. It need not exist yet.
        status: How far the step is; `other`: what `other_status` says.
        user_id: Whose step it is; it is deleted with this user. Empty in a save: the run's user.
        step_id: The step's id in the workflow's definition, up to 512 bytes.
        name: The step's name, up to 512 bytes.
        type: What sort of step it is, such as `agent`, `func` or `parallel-all`, up to 64 bytes.
        step_index: Its place in the run, from 0.
        input: What it was given, up to 1 MiB: bytes, or what JSON can hold. Bytes of compact JSON are returned parsed.
        output: What it came to, likewise.
        error: Why it failed, likewise.
        agent_execution_id: The execution of the agent that did it.
        parallel_index: Its place among those that run beside it, from 0; None: none do.
        parallel_parent_step_id: The step that runs it beside others.
        metadata: Anything else, likewise, up to 64 KiB.
        start_time: When it began.
        end_time: When it ended.
        create_time: When it was created. None in a save: now.
        update_time: When it was last changed. None in a save: now.
        other_status: How far the step is in the caller's words, such as `waiting`, if `status` is `other`; up to 64
            bytes.
    """

    id: Id
    run_id: Id
    status: WorkflowStepStatus = "pending"
    user_id: OptionalId = field(default="", kw_only=True)
    step_id: OptionalId = field(default="", kw_only=True)
    name: OptionalId = field(default="", kw_only=True)
    type: Label = field(default="", kw_only=True)
    step_index: Index = field(default=0, kw_only=True)
    input: Any = field(default=None, kw_only=True)
    output: Any = field(default=None, kw_only=True)
    error: Any = field(default=None, kw_only=True)
    agent_execution_id: OptionalId = field(default="", kw_only=True)
    parallel_index: Index | None = field(default=None, kw_only=True)
    parallel_parent_step_id: OptionalId = field(default="", kw_only=True)
    metadata: Any = field(default=None, kw_only=True)
    start_time: Time | None = field(default=None, kw_only=True)
    end_time: Time | None = field(default=None, kw_only=True)
    create_time: Time | None = field(default=None, kw_only=True)
    update_time: Time | None = field(default=None, kw_only=True)
    other_status: Label = field(default="", kw_only=True)

    def to_proto(self) -> workflow_pb2.WorkflowStep:
        """The step on the wire."""
        return workflow_pb2.WorkflowStep(**_records.encoded(_STEP, _records.values_of(self, _STEP)))

    @classmethod
    def from_proto(cls, step: workflow_pb2.WorkflowStep) -> Self:
        """The step from the wire, which must not change from then on."""
        return cls._of(step)

    _decoders: ClassVar[Decoders] = _records.decoders(_STEP)


def changed_step(step_id: str, run_id: str, changes: WorkflowStepFields) -> workflow_pb2.WorkflowStep:
    """A step on the wire with nothing but these changes."""
    fields = _records.encoded(_CHANGEABLE_STEP, {**changes})
    return workflow_pb2.WorkflowStep(id=step_id, run_id=run_id, **fields)


@dataclass(frozen=True, slots=True)
class WorkflowStats:
    """How the runs of a workflow ended.

    Attributes:
        runs: How many runs there are.
        completed_runs: How many of them are completed.
        failed_runs: How many of them failed.
        mean_duration: How long those took that have ended, on average; None if none has.
        last_start_time: When the last one began; None if there is none.
    """

    runs: int
    completed_runs: int
    failed_runs: int
    mean_duration: timedelta | None
    last_start_time: datetime | None

    @classmethod
    def from_proto(cls, stats: workflow_service_pb2.GetWorkflowStatsResponse) -> Self:
        """The statistics from the wire."""
        return cls(
            runs=stats.runs,
            completed_runs=stats.completed_runs,
            failed_runs=stats.failed_runs,
            mean_duration=stats.mean_duration.ToTimedelta() if stats.HasField("mean_duration") else None,
            last_start_time=optional_time(stats, "last_start_time"),
        )
