// What is being stored now: VoltAgent does not wait for all that it stores.

/** Writes that have not ended yet. */
export class Writes {
  readonly #running = new Set<Promise<unknown>>();

  get size(): number {
    return this.#running.size;
  }

  /** What a write returns. */
  async add<T>(write: Promise<T>): Promise<T> {
    this.#running.add(write);
    try {
      return await write;
    } finally {
      this.#running.delete(write);
    }
  }

  /** Waits until all have ended, well or not. */
  async ended(): Promise<void> {
    while (this.#running.size > 0) {
      await Promise.allSettled(this.#running);
    }
  }
}
