// What the tests of this package share.

import assert from "node:assert/strict";
import type { UIMessage } from "ai";

export { type Fresh, server } from "../../client/test/fresh.js";

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
