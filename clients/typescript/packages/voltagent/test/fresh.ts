// What the tests of this package share: one server for a file, and a tenant of its own for each adapter.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before } from "node:test";
import type { UIMessage } from "ai";
import { PATIENCE_MS } from "../../client/test/failures.js";
import { Server } from "../../client/test/server.js";

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

/** A message that says something. */
export function said(id: string, text = id, role: UIMessage["role"] = "user"): UIMessage {
  return { id, role, parts: [{ type: "text", text }] };
}

/** Waits until the clock has gone on by some milliseconds. */
export async function tick(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 3));
}

export function ids(items: readonly { id: string }[]): string[] {
  return items.map(({ id }) => id);
}

/** The metadata of a message that must be there. */
export function metadataOf(message: UIMessage | undefined): Record<string, unknown> {
  assert.ok(message);
  return message.metadata as Record<string, unknown>;
}
