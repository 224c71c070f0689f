// What all adapters have in common: the client that they call with.

import { Remora, type RemoraOptions } from "@remora/client";

/** Where the server is and whose data is meant, or a client that knows. */
export interface ConnectionOptions extends RemoraOptions {
  /** A client to share among adapters; the other options are then its own. `close` leaves it open. */
  client?: Remora | undefined;
}

/** A client and whether it is the adapter's own to close. */
export class ClientConnection {
  readonly client: Remora;
  readonly #shared: boolean;

  /** Options of the adapter itself are left out. */
  constructor({ client, endpoint, tenant, token, timeoutMs, agentId, runId }: ConnectionOptions) {
    this.#shared = client !== undefined;
    this.client = client ?? new Remora({ endpoint, tenant, token, timeoutMs, agentId, runId });
  }

  close(): void {
    if (!this.#shared) {
      this.client.close();
    }
  }
}
