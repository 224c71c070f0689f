// What the tests of adapters share: one server for a file, and a tenant of its own for each adapter.

import { randomUUID } from "node:crypto";
import { after, before } from "node:test";
import { PATIENCE_MS } from "./failures.js";
import { Server } from "./server.js";

/** What an adapter is made with so that it finds nothing. */
export interface Fresh {
  endpoint: string;
  tenant: string;
  timeoutMs: number;
}

/** Starts a server for the tests of a file; what is returned makes the options of fresh adapters. */
export function server(keeps = false): { fresh: () => Fresh; restart: () => Promise<void> } {
  let running: Server | undefined;
  before(async () => {
    running = await Server.start("unix", { keeps });
  });
  after(() => running?.remove());
  return {
    fresh: () => ({ endpoint: running?.endpoint ?? "", tenant: randomUUID(), timeoutMs: PATIENCE_MS }),
    restart: async () => {
      await running?.kill();
      await running?.run();
    },
  };
}
