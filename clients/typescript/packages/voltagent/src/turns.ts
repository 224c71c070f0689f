// Changes of one thing that are begun at once: the next begins when the one before has ended.

import { setTimeout as sleep } from "node:timers/promises";

/** Lets the changes of a key happen one after the other, in the order in which they were begun. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  /** What a change returns. With `mostMs`, it waits no longer for those before it, in case these hang. */
  async take<T>(key: string, change: () => Promise<T>, mostMs?: number): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const turn = mostMs === undefined ? before : within(before, mostMs);
    const begun = turn.then(change, change);
    this.#last.set(key, begun);
    try {
      return await begun;
    } finally {
      if (this.#last.get(key) === begun) {
        this.#last.delete(key);
      }
    }
  }
}

/** Waits for the end of it, but no longer than so many milliseconds. */
async function within(change: Promise<unknown>, mostMs: number): Promise<void> {
  const patience = new AbortController();
  const late = sleep(mostMs, undefined, { signal: patience.signal });
  try {
    await Promise.race([change, late]);
  } finally {
    late.catch(() => undefined);
    patience.abort();
  }
}
