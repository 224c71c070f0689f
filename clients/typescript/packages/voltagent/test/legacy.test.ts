// RemoraStorage: the contract of VoltAgent 0.1's `Memory` interface.

import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import {
  type MemoryMessage,
  RemoraStorage,
  type WorkflowHistoryEntry,
  type WorkflowStepHistoryEntry,
  type WorkflowTimelineEvent,
} from "../src/legacy/index.js";
import { type Fresh, ids, server } from "./fresh.js";

const { fresh } = server();
const another = server();
let options: Fresh;
let storage: RemoraStorage;

beforeEach(() => {
  options = fresh();
  storage = new RemoraStorage(options);
});

const BEGIN = Date.UTC(2026, 0, 2);
const at = (offset: number) => new Date(BEGIN + offset);

function message(id: string, offset = 0, more: Partial<MemoryMessage> = {}): MemoryMessage {
  return { id, role: "user", content: id, type: "text", createdAt: at(offset).toISOString(), ...more };
}

async function conversation(id: string, userId = "u"): Promise<void> {
  await storage.createConversation({ id, userId, resourceId: "agent", title: id, metadata: { of: id } });
}

test("it has the 38 methods", () => {
  const methods = Object.getOwnPropertyNames(RemoraStorage.prototype);

  assert.equal(methods.filter((name) => !["constructor", "close"].includes(name)).length, 38);
});

describe("messages", () => {
  test("they come back in order, with all their fields, the most recent ones within a limit", async () => {
    const parts = [
      { type: "text", text: "hm" },
      { type: "image", image: "data:," },
    ];
    const messages = [message("a", 1), message("b", 2, { role: "assistant", content: parts }), message("c", 3)];
    for (const one of messages) {
      await storage.addMessage(one);
    }

    assert.deepEqual(await storage.getMessages(), messages);
    assert.deepEqual(ids(await storage.getMessages({ limit: 2 })), ["b", "c"]);
  });

  test("they are filtered by role, type and time", async () => {
    await conversation("c");
    await storage.addMessage(message("a", 1), "c");
    await storage.addMessage(message("b", 2, { role: "assistant", type: "tool-call" }), "c");
    await storage.addMessage(message("d", 3), "c");
    const found = async (more: object) => ids(await storage.getMessages({ userId: "u", conversationId: "c", ...more }));

    assert.deepEqual(await found({ role: "assistant" }), ["b"]);
    assert.deepEqual(await found({ types: ["text"], limit: 1 }), ["d"]);
    assert.deepEqual(await found({ types: [] }), []);
    assert.deepEqual(await found({ after: BEGIN + 1, before: BEGIN + 3 }), ["b"]);
    assert.deepEqual(await found({ after: 0, before: 0 }), ["a", "b", "d"]);
    assert.deepEqual(await found({ userId: "other" }), []);
    assert.deepEqual(await storage.getMessages({ conversationId: "missing" }), []);
  });

  test("a conversation keeps as many as the storage limit says, which is never 0", async () => {
    const few = new RemoraStorage({ ...options, storageLimit: 3 });
    for (const id of "abcde") {
      await few.addMessage(message(id));
    }

    assert.deepEqual(ids(await few.getMessages()), ["c", "d", "e"]);
    const usual = new RemoraStorage({ ...fresh(), storageLimit: 0 });
    await usual.addMessage(message("a"));
    await usual.addMessage(message("b"));
    assert.deepEqual(ids(await usual.getMessages()), ["a", "b"]);
  });

  test("they are cleared by conversation or by user", async () => {
    await conversation("c");
    await conversation("d");
    await storage.addMessage(message("a"), "c");
    await storage.addMessage(message("b"), "d");

    await storage.clearMessages({ userId: "u", conversationId: "c" });
    assert.deepEqual(await storage.getConversationMessages("c"), []);
    await storage.clearMessages({ userId: "u" });
    assert.deepEqual(await storage.getConversationMessages("d"), []);
  });
});

test("conversations are created, listed, updated and deleted", async () => {
  await conversation("c");
  await conversation("d", "v");
  for (const id of "xyz") {
    await storage.addMessage(message(id), "c");
  }

  assert.deepEqual((await storage.getConversation("c"))?.metadata, { of: "c" });
  assert.equal(await storage.getConversation("missing"), null);
  assert.deepEqual(ids(await storage.getConversations("agent")), ["c", "d"]);
  assert.deepEqual(ids(await storage.getConversationsByUserId("v")), ["d"]);
  assert.deepEqual(ids(await storage.queryConversations({ limit: 1 })), ["c"]);
  assert.deepEqual(ids(await storage.getConversationMessages("c", { offset: 1, limit: 1 })), ["y"]);
  assert.equal((await storage.updateConversation("c", { title: "new" })).title, "new");
  await assert.rejects(storage.updateConversation("missing", {}), /Conversation with ID missing not found/);
  await storage.deleteConversation("c");
  await storage.deleteConversation("c");
  assert.deepEqual(await storage.getConversationMessages("c"), []);
});

describe("histories of agents", () => {
  const entry = {
    timestamp: at(1),
    status: "working",
    input: "where?",
    usage: { totalTokens: 3 },
    metadata: { a: 1 },
    userId: "u",
    conversationId: "c",
    model: "m",
  };

  test("an entry comes back with its agent, steps and events, which may come before it", async () => {
    const event = { name: "agent:start", type: "agent", startTime: at(1).toISOString(), level: "INFO", tags: ["t"] };
    await storage.addTimelineEvent("e", event, "h", "agent");
    await storage.addHistoryEntry("h", entry, "agent");
    await storage.addHistoryStep("s", { type: "text", content: "hm" }, "h", "agent");

    const steps = [{ type: "text", content: "hm", id: "s" }];
    const events = [{ ...event, id: "e" }];
    assert.deepEqual(await storage.getHistoryEntry("h"), { ...entry, id: "h", _agentId: "agent", steps, events });
    assert.equal(await storage.getHistoryEntry("missing"), undefined);
  });

  test("an update loses nothing that it does not name", async () => {
    await storage.addHistoryEntry("h", entry, "agent");

    await storage.updateHistoryEntry("h", { status: "completed", output: { ok: true } }, "agent");
    await storage.updateHistoryEntry("h", { extra: 2 }, "agent");

    const more = { status: "completed", output: { ok: true }, extra: 2 };
    const expected = { ...entry, ...more, id: "h", _agentId: "agent", steps: [], events: [] };
    assert.deepEqual(await storage.getHistoryEntry("h"), expected);
    const missing = storage.updateHistoryEntry("missing", { status: "x" }, "agent");
    await assert.rejects(missing, /History entry with key missing not found/);
  });

  test("steps are merged by updates, and need their entry", async () => {
    await storage.addHistoryEntry("h", entry, "agent");
    await storage.addHistoryStep("s", { type: "tool", input: 1 }, "h", "agent");

    await storage.updateHistoryStep("s", { output: 2 }, "h", "agent");

    const step = { id: "s", historyId: "h", agentId: "agent", type: "tool", input: 1, output: 2 };
    assert.deepEqual(await storage.getHistoryStep("s"), step);
    assert.equal(await storage.getHistoryStep("missing"), undefined);
    const homeless = storage.addHistoryStep("t", {}, "missing", "agent");
    await assert.rejects(homeless, /History entry with key missing not found/);
    await assert.rejects(storage.updateHistoryStep("missing", {}, "h", "agent"), /Step with key missing not found/);
  });

  test("updates that are begun at once lose nothing of one another", async () => {
    await storage.addHistoryEntry("h", entry, "agent");
    await storage.addHistoryStep("s", { type: "tool", input: 1 }, "h", "agent");
    const numbers = [...Array(10).keys()];

    await Promise.all([
      ...numbers.map((number) => storage.updateHistoryStep("s", { [`of${number}`]: number }, "h", "agent")),
      ...numbers.map((number) => storage.updateHistoryEntry("h", { [`of${number}`]: number }, "agent")),
    ]);

    const all = Object.fromEntries(numbers.map((number) => [`of${number}`, number]));
    const step = { id: "s", historyId: "h", agentId: "agent", type: "tool", input: 1, ...all };
    assert.deepEqual(await storage.getHistoryStep("s"), step);
    const { events: _, steps: __, ...found } = (await storage.getHistoryEntry("h")) ?? {};
    assert.deepEqual(found, { ...entry, ...all, id: "h", _agentId: "agent" });
  });

  test("of what is too long the beginning is kept", async () => {
    const long = "é".repeat(1 << 20);
    await storage.addHistoryEntry("h", { ...entry, input: long, output: [long] }, "agent");
    await storage.addHistoryStep("s", { type: "tool", content: long }, "h", "agent");
    await storage.updateHistoryStep("s", { arguments: { long } }, "h", "agent");
    const event = { name: "agent:start", type: "agent", startTime: at(1).toISOString(), status: "running" };
    await storage.addTimelineEvent("e", { ...event, input: { long }, metadata: { long, k: 1 } }, "h", "agent");

    const found = await storage.getHistoryEntry("h");

    const [step] = found?.["steps"] as { type: string; content: string; arguments: string }[];
    const [kept] = found?.["events"] as { input: string; metadata: { long: string; k: number } }[];
    for (const [text, begin] of [
      [found?.input, ""],
      [found?.output, '\\["'],
      [step?.content, ""],
      [step?.arguments, '\\{"long":"'],
      [kept?.input, '\\{"long":"'],
      [kept?.metadata.long, ""],
    ] as const) {
      assert.match(String(text), new RegExp(`^${begin}é{8000,} … \\(2,097,\\d{3} bytes\\)$`));
    }
    assert.deepEqual([found?.status, step?.type, kept?.metadata.k], [entry.status, "tool", 1]);
  });

  test("of metadata, usage and a message of a status that are too long the beginning is kept, too", async () => {
    const long = "é".repeat(1 << 20);
    const event = { name: "agent:error", type: "agent", startTime: at(1).toISOString(), status: "error" };
    await storage.addHistoryEntry(
      "h",
      { ...entry, metadata: { long, k: 1 }, usage: { long, n: 2 }, own: long },
      "agent",
    );
    await storage.updateHistoryEntry("h", { metadata: { other: long, k: 3 } });
    await storage.addTimelineEvent("e", { ...event, statusMessage: { stack: long, message: "no" } }, "h", "agent");

    const found = await storage.getHistoryEntry("h");

    const { metadata, usage, own } = found as Record<string, Record<string, unknown>>;
    const [{ statusMessage }] = found?.events as [{ statusMessage: Record<string, unknown> }];
    for (const text of [metadata?.["other"], usage?.["long"], own, statusMessage["stack"]]) {
      assert.match(String(text), /^é{2000,} … \(2,097,\d{3} bytes\)$/);
    }
    assert.deepEqual([metadata?.["k"], usage?.["n"], statusMessage["message"]], [3, 2, "no"]);
  });

  test("a page of large entries is whole", async () => {
    const large = { ...entry, input: "x".repeat(500_000) };
    for (const number of [1, 2, 3, 4, 5, 6, 7, 8]) {
      await storage.addHistoryEntry(`h${number}`, { ...large, timestamp: at(number) }, "agent");
    }

    const { entries, total } = await storage.getAllHistoryEntriesByAgent("agent", 0, 8);

    assert.deepEqual([ids(entries as { id: string }[]), total], [["h8", "h7", "h6", "h5", "h4", "h3", "h2", "h1"], 8]);
    const beyond = await storage.getAllHistoryEntriesByAgent("agent", 0, 2_000);
    assert.equal(beyond.entries.length, 8);
  });

  test("an agent's entries come in pages from 0, the newest first, with their number", async () => {
    for (const number of [1, 2, 3]) {
      await storage.addHistoryEntry(`h${number}`, { ...entry, timestamp: at(number) }, "agent");
    }
    await storage.addHistoryEntry("other", entry, "another");

    const first = await storage.getAllHistoryEntriesByAgent("agent", 0, 2);
    const second = await storage.getAllHistoryEntriesByAgent("agent", 1, 2);

    const keys = (page: typeof first) => page.entries.map((one) => one["id"]);
    assert.deepEqual([keys(first), first.total, keys(second)], [["h3", "h2"], 3, ["h1"]]);
    assert.deepEqual(await storage.getAllHistoryEntriesByAgent("none", 0, 10), { entries: [], total: 0 });
  });

  test("entries of one time come in the order of storing", async () => {
    for (const id of ["b", "a", "c"]) {
      await storage.addHistoryEntry(id, { timestamp: at(id === "c" ? 2 : 1) }, "agent");
    }

    const { entries } = await storage.getAllHistoryEntriesByAgent("agent", 0, 10);

    assert.deepEqual(
      entries.map((one) => one["id"]),
      ["c", "b", "a"],
    );
  });
});

describe("histories of workflows", () => {
  const history = (id: string, offset: number, more: Partial<WorkflowHistoryEntry> = {}): WorkflowHistoryEntry => ({
    id,
    workflowId: "w",
    workflowName: "W",
    status: "running",
    startTime: at(offset),
    input: { q: 1 },
    steps: [],
    events: [],
    ...more,
  });
  const step = (id: string, stepIndex: number): WorkflowStepHistoryEntry => ({
    id,
    workflowHistoryId: "r",
    stepIndex,
    stepType: "func",
    stepName: id,
    status: "running",
    startTime: at(stepIndex),
  });
  const event = (id: string, eventSequence: number): WorkflowTimelineEvent => ({
    id,
    workflowHistoryId: "r",
    eventId: `of ${id}`,
    name: "workflow:start",
    type: "workflow",
    startTime: at(0).toISOString(),
    status: "running",
    eventSequence,
    createdAt: at(9),
  });

  test("a run is stored, updated and deleted", async () => {
    await storage.storeWorkflowHistory(history("r", 1, { metadata: { a: 1 } }));

    await storage.updateWorkflowHistory("r", { status: "completed", endTime: at(5), output: [1] });

    const found = await storage.getWorkflowHistory("r");
    const { createdAt, updatedAt, ...rest } = found as WorkflowHistoryEntry;
    assert.ok(createdAt instanceof Date && updatedAt instanceof Date);
    const changed = { status: "completed", endTime: at(5), output: [1], steps: [], events: [] } as const;
    assert.deepEqual(rest, { ...history("r", 1, { metadata: { a: 1 } }), ...changed });
    const missing = storage.updateWorkflowHistory("missing", {});
    await assert.rejects(missing, /Workflow history entry with ID missing not found/);
    await storage.deleteWorkflowHistory("r");
    await storage.deleteWorkflowHistory("r");
    assert.equal(await storage.getWorkflowHistory("r"), null);
  });

  test("steps come by index, events by sequence, and both with their run", async () => {
    await storage.storeWorkflowHistory(history("r", 1));
    await storage.storeWorkflowStep(step("b", 1));
    await storage.storeWorkflowStep(step("a", 0));
    await storage.storeWorkflowTimelineEvent(event("f", 2));
    await storage.storeWorkflowTimelineEvent(event("e", 1));

    await storage.updateWorkflowStep("b", { status: "completed", output: 3 });

    assert.deepEqual(ids(await storage.getWorkflowSteps("r")), ["a", "b"]);
    const updated = await storage.getWorkflowStep("b");
    assert.deepEqual([updated?.status, updated?.output, updated?.startTime], ["completed", 3, at(1)]);
    assert.deepEqual(await storage.getWorkflowTimelineEvents("r"), [event("e", 1), event("f", 2)]);
    assert.deepEqual(await storage.getWorkflowTimelineEvent("e"), event("e", 1));
    for (const whole of [
      await storage.getWorkflowHistory("r"),
      await storage.getWorkflowHistoryWithStepsAndEvents("r"),
    ]) {
      assert.deepEqual([ids(whole?.steps ?? []), ids(whole?.events ?? [])].join(), "a,b,e,f");
    }
    await assert.rejects(storage.updateWorkflowStep("missing", {}), /Workflow step with ID missing not found/);

    await storage.deleteWorkflowStep("a");
    await storage.deleteWorkflowTimelineEvent("e");
    await storage.deleteWorkflowTimelineEvent("missing");
    assert.equal(await storage.getWorkflowStep("a"), null);
    assert.equal(await storage.getWorkflowTimelineEvent("e"), null);
    await storage.deleteWorkflowHistoryWithRelated("r");
    assert.deepEqual(await storage.getWorkflowSteps("r"), []);
    assert.equal(await storage.getWorkflowHistoryWithStepsAndEvents("r"), null);
  });

  test("a status that is none is refused, and the error names it", async () => {
    await storage.storeWorkflowHistory(history("r", 1));
    await storage.storeWorkflowStep(step("a", 0));
    for (const status of [5, null, {}] as unknown as "running"[]) {
      const error = {
        name: "TypeError",
        message: `status is ${JSON.stringify(status)}; it must be a text, such as running, suspended, completed, cancelled, error`,
      };
      await assert.rejects(storage.storeWorkflowHistory({ ...history("s", 1), status }), error);
      await assert.rejects(storage.updateWorkflowHistory("r", { status }), error);
    }
    const status = 5 as unknown as "running";
    const error = { name: "TypeError", message: /^status is 5; it must be a text, such as \w+(, \w+)+$/ };
    await assert.rejects(storage.storeWorkflowStep({ ...step("b", 1), status }), error);
    await assert.rejects(storage.updateWorkflowStep("a", { status }), error);
  });

  test("of what a step was given and gave that is too long the beginning is kept", async () => {
    const [long, most] = ["é".repeat(2 << 20), "m".repeat(3_000_000)];
    await storage.storeWorkflowStep({ ...step("a", 0), input: long, output: most, metadata: { long, k: 1 } });
    await storage.updateWorkflowStep("a", { error: { stack: long }, metadata: { k: 2 } });

    const found = await storage.getWorkflowStep("a");

    for (const text of [found?.input, (found?.error as { stack: string }).stack]) {
      assert.match(String(text), /^é{8000,} … \(4,194,\d{3} bytes\)$/);
    }
    assert.deepEqual([found?.output, found?.metadata], [most, { k: 2 }]);
  });

  test("a run is as far as its status says", async () => {
    for (const status of ["waiting", "suspended", "toString"] as unknown as "running"[]) {
      await storage.storeWorkflowHistory({ ...history("r", 0), status });
      assert.equal((await storage.getWorkflowHistory("r"))?.status, status);
      await storage.updateWorkflowHistory("r", { status: "completed" });
      assert.equal((await storage.getWorkflowHistory("r"))?.status, "completed");
      await storage.updateWorkflowHistory("r", { status });
      assert.equal((await storage.getWorkflowHistory("r"))?.status, status);
    }
  });

  test("a step is of any type, and as far as its status says", async () => {
    const named = ["waiting", "cancelled", "suspended", "", "toString", "pending"] as unknown as "running"[];
    const stepType = "andSleep" as unknown as "func";
    for (const [place, status] of named.entries()) {
      await storage.storeWorkflowStep({ ...step(`s${place}`, place), status, stepType });
    }
    await storage.updateWorkflowStep("s5", { status: "waiting" as unknown as "running" });
    await storage.updateWorkflowStep("s0", { status: "completed" });
    await storage.updateWorkflowStep("s1", { output: 1 });

    const found = await storage.getWorkflowSteps("r");

    assert.deepEqual(
      found.map(({ status }) => status),
      ["completed", "cancelled", "suspended", "", "toString", "waiting"],
    );
    assert.deepEqual(new Set(found.map((one) => one.stepType)), new Set([stepType]));
  });

  test("what is null is not there", async () => {
    const none = null as never;
    const nothing = { input: none, output: none, metadata: none };
    await storage.storeWorkflowHistory({ ...history("r", 1), ...nothing, endTime: none, userId: none });
    const noStep = { error: none, agentExecutionId: none, parallelIndex: none, parallelParentStepId: none };
    await storage.storeWorkflowStep({ ...step("a", 0), ...nothing, ...noStep, stepId: none, endTime: none });
    const noEvent = { statusMessage: none, traceId: none, parentEventId: none, eventSequence: none, endTime: none };
    await storage.storeWorkflowTimelineEvent({ ...event("e", 1), ...nothing, ...noEvent, level: none });

    await storage.updateWorkflowHistory("r", { endTime: none, output: none });
    await storage.updateWorkflowStep("a", { error: none, endTime: none });

    const found = await storage.getWorkflowHistory("r");
    const { eventSequence: _, ...bare } = event("e", 1);
    assert.deepEqual([found?.endTime, found?.userId, found?.output ?? null], [undefined, undefined, null]);
    const [stored] = found?.steps ?? [];
    assert.deepEqual([stored?.endTime, stored?.parallelIndex, stored?.error ?? null], [undefined, undefined, null]);
    const absent = { input: null, output: null, metadata: null, statusMessage: null };
    assert.deepEqual({ ...absent, ...found?.events?.[0] }, { ...absent, ...bare });
  });

  test("runs that began at one time come in the order of storing", async () => {
    for (const [id, offset] of [
      ["b", 1],
      ["a", 1],
      ["c", 2],
    ] as const) {
      await storage.storeWorkflowHistory(history(id, offset));
    }

    assert.deepEqual(ids(await storage.getWorkflowHistoryByWorkflowId("w")), ["c", "b", "a"]);
  });

  test("events without a sequence come by time", async () => {
    for (const [id, offset] of [
      ["late", 2],
      ["early", 1],
    ] as const) {
      const { eventSequence: _, ...one } = event(id, 0);
      await storage.storeWorkflowTimelineEvent({ ...one, startTime: at(offset).toISOString() });
    }

    assert.deepEqual(ids(await storage.getWorkflowTimelineEvents("r")), ["early", "late"]);
  });

  test("all runs of a workflow are deleted if none is to be kept", async () => {
    await storage.storeWorkflowHistory(history("r", 1));
    await storage.storeWorkflowStep(step("a", 0));
    await storage.storeWorkflowTimelineEvent(event("e", 1));

    assert.equal(await storage.cleanupOldWorkflowHistories("w", 1), 0);
    assert.equal(await storage.cleanupOldWorkflowHistories("w", 0), 1);

    assert.deepEqual(await storage.getWorkflowHistoryByWorkflowId("w"), []);
    assert.equal(await storage.getWorkflowStep("a"), null);
    assert.equal(await storage.getWorkflowTimelineEvent("e"), null);
  });

  test("workflows are listed and counted, and their oldest runs deleted", async () => {
    await storage.storeWorkflowHistory(history("r1", 1, { status: "completed", endTime: at(11), createdAt: at(1) }));
    await storage.storeWorkflowHistory(history("r2", 2, { status: "error", endTime: at(22), createdAt: at(2) }));
    await storage.storeWorkflowHistory(history("r3", 3, { createdAt: at(3) }));
    await storage.storeWorkflowHistory(history("x", 1, { workflowId: "other" }));

    assert.deepEqual(ids(await storage.getWorkflowHistoryByWorkflowId("w")), ["r3", "r2", "r1"]);
    assert.deepEqual(await storage.getAllWorkflowIds(), ["other", "w"]);
    assert.deepEqual(await storage.getWorkflowStats("w"), {
      totalExecutions: 3,
      successfulExecutions: 1,
      failedExecutions: 1,
      averageExecutionTime: 15,
      lastExecutionTime: at(3),
    });
    assert.equal(await storage.cleanupOldWorkflowHistories("w", 1), 2);
    assert.deepEqual(ids(await storage.getWorkflowHistoryByWorkflowId("w")), ["r3"]);
  });
});

test("after it is closed, once or twice, calls fail", async () => {
  await storage.close();
  await storage.close();

  await assert.rejects(storage.getConversation("c"), /closed/);
});

test("memory and historyMemory may be two tenants", async () => {
  const histories = new RemoraStorage(fresh());
  await storage.addMessage(message("a"));
  await histories.addHistoryEntry("h", { status: "working" }, "agent");

  assert.deepEqual(await histories.getMessages(), []);
  assert.equal(await storage.getHistoryEntry("h"), undefined);
});

test("memory and historyMemory may be two servers", async () => {
  const histories = new RemoraStorage({ ...options, endpoint: another.fresh().endpoint });
  await storage.addMessage(message("a"));
  await histories.addHistoryEntry("h", { status: "working" }, "agent");

  assert.deepEqual(await histories.getMessages(), []);
  assert.equal(await storage.getHistoryEntry("h"), undefined);
  assert.equal((await histories.getHistoryEntry("h"))?.status, "working");
  await histories.close();
});
