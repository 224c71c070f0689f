// The client: a connection to one server, as one tenant.

import { create } from "@bufbuild/protobuf";
import { MemoryBlocks } from "./blocks.js";
import { type CallOptions, Calls, requireTimeout } from "./calls.js";
import type { TlsOptions } from "./connection.js";
import { Conversation, type ConversationOptions } from "./conversation.js";
import { resolveCredentials } from "./credentials.js";
import { resolveEndpoint } from "./endpoint.js";
import { Facts } from "./facts.js";
import { AdminService } from "./generated/remora/v1/admin_service_pb.js";
import { OriginSchema } from "./generated/remora/v1/calls_pb.js";
import { ConversationService } from "./generated/remora/v1/conversation_service_pb.js";
import { CheckpointService } from "./generated/remora/v1/checkpoint_service_pb.js";
import { HistoryService } from "./generated/remora/v1/history_service_pb.js";
import { MemoryService, type SearchMessagesResponse } from "./generated/remora/v1/memory_service_pb.js";
import { TextService } from "./generated/remora/v1/text_service_pb.js";
import { TransferService } from "./generated/remora/v1/transfer_service_pb.js";
import { UserService } from "./generated/remora/v1/user_service_pb.js";
import { StoreService } from "./generated/remora/v1/store_service_pb.js";
import { VectorService } from "./generated/remora/v1/vector_service_pb.js";
import { WorkflowService } from "./generated/remora/v1/workflow_service_pb.js";
import { Receipts } from "./receipts.js";
import { requireKnown, requireString } from "./refusals.js";
import { type Query, type SearchOptions, searchRequest } from "./search.js";
import { type ServiceClient, serviceClient } from "./services.js";
import { requireTls } from "./tls.js";
import { User } from "./user.js";
import type { WorkingMemory } from "./working-memory.js";

export const OPTIONS = [
  "endpoint",
  "token",
  "tenant",
  "timeoutMs",
  "agentId",
  "runId",
  "tls",
] as const satisfies readonly (keyof RemoraOptions)[];
const DEFAULT_TIMEOUT_MS = 2_000;

/** How a client is made. */
export interface RemoraOptions {
  /** `unix:/path` or `host:port`. Default: `$REMORA_ENDPOINT`, else the socket where `remora serve` listens. */
  endpoint?: string | undefined;
  /**
   * The tenant, if the server requires no token; else it must be the token's. 1 to 512 printable ASCII characters.
   * Default: `$REMORA_TENANT`, unless a `token` is given.
   */
  tenant?: string | undefined;
  /** Authenticates. Default: `$REMORA_TOKEN`. */
  token?: string | undefined;
  /** Milliseconds that a call may take, retries included, unless it has its own. Default: 2,000. */
  timeoutMs?: number | undefined;
  /** Kept in the records of writes. */
  agentId?: string | undefined;
  /** Kept in the records of writes. */
  runId?: string | undefined;
  /** Speaks TLS with a host and port. */
  tls?: TlsOptions | undefined;
}

/**
 * A client of a Remora server. It connects with its first call, and keeps no process alive.
 *
 * Calls are retried within their deadline while the server is unavailable; a write takes effect once. A read that failed
 * may be made again as it is. A write that failed may have taken effect: make the same call again with
 * `requestId: error.requestId`, and it takes effect once. Reads see all earlier writes of this client.
 */
export class Remora {
  /** Where the server listens. */
  readonly endpoint: string;
  /** Conversations and their messages. */
  readonly conversations: ServiceClient<typeof ConversationService>;
  /** Steps of conversations, and timeline events. */
  readonly history: ServiceClient<typeof HistoryService>;
  /** Searches, contexts and working memories. */
  readonly memory: ServiceClient<typeof MemoryService>;
  /** Runs of workflows and their steps. */
  readonly workflows: ServiceClient<typeof WorkflowService>;
  /** Items: JSON values under keys in namespaces. */
  readonly store: ServiceClient<typeof StoreService>;
  /** Vectors and their collections. */
  readonly vectors: ServiceClient<typeof VectorService>;
  /** Checkpoints of graphs, and their threads. */
  readonly checkpoints: ServiceClient<typeof CheckpointService>;
  /** Users. */
  readonly users: ServiceClient<typeof UserService>;
  /** Token counts and embeddings. */
  readonly text: ServiceClient<typeof TextService>;
  /** Exports and imports. */
  readonly transfer: ServiceClient<typeof TransferService>;
  /** The server's status, and backups. */
  readonly admin: ServiceClient<typeof AdminService>;
  /** What contexts and searches were made of, the same replies again, and how two of them differ. */
  readonly receipts: Receipts;
  readonly #calls: Calls;

  /**
   * Does not connect yet.
   *
   * @throws InvalidFieldError for an option that no call could be made with.
   */
  constructor(options: RemoraOptions = {}) {
    requireKnown(options, OPTIONS, "option");
    const { agentId = "", runId = "", timeoutMs = DEFAULT_TIMEOUT_MS } = options;
    requireString(agentId, "agentId");
    requireString(runId, "runId");
    this.endpoint = resolveEndpoint(options.endpoint);
    const calls = new Calls({
      endpoint: this.endpoint,
      headers: resolveCredentials(options),
      origin: create(OriginSchema, { agentId, runId }),
      timeoutMs: requireTimeout(timeoutMs),
      tls: requireTls(options.tls, this.endpoint),
    });
    this.#calls = calls;
    this.conversations = serviceClient(ConversationService, calls);
    this.history = serviceClient(HistoryService, calls);
    this.memory = serviceClient(MemoryService, calls);
    this.workflows = serviceClient(WorkflowService, calls);
    this.store = serviceClient(StoreService, calls);
    this.vectors = serviceClient(VectorService, calls);
    this.checkpoints = serviceClient(CheckpointService, calls);
    this.users = serviceClient(UserService, calls);
    this.text = serviceClient(TextService, calls);
    this.transfer = serviceClient(TransferService, calls);
    this.admin = serviceClient(AdminService, calls);
    this.receipts = new Receipts(this.memory);
  }

  /**
   * A handle on the conversation, existing or not; it makes no call. An append to a missing conversation creates it, for
   * the user and with the fields given here.
   */
  conversation(conversationId: string, options?: ConversationOptions): Conversation {
    return new Conversation(this, conversationId, options);
  }

  /** A handle on a user; it makes no call. */
  user(userId: string): User {
    return new User(this, userId);
  }

  /**
   * The messages of all users of the tenant that answer a text or resemble a vector, best first. No other call finds the messages of several
   * users: `remora.user(id).search(query)` finds those of one.
   */
  async searchAllUsers(query: Query, how: SearchOptions = {}, options?: CallOptions): Promise<SearchMessagesResponse> {
    return this.memory.searchMessages(searchRequest({ case: "tenant", value: {} }, query, how), options);
  }

  /** What is known of a user; it makes no call. */
  facts(userId: string): Facts {
    return new Facts(this.memory, userId);
  }

  /** The long-term memory of a user in blocks: static, extractive and vector memory; it makes no call. */
  blocks(userId: string): MemoryBlocks {
    return new MemoryBlocks(this, userId);
  }

  /** The working memory of a user, the same in all of its conversations; it makes no call. */
  workingMemory(userId: string): WorkingMemory {
    return this.user(userId).workingMemory;
  }

  /** Milliseconds until the deadline of a call that is given none of its own. */
  get timeoutMs(): number {
    return this.#calls.timeoutMs;
  }

  /** The minimum revision of reads: the greatest that this client wrote or was given, at first 0. */
  get revision(): bigint {
    return this.#calls.revision;
  }

  /** Makes later reads see at least this revision, such as one that another client wrote. */
  advanceTo(revision: bigint): void {
    this.#calls.advanceTo(revision);
  }

  /** Closes the connection and cancels calls in progress; they and later ones fail with ClientClosedError. */
  close(): void {
    this.#calls.close();
  }
}
