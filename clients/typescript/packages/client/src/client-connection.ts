// What packages that plug Remora into a framework have in common: the client that they call with.

import { requireMeant, wrongType } from "./refusals.js";
import { OPTIONS, Remora, type RemoraOptions } from "./remora.js";

/** Where the server is and whose data is meant, or a client that knows. */
export interface ConnectionOptions extends RemoraOptions {
  /** A client to share; the other options are then its own. `close` leaves it open. */
  client?: Remora | undefined;
}

/** Options of VoltAgent's and LangGraph's own stores, memories and agents. Who moves from them may leave these where they are. */
const OTHERS = [
  ...["url", "authToken", "tablePrefix", "tableName", "maxRetries", "retryDelayMs", "debug", "logger", "batchSize"],
  ...["connection", "maxConnections", "schema", "supabaseUrl", "supabaseKey", "binding", "databaseId", "databaseName"],
  ...["storageLimit", "maxSpans", "maxLogs", "maxSpansPerQuery", "cleanupIntervalMs", "voltOpsClient"],
  ...["storage", "embedding", "vector", "enableCache", "cacheSize", "cacheTTL", "workingMemory", "generateTitle"],
  ...["agents", "agentName", "agentMemory", "workflows", "workflowMemory", "memory", "subAgents", "tools", "model"],
  ...["userId", "conversationId", "pool", "connString", "connectionString", "connectionOptions", "ensureTables"],
  ...["textSearchLanguage", "db", "dbName", "checkpointCollectionName", "checkpointWritesCollectionName"],
  ...["enableTimestamps", "serde", "index", "ttl", "defaultTTL", "refreshOnRead", "store", "cache", "server"],
];

/**
 * Refuses an option that is almost one of a connection, or one of a package's `own`. What is like none of them is left out,
 * as the options of other stores are.
 *
 * @throws InvalidFieldError
 */
export function refuseMisspelt(options: object, own: readonly string[] = []): void {
  requireMeant(options, [...OPTIONS, "client", ...own], OTHERS, "option");
}

/** A client, and whether it is its user's own to close. */
export class ClientConnection {
  readonly client: Remora;
  readonly #shared: boolean;

  /**
   * Other options than those of a connection are left out; `own` are those of the package.
   *
   * @throws InvalidFieldError for a misspelt one: without its tenant, a package would use all others' data; WrongTypeError for
   * a client that is none.
   */
  constructor(options: ConnectionOptions, own: readonly string[] = []) {
    refuseMisspelt(options, own);
    const { client, endpoint, tenant, token, timeoutMs, agentId, runId, tls } = options;
    requireClient(client);
    this.#shared = client !== undefined && client !== null;
    this.client = client ?? new Remora({ endpoint, tenant, token, timeoutMs, agentId, runId, tls });
  }

  close(): void {
    if (!this.#shared) {
      this.client.close();
    }
  }
}

/**
 * Clients are known by what they have: ES modules and CommonJS have a class each. What is none is not shown, as it may have a
 * token.
 */
function requireClient(client: Partial<Remora> | null | undefined): void {
  const isOne = typeof client?.close === "function" && typeof client.conversations === "object";
  if (client !== undefined && client !== null && !isOne) {
    throw wrongType("client", "must be a client, such as new Remora({ endpoint })", undefined);
  }
}
