// The example of examples/langgraph-js, as users run it.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { RemoraStore } from "../src/index.js";
import { server } from "../../client/test/fresh.js";
import { REPOSITORY } from "../../client/test/server.js";

const { fresh } = server();

/** What the agent answers in a thread. */
async function told(endpoint: string, thread: string, text: string): Promise<string> {
  const script = ".build/agent.mjs"; // from here, Node finds the packages
  copyFileSync(join(REPOSITORY, "examples/langgraph-js/agent.mjs"), script);
  const env = { ...process.env, REMORA_ENDPOINT: endpoint };
  return (await promisify(execFile)(process.execPath, [script, thread, text], { env })).stdout;
}

test("deleting the user deletes what the agent of the example keeps in its store", async () => {
  const { endpoint } = fresh();
  const store = new RemoraStore({ endpoint });
  await told(endpoint, "trip", "I am Ann, and I take the night train to Vienna.");
  assert.deepEqual(await store.listNamespaces(), [["users", "ann", "said"]]);

  await store.client.users.deleteUser({ userId: "ann" });

  assert.deepEqual(await store.listNamespaces(), []);
});

test("the example of RemoraMessages in the documents replaces a message in its place and keeps the newest", async () => {
  const { endpoint } = fresh();
  const page = readFileSync(join(REPOSITORY, "docs/langgraph.md"), "utf8");
  const [code, ...others] = [...page.matchAll(/^```ts\n(.*?)^```$/gms)]
    .map(([, block]) => block ?? "")
    .filter((block) => block.includes("new RemoraMessages("));
  assert.ok(code !== undefined && others.length === 0);
  const script = ".build/messages.mjs";
  writeFileSync(script, code);

  const env = { ...process.env, REMORA_ENDPOINT: endpoint };
  const { stdout } = await promisify(execFile)(process.execPath, [script], { env });

  assert.equal(stdout, "[ 'Green tea, please', 'Here it is.' ]\n");
});

test("the agent of the example remembers its thread, and what its user said in another one", async () => {
  const { endpoint } = fresh();

  await told(endpoint, "trip", "I am Ann, and I take the night train to Vienna.");
  const same = await told(endpoint, "trip", "And now?");
  const other = await told(endpoint, "other", "Which train do I take?");

  assert.match(same, /- human: I am Ann, .*\n- ai: I was given: .*\n- human: And now\?/);
  assert.match(
    other,
    /^I was given:\n- system: Earlier the user said: .*night train to Vienna.*\n- human: Which train/,
  );
});
