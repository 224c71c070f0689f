// A handle on one user: its facts, blocks and working memory, and its messages in all conversations.

import { MemoryBlocks } from "./blocks.js";
import type { CallOptions } from "./calls.js";
import { Facts } from "./facts.js";
import type { ConversationService } from "./generated/remora/v1/conversation_service_pb.js";
import type { MemoryService, SearchMessagesResponse } from "./generated/remora/v1/memory_service_pb.js";
import type { TextService } from "./generated/remora/v1/text_service_pb.js";
import type { UserService } from "./generated/remora/v1/user_service_pb.js";
import { requireId } from "./refusals.js";
import { type SearchOptions, searchRequest } from "./search.js";
import type { ServiceClient } from "./services.js";
import { WorkingMemory } from "./working-memory.js";

/** Services that a user's calls are of. */
interface Services {
  conversations: ServiceClient<typeof ConversationService>;
  memory: ServiceClient<typeof MemoryService>;
  text: ServiceClient<typeof TextService>;
  users: ServiceClient<typeof UserService>;
}

/** A handle on a user; making one makes no call. */
export class User {
  /** The user's id. */
  readonly id: string;
  /** What is known of the user: facts with their sources, and with the times when they held. */
  readonly facts: Facts;
  /** The user's long-term memory in blocks: static, extractive and vector memory. */
  readonly blocks: MemoryBlocks;
  /** The user's working memory, the same in all of its conversations. */
  readonly workingMemory: WorkingMemory;
  readonly #services: Services;

  /** @internal Use `remora.user(id)`. */
  constructor(services: Services, id: string) {
    requireId(id, "userId");
    this.id = id;
    this.facts = new Facts(services.memory, id);
    this.blocks = new MemoryBlocks(services, id);
    this.workingMemory = new WorkingMemory(services.memory, {
      scope: { owner: { case: "userId", value: id } },
      userId: "",
    });
    this.#services = services;
  }

  /**
   * The user's messages, of all its conversations, that answer a text, best first: a page of `k`. The reply's
   * `nextPageToken` is the `pageToken` of the next page, its `receiptId` its receipt.
   */
  async search(query: string, how: SearchOptions = {}, options?: CallOptions): Promise<SearchMessagesResponse> {
    return this.#services.memory.searchMessages(searchRequest({ case: "userId", value: this.id }, query, how), options);
  }

  /** Deletes everything of the user, including the conversations that it owns; returns how many messages. */
  async delete(options?: CallOptions): Promise<bigint> {
    return (await this.#services.users.deleteUser({ userId: this.id }, options)).deletedMessages;
  }
}
