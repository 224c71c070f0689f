// The example of examples/voltagent, as users run it.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { REPOSITORY } from "../../client/test/server.js";
import { server } from "./fresh.js";

const { fresh } = server();

test("the agent of the example is given in its second run what it was told in the first", async () => {
  const script = ".build/agent.mjs"; // from here, Node finds the packages
  copyFileSync(join(REPOSITORY, "examples/voltagent/agent.mjs"), script);
  const env = { ...process.env, REMORA_ENDPOINT: fresh().endpoint };
  const asked = async (question: string) =>
    (await promisify(execFile)(process.execPath, [script, question], { env })).stdout;

  await asked("I am Ann.");
  const answer = await asked("Who am I?");

  assert.equal(answer.match(/I am Ann\./g)?.length, 1);
  assert.match(answer, /You have told me:\n- I am Ann\.\n- Who am I\?/);
});
