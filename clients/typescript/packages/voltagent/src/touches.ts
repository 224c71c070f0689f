// Updates that only set the time of a conversation, and wait for a write that sets it anyway.

const PATIENCE_MS = 1_000;

/** Conversations to be touched. What is not dropped is sent after a second. */
export class Touches {
  readonly #timers = new Map<string, NodeJS.Timeout>();
  readonly #touch: (id: string) => Promise<void>;

  constructor(touch: (id: string) => Promise<void>) {
    this.#touch = touch;
  }

  add(id: string): void {
    if (!this.#timers.has(id)) {
      this.#timers.set(id, setTimeout(() => void this.#send(id), PATIENCE_MS).unref());
    }
  }

  /** A write has set the time, or there is nothing left to touch. */
  drop(id: string): void {
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
  }

  /** Sends all that wait. */
  async send(): Promise<void> {
    await Promise.all([...this.#timers.keys()].map((id) => this.#send(id)));
  }

  async #send(id: string): Promise<void> {
    this.drop(id);
    try {
      await this.#touch(id);
    } catch (error) {
      console.warn(`Conversation ${id} could not be touched:`, error);
    }
  }
}
