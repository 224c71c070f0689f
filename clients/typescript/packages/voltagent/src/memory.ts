// VoltAgent's Memory with Remora below: what takes several calls of an adapter there is one call here.

import { setTimeout as sleep } from "node:timers/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  ConnectionFailedError,
  ConversationNotFoundError as ConversationMissingError,
  refuseMisspelt,
  type Remora,
} from "@remora/client";
import {
  type ConversationSchema,
  Merge,
  MessageSchema,
  Profile,
  type ReadConversationResponse,
} from "@remora/client/v1";
import {
  type Conversation,
  ConversationNotFoundError,
  type ConversationStepRecord,
  type CreateConversationInput,
  type Document,
  type EmbeddingAdapterInput,
  EmbeddingAdapterNotConfiguredError,
  type GetMessagesOptions,
  Memory,
  type MemoryConfig,
  type OperationContext,
  type SearchOptions,
  VectorAdapterNotConfiguredError,
} from "@voltagent/core";
import type { UIMessage } from "ai";
import { batches } from "./batches.js";
import { type ConversationUpdates, conversationOf, userOf } from "./conversations.js";
import { Creations } from "./creations.js";
import { Embedder, type SearchedFor } from "./embedder.js";
import { RemoraEmbeddingAdapter } from "./embedding-adapter.js";
import { EmbeddingCache } from "./embedding-cache.js";
import { orMissing, translated } from "./failures.js";
import { requireList, requireNumber } from "./given.js";
import { encodeJson } from "./json.js";
import { KnownConversations } from "./known-conversations.js";
import { int32 } from "./limits.js";
import { type OwnershipOptions, RemoraMemoryAdapter, type RemoraMemoryAdapterOptions } from "./memory-adapter.js";
import { type RecalledMessage, recalledMessage, storedMessage } from "./messages.js";
import { type SimilarMessage, searchedPart, similarMessage } from "./similar.js";
import { Touches } from "./touches.js";
import { Turns } from "./turns.js";
import { Writes } from "./writes.js";

/** How a memory is made: where the server is, and what Memory's own options say. */
export interface RemoraMemoryOptions extends RemoraMemoryAdapterOptions, Omit<MemoryConfig, "storage" | "embedding"> {
  /** The storage to use; the options that say where the server is are then its own. */
  storage?: RemoraMemoryAdapter | undefined;
  /**
   * What embeds messages and queries. Default: Remora's own model, in the server. Another model's vectors are sent with the
   * messages and the query. `false`: no semantic search.
   */
  embedding?: EmbeddingAdapterInput | false | undefined;
  /**
   * How long `getConversation` may answer from what this memory has read, created or updated itself, so that an agent's turn
   * asks for the conversation once; appending does not prolong it. What other processes change meanwhile is seen later.
   * Default: 30,000 ms; 0: it always asks.
   */
  conversationCacheMs?: number | undefined;
  /**
   * How many recent messages a semantic read has at least where as many are asked for as are searched: an agent of VoltAgent
   * 2.10 asks for `semanticLimit` of them, whatever its own `contextLimit` is. Default: as many as are asked for.
   */
  contextLimit?: number | undefined;
}

/** How recent messages and those that were found are joined. */
export type MergeStrategy = "prepend" | "append" | "interleave";

interface SemanticOptions {
  limit?: number;
  semanticLimit?: number;
  semanticThreshold?: number;
  mergeStrategy?: MergeStrategy;
}

const OWN = [
  "strict",
  "storage",
  "embedding",
  "vector",
  "conversationCacheMs",
  "contextLimit",
  "enableCache",
  "cacheSize",
  "cacheTTL",
  "workingMemory",
  "generateTitle",
] as const satisfies readonly (keyof RemoraMemoryOptions)[];
const MERGES = { prepend: Merge.PREPEND, append: Merge.APPEND, interleave: Merge.INTERLEAVE } as const;
const CONVERSATION_CACHE_MS = 30_000;
const CACHE_SIZE = 1_000;
const CACHE_TTL_MS = 3_600_000;
const SEMANTIC_LIMIT = 5;
const SIMILAR_LIMIT = 10;
/** How long an agent may take from one write to the next. */
const SETTLING_MS = 50;
const CONVERSATION_TITLE = "Conversation";

/**
 * A Memory for agents. A semantic read is one call, in which the server embeds the query and joins what it finds with the
 * recent messages; no message is embedded here, unless with a model of the caller.
 */
export class RemoraMemory extends Memory {
  /** The client that it calls with. */
  readonly client: Remora;
  readonly #storage: RemoraMemoryAdapter;
  readonly #embedder: Embedder;
  readonly #contextLimit: number;
  readonly #known: KnownConversations;
  readonly #touches: Touches;
  readonly #creations = new Creations();
  readonly #writes = new Writes();
  readonly #turns = new Turns();
  readonly #asked = new Map<string, Promise<Conversation | null>>();
  #resourceId = "";

  constructor(options: RemoraMemoryOptions = {}) {
    refuseMisspelt(options, OWN);
    const { storage = new RemoraMemoryAdapter(options), embedding, ...rest } = options;
    requireStorage(storage);
    const { client } = storage;
    const model = embedding === false ? {} : { embedding: embedding ?? new RemoraEmbeddingAdapter({ client }) };
    super({ ...rest, ...model, storage } as MemoryConfig);
    this.client = client;
    this.#storage = storage;
    this.#contextLimit = requireNumber("contextLimit", options.contextLimit ?? 0);
    const { conversationCacheMs = CONVERSATION_CACHE_MS } = options;
    this.#known = new KnownConversations(requireNumber("conversationCacheMs", conversationCacheMs));
    this.#touches = new Touches(async (id) => {
      await client.conversations.updateConversation({ conversation: { id } });
    });
    const { enableCache = false, cacheSize = CACHE_SIZE, cacheTTL = CACHE_TTL_MS } = options;
    const cache = enableCache
      ? new EmbeddingCache(requireNumber("cacheSize", cacheSize), requireNumber("cacheTTL", cacheTTL))
      : undefined;
    this.#embedder = new Embedder(this.getEmbeddingAdapter(), cache);
  }

  /**
   * Waits for what an agent still stores in the background, and closes the connection; one of a storage that was given is
   * closed with it, one of a client that was given is not.
   */
  async close(): Promise<void> {
    for (let idle = false; !idle;) {
      await this.#writes.ended();
      await sleep(SETTLING_MS);
      idle = this.#writes.size === 0;
    }
    await this.#touches.send();
    this.#storage.close();
  }

  // Messages

  override async getMessages(
    userId: string,
    conversationId: string,
    options: GetMessagesOptions = {},
    _context?: OperationContext,
  ): Promise<RecalledMessage[]> {
    const { limit, ...filters } = options;
    if (Object.values(filters).some((filter) => filter !== undefined)) {
      return this.#storage.getMessages(userId, conversationId, options);
    }
    return translated(this.#read(userId, conversationId, limit === undefined ? {} : { limit }));
  }

  override async addMessage(
    message: UIMessage,
    userId: string,
    conversationId: string,
    _context?: OperationContext,
  ): Promise<void> {
    await this.addMessages([message], userId, conversationId);
  }

  override async addMessages(
    messages: UIMessage[],
    userId: string,
    conversationId: string,
    _context?: OperationContext,
  ): Promise<void> {
    const create = this.#storage.strict ? undefined : { userId: userOf(userId) };
    await this.#writes.add(this.#append(messages, userId, conversationId, create));
  }

  override async saveMessageWithContext(
    message: UIMessage,
    userId: string,
    conversationId: string,
    context?: Parameters<Memory["saveMessageWithContext"]>[3],
    _operation?: OperationContext,
  ): Promise<void> {
    if (!userId || !conversationId) {
      return;
    }
    const {
      resourceId = this.#resourceId,
      title = CONVERSATION_TITLE,
      metadata = {},
    } = this.#known.get(conversationId) ?? {};
    try {
      const create = { userId, resourceId, title, metadata: encodeJson(metadata) };
      await this.#writes.add(this.#append([message], userId, conversationId, create));
    } catch (error) {
      context?.logger?.error?.(`[Memory] Write failed: ${error instanceof Error ? error.message : "Unknown error"}`);
      throw error;
    }
  }

  override async deleteMessages(messageIds: string[], userId: string, conversationId: string): Promise<void> {
    await this.#storage.deleteMessages(messageIds, userId, conversationId);
  }

  override async clearMessages(userId: string, conversationId?: string): Promise<void> {
    await this.#storage.clearMessages(userId, conversationId);
  }

  // Conversations

  override async getConversation(id: string): Promise<Conversation | null> {
    await this.#creations.of(id);
    const known = this.#known.get(id);
    if (known !== undefined) {
      return known;
    }
    let asked = this.#asked.get(id);
    if (asked === undefined) {
      asked = this.#storage.getConversation(id);
      this.#asked.set(id, asked);
      void this.#remembering(id, asked);
    }
    return structuredClone(await asked);
  }

  override async createConversation(input: CreateConversationInput): Promise<Conversation> {
    return this.#creations.create(input.id, async () => {
      const conversation = await this.#storage.createConversation(input);
      this.#known.remember(conversation.id, conversation);
      return conversation;
    });
  }

  /** Updates it. An empty update, which only sets the time, is not sent if a message follows within a second. */
  override async updateConversation(
    id: string,
    updates: ConversationUpdates,
    options: OwnershipOptions = {},
  ): Promise<Conversation> {
    const known = this.#known.get(id);
    if (known && Object.keys(updates).length === 0 && options.expectedUserId === undefined) {
      this.#touches.add(id);
      this.#known.written(id);
      return { ...known, updatedAt: new Date().toISOString() };
    }
    this.#known.forget(id);
    const conversation = await this.#storage.updateConversation(id, updates, options);
    this.#known.remember(id, conversation);
    return conversation;
  }

  override async deleteConversation(id: string, options: OwnershipOptions = {}): Promise<void> {
    this.#touches.drop(id);
    this.#creations.forget(id);
    this.#known.forget(id);
    try {
      await this.#storage.deleteConversation(id, options);
    } finally {
      this.#asked.delete(id); // what a read that is under way finds is not remembered
      this.#known.forget(id);
    }
  }

  override async saveConversationSteps(steps: ConversationStepRecord[]): Promise<void> {
    try {
      await this.#writes.add(this.#saveSteps(steps));
    } catch (error) {
      if (error instanceof ConversationNotFoundError) {
        this.#known.forgetAll();
      }
      throw error;
    }
  }

  // Semantic search

  override async getMessagesWithSemanticSearch(
    userId: string,
    conversationId: string,
    currentQuery?: string,
    options: SemanticOptions = {},
  ): Promise<RecalledMessage[]> {
    const asked = { ...options, ...this.#recentOf(options) };
    if (!currentQuery || !this.hasVectorSupport()) {
      return translated(this.#read(userId, conversationId, asked));
    }
    try {
      return await this.#read(userId, conversationId, asked, await this.#embedder.query(currentQuery));
    } catch (error) {
      if (error instanceof ConnectionFailedError) {
        return translated(Promise.reject(error)); // recent messages would be asked of the same server, for as long again
      }
      console.warn("Semantic search failed, returning recent messages only:", error);
      return translated(this.#read(userId, conversationId, asked));
    }
  }

  /** How many recent messages to read where an agent asks for as many as it searches: at least `contextLimit`. */
  #recentOf({ limit, semanticLimit }: SemanticOptions): Pick<SemanticOptions, "limit"> {
    return limit === undefined || limit !== semanticLimit ? {} : { limit: Math.max(limit, this.#contextLimit) };
  }

  override hasVectorSupport(): boolean {
    return this.getEmbeddingAdapter() !== undefined;
  }

  /** The most similar messages, and documents if there is a vector adapter, best first. */
  override async searchSimilar(query: string, options: SearchOptions = {}): Promise<SimilarMessage[]> {
    this.#requireEmbedding("searchSimilar");
    const { limit = SIMILAR_LIMIT } = options;
    const [messages, documents] = await Promise.all([
      this.#similarMessages(query, { ...options, limit }),
      this.#similarDocuments(query, options),
    ]);
    return [...messages, ...documents].sort((one, other) => other.score - one.score).slice(0, limit);
  }

  override async addDocument(document: Document): Promise<void> {
    this.#requireEmbedding("addDocument");
    const vector = this.getVectorAdapter();
    if (vector === undefined) {
      throw new VectorAdapterNotConfiguredError("addDocument");
    }
    const [values = []] = await this.#embedder.vectors([document.content]);
    await vector.store(document.id, values, { ...document.metadata, content: document.content });
  }

  override getAdaptersInfo(): ReturnType<Memory["getAdaptersInfo"]> {
    return { ...super.getAdaptersInfo(), vector: this.hasVectorSupport() };
  }

  override _setResourceId(id: string): void {
    super._setResourceId(id);
    this.#resourceId = id;
  }

  /** Recent messages, and those that are found if there is a query; none of a missing conversation. */
  async #read(
    userId: string,
    conversationId: string,
    options: SemanticOptions,
    query?: SearchedFor,
  ): Promise<RecalledMessage[]> {
    const { limit = 0, semanticLimit: k = SEMANTIC_LIMIT, semanticThreshold: threshold } = options;
    const strategy = options.mergeStrategy ?? "append";
    try {
      const reply = await this.client.memory.readConversation({
        conversationId,
        userId: userOf(userId),
        ...(limit > 0 && { recentMessages: int32(limit) }),
        ...(query && { query }),
        options: { k, profile: Profile.VECTOR, ...(threshold !== undefined && { threshold }) },
        merge: MERGES[strategy],
      });
      if (reply.conversation) {
        this.#known.remember(conversationId, conversationOf(reply.conversation));
      }
      const messages = reply.messages.flatMap(({ message }) => message ?? []).map(recalledMessage);
      return reply.truncated ? await this.#completed(reply, userId, conversationId, limit, strategy) : messages;
    } catch (failure) {
      if (!(failure instanceof ConversationMissingError)) {
        throw failure;
      }
      this.#known.remember(conversationId, null);
      return [];
    }
  }

  /** What a reply of limited size has found, with all recent messages. */
  async #completed(
    reply: ReadConversationResponse,
    userId: string,
    conversationId: string,
    limit: number,
    strategy: MergeStrategy,
  ): Promise<RecalledMessage[]> {
    const recent = await this.#storage.getMessages(userId, conversationId, { limit });
    const there = new Set(recent.map(({ id }) => id));
    const found = reply.messages.filter(({ score }) => score !== undefined).flatMap(({ message }) => message ?? []);
    return joined(
      found.map(recalledMessage).filter(({ id }) => !there.has(id)),
      recent,
      strategy,
    );
  }

  async #append(
    messages: UIMessage[],
    userId: string,
    conversationId: string,
    createIfMissing: MessageInitShape<typeof ConversationSchema> | undefined,
  ): Promise<void> {
    // Embedding may take longer for what was said first.
    const embedded = this.#embedder.embeddings(messages);
    embedded.catch(() => undefined); // it is told when its turn has come
    const send = async () => this.#send(messages, await embedded, userId, conversationId, createIfMissing);
    await this.#turns.take(conversationId, send, this.client.timeoutMs);
  }

  async #send(
    messages: UIMessage[],
    embeddings: Awaited<ReturnType<Embedder["embeddings"]>>,
    userId: string,
    conversationId: string,
    createIfMissing: MessageInitShape<typeof ConversationSchema> | undefined,
  ): Promise<void> {
    const stored = messages.map((message, place) => storedMessage(message, embeddings[place]));
    for (const batch of batches(MessageSchema, stored)) {
      const create = createIfMissing && { createIfMissing };
      const request = { conversationId, userId: userOf(userId), messages: batch, ...create };
      try {
        const reply = await translated(this.client.conversations.appendMessages(request), conversationId);
        this.#touches.drop(conversationId);
        if (reply.conversationCreated) {
          this.#known.forget(conversationId);
        } else {
          this.#known.written(conversationId);
        }
      } catch (failure) {
        this.#known.forget(conversationId);
        throw failure;
      }
    }
  }

  /** Saves them when their conversations, which an agent creates at the same time, are there. */
  async #saveSteps(steps: ConversationStepRecord[]): Promise<void> {
    requireList("steps", steps);
    const conversations = new Set(steps.map(({ conversationId }) => conversationId));
    await Promise.all([...conversations].map((id) => this.#creations.of(id)));
    await this.#storage.saveConversationSteps(steps);
  }

  /** Remembers what a read found, unless the conversation was deleted meanwhile. */
  async #remembering(id: string, asked: Promise<Conversation | null>): Promise<void> {
    const conversation = await asked.catch(() => null); // who asked is told
    if (this.#asked.get(id) === asked) {
      this.#asked.delete(id);
      if (conversation) {
        this.#known.remember(id, conversation);
      }
    }
  }

  async #similarMessages(query: string, options: SearchOptions): Promise<SimilarMessage[]> {
    const where = searchedPart(options.filter ?? {});
    if (where === undefined) {
      return [];
    }
    const { limit: k = SIMILAR_LIMIT, threshold } = options;
    const request = {
      scope: where.scope,
      query: await this.#embedder.query(query),
      options: {
        k,
        profile: Profile.VECTOR,
        filter: { roles: where.roles },
        ...(threshold !== undefined && { threshold }),
      },
    };
    const reply = await translated(orMissing(this.client.memory.searchMessages(request), undefined));
    return (reply?.hits ?? []).flatMap(similarMessage);
  }

  async #similarDocuments(query: string, options: SearchOptions): Promise<SimilarMessage[]> {
    const vector = this.getVectorAdapter();
    if (vector === undefined) {
      return [];
    }
    const [values = []] = await this.#embedder.vectors([query]);
    return vector.search(values, options);
  }

  #requireEmbedding(operation: string): void {
    if (!this.hasVectorSupport()) {
      throw new EmbeddingAdapterNotConfiguredError(operation);
    }
  }
}

/** Throws TypeError for another store, which has no client. */
function requireStorage(storage: Partial<RemoraMemoryAdapter> | null): void {
  if (typeof storage?.client !== "object") {
    throw new TypeError("storage must be a RemoraMemoryAdapter; VoltAgent's own Memory takes any other store");
  }
}

/** Found and recent messages in the order of a strategy. */
function joined(found: RecalledMessage[], recent: RecalledMessage[], strategy: MergeStrategy): RecalledMessage[] {
  switch (strategy) {
    case "prepend":
      return [...found, ...recent];
    case "append":
      return [...recent, ...found];
    case "interleave": {
      const places = Array.from({ length: Math.max(found.length, recent.length) }, (_, place) => place);
      return places.flatMap((place) => [...found.slice(place, place + 1), ...recent.slice(place, place + 1)]);
    }
  }
}
