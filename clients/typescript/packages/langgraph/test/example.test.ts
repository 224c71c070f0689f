// The example of examples/langgraph-js, as users run it.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { server } from "../../client/test/fresh.js";
import { REPOSITORY } from "../../client/test/server.js";

const { fresh } = server();

test("the agent of the example remembers its thread, and what its user said in another one", async () => {
  const script = ".build/agent.mjs"; // from here, Node finds the packages
  copyFileSync(join(REPOSITORY, "examples/langgraph-js/agent.mjs"), script);
  const env = { ...process.env, REMORA_ENDPOINT: fresh().endpoint };
  const told = async (thread: string, text: string) =>
    (await promisify(execFile)(process.execPath, [script, thread, text], { env })).stdout;

  await told("trip", "I am Ann, and I take the night train to Vienna.");
  const same = await told("trip", "And now?");
  const other = await told("other", "Which train do I take?");

  assert.match(same, /- human: I am Ann, .*\n- ai: I was given: .*\n- human: And now\?/);
  assert.match(
    other,
    /^I was given:\n- system: Earlier the user said: .*night train to Vienna.*\n- human: Which train/,
  );
});
