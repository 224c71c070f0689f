// The values of VoltAgent 0.1's `Memory` interface, which @voltagent/core no longer exports.

/** A message of a conversation. */
export interface MemoryMessage {
  id: string;
  role: "user" | "assistant" | "system" | "tool";
  content: string | { type: string; [key: string]: unknown }[];
  type: "text" | "tool-call" | "tool-result";
  /** In ISO 8601. */
  createdAt: string;
}

/** Which messages to get: the most recent that match. Times are in milliseconds since 1970, exclusive. */
export interface MessageFilterOptions {
  /** Default: the conversation's own user. */
  userId?: string | undefined;
  /** Default: `default`. */
  conversationId?: string | undefined;
  limit?: number | undefined;
  before?: number | undefined;
  after?: number | undefined;
  role?: MemoryMessage["role"] | undefined;
  /** Default: all types; none: no messages. */
  types?: MemoryMessage["type"][] | undefined;
}

/** What an agent was asked and what came of it: any fields beside these. */
export interface HistoryEntry {
  timestamp?: Date | undefined;
  status?: string | undefined;
  input?: unknown;
  output?: unknown;
  usage?: unknown;
  metadata?: unknown;
  userId?: string | undefined;
  conversationId?: string | undefined;
  [key: string]: unknown;
}

/** An event of an agent's timeline. */
export interface NewTimelineEvent {
  id?: string;
  name: string;
  type: string;
  startTime: string;
  endTime?: string | undefined;
  status?: string | undefined;
  statusMessage?: unknown;
  level?: string | undefined;
  input?: unknown;
  output?: unknown;
  metadata?: unknown;
  version?: string | undefined;
  parentEventId?: string | undefined;
  traceId?: string | undefined;
  tags?: string[] | undefined;
}

/** A run of a workflow. */
export interface WorkflowHistoryEntry {
  id: string;
  workflowId: string;
  workflowName: string;
  status: "running" | "completed" | "error" | "cancelled" | "suspended";
  startTime: Date;
  endTime?: Date | undefined;
  input?: unknown;
  output?: unknown;
  steps?: WorkflowStepHistoryEntry[];
  events?: WorkflowTimelineEvent[];
  userId?: string | undefined;
  conversationId?: string | undefined;
  metadata?: Record<string, unknown> | undefined;
  createdAt?: Date | undefined;
  updatedAt?: Date | undefined;
}

/** A step of a run. */
export interface WorkflowStepHistoryEntry {
  id: string;
  stepId?: string | undefined;
  workflowHistoryId: string;
  stepIndex: number;
  stepType: string;
  stepName: string;
  status: "pending" | "running" | "completed" | "error" | "skipped";
  startTime?: Date | undefined;
  endTime?: Date | undefined;
  input?: unknown;
  output?: unknown;
  error?: unknown;
  agentExecutionId?: string | undefined;
  parallelIndex?: number | undefined;
  parallelParentStepId?: string | undefined;
  metadata?: Record<string, unknown> | undefined;
  createdAt?: Date | undefined;
  updatedAt?: Date | undefined;
}

/** An event of a run. */
export interface WorkflowTimelineEvent extends Omit<NewTimelineEvent, "version" | "tags" | "id"> {
  id: string;
  workflowHistoryId: string;
  eventId: string;
  eventSequence?: number | undefined;
  createdAt: Date;
}

/** How the runs of a workflow went; times in milliseconds. */
export interface WorkflowStats {
  totalExecutions: number;
  successfulExecutions: number;
  failedExecutions: number;
  averageExecutionTime: number;
  lastExecutionTime?: Date;
}
