// A collection of vectors of Remora as a vector adapter of VoltAgent.

import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  ClientConnection,
  CollectionNotFoundError,
  type ConnectionOptions,
  DimensionMismatchError,
  littleEndian,
  type Remora,
  RemoraError,
  REQUEST_BYTES,
  shown,
} from "@remora/client";
import type { Vector, VectorSchema } from "@remora/client/v1";
import {
  type SearchResult,
  type VectorAdapter,
  VectorError,
  type VectorItem,
  type VectorSearchOptions,
} from "@voltagent/core";
import { chunks } from "./batches.js";
import { requireList, requireNumber } from "./given.js";
import { decodeJson, encodeJson } from "./json.js";
import { unpacked } from "./messages.js";
import { attributesOf, filterOf } from "./vector-filters.js";

/** How the adapter is made. */
export interface RemoraVectorAdapterOptions extends ConnectionOptions {
  /** The collection, of the tenant. Default: `voltagent`. */
  collection?: string | undefined;
  /** The most dimensions that `store` takes. Default: 1,536. */
  maxVectorDimensions?: number | undefined;
  /** Of how many vectors that were stored last `get` and `search` give the very numbers. Default: 100. */
  cacheSize?: number | undefined;
}

/** What VoltAgent's adapters say of themselves. */
export interface VectorStats {
  count: number;
  dimensions: number | null;
  cacheSize: number;
  tableSizeBytes: number;
}

const OWN = [
  "collection",
  "maxVectorDimensions",
  "cacheSize",
] as const satisfies readonly (keyof RemoraVectorAdapterOptions)[];
const COLLECTION = "voltagent";
const MAX_DIMENSIONS = 1_536;
const CACHE_SIZE = 100;
const LIMIT = 10;
const MOST_HITS = 1_000;
const MOST_DELETED_IDS = 10_000;
/** The squares of 4,096 such numbers still have a sum in f32. */
const LARGEST_VALUE = 1e17;

/**
 * Keeps vectors and finds the nearest ones, exactly. Numbers are stored as f32. What has no direction in f32 is stored as the
 * nearest that has one: numbers beyond 1e17 as 1e17, NaN as 0.
 *
 * A batch is stored as a whole or, if it has more than 10,000 vectors or than the server takes in a request, not at all.
 */
export class RemoraVectorAdapter implements VectorAdapter {
  /** The client that it calls with. */
  readonly client: Remora;
  readonly #connection: ClientConnection;
  readonly #collectionId: string;
  readonly #maxDimensions: number;
  readonly #cacheSize: number;
  /** The numbers of the vectors that were stored last, as they were given. */
  readonly #originals = new Map<string, number[]>();

  constructor(options: RemoraVectorAdapterOptions = {}) {
    this.#connection = new ClientConnection(options, OWN);
    this.client = this.#connection.client;
    this.#collectionId = options.collection ?? COLLECTION;
    this.#maxDimensions = requireNumber("maxVectorDimensions", options.maxVectorDimensions ?? MAX_DIMENSIONS);
    this.#cacheSize = requireNumber("cacheSize", options.cacheSize ?? CACHE_SIZE);
  }

  async store(id: string, vector: number[], metadata?: Record<string, unknown>): Promise<void> {
    requireNumbers("vector", vector);
    if (vector.length > this.#maxDimensions) {
      throw new VectorError(`Vector dimensions (${vector.length}) exceed maximum (${this.#maxDimensions})`);
    }
    await this.storeBatch([metadata === undefined ? { id, vector } : { id, vector, metadata }]);
  }

  async storeBatch(items: VectorItem[]): Promise<void> {
    requireList("items", items);
    for (const [place, item] of items.entries()) {
      requireNumbers(`items[${place}].vector`, item.vector);
    }
    requireOneDimension(items);
    if (items.length > 0) {
      const vectors = storedVectors(items);
      const bytes = vectors.reduce(
        (sum, { values, metadata }) => sum + (values?.length ?? 0) + (metadata?.length ?? 0),
        0,
      );
      // A call that stores more than other requests hold has as much more time.
      const timeoutMs = this.client.timeoutMs * Math.ceil(bytes / REQUEST_BYTES);
      const request = { collectionId: this.#collectionId, vectors };
      await this.#call(this.client.vectors.upsertVectors(request, { timeoutMs }));
    }
    const kept = items.slice(Math.max(0, items.length - this.#cacheSize));
    for (const { id, vector } of kept) {
      this.#remember(id, [...vector]);
    }
  }

  async search(vector: number[], options: VectorSearchOptions = {}): Promise<SearchResult[]> {
    requireNumbers("vector", vector);
    const { limit = LIMIT, threshold, filter } = options;
    const where = filterOf(filter);
    if (limit <= 0 || where === "nothing") {
      return [];
    }
    const request = {
      collectionId: this.#collectionId,
      query: { case: "vector", value: packed(vector) } as const,
      k: Math.min(limit, MOST_HITS),
      ...(threshold !== undefined && { threshold }),
      ...(where && { filter: where }),
    };
    const { hits } = await this.#call(this.client.vectors.searchVectors(request), "Query vector");
    if (limit > MOST_HITS && hits.length === MOST_HITS) {
      throw new VectorError(
        `limit is ${limit}; a search gives at most ${MOST_HITS.toLocaleString("en")}, and there may be more`,
      );
    }
    return hits.flatMap(({ vector: found, score }) =>
      found === undefined ? [] : [{ ...this.#item(found), score, distance: 2 - 2 * score }],
    );
  }

  async get(id: string): Promise<VectorItem | null> {
    if (id === "") {
      return null;
    }
    const request = { collectionId: this.#collectionId, ids: [id] };
    const { vectors } = await this.#call(this.client.vectors.getVectors(request));
    return vectors[0] === undefined ? null : this.#item(vectors[0]);
  }

  async delete(id: string): Promise<void> {
    await this.deleteBatch([id]);
  }

  async deleteBatch(ids: string[]): Promise<void> {
    const named = ids.filter((id) => id !== "");
    for (const part of chunks(named, MOST_DELETED_IDS)) {
      const selection = { case: "ids", value: { ids: part } } as const;
      await this.#call(this.client.vectors.deleteVectors({ collectionId: this.#collectionId, selection }));
      for (const id of part) {
        this.#originals.delete(id);
      }
    }
  }

  /** Deletes all vectors; the next ones may have another dimension. */
  async clear(): Promise<void> {
    await this.#call(this.client.vectors.clearCollection({ collectionId: this.#collectionId }));
    this.#originals.clear();
  }

  async count(): Promise<number> {
    const { vectors } = await this.#call(this.client.vectors.countVectors({ collectionId: this.#collectionId }));
    return Number(vectors);
  }

  async getStats(): Promise<VectorStats> {
    const cacheSize = this.#originals.size;
    try {
      const { collection, vectors, bytes } = await this.client.vectors.getCollection({
        collectionId: this.#collectionId,
      });
      const dimensions = collection?.currentDimension || null;
      return { count: Number(vectors), dimensions, cacheSize, tableSizeBytes: Number(bytes) };
    } catch (failure) {
      if (failure instanceof CollectionNotFoundError) {
        return { count: 0, dimensions: null, cacheSize, tableSizeBytes: 0 };
      }
      throw vectorError(failure);
    }
  }

  /** Closes the connection, unless the client was given. */
  async close(): Promise<void> {
    this.#originals.clear();
    this.#connection.close();
  }

  /** The vector with the numbers that it was given here, if no other has taken its place since. */
  #item({ id, values, metadata, content }: Vector): VectorItem {
    const original = this.#originals.get(id);
    const same = original !== undefined && Buffer.compare(packed(original), values) === 0;
    const known = decodeJson(metadata) as VectorItem["metadata"];
    return {
      id,
      vector: same ? [...original] : unpacked(values),
      ...(known !== undefined && { metadata: known }),
      ...(content !== "" && { content }),
    };
  }

  #remember(id: string, vector: number[]): void {
    this.#originals.delete(id);
    this.#originals.set(id, vector);
    for (const oldest of this.#originals.keys()) {
      if (this.#originals.size <= this.#cacheSize) {
        break;
      }
      this.#originals.delete(oldest);
    }
  }

  /** What a call returns. `what` has another dimension than the collection if that is why it is refused. */
  async #call<T>(call: Promise<T>, what = "Vector"): Promise<T> {
    try {
      return await call;
    } catch (failure) {
      throw vectorError(failure, what);
    }
  }
}

function vectorError(failure: unknown, what = "Vector"): unknown {
  if (!(failure instanceof RemoraError)) {
    return failure;
  }
  const { code, reason, metadata, message } = failure;
  const mismatch = `${what} dimension mismatch. Expected ${metadata["expected_dimension"]}, got ${metadata["found_dimension"]}`;
  const text = failure instanceof DimensionMismatchError ? mismatch : message;
  return Object.assign(new VectorError(text, { code, reason }), { cause: failure });
}

/** Throws VectorError for what are no numbers: the letters of a text would be taken for such. */
function requireNumbers(field: string, given: unknown): void {
  if (!Array.isArray(given) && !ArrayBuffer.isView(given)) {
    throw new VectorError(`${field} is ${shown(given)}; it must be an array of numbers`);
  }
}

function requireOneDimension(items: readonly VectorItem[]): void {
  const expected = items[0]?.vector.length;
  for (const { id, vector } of items) {
    if (vector.length === 0) {
      throw new VectorError(`Vector ${id} is empty`);
    }
    if (vector.length !== expected) {
      throw new VectorError(`Vector dimension mismatch. Expected ${expected}, got ${vector.length}`);
    }
  }
}

function storedVectors(items: readonly VectorItem[]): MessageInitShape<typeof VectorSchema>[] {
  const values = allPacked(items.map(({ vector }) => vector));
  return items.map(({ id, metadata, content }, place) => {
    const encoded = encodeJson(metadata);
    const attributes = attributesOf(decodeJson(encoded) as VectorItem["metadata"]);
    return { id, values: values[place] as Uint8Array, metadata: encoded, attributes, content: content ?? "" };
  });
}

function packed(vector: readonly number[]): Uint8Array {
  return allPacked([vector])[0] as Uint8Array;
}

/** Vectors of one dimension as bytes. They share a buffer: a thousand small ones take longer to collect than to fill. */
function allPacked(vectors: readonly (readonly number[])[]): Uint8Array[] {
  const dimension = vectors[0]?.length ?? 0;
  const values = new Float32Array(vectors.length * dimension);
  vectors.forEach((vector, place) => {
    values.set(vector, place * dimension);
  });
  for (let place = 0; place < values.length; place++) {
    const value = values[place] as number;
    // Not so for NaN either.
    if (!(value >= -LARGEST_VALUE && value <= LARGEST_VALUE)) {
      values[place] = finite(value);
    }
  }
  const bytes = littleEndian(values);
  const size = dimension * values.BYTES_PER_ELEMENT;
  return vectors.map((_, place) => bytes.subarray(place * size, (place + 1) * size));
}

function finite(value: number): number {
  return Number.isNaN(value) ? 0 : Math.max(-LARGEST_VALUE, Math.min(LARGEST_VALUE, value));
}
