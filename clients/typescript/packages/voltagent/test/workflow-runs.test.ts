// Workflows of @voltagent/core that keep their states in RemoraMemoryAdapter.

import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { createWorkflowChain, Memory, WorkflowRegistry } from "@voltagent/core";
import { z } from "zod";
import { RemoraMemoryAdapter } from "../src/index.js";
import { type Fresh, ids, server } from "./fresh.js";

const { fresh, restart } = server(true);
let options: Fresh;
let memory: Memory;

beforeEach(() => {
  options = fresh();
  memory = new Memory({ storage: new RemoraMemoryAdapter(options) });
});

/** Books a journey if it is approved: the first step asks, the second books. `ran` names the steps that were executed. */
function booking(ran: string[] = []) {
  const chain = createWorkflowChain({
    id: "booking",
    name: "Booking",
    input: z.object({ price: z.number() }),
    result: z.object({ booked: z.boolean(), channel: z.string(), price: z.number() }),
    memory,
  })
    .andThen({
      id: "ask",
      resumeSchema: z.object({ approved: z.boolean() }),
      execute: async ({ data, state, suspend, resumeData }) => {
        ran.push("ask");
        state.context?.set("channel", "mail");
        if (resumeData === undefined) {
          await suspend("approval", { price: data.price });
        }
        return { ...data, approved: resumeData?.approved === true };
      },
    })
    .andThen({
      id: "book",
      execute: async ({ data, state }) => {
        ran.push("book");
        return { booked: data.approved, channel: String(state.context?.get("channel")), price: data.price };
      },
    });
  return registered(chain.toWorkflow());
}

/** Counts up in three steps. */
function counting(ran: string[] = []) {
  const schema = z.object({ value: z.number() });
  const next = (id: string, value: number) => {
    ran.push(id);
    return { value: value + 1 };
  };
  const chain = createWorkflowChain({ id: "counting", name: "Counting", input: schema, result: schema, memory })
    .andThen({ id: "one", execute: async ({ data }) => next("one", data.value) })
    .andThen({ id: "two", execute: async ({ data }) => next("two", data.value) })
    .andThen({ id: "three", execute: async ({ data }) => next("three", data.value) });
  return registered(chain.toWorkflow());
}

function registered<Workflow extends Parameters<WorkflowRegistry["registerWorkflow"]>[0]>(workflow: Workflow) {
  WorkflowRegistry.getInstance().registerWorkflow(workflow);
  return workflow;
}

const CALLER = { userId: "ann", conversationId: "trip", metadata: { region: "eu" } };

describe("a workflow", () => {
  test("that has run is found with all that it was given and came to", async () => {
    const { executionId, status, result } = await counting().run({ value: 1 }, CALLER);

    assert.deepEqual([status, result], ["completed", { value: 4 }]);
    const stored = await memory.getWorkflowState(executionId);
    assert.deepEqual(
      [stored?.status, stored?.input, stored?.output, stored?.userId, stored?.conversationId],
      ["completed", { value: 1 }, { value: 4 }, "ann", "trip"],
    );
    assert.equal(stored?.metadata?.["region"], "eu");
    assert.ok((stored?.events ?? []).length > 0);
  });

  test("that fails is found with its failure", async () => {
    const chain = createWorkflowChain({ id: "failing", name: "Failing", input: z.object({}), result: z.any(), memory });
    const failing = chain.andThen({ id: "fail", execute: async () => Promise.reject(new Error("no train")) });
    const workflow = registered(failing.toWorkflow());

    const { executionId } = await workflow.run({});

    assert.equal((await memory.getWorkflowState(executionId))?.status, "error");
  });

  test("has run for as long as Remora's statistics say", async () => {
    const storage = new RemoraMemoryAdapter(options);
    const waiting = await booking().run({ price: 59.9 }, CALLER);
    const before = await storage.client.workflows.getWorkflowStats({ workflowId: "booking" });
    await WorkflowRegistry.getInstance().resumeSuspendedWorkflow("booking", waiting.executionId, { approved: true });

    const after = await storage.client.workflows.getWorkflowStats({ workflowId: "booking" });

    assert.deepEqual([before.runs, before.completedRuns, before.meanDuration], [1n, 0n, undefined]);
    assert.deepEqual([after.runs, after.completedRuns], [1n, 1n]);
    const { seconds = 0n, nanos = 0 } = after.meanDuration ?? {};
    assert.ok(Number(seconds) + nanos / 1e9 > 0);
  });

  test("that is suspended goes on after the sidecar was killed, and the process with it", async () => {
    const first = await booking().run({ price: 59.9 }, CALLER);
    assert.equal(first.status, "suspended");

    await restart();
    memory = new Memory({ storage: new RemoraMemoryAdapter(options) });
    const ran: string[] = [];
    const workflow = booking(ran);
    const [waiting] = await memory.getSuspendedWorkflowStates("booking");
    assert.ok(waiting?.suspension?.suspendedAt instanceof Date);
    assert.equal(waiting.suspension.reason, first.suspension?.reason);
    assert.deepEqual(waiting.suspension.suspendData, { price: 59.9 });
    const registry = WorkflowRegistry.getInstance();
    const last = await registry.resumeSuspendedWorkflow(workflow.id, first.executionId, { approved: true });

    assert.deepEqual([last?.status, last?.result], ["completed", { booked: true, channel: "mail", price: 59.9 }]);
    assert.deepEqual(ran, ["ask", "book"]);
    const stored = await memory.getWorkflowState(first.executionId);
    assert.deepEqual([stored?.status, stored?.userId, stored?.conversationId], ["completed", "ann", "trip"]);
    assert.deepEqual(await memory.getSuspendedWorkflowStates("booking"), []);
  });

  test("is replayed from a step, and says so", async () => {
    const ran: string[] = [];
    const workflow = counting(ran);
    const original = await workflow.run({ value: 1 });
    const before = await memory.getWorkflowState(original.executionId);

    const replay = await workflow.timeTravel({ executionId: original.executionId, stepId: "two" });

    assert.deepEqual([replay.status, replay.result], ["completed", { value: 4 }]);
    assert.deepEqual(ran, ["one", "two", "three", "two", "three"]);
    const stored = await memory.getWorkflowState(replay.executionId);
    assert.deepEqual([stored?.replayedFromExecutionId, stored?.replayFromStepId], [original.executionId, "two"]);
    assert.deepEqual(await memory.getWorkflowState(original.executionId), before);
    assert.deepEqual(
      ids(await memory.queryWorkflowRuns({ workflowId: "counting" })).sort(),
      [original.executionId, replay.executionId].sort(),
    );
  });

  test("that was running when its process ended is started again where it was, whatever its context is", async () => {
    const ran: string[] = [];
    const workflow = counting(ran);
    const time = new Date();
    const checkpoint = {
      resumeStepIndex: 2,
      lastCompletedStepIndex: 1,
      stepExecutionState: { value: 3 },
      completedStepsData: [{ stepId: "one", stepIndex: 0 }],
      stepData: { one: { input: { value: 1 }, output: { value: 2 }, status: "success", error: null } },
      eventSequence: 3,
      checkpointedAt: time,
    };
    const common = { workflowId: "counting", workflowName: "Counting", createdAt: time, updatedAt: time };
    const running = { ...common, status: "running", input: { value: 1 } } as const;
    const metadata = { __voltagent_restart_checkpoint: checkpoint };
    await memory.setWorkflowState("kept", { ...running, id: "kept", context: [["role", "admin"]], metadata });
    await memory.setWorkflowState("odd", { ...running, id: "odd", context: { role: "admin" } as never });

    const kept = await workflow.restart("kept");
    const odd = await workflow.restart("odd");

    assert.deepEqual([kept.result, odd.result], [{ value: 4 }, { value: 4 }]);
    assert.deepEqual(ran, ["three", "one", "two", "three"]);
    assert.equal((await memory.getWorkflowState("kept"))?.status, "completed");
  });
});
