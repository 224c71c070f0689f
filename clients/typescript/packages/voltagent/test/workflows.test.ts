// Workflow states of RemoraMemoryAdapter.

import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { createWorkflowChain, Memory, StorageError, WorkflowRegistry, type WorkflowStateEntry } from "@voltagent/core";
import { z } from "zod";
import { RemoraMemoryAdapter } from "../src/index.js";
import { ids, server } from "./fresh.js";

const { fresh } = server();
let storage: RemoraMemoryAdapter;

beforeEach(() => {
  storage = new RemoraMemoryAdapter(fresh());
});

const BEGIN = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

function state(id: string, more: Partial<WorkflowStateEntry> = {}): WorkflowStateEntry {
  const time = new Date(BEGIN);
  return { id, workflowId: "w", workflowName: "W", status: "running", createdAt: time, updatedAt: time, ...more };
}

async function stored(...states: WorkflowStateEntry[]): Promise<void> {
  for (const one of states) {
    await storage.setWorkflowState(one.id, one);
  }
}

const FULL = state("full", {
  status: "suspended",
  input: { question: "which?" },
  output: null,
  context: [
    ["key", { deep: [1] }],
    [Symbol.for("shared"), "value"],
  ],
  workflowState: { step: 1 },
  suspension: {
    suspendedAt: new Date(BEGIN + 1),
    reason: "approval",
    stepIndex: 2,
    lastEventSequence: 7,
    checkpoint: {
      stepExecutionState: { a: 1 },
      completedStepsData: [1, "two"],
      workflowState: { b: 2 },
      stepData: {
        s: { input: 1, output: { o: 1 }, status: "success" },
        t: { input: null, status: "error", error: "no" },
      },
      usage: { promptTokens: 1, completionTokens: 2, totalTokens: 3 },
    },
    suspendData: { ask: ["a", "b"] },
  },
  events: [{ id: "e", type: "start", startTime: new Date(BEGIN).toISOString(), input: { x: 1 } }],
  cancellation: { cancelledAt: new Date(BEGIN + 2), reason: "changed plans" },
  userId: "u",
  conversationId: "c",
  replayedFromExecutionId: "before",
  replayFromStepId: "s",
  metadata: { tags: { plan: "pro" }, n: 1.5 },
  updatedAt: new Date(BEGIN + 3),
});

describe("one state", () => {
  test("every field comes back, dates as dates", async () => {
    await stored(FULL);

    assert.deepEqual(await storage.getWorkflowState("full"), FULL);
  });

  test("what is not set is not there", async () => {
    await stored(state("bare"));

    assert.deepEqual(await storage.getWorkflowState("bare"), state("bare"));
    assert.equal(await storage.getWorkflowState("missing"), null);
  });

  test("null stands for what is not there", async () => {
    const nothing = { suspension: null, cancellation: null, userId: null, conversationId: null, metadata: null };
    await stored(state("s", { ...nothing, context: null, replayFromStepId: null } as never));
    await storage.updateWorkflowState("s", { ...nothing, status: "completed" } as never);

    const found = await storage.getWorkflowState("s");

    assert.deepEqual(found, { ...state("s"), status: "completed", updatedAt: found?.updatedAt });
  });

  test("a key that only one process can have comes back as a symbol of its description", async () => {
    await stored(state("s", { context: [[Symbol("own"), 1]] }));

    const found = await storage.getWorkflowState("s");

    const [key, value] = found?.context?.[0] ?? [];
    assert.equal(typeof key, "symbol");
    assert.deepEqual([(key as symbol).description, value], ["own", 1]);
  });

  test("a context that is no list of keys and values comes back as it is", async () => {
    const contexts = { object: { role: "admin" }, list: ["admin", null, { symbol: 1 }], pairs: [[{ symbol: 1 }, 2]] };
    await stored(...Object.entries(contexts).map(([id, context]) => state(id, { context: context as never })));

    for (const [id, context] of Object.entries(contexts)) {
      assert.deepEqual((await storage.getWorkflowState(id))?.context, context);
    }
  });

  test("setting a known id replaces the state", async () => {
    await stored(FULL, state("full", { status: "completed" }));

    assert.deepEqual(await storage.getWorkflowState("full"), state("full", { status: "completed" }));
  });

  test("an update merges what it names, and sets its time", async () => {
    await stored(FULL);

    await storage.updateWorkflowState("full", { status: "completed", output: { done: true }, metadata: { n: 2 } });

    const found = await storage.getWorkflowState("full");
    assert.ok(found && found.updatedAt.getTime() > FULL.updatedAt.getTime());
    const expected = { ...FULL, status: "completed", output: { done: true }, metadata: { n: 2 } };
    assert.deepEqual({ ...found, updatedAt: FULL.updatedAt }, expected);
  });

  test("an update takes away what it names as undefined", async () => {
    await stored(FULL);

    await storage.updateWorkflowState("full", {
      suspension: undefined,
      cancellation: undefined,
      userId: undefined,
    } as never);

    const found = await storage.getWorkflowState("full");
    assert.deepEqual(
      [found?.suspension, found?.cancellation, found?.userId, found?.status],
      [undefined, undefined, undefined, "suspended"],
    );
  });

  test("that a run ends or waits is stored without events and a checkpoint that are too large", async () => {
    await stored(state("r"));
    const events = [{ id: "e", type: "step", startTime: new Date(BEGIN).toISOString(), output: "x".repeat(3 << 20) }];
    const metadata = { plan: "pro", __voltagent_restart_checkpoint: "x".repeat(3 << 20) };

    await assert.rejects(storage.updateWorkflowState("r", { events }), StorageError);
    await assert.rejects(storage.updateWorkflowState("r", { metadata }), StorageError);
    const suspension = { suspendedAt: new Date(BEGIN), stepIndex: 1 };
    await storage.updateWorkflowState("r", { status: "suspended", suspension, events, metadata });
    assert.deepEqual((await storage.getWorkflowState("r"))?.suspension, suspension);
    await storage.updateWorkflowState("r", { status: "completed", output: 1, events, metadata });

    const found = await storage.getWorkflowState("r");
    assert.deepEqual(
      [found?.status, found?.output, found?.metadata, found?.events],
      ["completed", 1, { plan: "pro" }, undefined],
    );
  });

  test("that a run ends is stored whichever of its fields is too large", async () => {
    const long = "x".repeat(3 << 20);
    const events = [{ id: "e", type: "step", startTime: new Date(BEGIN).toISOString(), output: long }];
    const fields: Partial<WorkflowStateEntry>[] = [
      { input: long },
      { output: long, metadata: { n: 1 } },
      { context: [["key", long]] },
      { workflowState: { long } },
      { events },
      { metadata: { long } },
    ];
    for (const field of fields) {
      await stored(state("r", { output: 1 }));
      await storage.updateWorkflowState("r", { status: "completed", ...field });
      const named = Object.keys(field).join();
      assert.equal((await storage.getWorkflowState("r"))?.status, "completed", named);
    }
  });

  test("of a long reason the beginning is kept", async () => {
    await stored(state("r"));
    const reason = "é".repeat(4_096);

    await storage.updateWorkflowState("r", {
      status: "suspended",
      suspension: { suspendedAt: new Date(BEGIN), stepIndex: 1, reason },
    });
    const kept = (await storage.getWorkflowState("r"))?.suspension?.reason;
    await storage.updateWorkflowState("r", {
      status: "cancelled",
      cancellation: { cancelledAt: new Date(BEGIN), reason },
    });

    const found = await storage.getWorkflowState("r");
    assert.deepEqual([found?.status, found?.cancellation?.reason], ["cancelled", kept]);
    assert.match(kept ?? "", /^é{2,} … \(8,192 bytes\)$/);
  });

  test("a run that waits is not stored without its output", async () => {
    await stored(state("r"));

    const waiting = { status: "suspended" as const, output: "x".repeat(3 << 20) };
    await assert.rejects(storage.updateWorkflowState("r", waiting), StorageError);
  });

  test("a status that VoltAgent's types do not have is kept, and goes when another one follows", async () => {
    for (const status of ["paused", "toString"] as unknown as "running"[]) {
      await stored(state("r", { status }));
      assert.equal((await storage.getWorkflowState("r"))?.status, status);
      await storage.updateWorkflowState("r", { status: "completed" });
      assert.equal((await storage.getWorkflowState("r"))?.status, "completed");
      await storage.updateWorkflowState("r", { status });
      assert.equal((await storage.getWorkflowState("r"))?.status, status);
    }
  });

  test("a status that is no text is refused, and the error names it", async () => {
    await stored(state("r"));
    for (const status of [5, null, {}] as unknown as "running"[]) {
      const said = `status is ${JSON.stringify(status)}; it must be a text, such as `;
      const error = { name: "TypeError", message: `${said}running, suspended, completed, cancelled, error` };
      await assert.rejects(stored(state("r", { status })), error);
      await assert.rejects(storage.updateWorkflowState("r", { status }), error);
    }
    assert.deepEqual(await storage.getWorkflowState("r"), state("r"));
  });

  test("a missing one cannot be updated", async () => {
    await assert.rejects(
      storage.updateWorkflowState("missing", { status: "error" }),
      /^Error: Workflow state missing not found$/,
    );
  });
});

describe("lists of states", () => {
  const at = (offset: number) => ({ createdAt: new Date(BEGIN + offset), updatedAt: new Date(BEGIN + offset) });

  beforeEach(async () => {
    await stored(
      state("one", { ...at(1), userId: "u", metadata: { tags: { plan: "pro" }, none: null } }),
      state("two", { ...at(2), status: "suspended", metadata: { tags: { plan: "pro", more: 1 } } }),
      state("three", { ...at(3), status: "suspended", workflowId: "x", userId: "u" }),
      state("four", { ...at(4), status: "suspended" }),
    );
  });

  test("the newest come first", async () => {
    assert.deepEqual(ids(await storage.queryWorkflowRuns({})), ["four", "three", "two", "one"]);
  });

  test("they are filtered by workflow, status and user", async () => {
    assert.deepEqual(ids(await storage.queryWorkflowRuns({ workflowId: "w", status: "suspended" })), ["four", "two"]);
    assert.deepEqual(ids(await storage.queryWorkflowRuns({ userId: "u" })), ["three", "one"]);
    assert.deepEqual(await storage.queryWorkflowRuns({ workflowId: "none" }), []);
  });

  test("those of a status that VoltAgent's types do not have are found by it", async () => {
    const numbers = [5, 6, 7, 8];
    const status = "paused" as never;
    await stored(...numbers.map((number) => state(`r${number}`, { ...at(number), status })));
    await stored(state("r9", { ...at(9), status: "waiting" as never }));

    assert.deepEqual(ids(await storage.queryWorkflowRuns({ status })), ["r8", "r7", "r6", "r5"]);
    assert.deepEqual(ids(await storage.queryWorkflowRuns({ status, offset: 1, limit: 2 })), ["r7", "r6"]);
    assert.deepEqual(ids(await storage.queryWorkflowRuns({ status: "waiting" as never })), ["r9"]);
    assert.equal((await storage.queryWorkflowRuns({})).length, 9);
  });

  test("none has a status that is none, or passes a filter without a value", async () => {
    assert.deepEqual(await storage.queryWorkflowRuns({ status: 5 as never }), []);
    assert.deepEqual(await storage.queryWorkflowRuns({ status: "waiting" as never }), []);
    assert.deepEqual(await storage.queryWorkflowRuns({ status: "constructor" as never }), []);
    assert.deepEqual(await storage.queryWorkflowRuns({ metadata: { tenant: undefined } }), []);
    assert.equal((await storage.queryWorkflowRuns({ metadata: {} })).length, 4);
  });

  test("both ends of a time are in", async () => {
    const query = { from: new Date(BEGIN + 2), to: new Date(BEGIN + 3) };

    assert.deepEqual(ids(await storage.queryWorkflowRuns(query)), ["three", "two"]);
    const always = { from: new Date(-8.64e15), to: new Date(8.64e15) };
    assert.equal((await storage.queryWorkflowRuns(always)).length, 4);
  });

  test("metadata is compared by value, key by key", async () => {
    assert.deepEqual(ids(await storage.queryWorkflowRuns({ metadata: { tags: { plan: "pro" } } })), ["one"]);
    assert.deepEqual(ids(await storage.queryWorkflowRuns({ metadata: { none: null } })), ["one"]);
    assert.deepEqual(await storage.queryWorkflowRuns({ metadata: { tags: "pro" } }), []);
    assert.equal((await storage.queryWorkflowRuns({ metadata: {} })).length, 4);
  });

  test("pages are cut by limit and offset", async () => {
    assert.deepEqual(ids(await storage.queryWorkflowRuns({ limit: 2 })), ["four", "three"]);
    assert.deepEqual(ids(await storage.queryWorkflowRuns({ limit: 2, offset: 1 })), ["three", "two"]);
    assert.deepEqual(ids(await storage.queryWorkflowRuns({ offset: 3 })), ["one"]);
    assert.deepEqual(await storage.queryWorkflowRuns({ offset: 2 ** 40 }), []);
  });

  test("those of a workflow that are suspended", async () => {
    assert.deepEqual(await storage.getSuspendedWorkflowStates(""), []);
    assert.deepEqual(ids(await storage.getSuspendedWorkflowStates("w")), ["four", "two"]);
    assert.deepEqual(await storage.getSuspendedWorkflowStates("none"), []);
  });
});

test("a run is restarted from a checkpoint that has the data of all its steps", async () => {
  const text = "x".repeat(250 * 1024);
  const made: string[] = [];
  const step = (id: string) => ({
    id,
    execute: () => {
      made.push(id);
      return Promise.resolve({ text });
    },
  });
  const texts = z.object({ text: z.string() });
  const options = { id: "w", name: "W", input: texts, result: texts, memory: new Memory({ storage }) };
  const workflow = createWorkflowChain(options).andThen(step("a")).andThen(step("b")).andThen(step("c"));
  WorkflowRegistry.getInstance().registerWorkflow(workflow.toWorkflow());
  const { executionId } = await workflow.run({ text });
  const { metadata, input } = (await storage.getWorkflowState(executionId)) ?? {};
  // As if the process had ended behind the second step.
  const checkpoint = { ...(metadata?.["__voltagent_restart_checkpoint"] as object), resumeStepIndex: 2 };
  await stored(state("broken", { input, metadata: { ...metadata, __voltagent_restart_checkpoint: checkpoint } }));

  const restarted = await workflow.restart("broken");

  assert.equal(restarted.status, "completed");
  assert.deepEqual(made, ["a", "b", "c", "c"]);
});
