// Remora as a store of LangGraph: JSON values under keys in namespaces, found by value and by meaning.

import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import type { EmbeddingsInterface } from "@langchain/core/embeddings";
import {
  BaseStore,
  type GetOperation,
  type Item,
  type ListNamespacesOperation,
  type MatchCondition,
  type Operation,
  type OperationResults,
  type PutOperation,
  type SearchItem,
  type SearchOperation,
  validateNamespace,
} from "@langchain/langgraph-checkpoint";
import {
  ClientConnection,
  type ConnectionOptions,
  durationFromMs,
  refuseMisspelt,
  type Remora,
  REQUEST_BYTES,
  shown,
  timestampDate,
} from "@remora/client";
import {
  type ExecuteOperationsResponse,
  type ItemHit,
  type ItemSearchSchema,
  type ItemVectorSchema,
  type NamespaceQuerySchema,
  type OperationResult,
  OperationSchema,
  Similarity,
  type StoreItem,
  type StoreItemSchema,
} from "@remora/client/v1";
import { filterToWire } from "./filters.js";
import { invalidField, named, namedInBatch, wrongType } from "./refusals.js";
import { textsAt } from "./texts.js";

const MS_PER_MINUTE = 60_000;
/** The most that one search or list returns. */
const MOST = 1_000;
/** How many a search finds without a limit. */
const SEARCH_LIMIT = 10;
/** The largest number of the contract. */
const INT32 = 2 ** 31 - 1;
/** What one call holds. */
const MOST_OPERATIONS = 10_000;
const VALUE_BYTES = 2 << 20;
const SIMILARITIES = {
  cosine: Similarity.COSINE,
  inner_product: Similarity.INNER_PRODUCT,
  l2: Similarity.L2,
};

const OWN = ["index", "ttl", "userLabel"] as const satisfies readonly (keyof RemoraStoreOptions)[];
const INDEX_KEYS = ["dims", "embeddings", "fields", "distanceType"];
const TTL_KEYS = ["defaultTtl", "refreshOnRead"];
const MATCHES = ["prefix", "suffix"];
/** What of a search or a list is a number. */
const NUMBERS = ["limit", "offset", "maxDepth"] as const;
const SEARCH_KEYS = ["filter", "limit", "offset", "query"];
const LIST_KEYS = ["prefix", "suffix", "maxDepth", "limit", "offset"];

/** By what items are found in a search with a query. */
export interface RemoraIndexConfig {
  /** The dimension of the vectors; checked when items are written. */
  dims?: number | undefined;
  /** The model that embeds. Default: Remora's own, in the server. */
  embeddings?: EmbeddingsInterface | undefined;
  /** The paths of the texts that are embedded, such as `title` or `chapters[*].text`. Default: `$`, the whole value. */
  fields?: string[] | undefined;
  /** How vectors are compared; more is nearer. Default: `cosine`. */
  distanceType?: keyof typeof SIMILARITIES | undefined;
}

/** How long items live. */
export interface TTLConfig {
  /** Minutes from the last write, for items that are put without a `ttl`. Default: for ever. */
  defaultTtl?: number | undefined;
  /** Whether a get or a search that returns an item lets it live anew. Default: true. */
  refreshOnRead?: boolean | undefined;
}

/** How a store is made. */
export interface RemoraStoreOptions extends ConnectionOptions {
  /** Without it, queries are ignored: a search lists what was last written. */
  index?: RemoraIndexConfig | undefined;
  /** How long items live. Expired ones are not seen, and the server deletes them. */
  ttl?: TTLConfig | undefined;
  /** Which label of a namespace names a user: 0 is the first, -1 the last. Deleting the user deletes the item. Default: none does. */
  userLabel?: number | undefined;
}

/** A put that may say how long the item lives. */
export interface RemoraPutOperation extends PutOperation {
  /** Minutes from now, and from each later read that refreshes it. `null`: for ever. Default: `defaultTtl`. */
  ttl?: number | null | undefined;
}

type Wire = MessageInitShape<typeof OperationSchema>;
type Search = MessageInitShape<typeof ItemSearchSchema>;
type NamespaceQuery = MessageInitShape<typeof NamespaceQuerySchema>;
type Vector = MessageInitShape<typeof ItemVectorSchema>;
/** An operation, its place in the batch, and what of it is sent. */
interface Sent {
  operation: Operation;
  position: number;
  wire: Wire;
}

/** The vectors of texts and of queries, which a model may embed differently; none if the server embeds. */
interface Embedded {
  texts: ReadonlyMap<string, Uint8Array>;
  queries: ReadonlyMap<string, Uint8Array>;
}

/**
 * Keeps items in Remora: `graph.compile({ store: new RemoraStore({ index: {} }) })`.
 *
 * A batch is one call: first its reads, in one state of the store, then its writes, all or none. (One of more than 3 MiB
 * or 10,000 operations, or of writes and a read that may find more than 1,000, is several.) What is written is on disk when the promise resolves.
 */
export class RemoraStore extends BaseStore {
  readonly #connection: ClientConnection;
  readonly #index: RemoraIndexConfig | undefined;
  readonly #ttl: TTLConfig;
  readonly #userLabel: number | undefined;

  constructor(options: RemoraStoreOptions = {}) {
    super();
    refuseMisspelt(options, OWN);
    const { index, ttl, userLabel } = options;
    requireIndex(index ?? {});
    requireTtl(ttl ?? {});
    if (userLabel !== undefined && !Number.isInteger(userLabel)) {
      throw new TypeError(
        `userLabel is ${shown(userLabel)}; it must be a whole number: 0 is the first label, -1 the last.`,
      );
    }
    this.#connection = new ClientConnection(options, OWN);
    this.#index = index ?? undefined;
    this.#ttl = ttl ?? {};
    this.#userLabel = userLabel;
  }

  /** A store for `unix:/path` or `host:port`, as other stores are made. */
  static fromConnString(endpoint: string, options: RemoraStoreOptions = {}): RemoraStore {
    refuseMisspelt(options, OWN);
    return new RemoraStore({ ...options, endpoint });
  }

  /** The client that the store calls with. */
  get client(): Remora {
    return this.#connection.client;
  }

  /** What the store was made with. */
  get indexConfig(): RemoraIndexConfig | undefined {
    return this.#index;
  }

  /** Fails if the server does not answer. There is nothing to set up. */
  async setup(): Promise<void> {
    await this.client.admin.getStatus({});
  }

  /** Closes the connection, unless the client was given. */
  override stop(): void {
    this.#connection.close();
  }

  /** As BaseStore's, with a `ttl` in minutes: see RemoraPutOperation. It may be in an object, as PostgresStore takes it. */
  override async put(
    namespace: string[],
    key: string,
    value: Record<string, unknown>,
    index?: false | string[],
    ttl?: number | null | { ttl?: number | null | undefined },
  ): Promise<void> {
    requireLabels("namespace", namespace);
    validateNamespace(namespace);
    const minutes = minutesOf(ttl);
    const operation: RemoraPutOperation = {
      namespace,
      key,
      value,
      ...(index !== undefined && { index }),
      ttl: minutes,
    };
    await this.batch([operation]);
  }

  /** As BaseStore's. @throws TypeError for an option that it does not have: without its filter, a search finds what is not meant. */
  override async search(
    namespacePrefix: string[],
    options: Parameters<BaseStore["search"]>[1] = {},
  ): Promise<SearchItem[]> {
    requireLabels("namespacePrefix", namespacePrefix);
    requireKnown("options", options, SEARCH_KEYS);
    return super.search(namespacePrefix, options);
  }

  /** As BaseStore's. @throws TypeError for an option that it does not have. */
  override async listNamespaces(options: Parameters<BaseStore["listNamespaces"]>[0] = {}): Promise<string[][]> {
    requireKnown("options", options, LIST_KEYS);
    return super.listNamespaces(options);
  }

  override async batch<Op extends Operation[]>(operations: Op): Promise<OperationResults<Op>> {
    requireOperations(operations);
    operations.forEach(requireNamespaces);
    operations.forEach(requireNumbers);
    operations.filter(isPut).forEach(requireObject);
    const results: unknown[] = operations.map(resultOfNothing);
    const last = lastPuts(operations);
    const asked = operations.flatMap((operation, position) =>
      asksNothing(operation) || (isPut(operation) && last.get(placeOf(operation)) !== position)
        ? []
        : [{ operation, position }],
    );
    const embedded = await this.#embedded(asked.map(({ operation }) => operation));
    const sent = asked.map(({ operation, position }) => ({
      operation,
      position,
      wire: this.#toWire(operation, embedded),
    }));
    for (const call of calls(sent)) {
      const reply = await this.#executed(call, operations.length > 1);
      for (const [index, { operation, position, wire }] of call.entries()) {
        results[position] = await this.#result(operation, wire, reply.results[index]);
      }
    }
    return results as OperationResults<Op>;
  }

  async #executed(call: readonly Sent[], areSeveral: boolean): Promise<ExecuteOperationsResponse> {
    try {
      return await this.client.store.executeOperations({ operations: call.map(({ wire }) => wire) });
    } catch (failure) {
      throw namedInBatch(failure, (sent) => (areSeveral ? call[sent]?.position : undefined));
    }
  }

  /** Deletes what has expired, as the server does by itself within minutes; returns how many items. */
  async sweepTtl(): Promise<number> {
    const reply = await this.client.store.deleteExpiredItems({});
    return Number(reply.deletedItems);
  }

  /** Deletes everything in namespaces with this prefix. */
  async deleteNamespaces(prefix: string[]): Promise<void> {
    validateNamespace(prefix, { allowReservedRoot: true });
    try {
      await this.client.store.deleteNamespaces({ namespacePrefix: prefix });
    } catch (failure) {
      throw named(failure, (field) => field.replace(/^namespacePrefix/, "prefix"));
    }
  }

  #toWire(operation: Operation, embedded: Embedded): Wire {
    const refreshExpiry = this.#ttl.refreshOnRead ?? true;
    if (isSearch(operation)) {
      return { kind: { case: "search", value: this.#search(operation, embedded, refreshExpiry) } };
    }
    if (isPut(operation)) {
      return operation.value === null
        ? { kind: { case: "delete", value: keyOf(operation) } }
        : { kind: { case: "put", value: this.#item(operation, operation.value, embedded) } };
    }
    return isGet(operation)
      ? { kind: { case: "get", value: { key: keyOf(operation), refreshExpiry } } }
      : { kind: { case: "listNamespaces", value: namespaceQuery(operation) } };
  }

  #search(operation: SearchOperation, embedded: Embedded, refreshExpiry: boolean): Search {
    const filter = filterToWire(operation.filter);
    return {
      namespacePrefix: operation.namespacePrefix,
      ...(filter && { filter }),
      ...this.#query(operation.query ?? "", embedded),
      similarity: SIMILARITIES[this.#index?.distanceType ?? "cosine"],
      limit: Math.min(mostOf(operation), MOST),
      skip: begin(operation),
      refreshExpiry,
    };
  }

  #query(query: string, embedded: Embedded): Pick<Search, "query"> {
    if (this.#index === undefined || query === "") {
      return {};
    }
    const vector = embedded.queries.get(query);
    return { query: vector ? { case: "vector", value: vector } : { case: "text", value: query } };
  }

  #item(
    operation: RemoraPutOperation,
    value: Record<string, unknown>,
    embedded: Embedded,
  ): MessageInitShape<typeof StoreItemSchema> {
    const minutes = operation.ttl === undefined ? this.#ttl.defaultTtl : (operation.ttl ?? undefined);
    return {
      ...keyOf(operation),
      userId: this.#userLabel === undefined ? "" : (operation.namespace.at(this.#userLabel) ?? ""),
      value: encoded(operation, value),
      ...(minutes !== undefined && { ttl: durationFromMs(Math.max(1, Math.round(finite(minutes) * MS_PER_MINUTE))) }),
      vectors: this.#texts(operation).map(({ path, text }): Vector => {
        const values = embedded.texts.get(text);
        return { path, content: values ? { case: "values", value: values } : { case: "text", value: text } };
      }),
    };
  }

  /** The texts of an item that are embedded, each with its path. */
  #texts({ value, index }: PutOperation): { path: string; text: string }[] {
    if (this.#index === undefined || value === null || index === false) {
      return [];
    }
    return requirePaths(index ?? this.#index.fields ?? ["$"]).flatMap((path) => {
      const texts = textsAt(value, path).filter((text) => text !== "");
      return texts.map((text, place) => ({ path: texts.length > 1 ? `${path}.${place}` : path, text }));
    });
  }

  /** The vectors of all texts and queries of a batch, each embedded once. */
  async #embedded(operations: readonly Operation[]): Promise<Embedded> {
    const model = this.#index?.embeddings;
    if (model === undefined) {
      return { texts: new Map(), queries: new Map() };
    }
    const texts = unique(
      operations.filter(isPut).flatMap((operation) => this.#texts(operation).map(({ text }) => text)),
    );
    const queries = unique(operations.filter(isSearch).flatMap(({ query }) => (query ? [query] : [])));
    const [documents, asked] = await Promise.all([
      texts.length > 0 ? model.embedDocuments(texts) : [],
      Promise.all(queries.map((query) => model.embedQuery(query))),
    ]);
    return {
      texts: new Map(texts.map((text, place) => [text, this.#packed(documents[place])])),
      queries: new Map(queries.map((query, place) => [query, this.#packed(asked[place])])),
    };
  }

  #packed(vector: readonly number[] | undefined): Uint8Array {
    const { dims } = this.#index ?? {};
    if (vector === undefined) {
      throw new Error("The model made fewer vectors than it was given texts.");
    }
    if (dims !== undefined && vector.length !== dims) {
      throw new Error(`The model made a vector of ${vector.length} dimensions; the index has ${dims}.`);
    }
    const packed = Buffer.alloc(vector.length * 4);
    vector.forEach((value, place) => packed.writeFloatLE(value, place * 4));
    return packed;
  }

  /** The result of an operation. What the reply had no room for is asked for. */
  async #result(operation: Operation, wire: Wire, result: OperationResult | undefined): Promise<unknown> {
    if (isPut(operation)) {
      return undefined;
    }
    if (isGet(operation)) {
      return this.#got(operation, result);
    }
    if (isSearch(operation)) {
      return this.#hits(operation, wire.kind?.value as Search, result);
    }
    return this.#namespaces(operation, result);
  }

  async #got(operation: GetOperation, result: OperationResult | undefined): Promise<Item | null> {
    if (result?.kind.case === "item") {
      return itemOf(result.kind.value);
    }
    if (result?.truncated !== true) {
      return null;
    }
    const reply = await this.client.store.getItems({ keys: [keyOf(operation)] });
    const [item] = reply.items;
    return item ? itemOf(item) : null;
  }

  async #hits(operation: SearchOperation, search: Search, result: OperationResult | undefined): Promise<SearchItem[]> {
    const wanted = mostOf(operation);
    const hits = result?.kind.case === "hits" ? [...result.kind.value.hits] : [];
    let more = result?.truncated === true || hits.length === MOST;
    while (more && hits.length < wanted) {
      const skip = begin(operation) + hits.length;
      const limit = Math.min(wanted - hits.length, MOST);
      const reply = await this.client.store.searchItems({ search: { ...search, skip, limit } });
      hits.push(...reply.hits);
      more = reply.truncated || reply.hits.length === MOST;
    }
    return hits.map(hitOf);
  }

  async #namespaces(operation: ListNamespacesOperation, result: OperationResult | undefined): Promise<string[][]> {
    const query = namespaceQuery(operation);
    const wanted = mostOf(operation);
    const found = result?.kind.case === "namespaces" ? [...result.kind.value.namespaces] : [];
    let more = result?.truncated === true || found.length === MOST;
    while (more && found.length < wanted) {
      const skip = begin(operation) + found.length;
      const reply = await this.client.store.listNamespaces({ query: { ...query, skip }, pageSize: MOST });
      found.push(...reply.namespaces);
      more = reply.nextPageToken !== "";
    }
    return found.slice(0, wanted).map(({ labels }) => labels);
  }
}

/** The minutes that a put was given. @throws TypeError for an object without them: the item would live for ever. */
function minutesOf(ttl: Parameters<RemoraStore["put"]>[4]): number | null | undefined {
  if (ttl === null || typeof ttl !== "object") {
    return ttl;
  }
  if (ttl instanceof Date) {
    throw new TypeError("ttl is a Date; it must be a number of minutes.");
  }
  requireKnown("ttl", ttl, ["ttl"]);
  return ttl.ttl;
}

/** @throws TypeError for a key of another store: without it, another model would embed, or items live for ever. */
function requireKnown(name: string, given: unknown, known: readonly string[]): void {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new TypeError(`${name} is ${shown(given)}; it must be an object with ${known.join(", ")}.`);
  }
  const unknown = Object.keys(given).find((key) => !known.includes(key));
  if (unknown !== undefined) {
    throw new TypeError(`${name} has no key ${JSON.stringify(unknown)}; it has ${known.join(", ")}.`);
  }
}

/** @throws TypeError for what is no index: searches would find nothing, or fail with every item. */
function requireIndex(index: RemoraIndexConfig): void {
  requireKnown("index", index, INDEX_KEYS);
  const { dims, embeddings, fields, distanceType = "cosine" } = index;
  if (!Object.hasOwn(SIMILARITIES, distanceType)) {
    throw new TypeError(`distanceType is one of ${Object.keys(SIMILARITIES).join(", ")}, not ${shown(distanceType)}.`);
  }
  if (dims !== undefined && !(Number.isInteger(dims) && dims > 0)) {
    throw new TypeError(`dims of index is ${shown(dims)}; it must be a whole number of at least 1.`);
  }
  if (embeddings !== undefined && !isModel(embeddings)) {
    throw new TypeError(
      `embeddings of index is ${shown(embeddings)}; it must be a model with embedDocuments and embedQuery.`,
    );
  }
  requirePaths(fields ?? []);
}

function isModel(given: unknown): boolean {
  const model = given as Partial<EmbeddingsInterface> | null;
  return typeof model?.embedDocuments === "function" && typeof model.embedQuery === "function";
}

/** @throws TypeError, RangeError for what is no ttl. */
function requireTtl(ttl: TTLConfig): void {
  requireKnown("ttl", ttl, TTL_KEYS);
  const { defaultTtl, refreshOnRead = true } = ttl;
  if (defaultTtl !== undefined) {
    finite(defaultTtl, "defaultTtl");
  }
  if (typeof refreshOnRead !== "boolean") {
    throw new TypeError(`refreshOnRead of ttl is ${shown(refreshOnRead)}; it must be true or false.`);
  }
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}

/** @throws TypeError for what are no operations. */
function requireOperations(operations: unknown): void {
  requireArray("operations", operations, "operations");
  for (const [position, operation] of (operations as unknown[]).entries()) {
    if (typeof operation !== "object" || operation === null) {
      throw new TypeError(`operations[${position}] is ${shown(operation)}; it must be an operation.`);
    }
  }
}

/** @throws InvalidNamespaceError, TypeError before anything is sent. */
function requireNamespaces(operation: Operation): void {
  if (isSearch(operation)) {
    requireLabels("namespacePrefix", operation.namespacePrefix);
    validateNamespace(operation.namespacePrefix, { allowEmpty: true, allowReservedRoot: true });
  } else if ("namespace" in operation) {
    requireLabels("namespace", operation.namespace);
    validateNamespace(operation.namespace, { allowReservedRoot: true });
  } else {
    requireArray("matchConditions", operation.matchConditions ?? [], "conditions");
    for (const [place, { path }] of (operation.matchConditions ?? []).entries()) {
      requireLabels(`matchConditions[${place}].path`, path);
      validateNamespace(path, { allowEmpty: true, allowReservedRoot: true });
    }
  }
}

/**
 * Refuses numbers by which a search would find nothing, without a word, or not what is meant. Fractions are taken as `slice`
 * takes them, as InMemoryStore does.
 *
 * @throws WrongTypeError for what is no number; InvalidFieldError for one below 0.
 */
function requireNumbers(operation: Operation, position: number, { length }: readonly Operation[]): void {
  if ("namespace" in operation) {
    return;
  }
  const given = operation as Readonly<Partial<Record<(typeof NUMBERS)[number], unknown>>>;
  for (const name of NUMBERS) {
    const number = given[name] ?? 0;
    const field = length > 1 ? `${name} of operations[${position}]` : name;
    if (typeof number !== "number" || Number.isNaN(number)) {
      throw wrongType(field, number, "a number");
    }
    if (number < 0) {
      throw invalidField(field, `is ${number}; it must be at least 0`);
    }
  }
}

/** @throws TypeError for one text: its letters would be taken for labels. */
function requireLabels(name: string, labels: unknown): void {
  requireArray(name, labels, 'labels, such as ["users", "ana"]');
}

function requireArray(name: string, given: unknown, what: string): void {
  if (!Array.isArray(given)) {
    throw new TypeError(`${name} is ${shown(given)}; it must be an array of ${what}.`);
  }
}

/** Where in a batch each item is written last: that put wins. */
function lastPuts(operations: readonly Operation[]): Map<string, number> {
  return new Map(
    operations.flatMap((operation, position) => (isPut(operation) ? [[placeOf(operation), position]] : [])),
  );
}

function placeOf({ namespace, key }: PutOperation): string {
  return JSON.stringify([namespace, key]);
}

/** @throws TypeError for a value that is no object. `null` deletes. */
function requireObject(operation: PutOperation): void {
  const value: unknown = operation.value;
  if (typeof value !== "object" || Array.isArray(value) || (value !== null && Symbol.iterator in value)) {
    throw new TypeError(`${nameOf(operation)} is ${shown(value)}; it must be an object.`); // a Map has no members in JSON
  }
  if (value instanceof Promise) {
    throw new TypeError(`${nameOf(operation)} is ${shown(value)}; it must be an object: await it.`);
  }
}

/** A value as JSON. */
function encoded(operation: PutOperation, value: Record<string, unknown>): Uint8Array {
  const json = jsonOf(operation, value);
  if (!json?.startsWith("{")) {
    throw new TypeError(`${nameOf(operation)} is ${shown(value)}, which is no object in JSON.`);
  }
  const bytes = Buffer.from(wellFormed(json));
  if (bytes.length > VALUE_BYTES) {
    throw new RangeError(`${nameOf(operation)} has ${bytes.length} bytes as JSON; at most ${VALUE_BYTES} are allowed.`);
  }
  return bytes;
}

/** @throws TypeError for what JSON cannot hold, such as a BigInt, NaN, or an object within itself. */
function jsonOf(operation: PutOperation, value: Record<string, unknown>): string | undefined {
  try {
    return JSON.stringify(value, inJson) as string | undefined; // a `toJSON` may return nothing
  } catch (error) {
    throw new TypeError(`${nameOf(operation)} cannot be stored as JSON: ${(error as Error).message}`, { cause: error });
  }
}

/** A member of a value, as it is. @throws RangeError for a number that JSON would have null for. */
function inJson(name: string, member: unknown): unknown {
  if (typeof member === "number" && !Number.isFinite(member)) {
    throw new RangeError(`${name} is ${shown(member)}, which JSON does not have`);
  }
  return member;
}

function nameOf({ namespace, key }: PutOperation): string {
  return `The value of ${JSON.stringify(key)} in ${JSON.stringify(namespace)}`;
}

/** @throws TypeError for one text: its letters would be taken for paths. */
function requirePaths(paths: unknown): string[] {
  if (!Array.isArray(paths)) {
    throw new TypeError(`The paths of an index are ${shown(paths)}; they must be an array, such as ["text"].`);
  }
  const other = paths.find((path) => typeof path !== "string");
  if (other !== undefined) {
    throw new TypeError(`The paths of an index have ${shown(other)}; a path is a text, such as "text".`);
  }
  return paths as string[];
}

function finite(minutes: number, name = "ttl"): number {
  if (!Number.isFinite(minutes)) {
    throw new RangeError(`${name} is ${shown(minutes)}; it must be a number of minutes.`);
  }
  return minutes;
}

/** What fits into one call each: as a rule all; reads come before writes. */
function calls(sent: readonly Sent[]): Sent[][] {
  const reads = sent.filter(({ operation }) => !isPut(operation));
  const ordered = [...reads, ...sent.filter(({ operation }) => isPut(operation))];
  // What follows the first page is read by itself: no write may come before that.
  const begins = reads.some(({ operation }) => hasPages(operation)) ? ordered[reads.length] : undefined;
  const found: Sent[][] = [];
  let room = 0;
  for (const one of ordered) {
    const bytes = toBinary(OperationSchema, create(OperationSchema, one.wire)).length;
    if (found.length === 0 || bytes > room || found.at(-1)?.length === MOST_OPERATIONS || one === begins) {
      found.push([]);
      room = REQUEST_BYTES;
    }
    found.at(-1)?.push(one);
    room -= bytes;
  }
  return found;
}

/** Whether an operation may find more than one reply has. */
function hasPages(operation: Operation): boolean {
  return !("namespace" in operation) && mostOf(operation) > MOST;
}

/** Of a search or a list for nothing, and of what no item can be, the server need not know. */
function asksNothing(operation: Operation): boolean {
  return "namespace" in operation
    ? operation.key === "" && !("value" in operation && operation.value !== null)
    : mostOf(operation) <= 0;
}

function resultOfNothing(operation: Operation): unknown {
  if ("namespace" in operation) {
    return isGet(operation) ? null : undefined;
  }
  return asksNothing(operation) ? [] : undefined;
}

/** How many a search or a list finds at most: without a limit, a list of namespaces finds all, as InMemoryStore's. */
function mostOf(operation: SearchOperation | ListNamespacesOperation): number {
  const { limit } = operation as { limit?: number | null };
  return whole(limit ?? (isSearch(operation) ? SEARCH_LIMIT : Infinity));
}

/** How many of the first are left out. */
function begin({ offset }: { offset?: number | null | undefined }): number {
  return Math.min(whole(offset ?? 0), INT32);
}

/** As Array.prototype.slice reads a number: toward zero. */
function whole(count: number): number {
  return Math.trunc(count) || 0;
}

function namespaceQuery(operation: ListNamespacesOperation): NamespaceQuery {
  const { matchConditions, maxDepth } = operation;
  const matches = (matchConditions ?? []).map(matchOf);
  const depth = Math.min(whole(maxDepth ?? 0), INT32);
  return { matches, maxDepth: depth, limit: Math.min(mostOf(operation), MOST), skip: begin(operation) };
}

function matchOf({ matchType, path }: MatchCondition): {
  kind: { case: "prefix" | "suffix"; value: { labels: string[] } };
} {
  if (!MATCHES.includes(matchType)) {
    throw new Error(`Unsupported match type: ${shown(matchType)}; there are ${MATCHES.join(", ")}`);
  }
  return { kind: { case: matchType, value: { labels: path } } };
}

function keyOf({ namespace, key }: { namespace: string[]; key: string }): { namespace: string[]; key: string } {
  return { namespace, key };
}

function itemOf({ namespace, key, value, createTime, updateTime }: StoreItem): Item {
  return {
    namespace,
    key,
    value: JSON.parse(Buffer.from(value).toString()) as Record<string, unknown>,
    createdAt: createTime ? timestampDate(createTime) : new Date(0),
    updatedAt: updateTime ? timestampDate(updateTime) : new Date(0),
  };
}

function hitOf({ item, score }: ItemHit): SearchItem {
  return { ...itemOf(item as StoreItem), ...(score !== undefined && { score }) };
}

/** JSON.stringify escapes half a character, which UTF-8 does not have: U+FFFD takes its place, as in all other texts. */
function wellFormed(json: string): string {
  if (!json.includes("\\ud")) {
    return json;
  }
  return json.replace(/\\(?:\\|ud[89a-f][0-9a-f]{2})/g, (escape) => (escape === "\\\\" ? escape : "\\ufffd"));
}

function isSearch(operation: Operation): operation is SearchOperation {
  return "namespacePrefix" in operation;
}

function isPut(operation: Operation): operation is RemoraPutOperation {
  return "value" in operation;
}

function isGet(operation: Operation): operation is GetOperation {
  return "key" in operation && !("value" in operation);
}
