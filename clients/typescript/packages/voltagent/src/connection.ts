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

  constructor(options: ConnectionOptions) {
    this.#shared = options.client !== undefined;
    this.client = options.client ?? new Remora(options);
  }

  close(): void {
    if (!this.#shared) {
      this.client.close();
    }
  }
}
