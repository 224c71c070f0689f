// Vectors of texts that were embedded before.

/** The least recently used go first, and none is kept longer than its time. Texts are compared, not their hashes. */
export class EmbeddingCache {
  readonly #entries = new Map<string, { vector: readonly number[]; until: number }>();
  readonly #size: number;
  readonly #ttlMs: number;

  constructor(size: number, ttlMs: number) {
    this.#size = size;
    this.#ttlMs = ttlMs;
  }

  get(text: string): number[] | undefined {
    const entry = this.#entries.get(text);
    this.#entries.delete(text);
    if (entry === undefined || entry.until < Date.now()) {
      return undefined;
    }
    this.#entries.set(text, entry);
    return [...entry.vector];
  }

  set(text: string, vector: readonly number[]): void {
    this.#entries.delete(text);
    this.#entries.set(text, { vector: [...vector], until: Date.now() + this.#ttlMs });
    for (const oldest of this.#entries.keys()) {
      if (this.#entries.size <= this.#size) {
        break;
      }
      this.#entries.delete(oldest);
    }
  }
}
