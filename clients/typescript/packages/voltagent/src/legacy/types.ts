// The values of VoltAgent 0.1's `Memory` interface, which @voltagent/core no longer exports.

/** A message of a conversation. */
export interface MemoryMessage {
  id: string;
  role: "user" | "assistant" | "system" | "tool";
  // The parts are those of the AI SDK that VoltAgent 0.1 has beside it, which is another one than this package's.
  // eslint-disable-next-line @typescript-eslint/no-explicit-any
  content: string | any[];
  type: "text" | "tool-call" | "tool-result";
  /** In ISO 8601. */
  createdAt: string;
}

/** Which messages to get: the most recent that match. Times are in milliseconds since 1970, exclusive; 0 is no bound. */
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
  endTime?: string | null | undefined;
  status?: string | undefined;
  statusMessage?: unknown;
  level?: string | undefined;
  input?: unknown;
  output?: unknown;
  metadata?: unknown;
  version?: string | null | undefined;
  parentEventId?: string | null | undefined;
  traceId?: string | undefined;
  tags?: string[] | null | undefined;
}

/** A run of a workflow. */
export interface WorkflowHistoryEntry {
  id: string;
  workflowId: string;
  workflowName: string;
  status: "running" | "completed" | "error" | "cancelled";
  startTime: Date;
  endTime?: Date;
  input: unknown;
  output?: unknown;
  steps: WorkflowStepHistoryEntry[];
  events: WorkflowTimelineEvent[];
  userId?: string;
  conversationId?: string;
  metadata?: Record<string, unknown>;
  createdAt?: Date;
  updatedAt?: Date;
}

/** A step of a run. */
export interface WorkflowStepHistoryEntry {
  id: string;
  stepId?: string;
  workflowHistoryId: string;
  stepIndex: number;
  stepType: "agent" | "func" | "conditional-when" | "parallel-all" | "parallel-race";
  stepName: string;
  status: "pending" | "running" | "completed" | "error" | "skipped";
  startTime: Date;
  endTime?: Date;
  input?: unknown;
  output?: unknown;
  error?: unknown;
  agentExecutionId?: string;
  parallelIndex?: number;
  parallelParentStepId?: string;
  metadata?: Record<string, unknown>;
  createdAt?: Date;
  updatedAt?: Date;
}

/** An event of a run. */
export interface WorkflowTimelineEvent {
  id: string;
  workflowHistoryId: string;
  eventId: string;
  name: string;
  type: "workflow" | "workflow-step";
  startTime: string;
  endTime?: string;
  status: string;
  level?: string;
  input?: unknown;
  output?: unknown;
  statusMessage?: unknown;
  metadata?: Record<string, unknown>;
  traceId?: string;
  parentEventId?: string;
  eventSequence?: number;
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
