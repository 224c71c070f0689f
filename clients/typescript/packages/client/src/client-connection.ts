// What packages that plug Remora into a framework have in common: the client that they call with.

import { requireMeant } from "./refusals.js";
import { OPTIONS, Remora, type RemoraOptions } from "./remora.js";

/** Where the server is and whose data is meant, or a client that knows. */
export interface ConnectionOptions extends RemoraOptions {
  /** A client to share; the other options are then its own. `close` leaves it open. */
  client?: Remora | undefined;
}

/** A client, and whether it is its user's own to close. */
export class ClientConnection {
  readonly client: Remora;
  readonly #shared: boolean;

  /**
   * Other options than those of a connection are left out.
   *
   * @throws InvalidFieldError for a misspelt one: without its tenant, a package would use all others' data.
   */
  constructor(options: ConnectionOptions) {
    requireMeant(options, [...OPTIONS, "client"], "option");
    const { client, endpoint, tenant, token, timeoutMs, agentId, runId, tls } = options;
    this.#shared = client !== undefined;
    this.client = client ?? new Remora({ endpoint, tenant, token, timeoutMs, agentId, runId, tls });
  }

  close(): void {
    if (!this.#shared) {
      this.client.close();
    }
  }
}
