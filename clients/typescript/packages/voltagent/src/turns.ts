// Changes of one thing that are begun at once: the next begins when the one before has ended.

/** Lets the changes of a key happen one after the other, in the order in which they were begun. */
export class Turns {
  readonly #last = new Map<string, Promise<unknown>>();

  /** What a change returns. */
  async take<T>(key: string, change: () => Promise<T>): Promise<T> {
    const before = this.#last.get(key) ?? Promise.resolve();
    const begun = before.then(change, change);
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
