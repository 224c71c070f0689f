// Writes of a conversation that are begun at once.

import { setTimeout as sleep } from "node:timers/promises";

/** Lets writes of a key take effect in the order in which they were begun, whatever each has to wait for before. */
export class WriteOrder {
  readonly #last = new Map<string, Promise<void>>();

  /** What a write returns. It begins when those before it have ended, or after `mostMs` if these hang. */
  async run<T>(key: string, mostMs: number, write: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key);
    const running = before === undefined ? write() : within(before, mostMs).then(write);
    const ended = running.then(
      () => undefined,
      () => undefined,
    );
    this.#last.set(key, ended);
    try {
      return await running;
    } finally {
      if (this.#last.get(key) === ended) {
        this.#last.delete(key);
      }
    }
  }
}

/** Waits for it, but no longer than so many milliseconds. */
async function within(ended: Promise<void>, mostMs: number): Promise<void> {
  const patience = new AbortController();
  const late = sleep(mostMs, undefined, { signal: patience.signal }).catch(() => undefined);
  await Promise.race([ended, late]);
  patience.abort();
}
