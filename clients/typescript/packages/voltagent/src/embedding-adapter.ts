// Remora's own embedding model, for whatever takes an EmbeddingAdapter of VoltAgent.

import { type EmbeddingAdapter, EmbeddingError } from "@voltagent/core";
import { ClientConnection, type ConnectionOptions } from "@remora/client";
import { chunks } from "./batches.js";
import { unpacked } from "./messages.js";

const MOST_TEXTS = 256;

/** Embeds texts with the model of the tenant, which needs no key and no network. Vectors have unit length. */
export class RemoraEmbeddingAdapter implements EmbeddingAdapter {
  readonly #connection: ClientConnection;
  #dimensions = 0;
  #model = "remora";

  constructor(options: ConnectionOptions = {}) {
    this.#connection = new ClientConnection(options);
  }

  /** Closes the connection, unless the client was given. */
  close(): void {
    this.#connection.close();
  }

  async embed(text: string): Promise<number[]> {
    const [vector] = await this.#embed([text], "text");
    return vector ?? [];
  }

  async embedBatch(texts: string[]): Promise<number[][]> {
    const vectors: number[][] = [];
    for (const part of chunks(texts, MOST_TEXTS)) {
      vectors.push(...(await this.#embed(part, "batch")));
    }
    return vectors;
  }

  /** The dimension of the vectors; 0 until the first ones. */
  getDimensions(): number {
    return this.#dimensions;
  }

  /** The model's name; `remora` until the first vectors. */
  getModelName(): string {
    return this.#model;
  }

  async #embed(texts: string[], what: string): Promise<number[][]> {
    try {
      const { embeddings, dimension } = await this.#connection.client.text.embed({ texts });
      this.#dimensions = dimension;
      this.#model = embeddings[0]?.model ?? this.#model;
      return embeddings.map(({ values }) => unpacked(values));
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw Object.assign(new EmbeddingError(`Failed to embed ${what}: ${reason}`), { cause });
    }
  }
}
