// Remora as the storage of VoltAgent's Memory.

import { create } from "@bufbuild/protobuf";
import {
  ClientConnection,
  type ConnectionOptions,
  ConversationExistsError,
  ConversationNotFoundError as ConversationMissingError,
  pages,
  type Remora,
  WorkflowRunNotFoundError,
} from "@remora/client";
import { ConversationSchema, Direction, MessageSchema, StepSchema, WorkflowStatus } from "@remora/client/v1";
import type {
  Conversation,
  ConversationQueryOptions,
  ConversationStepRecord,
  CreateConversationInput,
  GetConversationStepsOptions,
  GetMessagesOptions,
  StorageAdapter,
  WorkflowRunQuery,
  WorkflowStateEntry,
  WorkingMemoryScope,
} from "@voltagent/core";
import type { UIMessage } from "ai";
import { batches, chunks } from "./batches.js";
import {
  type ConversationUpdates,
  changesOf,
  conversationOf,
  newConversation,
  orderOf,
  userOf,
} from "./conversations.js";
import { isTooLarge, orMissing, translated, translatedPages } from "./failures.js";
import { requireBoolean, requireFields, requireList, requireText } from "./given.js";
import { encodeJson } from "./json.js";
import { int32, limitOf } from "./limits.js";
import { type RecalledMessage, recalledMessage, storedMessage } from "./messages.js";
import { stepRecord, storedStep } from "./steps.js";
import { boundOf, endOf } from "./times.js";
import { atRest, matchesNothing, runChanges, storedRun, storedStatus, workflowState } from "./workflow-states.js";

/** How the storage is made. */
export interface RemoraMemoryAdapterOptions extends ConnectionOptions {
  /**
   * Where VoltAgent's own adapters differ: like its databases (default), or, if `false`, like InMemoryStorageAdapter.
   *
   * Strict: messages and steps of a missing conversation throw ConversationNotFoundError, as does its working memory;
   * lists of conversations are complete, by default the last updated first, and ordered descending.
   *
   * Lenient: messages and steps create their conversation, its working memory is not kept; `queryConversations` gives 50
   * unless told otherwise, by default the last created first, and ascending if only `orderBy` is given.
   */
  strict?: boolean | undefined;
}

/** Whose conversation it must be for a change to take place. */
export interface OwnershipOptions {
  /** If given, the conversation of any other user is not found. */
  expectedUserId?: string | undefined;
}

interface WorkingMemoryOwner {
  conversationId?: string;
  userId?: string;
  scope: WorkingMemoryScope;
}

const OWN = ["strict"] as const satisfies readonly (keyof RemoraMemoryAdapterOptions)[];
const LARGEST_PAGE = 1_000;
const MOST_DELETED_IDS = 10_000;
const LENIENT_LIMIT = 50;
const ANY_STATUS = { status: WorkflowStatus.UNSPECIFIED, otherStatus: "" };

/** Keeps conversations, messages, steps, working memory and workflow states in Remora. */
export class RemoraMemoryAdapter implements StorageAdapter {
  /** The client that it calls with. */
  readonly client: Remora;
  /** Whether it behaves like VoltAgent's databases. */
  readonly strict: boolean;
  readonly #connection: ClientConnection;

  constructor(options: RemoraMemoryAdapterOptions = {}) {
    this.#connection = new ClientConnection(options, OWN);
    this.client = this.#connection.client;
    this.strict = requireBoolean("strict", options.strict ?? true);
  }

  /** Closes the connection, unless the client was given. */
  close(): void {
    this.#connection.close();
  }

  // Messages

  async addMessage(message: UIMessage, userId: string, conversationId: string): Promise<void> {
    await this.addMessages([message], userId, conversationId);
  }

  async addMessages(messages: UIMessage[], userId: string, conversationId: string): Promise<void> {
    requireList("messages", messages);
    const stored = messages.map((message) => storedMessage(message));
    for (const batch of batches(MessageSchema, stored)) {
      const owner = userOf(userId);
      const createIfMissing = this.strict ? {} : { createIfMissing: { userId: owner } };
      const request = { conversationId, userId: owner, messages: batch, ...createIfMissing };
      await translated(this.client.conversations.appendMessages(request), conversationId);
    }
  }

  async getMessages(
    userId: string,
    conversationId: string,
    options: GetMessagesOptions = {},
  ): Promise<RecalledMessage[]> {
    const limit = limitOf(options.limit);
    const request = {
      conversationId,
      userId: userOf(userId),
      roles: options.roles ?? [],
      pageSize: Math.min(limit, LARGEST_PAGE),
      ...(options.after && { receivedAfter: endOf(options.after) }),
      ...(options.before && { receivedBefore: boundOf(options.before) }),
    };
    return translated(orMissing(this.#messages(request, limit), []));
  }

  async #messages(request: object & { conversationId: string }, limit: number): Promise<RecalledMessage[]> {
    let messages: RecalledMessage[] = [];
    for await (const page of pages(this.client.conversations.listMessages, request)) {
      messages = [...page.messages.map(recalledMessage), ...messages];
      if (messages.length >= limit) {
        break;
      }
    }
    return messages.slice(Math.max(0, messages.length - limit));
  }

  async deleteMessages(messageIds: string[], userId: string, conversationId: string): Promise<void> {
    requireList("messageIds", messageIds);
    const ids = messageIds.filter((id) => id !== "");
    for (const part of chunks(ids, MOST_DELETED_IDS)) {
      const request = { conversationId, userId: userOf(userId), messageIds: part };
      await translated(orMissing(this.client.conversations.deleteMessages(request), undefined));
    }
  }

  async clearMessages(userId: string, conversationId?: string): Promise<void> {
    const request = { userId: userOf(userId), conversationId: conversationId ?? "" };
    await translated(orMissing(this.client.conversations.clearMessages(request), undefined));
  }

  // Conversations

  async createConversation(input: CreateConversationInput): Promise<Conversation> {
    const conversation = newConversation(input);
    const { conversationId, createTime } = await translated(
      this.client.conversations.createConversation({ conversation }),
      input.id,
    );
    const times = createTime && { createTime, updateTime: createTime };
    const stored = { ...conversation, id: conversationId, ...times };
    return conversationOf(create(ConversationSchema, stored));
  }

  async getConversation(id: string): Promise<Conversation | null> {
    const reply = await translated(orMissing(this.client.conversations.getConversation({ conversationId: id }), null));
    return reply?.conversation ? conversationOf(reply.conversation) : null;
  }

  async getConversations(resourceId: string): Promise<Conversation[]> {
    const conversations = await this.#conversations({ resourceId }, Number.POSITIVE_INFINITY);
    // The server takes an empty resource for any.
    return conversations.filter((one) => one.resourceId === resourceId);
  }

  async getConversationsByUserId(
    userId: string,
    options: Omit<ConversationQueryOptions, "userId"> = {},
  ): Promise<Conversation[]> {
    return this.queryConversations({ ...options, userId: userOf(userId) });
  }

  async queryConversations(options: ConversationQueryOptions): Promise<Conversation[]> {
    const { userId = "", resourceId = "", offset = 0 } = options;
    const order = this.strict
      ? orderOf(options, { by: "updated_at", direction: Direction.DESCENDING })
      : orderOf(options, { by: "created_at", direction: Direction.ASCENDING });
    const limit = options.limit || (this.strict ? undefined : LENIENT_LIMIT);
    return this.#conversations({ userId, resourceId, skip: int32(Math.max(0, offset)), ...order }, limitOf(limit));
  }

  async #conversations(request: object, limit: number): Promise<Conversation[]> {
    const conversations: Conversation[] = [];
    const first = { ...request, pageSize: Math.min(limit, LARGEST_PAGE) };
    for await (const page of translatedPages(pages(this.client.conversations.listConversations, first))) {
      conversations.push(...page.conversations.map(conversationOf));
      if (conversations.length >= limit) {
        break;
      }
    }
    return conversations.slice(0, limit);
  }

  async countConversations(options: ConversationQueryOptions): Promise<number> {
    const { userId = "", resourceId = "" } = options;
    const { count } = await translated(this.client.conversations.countConversations({ userId, resourceId }));
    return Number(count);
  }

  async updateConversation(
    id: string,
    updates: ConversationUpdates,
    { expectedUserId }: OwnershipOptions = {},
  ): Promise<Conversation> {
    const { changes, paths } = changesOf(updates);
    await translated(
      this.client.conversations.updateConversation({
        conversation: { ...changes, id },
        updateMask: { paths },
        ...(expectedUserId !== undefined && { userId: userOf(expectedUserId) }),
      }),
      id,
    );
    const { conversation } = await translated(this.client.conversations.getConversation({ conversationId: id }), id);
    return conversationOf(conversation as NonNullable<typeof conversation>);
  }

  async deleteConversation(id: string, { expectedUserId }: OwnershipOptions = {}): Promise<void> {
    const owner = expectedUserId === undefined ? {} : { userId: userOf(expectedUserId) };
    const request = { conversationId: id, ...owner };
    await translated(this.client.conversations.deleteConversation(request), id);
  }

  // Steps

  async saveConversationSteps(steps: ConversationStepRecord[]): Promise<void> {
    requireList("steps", steps);
    for (const batch of batches(StepSchema, steps.map(storedStep))) {
      const save = () => this.client.history.saveSteps({ steps: batch });
      await translated(this.strict ? save() : this.#withConversations(steps, save));
    }
  }

  /** What a write returns, after the conversations of the steps were created if one is missing. */
  async #withConversations<T>(steps: readonly ConversationStepRecord[], save: () => Promise<T>): Promise<T> {
    try {
      return await save();
    } catch (failure) {
      if (!(failure instanceof ConversationMissingError)) {
        throw failure;
      }
      const owners = new Map(steps.map(({ conversationId, userId }) => [conversationId, userId]));
      for (const [id, userId] of owners) {
        await this.client.conversations.createConversation({ conversation: { id, userId } }).catch(unlessThere);
      }
      return save();
    }
  }

  async getConversationSteps(
    userId: string,
    conversationId: string,
    options: GetConversationStepsOptions = {},
  ): Promise<ConversationStepRecord[]> {
    const { limit = 0, operationId = "" } = options;
    const request = {
      conversationId,
      userId: userOf(userId),
      operationId,
      limit: int32(Math.max(0, limit)),
      pageSize: LARGEST_PAGE,
    };
    return translated(orMissing(this.#steps(request), []));
  }

  async #steps(request: object & { conversationId: string }): Promise<ConversationStepRecord[]> {
    const steps: ConversationStepRecord[] = [];
    for await (const page of pages(this.client.history.listSteps, request)) {
      steps.push(...page.steps.map(stepRecord));
    }
    return steps;
  }

  // Working memory

  async getWorkingMemory(params: WorkingMemoryOwner): Promise<string | null> {
    const scope = scopeOf(params);
    if (scope === undefined) {
      return null;
    }
    const reply = await translated(orMissing(this.client.memory.getWorkingMemory({ scope }), null));
    return reply?.found ? new TextDecoder("utf-8", { ignoreBOM: true }).decode(reply.content) : null;
  }

  async setWorkingMemory(params: WorkingMemoryOwner & { content: string }): Promise<void> {
    const scope = scopeOf(params);
    if (scope === undefined) {
      return;
    }
    const content = new TextEncoder().encode(requireText("content", params.content));
    const call = this.client.memory.setWorkingMemory({ scope, content });
    await translated(this.strict ? call : orMissing(call, undefined), params.conversationId);
  }

  async deleteWorkingMemory(params: WorkingMemoryOwner): Promise<void> {
    const scope = scopeOf(params);
    if (scope !== undefined) {
      await translated(orMissing(this.client.memory.deleteWorkingMemory({ scope }), undefined));
    }
  }

  // Workflow states

  async getWorkflowState(executionId: string): Promise<WorkflowStateEntry | null> {
    try {
      const { run } = await this.client.workflows.getWorkflowRun({ runId: executionId });
      return run ? workflowState(run) : null;
    } catch (failure) {
      return unlessMissing(failure, null);
    }
  }

  async setWorkflowState(executionId: string, state: WorkflowStateEntry): Promise<void> {
    requireFields("state", state, "workflowId, workflowName and status");
    await translated(this.client.workflows.saveWorkflowRun({ run: storedRun(executionId, state) }));
  }

  /** Updates it. That a run ends or waits is stored without what is too large. */
  async updateWorkflowState(executionId: string, updates: Partial<WorkflowStateEntry>): Promise<void> {
    requireFields("updates", updates, "the fields that change");
    let failure: unknown;
    for (const changes of [updates, ...atRest(updates)]) {
      try {
        await this.#updateRun(executionId, changes);
        if (failure !== undefined) {
          console.warn(
            `Run ${executionId} of a workflow is ${updates.status}, and stored without what is too large:`,
            failure,
          );
        }
        return;
      } catch (error) {
        failure ??= error;
        if (!isTooLarge(error)) {
          throw error;
        }
      }
    }
    throw failure;
  }

  async #updateRun(executionId: string, updates: Partial<WorkflowStateEntry>): Promise<void> {
    const { changes, paths } = runChanges(updates);
    try {
      await this.client.workflows.updateWorkflowRun({ run: { ...changes, id: executionId }, updateMask: { paths } });
    } catch (failure) {
      await unlessMissing(failure, undefined);
      throw new Error(`Workflow state ${executionId} not found`, { cause: failure });
    }
  }

  async queryWorkflowRuns(query: WorkflowRunQuery): Promise<WorkflowStateEntry[]> {
    if (matchesNothing(query)) {
      return [];
    }
    const { status, otherStatus } = query.status ? storedStatus(query.status) : ANY_STATUS;
    const [offset, limit] = [Math.max(0, query.offset ?? 0), limitOf(query.limit)];
    const request = {
      workflowId: query.workflowId ?? "",
      status,
      userId: query.userId ?? "",
      metadata: encodeJson(query.metadata),
      ...(query.from && { createdFrom: boundOf(query.from) }),
      ...(query.to && { createdTo: boundOf(query.to) }),
    };
    if (status !== WorkflowStatus.OTHER) {
      return this.#workflowStates({ ...request, skip: int32(offset) }, limit);
    }
    const others = await this.#workflowStates(request, Number.POSITIVE_INFINITY);
    return others.filter((state) => state.status === otherStatus).slice(offset, offset + limit);
  }

  async getSuspendedWorkflowStates(workflowId: string): Promise<WorkflowStateEntry[]> {
    if (!workflowId) {
      return []; // The server takes an empty id for any workflow.
    }
    return this.#workflowStates({ workflowId, status: WorkflowStatus.SUSPENDED }, Number.POSITIVE_INFINITY);
  }

  async #workflowStates(request: object, limit: number): Promise<WorkflowStateEntry[]> {
    const states: WorkflowStateEntry[] = [];
    const first = { ...request, pageSize: Math.min(limit, LARGEST_PAGE) };
    for await (const page of translatedPages(pages(this.client.workflows.listWorkflowRuns, first))) {
      states.push(...page.runs.map(workflowState));
      if (states.length >= limit) {
        break;
      }
    }
    return states.slice(0, limit);
  }
}

function scopeOf({ scope, conversationId, userId }: WorkingMemoryOwner) {
  const value = scope === "conversation" ? conversationId : userId;
  const owner = scope === "conversation" ? "conversationId" : "userId";
  return value ? { owner: { case: owner, value } as const } : undefined;
}

function unlessThere(failure: unknown): void {
  if (!(failure instanceof ConversationExistsError)) {
    throw failure;
  }
}

/** The value if a workflow's run is missing. Throws VoltAgent's error for any other failure. */
async function unlessMissing<T>(failure: unknown, value: T): Promise<T> {
  return failure instanceof WorkflowRunNotFoundError ? value : translated(Promise.reject(failure));
}
