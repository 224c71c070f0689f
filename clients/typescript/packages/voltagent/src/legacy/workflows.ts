// Workflow histories of VoltAgent 0.1, their steps and their events as records of Remora, and back.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { shown } from "@remora/client";
import {
  type TimelineEvent,
  type WorkflowRun,
  type WorkflowRunSchema,
  type WorkflowStep,
  type WorkflowStepSchema,
  WorkflowStepStatus,
} from "@remora/client/v1";
import { decodeJson, encodeJson } from "../json.js";
import { present } from "../steps.js";
import { storedPart } from "../telemetry-sizes.js";
import { dateOf, timestampOf } from "../times.js";
import { statusName, storedStatus } from "../workflow-states.js";
import { storedEvent, timelineEvent } from "./history.js";
import type { WorkflowHistoryEntry, WorkflowStepHistoryEntry, WorkflowTimelineEvent } from "./types.js";

type Run = MessageInitShape<typeof WorkflowRunSchema> & { $typeName?: never };
type Step = MessageInitShape<typeof WorkflowStepSchema> & { $typeName?: never };
type Fields = Record<string, [field: string, encode: (value: never) => unknown]>;

const STEP_STATUSES = {
  pending: WorkflowStepStatus.PENDING,
  running: WorkflowStepStatus.RUNNING,
  completed: WorkflowStepStatus.COMPLETED,
  error: WorkflowStepStatus.ERROR,
  skipped: WorkflowStepStatus.SKIPPED,
  suspended: WorkflowStepStatus.SUSPENDED,
  cancelled: WorkflowStepStatus.CANCELLED,
} as const satisfies Partial<Record<string, WorkflowStepStatus>>;

const same = (value: unknown) => value;
const time = (value: Date | string | null) => timestampOf(value);
/** Metadata is an object or none: VoltAgent's own stores take null for none. */
const objectOrNone = (value: unknown) => encodeJson(value ?? undefined);

const LARGEST_PART_BYTES = 3 * 1024 * 1024;
const LARGEST_METADATA_BYTES = 65_536;
const stepPart = (value: unknown) => storedPart(value, LARGEST_PART_BYTES);
const stepMetadata = (value: unknown) => storedPart(value ?? undefined, LARGEST_METADATA_BYTES);

/** Where each field of a history is stored, and how. */
const RUN: Fields = {
  status: ["status", same],
  otherStatus: ["otherStatus", same],
  workflowName: ["workflowName", same],
  startTime: ["startTime", time],
  endTime: ["endTime", time],
  input: ["input", encodeJson],
  output: ["output", encodeJson],
  userId: ["userId", same],
  conversationId: ["conversationId", same],
  metadata: ["metadata", objectOrNone],
  createdAt: ["createTime", time],
};
const STEP: Fields = {
  status: ["status", same],
  otherStatus: ["otherStatus", same],
  stepId: ["stepId", same],
  stepIndex: ["stepIndex", same],
  stepType: ["type", same],
  stepName: ["name", same],
  startTime: ["startTime", time],
  endTime: ["endTime", time],
  input: ["input", stepPart],
  output: ["output", stepPart],
  error: ["error", stepPart],
  agentExecutionId: ["agentExecutionId", same],
  parallelIndex: ["parallelIndex", same],
  parallelParentStepId: ["parallelParentStepId", same],
  metadata: ["metadata", stepMetadata],
  createdAt: ["createTime", time],
};

/** VoltAgent's own stores keep a status of a step that its types do not name, too. Throws TypeError for what is no text. */
function stepStatus(status: string | undefined): { status?: WorkflowStepStatus; otherStatus?: string } {
  if (status === undefined) {
    return {};
  }
  if (typeof status !== "string") {
    throw new TypeError(
      `status is ${shown(status)}; it must be a text, such as ${Object.keys(STEP_STATUSES).join(", ")}`,
    );
  }
  return Object.hasOwn(STEP_STATUSES, status)
    ? { status: STEP_STATUSES[status as keyof typeof STEP_STATUSES] }
    : { status: WorkflowStepStatus.OTHER, otherStatus: status };
}

/** The fields of a record that updates name, and their names in the contract's spelling. */
function changesOf(fields: Fields, updates: object): { changes: Record<string, unknown>; paths: string[] } {
  const changes = Object.entries(updates).flatMap(([name, value]) => {
    const field = fields[name];
    return field === undefined || value === undefined ? [] : [[field[0], field[1](value as never)] as const];
  });
  return {
    changes: Object.fromEntries(changes),
    paths: changes.map(([name]) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)),
  };
}

export function runChanges(updates: Partial<WorkflowHistoryEntry>): { changes: Run; paths: string[] } {
  const { status, ...others } = updates;
  const own = status === undefined ? {} : storedStatus(status);
  return changesOf(RUN, { ...others, ...own }) as { changes: Run; paths: string[] };
}

export function stepChanges(updates: Partial<WorkflowStepHistoryEntry>): { changes: Step; paths: string[] } {
  const { status, ...others } = updates;
  return changesOf(STEP, { ...others, ...stepStatus(status) }) as { changes: Step; paths: string[] };
}

export function storedRun(entry: WorkflowHistoryEntry): Run {
  return { ...runChanges(entry).changes, id: entry.id, workflowId: entry.workflowId };
}

export function storedStep(step: WorkflowStepHistoryEntry): Step {
  return { ...stepChanges(step).changes, id: step.id, runId: step.workflowHistoryId };
}

export function storedWorkflowEvent(event: WorkflowTimelineEvent) {
  const createTime = timestampOf(event.createdAt);
  return {
    ...storedEvent(event.id, event.workflowHistoryId, event),
    eventId: event.eventId,
    ...(typeof event.eventSequence === "number" && { sequence: BigInt(event.eventSequence) }),
    ...(createTime && { createTime }),
  };
}

export function workflowHistory(
  run: WorkflowRun,
  steps: WorkflowStepHistoryEntry[] = [],
  events: WorkflowTimelineEvent[] = [],
): WorkflowHistoryEntry {
  const rest = {
    endTime: run.endTime && dateOf(run.endTime),
    input: decodeJson(run.input),
    output: decodeJson(run.output),
    userId: run.userId || undefined,
    conversationId: run.conversationId || undefined,
    metadata: decodeJson(run.metadata),
  };
  return {
    id: run.id,
    workflowId: run.workflowId,
    workflowName: run.workflowName,
    status: statusName(run),
    startTime: dateOf(run.startTime ?? run.createTime),
    steps,
    events,
    createdAt: dateOf(run.createTime),
    updatedAt: dateOf(run.updateTime),
    ...present(rest),
  } as WorkflowHistoryEntry;
}

export function workflowStep(step: WorkflowStep): WorkflowStepHistoryEntry {
  const rest = {
    stepId: step.stepId || undefined,
    startTime: step.startTime && dateOf(step.startTime),
    endTime: step.endTime && dateOf(step.endTime),
    input: decodeJson(step.input),
    output: decodeJson(step.output),
    error: decodeJson(step.error),
    agentExecutionId: step.agentExecutionId || undefined,
    parallelIndex: step.parallelIndex,
    parallelParentStepId: step.parallelParentStepId || undefined,
    metadata: decodeJson(step.metadata),
  };
  return {
    id: step.id,
    workflowHistoryId: step.runId,
    stepIndex: step.stepIndex,
    stepType: step.type,
    stepName: step.name,
    status: step.status === WorkflowStepStatus.OTHER ? step.otherStatus : WorkflowStepStatus[step.status].toLowerCase(),
    createdAt: dateOf(step.createTime),
    updatedAt: dateOf(step.updateTime),
    ...present(rest),
  } as WorkflowStepHistoryEntry;
}

export function workflowEvent(event: TimelineEvent): WorkflowTimelineEvent {
  const { id = event.id, ...fields } = timelineEvent(event);
  return {
    ...fields,
    id,
    workflowHistoryId: event.runId,
    eventId: event.eventId,
    createdAt: dateOf(event.createTime),
    ...present({ eventSequence: event.sequence === undefined ? undefined : Number(event.sequence) }),
  } as WorkflowTimelineEvent;
}
