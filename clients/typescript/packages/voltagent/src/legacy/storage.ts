// Remora behind the `Memory` interface of VoltAgent 0.1: conversations, histories of agents, histories of workflows.

import { durationMs } from "@bufbuild/protobuf/wkt";
import {
  ClientConnection,
  type ConnectionOptions,
  ConversationNotFoundError,
  EntryStepNotFoundError,
  HistoryEntryNotFoundError,
  type NotFoundError,
  pages,
  type Remora,
  TimelineEventNotFoundError,
  WorkflowRunNotFoundError,
  WorkflowStepNotFoundError,
} from "@remora/client";
import { PageOrder, WorkflowRunOrder } from "@remora/client/v1";
import type { Conversation, ConversationQueryOptions, CreateConversationInput } from "@voltagent/core";
import { chunks } from "../batches.js";
import { changesOf, conversationOf, type ConversationUpdates, newConversation, userOf } from "../conversations.js";
import { decodeJson, encodeJson } from "../json.js";
import { RemoraMemoryAdapter } from "../memory-adapter.js";
import { storedAttributes } from "../telemetry-sizes.js";
import { boundOf, dateOf } from "../times.js";
import { Turns } from "../turns.js";
import { entryChanges, historyEntry, historyStep, type Rest, restOf, storedEvent, storedRest } from "./history.js";
import { memoryMessage, storedMessage } from "./messages.js";
import type {
  HistoryEntry,
  MemoryMessage,
  MessageFilterOptions,
  NewTimelineEvent,
  WorkflowHistoryEntry,
  WorkflowStats,
  WorkflowStepHistoryEntry,
  WorkflowTimelineEvent,
} from "./types.js";
import {
  runChanges,
  stepChanges,
  storedRun,
  storedStep,
  storedWorkflowEvent,
  workflowEvent,
  workflowHistory,
  workflowStep,
} from "./workflows.js";

/** How the storage is made. */
export interface RemoraStorageOptions extends ConnectionOptions {
  /** How many messages a conversation keeps, the newest. Default, also for 0: 100. */
  storageLimit?: number | undefined;
}

const OWN = ["storageLimit"] as const satisfies readonly (keyof RemoraStorageOptions)[];
const STORAGE_LIMIT = 100;
const DEFAULT = "default";
const LARGEST_PAGE = 1_000;
const QUERY_LIMIT = 50;
const MESSAGES_LIMIT = 100;
const MOST_PRUNED = 1_000;
const READ_AT_ONCE = 20;

/** What VoltAgent 0.1 calls a memory: `memory: new RemoraStorage()`, and `historyMemory`, if that is to be another one. */
export class RemoraStorage {
  /** The client that it calls with. */
  readonly client: Remora;
  readonly #connection: ClientConnection;
  readonly #storageLimit: number;
  readonly #adapter: RemoraMemoryAdapter;
  /** Agents do not wait for one update before they begin the next. */
  readonly #entryTurns = new Turns();
  readonly #stepTurns = new Turns();

  constructor(options: RemoraStorageOptions = {}) {
    this.#connection = new ClientConnection(options, OWN);
    this.client = this.#connection.client;
    this.#storageLimit = options.storageLimit || STORAGE_LIMIT;
    this.#adapter = new RemoraMemoryAdapter({ client: this.client });
  }

  /** Closes the connection, unless the client was given. */
  async close(): Promise<void> {
    this.#connection.close();
  }

  // Messages

  async addMessage(message: MemoryMessage, conversationId = DEFAULT): Promise<void> {
    const createIfMissing = { userId: DEFAULT, storageLimit: this.#storageLimit };
    const messages = [storedMessage(message)];
    await this.client.conversations.appendMessages({ conversationId, messages, createIfMissing });
  }

  /** The most recent messages that match, the oldest first. */
  async getMessages(options: MessageFilterOptions = {}): Promise<MemoryMessage[]> {
    const { conversationId = DEFAULT, userId = "", role, types, before, after } = options;
    const limit = options.limit && options.limit > 0 ? options.limit : Number.POSITIVE_INFINITY;
    const request = {
      conversationId,
      userId,
      roles: role === undefined ? [] : [role],
      pageSize: LARGEST_PAGE,
      ...(before && { sentBefore: boundOf(before) }),
      ...(after && { sentAfter: boundOf(after) }),
    };
    let messages: MemoryMessage[] = [];
    try {
      for await (const page of pages(this.client.conversations.listMessages, request)) {
        const found = page.messages.map(memoryMessage).filter(({ type }) => types?.includes(type) ?? true);
        messages = [...found, ...messages];
        if (messages.length >= limit) {
          break;
        }
      }
    } catch (failure) {
      missing(failure, ConversationNotFoundError);
    }
    return messages.slice(Math.max(0, messages.length - limit));
  }

  async clearMessages({ userId, conversationId }: { userId: string; conversationId?: string }): Promise<void> {
    await this.#adapter.clearMessages(userId, conversationId);
  }

  // Conversations

  async createConversation(input: CreateConversationInput): Promise<Conversation> {
    const conversation = { ...newConversation(input), storageLimit: this.#storageLimit };
    const { conversationId } = await this.client.conversations.createConversation({ conversation });
    return (await this.getConversation(conversationId)) as Conversation;
  }

  async getConversation(id: string): Promise<Conversation | null> {
    return this.#adapter.getConversation(id);
  }

  async getConversations(resourceId: string): Promise<Conversation[]> {
    return this.#adapter.getConversations(resourceId);
  }

  async getConversationsByUserId(
    userId: string,
    options: Omit<ConversationQueryOptions, "userId"> = {},
  ): Promise<Conversation[]> {
    return this.queryConversations({ ...options, userId: userOf(userId) });
  }

  async queryConversations(options: ConversationQueryOptions): Promise<Conversation[]> {
    return this.#adapter.queryConversations({ ...options, limit: options.limit ?? QUERY_LIMIT });
  }

  /** The messages of a conversation, the oldest first. */
  async getConversationMessages(
    conversationId: string,
    { limit = MESSAGES_LIMIT, offset = 0 }: { limit?: number; offset?: number } = {},
  ): Promise<MemoryMessage[]> {
    const request = { conversationId, pageOrder: PageOrder.OLDEST_FIRST, pageSize: LARGEST_PAGE };
    const end = limit > 0 ? offset + limit : Number.POSITIVE_INFINITY;
    const messages: MemoryMessage[] = [];
    try {
      for await (const page of pages(this.client.conversations.listMessages, request)) {
        messages.push(...page.messages.map(memoryMessage));
        if (messages.length >= end) {
          break;
        }
      }
    } catch (failure) {
      missing(failure, ConversationNotFoundError);
    }
    return messages.slice(offset, end);
  }

  async updateConversation(id: string, updates: ConversationUpdates): Promise<Conversation> {
    const { changes, paths } = changesOf(updates);
    const request = { conversation: { ...changes, id }, updateMask: { paths } };
    const call = this.client.conversations.updateConversation(request);
    await found(call, ConversationNotFoundError, `Conversation with ID ${id} not found`);
    const { conversation } = await this.client.conversations.getConversation({ conversationId: id });
    return conversationOf(conversation as NonNullable<typeof conversation>);
  }

  async deleteConversation(id: string): Promise<void> {
    await this.client.conversations.deleteConversation({ conversationId: id, allowMissing: true });
  }

  // Histories of agents

  async addHistoryEntry(key: string, value: HistoryEntry, agentId: string): Promise<void> {
    const { changes } = entryChanges(value);
    const metadata = storedRest(restOf(value));
    await this.client.history.saveHistoryEntry({
      entry: { ...changes, id: key, agentId, userId: value.userId ?? "", metadata },
    });
  }

  /** Changes the fields that the value names, and no others. */
  async updateHistoryEntry(key: string, value: HistoryEntry, _agentId?: string): Promise<void> {
    return this.#entryTurns.take(key, () => this.#updateHistoryEntry(key, value));
  }

  async #updateHistoryEntry(key: string, value: HistoryEntry): Promise<void> {
    const { changes, paths } = entryChanges(value);
    const missingEntry = `History entry with key ${key} not found`;
    const rest = restOf(value);
    if (Object.keys(rest).length > 0) {
      const call = this.client.history.getHistoryEntry({ entryId: key });
      const { entry } = await found(call, HistoryEntryNotFoundError, missingEntry);
      const before = (entry ? decodeJson(entry.metadata) : {}) as Rest;
      changes.metadata = storedRest({ ...before, ...rest, more: { ...before.more, ...rest.more } });
      paths.push("metadata");
    }
    const call = this.client.history.updateHistoryEntry({ entry: { ...changes, id: key }, updateMask: { paths } });
    await found(call, HistoryEntryNotFoundError, missingEntry);
  }

  /** The entry with its steps and events. */
  async getHistoryEntry(key: string): Promise<HistoryEntry | undefined> {
    try {
      const reply = await this.client.history.getHistoryEntry({ entryId: key, withRelated: true });
      if (reply.entry === undefined) {
        return undefined;
      }
      const steps = reply.moreSteps ? await this.#entrySteps(key) : reply.steps;
      const events = reply.moreEvents ? await this.#events(key) : reply.events;
      return historyEntry(reply.entry, steps, events);
    } catch (failure) {
      return missing(failure, HistoryEntryNotFoundError);
    }
  }

  /** A page of an agent's entries, counted from 0, the newest first, and how many there are. */
  async getAllHistoryEntriesByAgent(
    agentId: string,
    page: number,
    limit: number,
  ): Promise<{ entries: HistoryEntry[]; total: number }> {
    const request = { agentId, skip: page * limit, pageSize: Math.min(limit, LARGEST_PAGE) };
    const listed: string[] = [];
    let total = 0;
    for await (const { entries, totalSize } of pages(this.client.history.listHistoryEntries, request)) {
      listed.push(...entries.map(({ id }) => id));
      total = Number(totalSize);
      if (listed.length >= limit) {
        break;
      }
    }
    const there: HistoryEntry[] = [];
    for (const part of chunks(listed.slice(0, limit), READ_AT_ONCE)) {
      const whole = await Promise.all(part.map((id) => this.getHistoryEntry(id)));
      there.push(...whole.filter((entry) => entry !== undefined));
    }
    return { entries: byTime(there, ({ timestamp }) => timestamp), total };
  }

  async addHistoryStep(key: string, value: object, historyId: string, agentId?: string): Promise<void> {
    const content = storedAttributes({ ...value });
    const steps = [{ id: key, entryId: historyId, content, metadata: encodeJson({ agentId }) }];
    const call = this.client.history.saveEntrySteps({ steps });
    await found(call, HistoryEntryNotFoundError, `History entry with key ${historyId} not found`);
  }

  /** Changes the fields that the value names, and no others. */
  async updateHistoryStep(key: string, value: object, historyId: string, _agentId?: string): Promise<void> {
    return this.#stepTurns.take(`${historyId}/${key}`, () => this.#updateHistoryStep(key, value, historyId));
  }

  async #updateHistoryStep(key: string, value: object, historyId: string): Promise<void> {
    const call = this.client.history.getEntryStep({ stepId: key, entryId: historyId });
    const { step } = await found(call, EntryStepNotFoundError, `Step with key ${key} not found`);
    const content = storedAttributes({ ...(step && (decodeJson(step.content) as object)), ...value });
    const updated = { id: key, entryId: historyId, content };
    await this.client.history.updateEntryStep({ step: updated, updateMask: { paths: ["content"] } });
  }

  /** The step, with its entry and its agent. */
  async getHistoryStep(key: string): Promise<Record<string, unknown> | undefined> {
    try {
      const { step } = await this.client.history.getEntryStep({ stepId: key });
      return step && { ...historyStep(step), historyId: step.entryId, ...(decodeJson(step.metadata) as object) };
    } catch (failure) {
      return missing(failure, EntryStepNotFoundError);
    }
  }

  /** Adds an event, whose entry need not be there yet. */
  async addTimelineEvent(key: string, value: NewTimelineEvent, historyId: string, _agentId?: string): Promise<void> {
    await this.client.history.addTimelineEvents({ events: [storedEvent(key, historyId, value)] });
  }

  // Histories of workflows

  async storeWorkflowHistory(entry: WorkflowHistoryEntry): Promise<void> {
    await this.client.workflows.saveWorkflowRun({ run: storedRun(entry) });
  }

  /** The run with its steps and events. */
  async getWorkflowHistory(id: string): Promise<WorkflowHistoryEntry | null> {
    try {
      const [{ run }, steps, events] = await Promise.all([
        this.client.workflows.getWorkflowRun({ runId: id }),
        this.getWorkflowSteps(id),
        this.getWorkflowTimelineEvents(id),
      ]);
      return run ? workflowHistory(run, steps, events) : null;
    } catch (failure) {
      return missing(failure, WorkflowRunNotFoundError) ?? null;
    }
  }

  /** The runs of a workflow, the last begun first, without their steps and events. */
  async getWorkflowHistoryByWorkflowId(workflowId: string): Promise<WorkflowHistoryEntry[]> {
    const request = { workflowId, orderBy: WorkflowRunOrder.START_TIME, pageSize: LARGEST_PAGE };
    const histories: WorkflowHistoryEntry[] = [];
    for await (const page of pages(this.client.workflows.listWorkflowRuns, request)) {
      histories.push(...page.runs.map((run) => workflowHistory(run)));
    }
    return byTime(histories, ({ startTime }) => startTime);
  }

  async updateWorkflowHistory(id: string, updates: Partial<WorkflowHistoryEntry>): Promise<void> {
    const { changes, paths } = runChanges(updates);
    const call = this.client.workflows.updateWorkflowRun({ run: { ...changes, id }, updateMask: { paths } });
    await found(call, WorkflowRunNotFoundError, `Workflow history entry with ID ${id} not found`);
  }

  /** Deletes a run alone: its steps and events stay. */
  async deleteWorkflowHistory(id: string): Promise<void> {
    await this.client.workflows.deleteWorkflowRun({ runId: id, keepRelated: true, allowMissing: true });
  }

  async storeWorkflowStep(step: WorkflowStepHistoryEntry): Promise<void> {
    await this.client.workflows.saveWorkflowSteps({ steps: [storedStep(step)] });
  }

  async getWorkflowStep(id: string): Promise<WorkflowStepHistoryEntry | null> {
    try {
      const { step } = await this.client.workflows.getWorkflowStep({ stepId: id });
      return step ? workflowStep(step) : null;
    } catch (failure) {
      return missing(failure, WorkflowStepNotFoundError) ?? null;
    }
  }

  /** The steps of a run, by index. */
  async getWorkflowSteps(workflowHistoryId: string): Promise<WorkflowStepHistoryEntry[]> {
    const steps: WorkflowStepHistoryEntry[] = [];
    const request = { runId: workflowHistoryId, pageSize: LARGEST_PAGE };
    for await (const page of pages(this.client.workflows.listWorkflowSteps, request)) {
      steps.push(...page.steps.map(workflowStep));
    }
    return steps;
  }

  async updateWorkflowStep(id: string, updates: Partial<WorkflowStepHistoryEntry>): Promise<void> {
    const { changes, paths } = stepChanges(updates);
    const call = this.client.workflows.updateWorkflowStep({ step: { ...changes, id }, updateMask: { paths } });
    await found(call, WorkflowStepNotFoundError, `Workflow step with ID ${id} not found`);
  }

  async deleteWorkflowStep(id: string): Promise<void> {
    await this.client.workflows.deleteWorkflowStep({ stepId: id });
  }

  async storeWorkflowTimelineEvent(event: WorkflowTimelineEvent): Promise<void> {
    await this.client.history.addTimelineEvents({ events: [storedWorkflowEvent(event)] });
  }

  async getWorkflowTimelineEvent(id: string): Promise<WorkflowTimelineEvent | null> {
    try {
      const { event } = await this.client.history.getTimelineEvent({ eventId: id });
      return event ? workflowEvent(event) : null;
    } catch (failure) {
      return missing(failure, TimelineEventNotFoundError) ?? null;
    }
  }

  /** The events of a run, by sequence, then by time. */
  async getWorkflowTimelineEvents(workflowHistoryId: string): Promise<WorkflowTimelineEvent[]> {
    return (await this.#events(workflowHistoryId)).map(workflowEvent);
  }

  async deleteWorkflowTimelineEvent(id: string): Promise<void> {
    await this.client.history.deleteTimelineEvent({ eventId: id });
  }

  async getAllWorkflowIds(): Promise<string[]> {
    const ids: string[] = [];
    for await (const page of pages(this.client.workflows.listWorkflowIds, { pageSize: LARGEST_PAGE })) {
      ids.push(...page.workflowIds);
    }
    return ids;
  }

  async getWorkflowStats(workflowId: string): Promise<WorkflowStats> {
    const stats = await this.client.workflows.getWorkflowStats({ workflowId });
    return {
      totalExecutions: Number(stats.runs),
      successfulExecutions: Number(stats.completedRuns),
      failedExecutions: Number(stats.failedRuns),
      averageExecutionTime: stats.meanDuration ? durationMs(stats.meanDuration) : 0,
      ...(stats.lastStartTime && { lastExecutionTime: dateOf(stats.lastStartTime) }),
    };
  }

  async getWorkflowHistoryWithStepsAndEvents(id: string): Promise<WorkflowHistoryEntry | null> {
    return this.getWorkflowHistory(id);
  }

  async deleteWorkflowHistoryWithRelated(id: string): Promise<void> {
    await this.client.workflows.deleteWorkflowRun({ runId: id, allowMissing: true });
  }

  /** Keeps the newest runs of a workflow, and says how many were deleted. */
  async cleanupOldWorkflowHistories(workflowId: string, maxEntries: number): Promise<number> {
    let gone = 0;
    for (let last = MOST_PRUNED; last >= MOST_PRUNED; gone += last) {
      const request = { workflowId, keepNewest: maxEntries };
      last = Number((await this.client.workflows.pruneWorkflowRuns(request)).deletedRuns);
    }
    return gone;
  }

  async #entrySteps(entryId: string) {
    const steps = [];
    for await (const page of pages(this.client.history.listEntrySteps, { entryId, pageSize: LARGEST_PAGE })) {
      steps.push(...page.steps);
    }
    return steps;
  }

  async #events(runId: string) {
    const events = [];
    for await (const page of pages(this.client.history.listTimelineEvents, { runId, pageSize: LARGEST_PAGE })) {
      events.push(...page.events);
    }
    return events;
  }
}

/** What came the newest first: those of one time are put in the order of storing, as VoltAgent's own stores have them. */
function byTime<T>(newestFirst: readonly T[], timeOf: (one: T) => Date | undefined): T[] {
  const milliseconds = (one: T) => timeOf(one)?.getTime() ?? 0;
  return [...newestFirst].reverse().sort((one, other) => milliseconds(other) - milliseconds(one));
}

type Missing = new (...given: never[]) => NotFoundError;

/** Nothing, for what is missing. Throws any other failure. */
function missing(failure: unknown, kind: Missing): undefined {
  if (!(failure instanceof kind)) {
    throw failure;
  }
  return undefined;
}

/** What a call returns, or VoltAgent's error for what is missing. */
async function found<T>(call: Promise<T>, kind: Missing, message: string): Promise<T> {
  try {
    return await call;
  } catch (cause) {
    throw cause instanceof kind ? new Error(message, { cause }) : cause;
  }
}
