"""The runs of workflows and their steps."""
# ruff: noqa: ASYNC109 - the deadline is sent to the server, which gives up at it, too

from collections.abc import Collection
from typing import Annotated, Unpack

from remora import _refusals
from remora._arguments import checked
from remora._async.calls import LARGEST_PAGE, AsyncCalls, page_size
from remora._bounds import OF_CLIENT, AtLeast, Count, Id, IfMissing, Items, Limit, RequestId, Revision, Time, Timeout
from remora._records import Members, members
from remora._times import to_timestamp
from remora.filters import Where, where_to_proto
from remora.v1 import workflow_pb2
from remora.v1 import workflow_service_pb2 as wire
from remora.workflows import (
    ORDERS,
    STATUSES,
    RunOrder,
    WorkflowRun,
    WorkflowRunFields,
    WorkflowStats,
    WorkflowStatus,
    WorkflowStep,
    WorkflowStepFields,
    changed_run,
    changed_step,
)

_RESUMED = "give the revision of the suspended run as you read it: run.revision"


@checked
class AsyncWorkflows:
    """The runs of workflows of the tenant, and their steps. `timeout` is in seconds; left out: the client's.

    The timeline events of a run are `history`'s.
    """

    def __init__(self, calls: AsyncCalls) -> None:
        self._calls = calls

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    async def save_run(
        self,
        run: WorkflowRun,
        *,
        expected_revision: Revision | None = None,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> int:
        """Saves a `run`; one with a known id is replaced. Returns the run's new revision.

        With `expected_revision`, RevisionMismatchError is raised, and nothing written, unless the run has this
        revision; 0: unless there is none.
        """
        request = wire.SaveWorkflowRunRequest(run=run.to_proto(), expected_revision=expected_revision)
        response = await self._calls.write(self._calls.stubs.workflows.SaveWorkflowRun, request, timeout, request_id)
        return response.revision

    async def update_run(
        self,
        run_id: Id,
        *,
        expected_revision: Revision | None = None,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
        **changes: Unpack[WorkflowRunFields],
    ) -> int:
        """Replaces the given fields of the run `run_id`, and no others; with none, only sets update_time.

        Returns the run's new revision. With `expected_revision`, RevisionMismatchError is raised, and nothing written,
        unless the run has this revision. A missing run raises WorkflowRunNotFoundError.
        """
        request = wire.UpdateWorkflowRunRequest(run=changed_run(run_id, changes), expected_revision=expected_revision)
        request.update_mask.paths.extend(changes)
        response = await self._calls.write(self._calls.stubs.workflows.UpdateWorkflowRun, request, timeout, request_id)
        return response.revision

    async def resume_run(
        self,
        run_id: Id,
        *,
        expected_revision: Annotated[int, AtLeast(1), IfMissing(_RESUMED)],
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> int:
        """Makes the suspended run `run_id` this caller's to continue: it is `running`, and waits no more.

        `expected_revision` is the revision of the run as it was read. Of several callers that resume it, one gets it;
        to the others RevisionMismatchError is raised. Returns the run's new revision.
        """
        return await self.update_run(
            run_id,
            expected_revision=expected_revision,
            request_id=request_id,
            timeout=timeout,
            status="running",
            suspension=None,
        )

    async def get_run(self, run_id: Id, *, timeout: Timeout = OF_CLIENT) -> WorkflowRun:
        """The run `run_id`. A missing one raises WorkflowRunNotFoundError."""
        request = wire.GetWorkflowRunRequest(run_id=run_id)
        response = await self._calls.read(self._calls.stubs.workflows.GetWorkflowRun, request, timeout)
        return WorkflowRun.from_proto(response.run)

    async def list_runs(
        self,
        *,
        workflow_id: Id | None = None,
        status: WorkflowStatus | None = None,
        user_id: Id | None = None,
        created_from: Time | None = None,
        created_to: Time | None = None,
        metadata: Members | None = None,
        where: Where = (),
        order_by: RunOrder | None = None,
        limit: Limit | None = 100,
        skip: Count = 0,
        timeout: Timeout = OF_CLIENT,
    ) -> list[WorkflowRun]:
        """Runs, the newest first: at most `limit` (None: all).

        Only those of `workflow_id`, with this `status`, of `user_id`, created at or between `created_from` and
        `created_to`, with each member of `metadata` in theirs, with an equal value, and whose metadata matches `where`:
        a dict of its members, or a filter, whose paths lead into it. `order_by` is `create_time` (the default) or
        `start_time`. `skip` of them are left out; not together with `where`. Each page of 1,000 has the timeout.
        """
        passing = where_to_proto(where)
        if passing is not None and skip:
            raise _refusals.invalid("skip", "cannot be used with where")
        request = wire.ListWorkflowRunsRequest(
            workflow_id=workflow_id or "",
            status=STATUSES[status] if status else workflow_pb2.WORKFLOW_STATUS_UNSPECIFIED,
            user_id=user_id or "",
            created_from=to_timestamp(created_from) if created_from else None,
            created_to=to_timestamp(created_to) if created_to else None,
            metadata=members(metadata, "metadata"),
            filter=passing,
            order_by=ORDERS[order_by],
            page_size=page_size(limit),
            skip=skip,
        )
        method = self._calls.stubs.workflows.ListWorkflowRuns
        runs = await self._calls.items(method, request, lambda page: page.runs, limit=limit, timeout=timeout)
        return list(map(WorkflowRun.from_proto, runs))

    async def delete_run(
        self,
        run_id: Id,
        *,
        keep_related: bool = False,
        allow_missing: bool = False,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> bool:
        """Deletes the run `run_id`, with its steps and its timeline events unless `keep_related`.

        Returns whether there was one. A missing run raises WorkflowRunNotFoundError, unless `allow_missing`.
        """
        request = wire.DeleteWorkflowRunRequest(run_id=run_id, keep_related=keep_related, allow_missing=allow_missing)
        response = await self._calls.write(self._calls.stubs.workflows.DeleteWorkflowRun, request, timeout, request_id)
        return response.deleted

    async def prune_runs(
        self,
        workflow_id: Id,
        *,
        keep_newest: Count,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> int:
        """Deletes the oldest runs of `workflow_id`, all but the `keep_newest`, with their steps and timeline events.

        Returns how many were deleted, at most 1,000 at a time: repeat the call while it returns that.
        """
        request = wire.PruneWorkflowRunsRequest(workflow_id=workflow_id, keep_newest=keep_newest)
        response = await self._calls.write(self._calls.stubs.workflows.PruneWorkflowRuns, request, timeout, request_id)
        return response.deleted_runs

    async def list_workflow_ids(self, *, limit: Limit | None = None, timeout: Timeout = OF_CLIENT) -> list[str]:
        """The ids of the workflows that have runs, by code point: at most `limit` (None: all).

        Each page of 1,000 has the timeout.
        """
        request = wire.ListWorkflowIdsRequest(page_size=page_size(limit))
        method = self._calls.stubs.workflows.ListWorkflowIds
        return await self._calls.items(method, request, lambda page: page.workflow_ids, limit=limit, timeout=timeout)

    async def get_stats(self, workflow_id: Id, *, timeout: Timeout = OF_CLIENT) -> WorkflowStats:
        """How many runs `workflow_id` has, and how they ended."""
        request = wire.GetWorkflowStatsRequest(workflow_id=workflow_id)
        response = await self._calls.read(self._calls.stubs.workflows.GetWorkflowStats, request, timeout)
        return WorkflowStats.from_proto(response)

    async def save_steps(
        self,
        steps: Annotated[Collection[WorkflowStep], Items(1000, least=1)],
        *,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> None:
        """Saves up to 1,000 `steps`, of any runs, all or none; a step whose id is known in its run is replaced."""
        request = wire.SaveWorkflowStepsRequest(steps=[step.to_proto() for step in steps])
        await self._calls.write(self._calls.stubs.workflows.SaveWorkflowSteps, request, timeout, request_id)

    async def update_step(
        self,
        step_id: Id,
        *,
        run_id: Id | None = None,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
        **changes: Unpack[WorkflowStepFields],
    ) -> None:
        """Replaces the given fields of the step `step_id` of the run `run_id`, and no others.

        Without a run the step is looked for in all runs, which takes longer. A missing step raises
        WorkflowStepNotFoundError.
        """
        request = wire.UpdateWorkflowStepRequest(step=changed_step(step_id, run_id or "", changes))
        request.update_mask.paths.extend(changes)
        await self._calls.write(self._calls.stubs.workflows.UpdateWorkflowStep, request, timeout, request_id)

    async def get_step(self, step_id: Id, *, run_id: Id | None = None, timeout: Timeout = OF_CLIENT) -> WorkflowStep:
        """The step `step_id` of the run `run_id`; without a run it is looked for in all, which takes longer.

        A missing step raises WorkflowStepNotFoundError.
        """
        request = wire.GetWorkflowStepRequest(step_id=step_id, run_id=run_id or "")
        response = await self._calls.read(self._calls.stubs.workflows.GetWorkflowStep, request, timeout)
        return WorkflowStep.from_proto(response.step)

    async def list_steps(self, run_id: Id, *, timeout: Timeout = OF_CLIENT) -> list[WorkflowStep]:
        """The steps of the run `run_id`, by step_index, then as they were saved. Each page of 1,000 has the timeout."""
        request = wire.ListWorkflowStepsRequest(run_id=run_id, page_size=LARGEST_PAGE)
        method = self._calls.stubs.workflows.ListWorkflowSteps
        steps = await self._calls.items(method, request, lambda page: page.steps, limit=None, timeout=timeout)
        return list(map(WorkflowStep.from_proto, steps))

    async def delete_step(
        self,
        step_id: Id,
        *,
        run_id: Id | None = None,
        request_id: RequestId | None = None,
        timeout: Timeout = OF_CLIENT,
    ) -> bool:
        """Deletes the step `step_id` of the run `run_id`; returns whether there was one.

        Without a run it is looked for in all, which takes longer.
        """
        request = wire.DeleteWorkflowStepRequest(step_id=step_id, run_id=run_id or "")
        response = await self._calls.write(self._calls.stubs.workflows.DeleteWorkflowStep, request, timeout, request_id)
        return response.deleted
