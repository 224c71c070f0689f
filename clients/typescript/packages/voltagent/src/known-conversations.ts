// What a process knows of conversations that it has just read or written.

import type { Conversation } from "@voltagent/core";
import { copied } from "./json.js";

const MOST = 1_000;
/** How long a conversation is known to be missing: until the call that follows creates it. */
const MISSING_MS = 1_000;

interface Known {
  conversation: Conversation | null;
  until: number;
}

/** Conversations by id, each for some time. The oldest go first if there are too many. */
export class KnownConversations {
  readonly #known = new Map<string, Known>();
  readonly #ttlMs: number;

  constructor(ttlMs: number) {
    this.#ttlMs = ttlMs;
  }

  /** A copy of the conversation, null for one that is missing, `undefined` if nothing is known. */
  get(id: string): Conversation | null | undefined {
    const known = this.#known.get(id);
    return known === undefined || known.until < Date.now() ? undefined : copied(known.conversation);
  }

  remember(id: string, conversation: Conversation | null): void {
    this.#known.delete(id);
    const ttlMs = conversation === null ? Math.min(MISSING_MS, this.#ttlMs) : this.#ttlMs;
    if (ttlMs > 0) {
      this.#known.set(id, { conversation: copied(conversation), until: Date.now() + ttlMs });
    }
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MOST) {
        break;
      }
      this.#known.delete(oldest);
    }
  }

  /**
   * Remembers that something was written to a conversation, which is there and was updated. It is known no longer for that:
   * the rest of the record is as old as it was.
   */
  written(id: string): void {
    const known = this.#known.get(id);
    if (known?.conversation) {
      known.conversation.updatedAt = new Date().toISOString();
    }
  }

  forget(id: string): void {
    this.#known.delete(id);
  }

  forgetAll(): void {
    this.#known.clear();
  }
}
