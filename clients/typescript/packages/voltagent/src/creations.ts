// Conversations that this process is creating, or has just created.

import { type Conversation, ConversationAlreadyExistsError } from "@voltagent/core";

/** An agent begins to store a turn from several sides at once, and each that finds no conversation creates it. */
const JUST_MS = 1_000;

/** Lets one of those that create a conversation at once do so, and tells the others that it is there. */
export class Creations {
  readonly #begun = new Map<string, Promise<Conversation>>();

  /** Creates it, unless it is being created. Throws ConversationAlreadyExistsError if another call has done so. */
  async create(id: string, create: () => Promise<Conversation>): Promise<Conversation> {
    if (this.#begun.has(id) && (await this.of(id)) !== undefined) {
      throw new ConversationAlreadyExistsError(id);
    }
    const begun = create();
    this.#begun.set(id, begun);
    try {
      return await begun;
    } catch (error) {
      this.forget(id);
      throw error;
    } finally {
      setTimeout(() => this.#begun.get(id) === begun && this.forget(id), JUST_MS).unref();
    }
  }

  /** The conversation that is being created or was just now, if it is. */
  async of(id: string): Promise<Conversation | undefined> {
    return this.#begun.get(id)?.catch(() => undefined);
  }

  forget(id: string): void {
    this.#begun.delete(id);
  }
}
