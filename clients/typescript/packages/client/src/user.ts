// A handle on one user: its facts, blocks, memory items and working memory, and its messages in all conversations.

import { MemoryBlocks } from "./blocks.js";
import type { CallOptions } from "./calls.js";
import { Facts } from "./facts.js";
import type { Conversation } from "./generated/remora/v1/conversation_pb.js";
import {
  ConversationOrder,
  type ConversationService,
  Direction,
} from "./generated/remora/v1/conversation_service_pb.js";
import type { MemoryService, SearchMessagesResponse } from "./generated/remora/v1/memory_service_pb.js";
import type { TextService } from "./generated/remora/v1/text_service_pb.js";
import type { UserService } from "./generated/remora/v1/user_service_pb.js";
import { MemoryItems } from "./memory-items.js";
import { taken } from "./pages.js";
import { invalidField, requireId, requireKnown, shown } from "./refusals.js";
import { type Query, type SearchOptions, searchRequest } from "./search.js";
import type { ServiceClient } from "./services.js";
import { WorkingMemory } from "./working-memory.js";

/** Services that a user's calls are of. */
interface Services {
  conversations: ServiceClient<typeof ConversationService>;
  memory: ServiceClient<typeof MemoryService>;
  text: ServiceClient<typeof TextService>;
  users: ServiceClient<typeof UserService>;
}

/** Which conversations are listed, and in which order. */
export interface ListedConversations {
  /** What they are ordered by. Default: `updateTime`. */
  orderBy?: "updateTime" | "createTime" | "title" | undefined;
  /** Whether the last of that order comes first. Default: true. */
  descending?: boolean | undefined;
  /** At most so many; Infinity: all. Default: 100. */
  limit?: number | undefined;
  /** How many of the first are left out. Default: 0. */
  skip?: number | undefined;
}

const ORDERS = {
  updateTime: ConversationOrder.UPDATE_TIME,
  createTime: ConversationOrder.CREATE_TIME,
  title: ConversationOrder.TITLE,
} as const;

/** A handle on a user; making one makes no call. */
export class User {
  /** The user's id. */
  readonly id: string;
  /** What is known of the user: facts with their sources, and with the times when they held. */
  readonly facts: Facts;
  /** The user's long-term memory in blocks: static, extractive and vector memory. */
  readonly blocks: MemoryBlocks;
  /** What the user's agents chose to remember, item by item. */
  readonly memoryItems: MemoryItems;
  /** The user's working memory, the same in all of its conversations. */
  readonly workingMemory: WorkingMemory;
  readonly #services: Services;

  /** @internal Use `remora.user(id)`. */
  constructor(services: Services, id: string) {
    requireId(id, "userId");
    this.id = id;
    this.facts = new Facts(services.memory, id);
    this.blocks = new MemoryBlocks(services, id);
    this.memoryItems = new MemoryItems(services.memory, id);
    this.workingMemory = new WorkingMemory(services.memory, {
      scope: { owner: { case: "userId", value: id } },
      userId: "",
    });
    this.#services = services;
  }

  /**
   * The user's messages, of all its conversations, that answer a text or resemble a vector, best first: a page of `k`. The
   * reply's `nextPageToken` is the `pageToken` of the next page, its `receiptId` its receipt.
   */
  async search(query: Query, how: SearchOptions = {}, options?: CallOptions): Promise<SearchMessagesResponse> {
    return this.#services.memory.searchMessages(searchRequest({ case: "userId", value: this.id }, query, how), options);
  }

  /** The conversations that the user owns, the one that was updated last first. Each page of 1,000 has the timeout. */
  async conversations(which: ListedConversations = {}, options?: CallOptions): Promise<Conversation[]> {
    requireKnown(which, ["orderBy", "descending", "limit", "skip"], "option");
    const { orderBy = "updateTime", descending = true, limit = 100, skip = 0 } = which;
    requireOrder(orderBy);
    const request = {
      userId: this.id,
      orderBy: ORDERS[orderBy],
      direction: descending ? Direction.DESCENDING : Direction.ASCENDING,
      skip,
    };
    const listed = this.#services.conversations.listConversations;
    const found = await taken(listed, request, (page) => page.conversations, limit, options);
    return found.flat().slice(0, limit);
  }

  /** Deletes the user's messages and steps in all conversations; returns how many messages. */
  async clearMessages(options?: CallOptions): Promise<bigint> {
    return (await this.#services.conversations.clearMessages({ userId: this.id }, options)).deletedMessages;
  }

  /** Deletes everything of the user, including the conversations that it owns; returns how many messages. */
  async delete(options?: CallOptions): Promise<bigint> {
    return (await this.#services.users.deleteUser({ userId: this.id }, options)).deletedMessages;
  }
}

function requireOrder(orderBy: string): asserts orderBy is keyof typeof ORDERS {
  if (!Object.hasOwn(ORDERS, orderBy)) {
    throw invalidField("orderBy", `is ${shown(orderBy)}; it must be one of ${Object.keys(ORDERS).join(", ")}`);
  }
}
