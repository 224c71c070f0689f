// States of VoltAgent's workflows as runs of Remora, and back: every field of the type.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { shown } from "@remora/client";
import { type WorkflowRun, type WorkflowRunSchema, WorkflowStatus } from "@remora/client/v1";
import type { WorkflowRunQuery, WorkflowStateEntry } from "@voltagent/core";
import { decodeJson, encodeJson } from "./json.js";
import { present } from "./steps.js";
import { shortened } from "./telemetry-sizes.js";
import { dateOf, timestampOf } from "./times.js";

type Run = MessageInitShape<typeof WorkflowRunSchema> & { $typeName?: never };
type Suspension = NonNullable<WorkflowStateEntry["suspension"]>;
type Cancellation = NonNullable<WorkflowStateEntry["cancellation"]>;
type Context = NonNullable<WorkflowStateEntry["context"]>;

const STATUSES = {
  running: WorkflowStatus.RUNNING,
  suspended: WorkflowStatus.SUSPENDED,
  completed: WorkflowStatus.COMPLETED,
  cancelled: WorkflowStatus.CANCELLED,
  error: WorkflowStatus.ERROR,
} as const satisfies Record<WorkflowStateEntry["status"], WorkflowStatus>;
/** Where VoltAgent keeps, in the metadata, what each step was given and gave. */
const RESTART_CHECKPOINT = "__voltagent_restart_checkpoint";
/** Of the reason of a suspension or a cancellation. */
const LARGEST_REASON_BYTES = 4_096;
const NAMES = new Map(Object.entries(STATUSES).map(([name, status]) => [status as WorkflowStatus, name]));

/**
 * The status of a run. VoltAgent's own stores keep one that its types do not name, too. Throws TypeError for what is no
 * text.
 */
export function storedStatus(status: string): { status: WorkflowStatus; otherStatus: string } {
  if (typeof status !== "string") {
    throw new TypeError(`status is ${shown(status)}; it must be a text, such as ${Object.keys(STATUSES).join(", ")}`);
  }
  return isNamed(status)
    ? { status: STATUSES[status], otherStatus: "" }
    : { status: WorkflowStatus.OTHER, otherStatus: status };
}

/** The status that was stored. */
export function statusName({ status, otherStatus }: WorkflowRun): WorkflowStateEntry["status"] {
  return (NAMES.get(status) ?? otherStatus) as WorkflowStateEntry["status"];
}

function isNamed(status: string): status is keyof typeof STATUSES {
  return Object.hasOwn(STATUSES, status);
}

/** Whether no state can match: by a status that is no text, or by metadata without a value, which JSON would leave out. */
export function matchesNothing({ status, metadata }: Pick<WorkflowRunQuery, "status" | "metadata">): boolean {
  const isStatus = !status || typeof status === "string";
  return !isStatus || Object.values(metadata ?? {}).some((value) => encodeJson(value).length === 0);
}

const ENDED: readonly string[] = ["completed", "cancelled", "error"] satisfies WorkflowStateEntry["status"][];

/** A status, and when the run ended that has it: Remora's statistics of workflows say how long runs take. */
function storedEnd(status: string, time: Date): Run {
  return { ...storedStatus(status), ...(ENDED.includes(status) && timed("endTime", time)) };
}

/** How each field of an entry is stored, by the fields of a run. */
const FIELDS: { [Field in keyof WorkflowStateEntry]?: (value: never) => Run } = {
  workflowName: (workflowName: string) => ({ workflowName }),
  status: (status: string) => storedEnd(status, new Date()),
  input: (input: unknown) => ({ input: encodeJson(input) }),
  output: (output: unknown) => ({ output: encodeJson(output) }),
  context: (context: unknown) => ({ context: encodeJson(each(context, storedEntry)) }),
  workflowState: (workflowState: unknown) => ({ workflowState: encodeJson(workflowState) }),
  suspension: (suspension: Suspension | undefined) => storedSuspension(suspension),
  events: (events: unknown) => ({ events: encodeJson(events) }),
  cancellation: (cancellation: Cancellation | undefined) => storedCancellation(cancellation),
  userId: (userId = "") => ({ userId }),
  conversationId: (conversationId = "") => ({ conversationId }),
  replayedFromExecutionId: (replayedFromRunId = "") => ({ replayedFromRunId }),
  replayFromStepId: (replayFromStepId = "") => ({ replayFromStepId }),
  metadata: (metadata: unknown) => ({ metadata: encodeJson(metadata ?? undefined) }), // an object, or none
  createdAt: (createdAt: Date) => timed("createTime", createdAt),
};

/** The names of the run's fields that each field of an entry is stored in, in the contract's spelling. */
const PATHS: { [Field in keyof WorkflowStateEntry]?: string | string[] } = {
  status: ["status", "other_status", "end_time"],
  workflowName: "workflow_name",
  workflowState: "workflow_state",
  userId: "user_id",
  conversationId: "conversation_id",
  replayedFromExecutionId: "replayed_from_run_id",
  replayFromStepId: "replay_from_step_id",
  createdAt: "create_time",
};

/** The run that an entry is stored as. */
export function storedRun(executionId: string, entry: WorkflowStateEntry): Run {
  return {
    ...fieldsOf(entry),
    ...storedEnd(entry.status, entry.updatedAt),
    ...timed("updateTime", entry.updatedAt),
    id: executionId,
    workflowId: entry.workflowId,
  };
}

/** What an update changes. `updatedAt` is always the server's time, and a run keeps its workflow. */
export function runChanges(updates: Partial<WorkflowStateEntry>): { changes: Run; paths: string[] } {
  const required = ["workflowName", "status", "createdAt"];
  const named = Object.entries(updates).filter(([name, value]) => value !== undefined || !required.includes(name));
  const fields = named.map(([name]) => name as keyof WorkflowStateEntry).filter((name) => name in FIELDS);
  return { changes: fieldsOf(Object.fromEntries(named)), paths: fields.flatMap((name) => PATHS[name] ?? name) };
}

/** What is left of updates that end or suspend a run where they are too large: first all but what only its replay needs, then, of an end, that alone. */
export function atRest(updates: Partial<WorkflowStateEntry>): Partial<WorkflowStateEntry>[] {
  const { events: _, metadata, ...others } = updates;
  const { [RESTART_CHECKPOINT]: __, ...rest } = metadata ?? {};
  const { status, cancellation } = updates;
  if (status === undefined || status === "running" || !isNamed(status)) {
    return [];
  }
  const withoutReplay = { ...others, ...(metadata && { metadata: rest }) };
  return status === "suspended" ? [withoutReplay] : [withoutReplay, { status, ...present({ cancellation }) }];
}

/** The entry that was stored. */
export function workflowState(run: WorkflowRun): WorkflowStateEntry {
  const rest = {
    input: decodeJson(run.input),
    output: decodeJson(run.output),
    context: each(decodeJson(run.context), contextEntry) as Context | undefined,
    workflowState: decodeJson(run.workflowState),
    suspension: suspensionOf(run),
    events: decodeJson(run.events),
    cancellation: cancellationOf(run),
    userId: run.userId || undefined,
    conversationId: run.conversationId || undefined,
    replayedFromExecutionId: run.replayedFromRunId || undefined,
    replayFromStepId: run.replayFromStepId || undefined,
    metadata: decodeJson(run.metadata),
  };
  return {
    id: run.id,
    workflowId: run.workflowId,
    workflowName: run.workflowName,
    status: statusName(run),
    createdAt: dateOf(run.createTime),
    updatedAt: dateOf(run.updateTime),
    ...present(rest),
  } as WorkflowStateEntry;
}

function fieldsOf(entry: Partial<WorkflowStateEntry>): Run {
  const parts = Object.entries(entry).map(([name, value]) =>
    FIELDS[name as keyof WorkflowStateEntry]?.(value as never),
  );
  return Object.assign({}, ...parts);
}

function timed(field: "createTime" | "updateTime" | "endTime", date: Date): Run {
  const time = timestampOf(date);
  return time === undefined ? {} : { [field]: time };
}

/** The value, or if it is a list, as a context should be, the list with each entry as `changed` says. */
function each(value: unknown, changed: (entry: unknown) => unknown): unknown {
  return Array.isArray(value) ? value.map(changed) : (value ?? undefined);
}

/** A symbol has no JSON: it is stored by its description, and whether `Symbol.for` gives it. */
function storedEntry(entry: unknown): unknown {
  const [key, ...rest] = Array.isArray(entry) ? (entry as unknown[]) : [];
  if (typeof key !== "symbol") {
    return entry;
  }
  return [{ symbol: key.description ?? "", shared: Symbol.keyFor(key) !== undefined }, ...rest];
}

function contextEntry(entry: unknown): unknown {
  const [key, ...rest] = Array.isArray(entry) ? (entry as unknown[]) : [];
  const { symbol, shared } = (key ?? {}) as { symbol?: unknown; shared?: unknown };
  if (typeof symbol !== "string") {
    return entry;
  }
  return [shared === true ? Symbol.for(symbol) : Symbol(symbol), ...rest];
}

function storedSuspension(suspension: Suspension | undefined): Run {
  if (suspension === undefined || suspension === null) {
    return {};
  }
  const suspendTime = timestampOf(suspension.suspendedAt);
  const { reason, stepIndex, lastEventSequence, checkpoint, suspendData } = suspension;
  const rest = { stepIndex, checkpoint: encodeJson(checkpoint), suspendData: encodeJson(suspendData) };
  return {
    suspension: {
      ...rest,
      reason: shortened(reason, LARGEST_REASON_BYTES),
      ...(suspendTime && { suspendTime }),
      ...(lastEventSequence !== undefined && { lastEventSequence: BigInt(lastEventSequence) }),
    },
  };
}

function suspensionOf({ suspension }: WorkflowRun): Suspension | undefined {
  if (suspension === undefined) {
    return undefined;
  }
  const { lastEventSequence } = suspension;
  const rest = {
    reason: suspension.reason || undefined,
    lastEventSequence: lastEventSequence === undefined ? undefined : Number(lastEventSequence),
    checkpoint: decodeJson(suspension.checkpoint) as Suspension["checkpoint"],
    suspendData: decodeJson(suspension.suspendData),
  };
  return {
    suspendedAt: dateOf(suspension.suspendTime),
    stepIndex: suspension.stepIndex,
    ...present(rest),
  } as Suspension;
}

function storedCancellation(cancellation: Cancellation | undefined): Run {
  if (cancellation === undefined || cancellation === null) {
    return {};
  }
  const cancelTime = timestampOf(cancellation.cancelledAt);
  const reason = shortened(cancellation.reason, LARGEST_REASON_BYTES);
  return { cancellation: { reason, ...(cancelTime && { cancelTime }) } };
}

function cancellationOf({ cancellation }: WorkflowRun): Cancellation | undefined {
  if (cancellation === undefined) {
    return undefined;
  }
  const reason = cancellation.reason || undefined;
  return { cancelledAt: dateOf(cancellation.cancelTime), ...present({ reason }) } as Cancellation;
}
