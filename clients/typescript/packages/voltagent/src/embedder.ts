// What embeds for a memory: the server, or a model of the caller whose vectors are sent.

import type { EmbeddingAdapter } from "@voltagent/core";
import type { UIMessage } from "ai";
import { RemoraEmbeddingAdapter } from "./embedding-adapter.js";
import type { EmbeddingCache } from "./embedding-cache.js";
import { beginning, embeddingOf, textOf } from "./messages.js";

/** What messages are compared to: a text that the server embeds, or a vector. */
export type SearchedFor =
  { case: "text"; value: string } | { case: "embedding"; value: NonNullable<ReturnType<typeof embeddingOf>> };

const LARGEST_QUERY_BYTES = 32 * 1024;

/** Makes vectors of queries and messages where the server does not. */
export class Embedder {
  readonly #model: EmbeddingAdapter | undefined;
  readonly #cache: EmbeddingCache | undefined;

  constructor(model: EmbeddingAdapter | undefined, cache: EmbeddingCache | undefined) {
    this.#model = model;
    this.#cache = cache;
  }

  async query(text: string): Promise<SearchedFor> {
    const model = this.#callersModel;
    if (model === undefined) {
      return { case: "text", value: beginning(text, LARGEST_QUERY_BYTES) };
    }
    const [values = []] = await this.vectors([text]);
    const value = embeddingOf(model.getModelName(), values);
    if (value === undefined) {
      throw new TypeError(
        `${model.getModelName()} gave the query no direction: its vector is all zeros or not of numbers`,
      );
    }
    return { case: "embedding", value };
  }

  /**
   * The caller's vectors of messages, in their order; none where the server embeds. If the model fails, messages are
   * stored without, rather than lost.
   */
  async embeddings(messages: readonly UIMessage[]): Promise<ReturnType<typeof embeddingOf>[]> {
    const model = this.#callersModel;
    if (model === undefined) {
      return [];
    }
    const texts = messages.map(textOf);
    try {
      const vectors = await this.vectors(texts.filter((text) => text !== ""));
      let next = 0;
      return texts.map((text) => (text === "" ? undefined : embeddingOf(model.getModelName(), vectors[next++] ?? [])));
    } catch (error) {
      console.warn("Messages are stored without vectors, because the embedding model failed:", error);
      return [];
    }
  }

  /** The vectors of texts, from the cache as far as it has them. */
  async vectors(texts: readonly string[]): Promise<number[][]> {
    const cached = texts.map((text) => this.#cache?.get(text));
    const made = await this.#made(texts.filter((_, place) => cached[place] === undefined));
    let next = 0;
    return texts.map((text, place) => cached[place] ?? this.#kept(text, made[next++] ?? []));
  }

  #kept(text: string, vector: number[]): number[] {
    this.#cache?.set(text, vector);
    return vector;
  }

  async #made(texts: string[]): Promise<number[][]> {
    const [first] = texts;
    if (this.#model === undefined || first === undefined) {
      return [];
    }
    return texts.length === 1 ? [await this.#model.embed(first)] : this.#model.embedBatch(texts);
  }

  get #callersModel(): EmbeddingAdapter | undefined {
    return this.#model instanceof RemoraEmbeddingAdapter ? undefined : this.#model;
  }
}
