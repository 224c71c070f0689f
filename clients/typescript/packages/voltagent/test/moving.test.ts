// `remora import --from voltagent`: what VoltAgent's LibSQLMemoryAdapter wrote is read through Remora's as it was.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach, describe, test } from "node:test";
import type { ConversationStepRecord, WorkflowStateEntry } from "@voltagent/core";
import { LibSQLMemoryAdapter } from "@voltagent/libsql";
import type { UIMessage } from "ai";
import { ENVIRONMENT, PYTHON } from "../../client/test/server.js";
import { RemoraMemoryAdapter } from "../src/index.js";
import { type Fresh, said, server, tick } from "./fresh.js";

const { fresh } = server();
const folder = mkdtempSync(join(tmpdir(), "remora-moving-"));
const AT = new Date("2026-03-01T10:00:00.123Z");
let file: string;
let options: Fresh;
let before: LibSQLMemoryAdapter;
let number = 0;

beforeEach(async () => {
  options = fresh();
  number += 1;
  file = join(folder, `memory-${number}.db`);
  before = new LibSQLMemoryAdapter({ url: `file:${file}` });
  await before.getConversation("none");
});
after(() => rmSync(folder, { recursive: true, force: true }));

/** What an import says, which must do all that it has to. */
function imported(): string {
  const given = ["import", file, "--from", "voltagent", "--endpoint", options.endpoint, "--tenant", options.tenant];
  const ran = spawnSync(PYTHON, ["-m", "remora_server.main", ...given], { encoding: "utf8", env: ENVIRONMENT });
  assert.equal(ran.status, 0, ran.stderr);
  return ran.stderr;
}

async function conversation(id: string, metadata = {}): Promise<void> {
  await before.createConversation({ id, userId: "u", resourceId: "r", title: `About ${id}`, metadata });
}

const TURN: UIMessage[] = [
  said("m1", "Where is søren's train? 🚆"),
  {
    id: "m2",
    role: "assistant",
    metadata: { operationId: "op", nested: { list: [1, null] } },
    parts: [
      { type: "text", text: "One moment." },
      { type: "tool-track", toolCallId: "t", state: "output-available", input: { to: "Lisbon" }, output: [1.5] },
      { type: "text", text: "It is late." },
    ],
  },
];

describe("a file of LibSQLMemoryAdapter", () => {
  test("its conversations and messages are read as before", async () => {
    for (const id of ["one", "two"]) {
      await conversation(id, { agent: { summary: id } });
      await tick();
      await before.addMessages(TURN, "u", id);
      await tick();
      await before.addMessage(said("m3"), "u", id);
      await tick();
    }
    await before.addMessage(said("m1", "changed"), "u", "two");
    await before.updateConversation("one", { title: "Changed" });

    assert.equal(imported(), "8 records copied; all are as in the file\n");

    const now = new RemoraMemoryAdapter(options);
    for (const id of ["one", "two", "missing"]) {
      assert.deepEqual(await now.getConversation(id), await before.getConversation(id));
      assert.deepEqual(await now.getMessages("u", id), await before.getMessages("u", id));
      assert.deepEqual(await now.getMessages("u", id, { limit: 1 }), await before.getMessages("u", id, { limit: 1 }));
    }
    assert.deepEqual(await now.queryConversations({ userId: "u" }), await before.queryConversations({ userId: "u" }));
    assert.deepEqual(await now.getMessages("other", "one"), []);
    now.close();
  });

  test("working memories are read as before, and are out of the metadata", async () => {
    await conversation("c", { kept: 1 });
    await before.setWorkingMemory({ conversationId: "c", scope: "conversation", content: "# Trip\n- Lisbon" });
    await before.setWorkingMemory({ userId: "u", scope: "user", content: '{\n  "name": "Ana"\n}' });

    imported();

    const now = new RemoraMemoryAdapter(options);
    for (const owner of [
      { conversationId: "c", scope: "conversation" },
      { userId: "u", scope: "user" },
      { userId: "other", scope: "user" },
    ] as const) {
      assert.equal(await now.getWorkingMemory(owner), await before.getWorkingMemory(owner));
    }
    assert.deepEqual((await now.getConversation("c"))?.metadata, { kept: 1 });
    now.close();
  });

  test("steps are read as before", async () => {
    await conversation("c");
    const step = { conversationId: "c", userId: "u", agentId: "a", operationId: "op", role: "assistant" as const };
    const steps: ConversationStepRecord[] = [
      { ...step, id: "s1", stepIndex: 0, type: "text", content: "Thinking", createdAt: AT.toISOString() },
      {
        ...step,
        id: "s2",
        stepIndex: 1,
        type: "tool_call",
        arguments: { to: "Lisbon" },
        usage: { totalTokens: 3 } as NonNullable<ConversationStepRecord["usage"]>,
        subAgentId: "sub",
        subAgentName: "Sub",
        createdAt: AT.toISOString(),
      },
      { ...step, id: "s3", stepIndex: 2, type: "reasoning" as "text", createdAt: AT.toISOString() },
    ];
    await before.saveConversationSteps(steps);

    imported();

    const now = new RemoraMemoryAdapter(options);
    assert.deepEqual(await now.getConversationSteps("u", "c"), steps);
    now.close();
  });

  test("states of workflows are read as before, and a suspended one with its dates", async () => {
    const entry: WorkflowStateEntry = {
      id: "run",
      workflowId: "w",
      workflowName: "Book",
      status: "suspended",
      input: { to: "Lisbon" },
      context: [["tenant", { id: 1 }]],
      workflowState: { step: 2 },
      suspension: {
        suspendedAt: AT,
        reason: "approval",
        stepIndex: 2,
        lastEventSequence: 7,
        checkpoint: { completedStepsData: [1, "two"] },
        suspendData: { price: 59.9 },
      },
      events: [],
      userId: "u",
      conversationId: "c",
      metadata: { tags: { plan: "pro" } },
      createdAt: AT,
      updatedAt: new Date(AT.getTime() + 5),
    };
    await before.setWorkflowState("run", entry);
    await before.setWorkflowState("least", {
      id: "least",
      workflowId: "w",
      workflowName: "Book",
      status: "cancelled",
      cancellation: { cancelledAt: AT },
      createdAt: AT,
      updatedAt: AT,
    });

    assert.equal(imported(), "2 records copied; all are as in the file\n");

    const now = new RemoraMemoryAdapter(options);
    assert.deepEqual(await now.getWorkflowState("run"), entry);
    assert.deepEqual((await now.getWorkflowState("least"))?.cancellation, { cancelledAt: AT });
    assert.deepEqual(
      (await now.queryWorkflowRuns({ metadata: { tags: { plan: "pro" } } })).map(({ id }) => id),
      ["run"],
    );
    now.close();
  });

  test("a second import copies nothing, and an agent goes on in between", async () => {
    await conversation("c");
    await before.addMessages(TURN, "u", "c");
    imported();
    const now = new RemoraMemoryAdapter(options);
    await now.addMessage(said("after"), "u", "c");

    assert.equal(imported(), "0 records copied, 3 were there already; all are as in the file\n");
    assert.deepEqual(
      (await now.getMessages("u", "c")).map(({ id }) => id),
      ["m1", "m2", "after"],
    );
    now.close();
  });
});
