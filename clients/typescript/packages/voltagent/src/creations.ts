// Conversations that this process is creating, or has just created.

import { setImmediate as nextTurn } from "node:timers/promises";
import { type Conversation, ConversationAlreadyExistsError } from "@voltagent/core";

/** An agent begins to store a turn from several sides at once, and each that finds no conversation creates it. */
const JUST_MS = 1_000;

interface Creation {
  readonly conversation: Promise<Conversation>;
  ended: boolean;
}

/** Lets one of those that create a conversation at once do so, and tells the others that it is there. */
export class Creations {
  readonly #begun = new Map<string, Creation>();

  /** Creates it, unless it is being created. Throws ConversationAlreadyExistsError if another call has done so. */
  async create(id: string, create: () => Promise<Conversation>): Promise<Conversation> {
    if (this.#begun.has(id) && (await this.of(id)) !== undefined) {
      throw new ConversationAlreadyExistsError(id);
    }
    const begun: Creation = { conversation: create(), ended: false };
    this.#begun.set(id, begun);
    try {
      return await begun.conversation;
    } catch (error) {
      this.forget(id);
      throw error;
    } finally {
      begun.ended = true;
      setTimeout(() => this.#begun.get(id) === begun && this.forget(id), JUST_MS).unref();
    }
  }

  /**
   * The conversation that is being created or was just now, if it is. Whoever creates it goes on first: an agent then stores
   * the question, and its answer may already be waiting.
   */
  async of(id: string): Promise<Conversation | undefined> {
    const begun = this.#begun.get(id);
    const waits = begun?.ended === false;
    const conversation = await begun?.conversation.catch(() => undefined);
    if (waits) {
      await nextTurn();
    }
    return conversation;
  }

  forget(id: string): void {
    this.#begun.delete(id);
  }
}
