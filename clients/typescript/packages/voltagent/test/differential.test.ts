// The adapters beside those that VoltAgent ships: random calls, the same of both, have the same results.
//
// Left out is what sets VoltAgent's own adapters apart from one another, and what docs/voltagent.md says is different here.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import {
  type Conversation,
  type ConversationStepRecord,
  InMemoryObservabilityAdapter,
  InMemoryStorageAdapter,
  InMemoryVectorAdapter,
  type ObservabilitySpan,
  type ObservabilityStorageAdapter,
  type SearchResult,
  type StorageAdapter,
  type VectorAdapter,
  type WorkflowStateEntry,
} from "@voltagent/core";
import { LibSQLMemoryAdapter, LibSQLVectorAdapter } from "@voltagent/libsql";
import type { UIMessage } from "ai";
import { RemoraMemoryAdapter, RemoraObservabilityAdapter, RemoraVectorAdapter } from "../src/index.js";
import { call, compare, type Generator, method } from "./compare.js";
import { server } from "./fresh.js";
import type { Random } from "./random.js";

const { fresh } = server();
const folder = mkdtempSync(join(tmpdir(), "remora-libsql-"));
after(() => rmSync(folder, { recursive: true }));

const BEGIN = Date.UTC(2026, 0, 2);

/** LibSQL gives the times within a state as strings, null for no user, and loses where a replayed run comes from. */
function asInJson(value: unknown): unknown {
  const lost = (name: string, one: unknown) =>
    name.startsWith("replay") || (one === null && /^(user|conversation)Id$/.test(name));
  return JSON.parse(JSON.stringify(value ?? null), (name, one: unknown) => (lost(name, one) ? undefined : one));
}

const USERS = ["ann", "bob"];
const CONVERSATIONS = ["c1", "c2", "c3"];
const RESOURCES = ["guide", "cook"];
const ROLES = ["user", "assistant", "system"] as const;
const VALUES = ["pro", "", 0, 1.5, -7, true, false, null, ["a", 1, null], { b: { c: [] } }, "größe \u{1F600}"];

function metadata(random: Random): Record<string, unknown> {
  return Object.fromEntries(random.some(["plan", "tags", "x y"]).map((key) => [key, random.one(VALUES)]));
}

// Messages, conversations, steps, working memory

function message(random: Random): UIMessage {
  const parts = [
    { type: "text", text: random.one(["", "hm", "a\nb", "größe \u{1F600}"]) },
    { type: "tool-find", toolCallId: "t", state: "output-available", input: {}, output: random.one(VALUES) },
    { type: "reasoning", text: "so", providerMetadata: { openai: { itemId: "rs_1" } } },
  ];
  return {
    id: `m${random.below(12)}`,
    role: random.one(ROLES),
    parts: random.some(parts) as UIMessage["parts"],
    metadata: metadata(random),
  };
}

/** The messages as all of VoltAgent's adapters have them; the time is only known to be one. */
function withoutTimes(messages: (UIMessage & { createdAt?: unknown })[]): unknown {
  return messages.map(({ createdAt: _, metadata, ...rest }) => {
    const { createdAt, ...others } = metadata as { createdAt: unknown };
    assert.ok(createdAt instanceof Date && Math.abs(Date.now() - createdAt.getTime()) < 3_600_000);
    return { ...rest, metadata: others };
  });
}

/** A conversation without its times, which are strings in ISO 8601, and without working memory among its metadata. */
function undated(conversation: Conversation | null): unknown {
  if (conversation === null) {
    return null;
  }
  const { createdAt, updatedAt, metadata, ...rest } = conversation;
  const { workingMemory: _, ...others } = metadata;
  assert.equal(new Date(createdAt).toISOString(), createdAt);
  assert.ok(createdAt <= updatedAt && updatedAt === new Date(updatedAt).toISOString());
  return { ...rest, metadata: others };
}

function undatedAll(conversations: Conversation[]): unknown {
  return conversations.map(undated);
}

function step(random: Random): ConversationStepRecord {
  return {
    id: `s${random.below(8)}`,
    // A step that is stored again stays where it is.
    conversationId: "c1",
    userId: "ann",
    agentId: "guide",
    operationId: random.one(["o1", "o2"]),
    stepIndex: random.below(20),
    type: random.one(["text", "tool_call", "tool_result"] as const),
    role: "assistant",
    content: random.one(["hm", "größe"]),
    createdAt: new Date(BEGIN + random.below(1_000)).toISOString(),
    ...random.one([{}, { agentName: "Guide", subAgentId: "sub", subAgentName: "Sub" }]),
    ...random.one([
      {},
      { arguments: { city: "Vienna" }, result: { found: [1, 2] }, usage: { totalTokens: 3 } as never },
    ]),
  };
}

const LIMITS = [undefined, 0, 1, 3, 50];
const conversation = (random: Random) => random.one(CONVERSATIONS);
const user = (random: Random) => random.one(USERS);

const messages: Generator<StorageAdapter>[] = [
  (random) => method("addMessage", [message(random), user(random), conversation(random)]),
  (random) =>
    method("addMessages", [
      Array.from({ length: random.below(5) }, () => message(random)),
      user(random),
      conversation(random),
    ]),
  (random) => {
    const options = {
      limit: random.one(LIMITS),
      roles: random.one([undefined, [], random.some([...ROLES])]),
    };
    return method("getMessages", [user(random), conversation(random), options], withoutTimes);
  },
  (random) => {
    const ids = random.some(["m0", "m1", "m2", "m3", "missing"]);
    return method("deleteMessages", [ids, user(random), conversation(random)]);
  },
  (random) =>
    random.below(3) > 0
      ? method("deleteMessages", [["m4"], user(random), conversation(random)])
      : method("clearMessages", [
          random.one([...USERS, "nobody"]),
          random.one([undefined, ...CONVERSATIONS, "missing"]),
        ]),
];

/** InMemoryStorageAdapter may give the messages of one call several times. */
const times: Generator<StorageAdapter>[] = [
  (random) => method("addMessage", [message(random), user(random), conversation(random)]),
  // The time of a message is its adapter's: messages are asked for that come before and after it.
  (random) => {
    const [userId, conversationId, place] = [user(random), conversation(random), random.below(6)];
    return call("getMessages around", [userId, conversationId, place], async (adapter) => {
      const all = await adapter.getMessages(userId, conversationId);
      const { createdAt } = (all[place]?.metadata ?? {}) as { createdAt?: Date };
      const around = [createdAt && { before: createdAt }, createdAt && { after: createdAt }];
      const found = around.map(async (limits) =>
        withoutTimes(await adapter.getMessages(userId, conversationId, limits)),
      );
      return Promise.all(found);
    });
  },
];

/** Those of VoltAgent keep working memory in the metadata, and lose it when that is replaced. */
const untitled: Generator<StorageAdapter> = (random) =>
  method("updateConversation", [conversation(random), random.one([{}, { title: "d" }])], undated);

const conversations: Generator<StorageAdapter>[] = [
  (random) => method("deleteConversation", [conversation(random)]),
  (random) => {
    const updates = random.some([
      ["title", random.one(["d", "e"])],
      ["metadata", metadata(random)],
      ["resourceId", "cook"],
    ]);
    return method(
      "updateConversation",
      [conversation(random), Object.fromEntries(updates as [string, unknown][])],
      undated,
    );
  },
];

const found: Generator<StorageAdapter>[] = [
  untitled,
  (random) => {
    const given = { id: conversation(random), resourceId: random.one(RESOURCES), userId: user(random) };
    return method(
      "createConversation",
      [{ ...given, title: random.one(["a", "b", ""]), metadata: metadata(random) }],
      undated,
    );
  },
  (random) => method("getConversation", [random.one([...CONVERSATIONS, "missing"])], undated),
  (random) => method("queryConversations", [query(random)], undatedAll),
  (random) => method("getConversationsByUserId", [user(random), query(random)], undatedAll),
  (random) => method("countConversations", [query(random)]),
];

/** In an order that all adapters have; the last updated first is that of VoltAgent's databases. */
function query(random: Random): Record<string, unknown> {
  const filter = { userId: random.one([undefined, ...USERS]), resourceId: random.one([undefined, ...RESOURCES]) };
  const order = { orderBy: "created_at", orderDirection: random.one(["ASC", "DESC"]) };
  return { ...filter, ...order, limit: random.one([1, 2, 50]), offset: random.one([undefined, 0, 1, 9]) };
}

const steps: Generator<StorageAdapter>[] = [
  (random) => method("saveConversationSteps", [Array.from({ length: random.below(4) }, () => step(random))]),
  (random) => {
    const options = { operationId: random.one([undefined, "o1", "o3"]), limit: random.one([undefined, 0]) };
    return method("getConversationSteps", [user(random), conversation(random), options], ordered);
  },
];

/** Steps of one index have no order. */
function ordered(found: ConversationStepRecord[]): unknown {
  const indexes = found.map(({ stepIndex }) => stepIndex);
  assert.deepEqual(
    indexes,
    indexes.toSorted((one, other) => one - other),
  );
  return found.toSorted((one, other) => one.stepIndex - other.stepIndex || (one.id < other.id ? -1 : 1));
}

/** Whose working memory it is. */
function owner(random: Random): Record<string, unknown> {
  return random.one([
    { scope: "conversation", conversationId: conversation(random), userId: user(random) },
    { scope: "user", userId: user(random) },
    { scope: "user", userId: user(random), conversationId: conversation(random) },
    { scope: "conversation" },
    { scope: "user" },
  ]);
}

const workingMemory: Generator<StorageAdapter>[] = [
  (random) => method("getWorkingMemory", [owner(random)]),
  (random) => method("setWorkingMemory", [{ ...owner(random), content: random.one(["# Ann", '{"a":1}', "größe"]) }]),
  (random) => method("deleteWorkingMemory", [owner(random)]),
];

// Workflow states

/** The last is one that VoltAgent's types do not have, and its stores keep. */
const STATUSES = ["running", "suspended", "completed", "cancelled", "error", "paused" as "running"] as const;
const RUNS = ["r1", "r2", "r3", "r4"];

function changes(random: Random): Partial<WorkflowStateEntry> {
  const suspension = {
    suspendedAt: new Date(BEGIN + 7),
    reason: "approval",
    stepIndex: 2,
    lastEventSequence: 5,
    checkpoint: { stepExecutionState: { a: 1 }, stepData: { one: { input: 1, status: "success" } } },
    suspendData: random.one(VALUES.filter((value) => value !== null)),
  };
  const all: [keyof WorkflowStateEntry, unknown][] = [
    ["status", random.one(STATUSES)],
    ["input", random.one(VALUES)],
    ["output", random.one(VALUES)],
    ["workflowState", metadata(random)],
    ["suspension", random.one([suspension, undefined])],
    ["events", [{ id: "e", type: "step", startTime: "2026-01-02T00:00:00.000Z", output: random.one(VALUES) }]],
    ["context", [["key", random.one(VALUES)]]],
    ["cancellation", random.one([{ cancelledAt: new Date(BEGIN + 9), reason: "enough" }, undefined])],
    ["userId", random.one([...USERS, undefined])],
    ["conversationId", random.one([...CONVERSATIONS, undefined])],
    ["metadata", random.one([metadata(random), undefined])],
    ["replayedFromExecutionId", random.one(["r0", undefined])],
    ["replayFromStepId", random.one(["one", undefined])],
  ];
  return Object.fromEntries(random.some(all)) as Partial<WorkflowStateEntry>;
}

/** A state. Each run has a time of its own, so that lists have one order, and keeps its workflow. */
function state(random: Random, id: string): WorkflowStateEntry {
  const number = RUNS.indexOf(id);
  const workflow = number % 2 ? "w1" : "w2";
  const times = { createdAt: new Date(BEGIN + 1_000 * number), updatedAt: new Date(BEGIN + 5_000) };
  return { id, workflowId: workflow, workflowName: workflow, status: "running", ...times, ...changes(random) };
}

/** A state; the time of its update is only known to be one. */
function unchanged(found: WorkflowStateEntry | null): unknown {
  if (found === null) {
    return null;
  }
  const { updatedAt, ...rest } = found;
  assert.ok(updatedAt instanceof Date);
  return rest;
}

const unchangedAll = (found: WorkflowStateEntry[]) => found.map(unchanged);

const workflows: Generator<StorageAdapter>[] = [
  (random) => {
    const id = random.one(RUNS);
    return method("setWorkflowState", [id, state(random, id)]);
  },
  (random) => method("getWorkflowState", [random.one([...RUNS, "missing"])], unchanged),
  (random) => method("updateWorkflowState", [random.one([...RUNS, "missing"]), changes(random)]),
  (random) => {
    const at = () => random.one([undefined, new Date(BEGIN), new Date(BEGIN + 1_000), new Date(BEGIN + 2_000)]);
    const filter = {
      workflowId: random.one([undefined, "w1", "w3"]),
      status: random.one([undefined, undefined, ...STATUSES]),
      userId: random.one([undefined, undefined, ...USERS]),
      metadata: random.one([undefined, undefined, metadata(random)]),
      from: at(),
      to: at(),
    };
    const page = random.one([{}, { limit: 2 }, { limit: 2, offset: 1 }, { limit: 50, offset: 0 }]);
    return method("queryWorkflowRuns", [{ ...filter, ...page }], unchangedAll);
  },
  (random) =>
    method("getSuspendedWorkflowStates", [random.one(["w1", "w2", "w3"])], (found: WorkflowStateEntry[]) =>
      unchangedAll(found.toSorted((one, other) => (one.id < other.id ? -1 : 1))),
    ),
];

/** LibSQL takes it for none. */
const unlimited: Generator<StorageAdapter> = (random) =>
  method("queryWorkflowRuns", [{ limit: 0, offset: random.below(2) }], unchangedAll);

describe("RemoraMemoryAdapter, lenient, is as InMemoryStorageAdapter", () => {
  const adapters = (): [StorageAdapter, StorageAdapter] => [
    new RemoraMemoryAdapter({ ...fresh(), strict: false }),
    new InMemoryStorageAdapter(),
  ];

  test("for messages", () => compare(adapters, messages));
  test("for messages by time", () => compare(adapters, times));
  test("for conversations", () => compare(adapters, [...found, ...conversations]));
  test("for steps", () => compare(adapters, steps));
  test("for workflow states", () => compare(adapters, [...workflows, unlimited]));
  test("for working memory", () => compare(adapters, [...found, ...workingMemory]));
});

describe("RemoraMemoryAdapter, strict, is as LibSQLMemoryAdapter", () => {
  let files = 0;
  const adapters = (): [StorageAdapter, StorageAdapter] => [
    new RemoraMemoryAdapter(fresh()),
    new LibSQLMemoryAdapter({ url: `file:${join(folder, `memory-${files++}.db`)}` }),
  ];

  test("for conversations and working memory", () => compare(adapters, [...found, ...workingMemory]));
  test("for workflow states", () => compare(adapters, workflows, asInJson));
});

// Vectors

const DIMENSION = 3;

/** Whole numbers, of which f32 and f64 make the same, and sums that are not rounded. */
function values(random: Random, dimension = DIMENSION): number[] {
  return Array.from({ length: dimension }, () => random.below(9) - 4);
}

/** Metadata is no list here: a filter of one compares it by identity. */
function attributes(random: Random): Record<string, unknown> {
  const choices = VALUES.filter((value) => typeof value !== "object" || value === null);
  return Object.fromEntries(random.some(["plan", "tags", "x y"]).map((key) => [key, random.one(choices)]));
}

const vectorId = (random: Random) => `v${random.below(12)}`;
const dimension = (random: Random) => (random.below(8) === 0 ? DIMENSION + 1 : DIMENSION);

const vectors: Generator<VectorAdapter>[] = [
  (random) =>
    method("store", [
      vectorId(random),
      values(random, dimension(random)),
      random.one([undefined, attributes(random), attributes(random)]),
    ]),
  (random) => {
    const item = () => ({ id: vectorId(random), vector: values(random), metadata: attributes(random) });
    return method("storeBatch", [Array.from({ length: random.below(5) }, item)]);
  },
  (random) => {
    const options = {
      limit: random.one([undefined, 1, 3, 100]),
      threshold: random.one([undefined, 0, 0.5, 0.9]),
      filter: random.one([undefined, undefined, { plan: "pro", ...attributes(random) }]), // an empty one is none here
    };
    return method("search", [values(random, dimension(random)), options], (hits: SearchResult[]) =>
      nearest(hits, options),
    );
  },
  (random) => method("delete", [vectorId(random)]),
  (random) => method("deleteBatch", [random.some(["v1", "v2", "v3", "missing"])]),
  (random) => (random.below(6) === 0 ? method("clear", []) : method("count", [])),
];

/** InMemoryVectorAdapter looks at the dimension of a query only where there are vectors. */
function foundNone(result: unknown): unknown {
  return isDeepStrictEqual(result, { thrown: "dimension mismatch" }) ? [] : result;
}

/** LibSQL may give what was there before a batch. */
const got: Generator<VectorAdapter> = (random) => method("get", [vectorId(random)]);

/**
 * The scores in their order, rounded, and, if the limit has cut none, what was found. Those of one score have no order, and a
 * score at the threshold may be rounded to either side of it.
 */
function nearest(
  hits: SearchResult[],
  { limit = 10, threshold = 0 }: { limit?: number | undefined; threshold?: number | undefined },
): unknown {
  const scores = hits.map(({ score }) => score);
  assert.deepEqual(
    scores,
    scores.toSorted((one, other) => other - one),
  );
  const clear = hits.filter(({ score }) => Math.abs(score - threshold) > 1e-6);
  for (const { score, distance = Number.NaN } of hits) {
    assert.ok(Math.abs(distance - 2 * (1 - score)) < 1e-9);
  }
  const round = ({ score, distance: _, ...rest }: SearchResult) => ({ ...rest, score: score.toFixed(5) });
  const found = clear.map(round).toSorted((one, other) => (one.id < other.id ? -1 : 1));
  return hits.length < limit ? found : found.map(({ score }) => score).toSorted();
}

describe("RemoraVectorAdapter", () => {
  const ours = () => new RemoraVectorAdapter({ ...fresh(), cacheSize: 0 });
  let files = 0;

  test("is as InMemoryVectorAdapter", () =>
    compare(() => [ours(), new InMemoryVectorAdapter()], [...vectors, got], foundNone));
  test("is as LibSQLVectorAdapter", () => {
    const url = () => `file:${join(folder, `vectors-${files++}.db`)}`;
    return compare(() => [ours(), new LibSQLVectorAdapter({ url: url() })], vectors);
  });
});

// Observability

const TRACES = ["1".repeat(32), "2".repeat(32), "3".repeat(32)];

const spanId = (number: number) => `${number}`.padStart(16, "a");

function span(random: Random, number = random.below(12)): ObservabilitySpan {
  const start = BEGIN + 10 * number; // a span that is added again is of the same time and trace
  return {
    traceId: TRACES[number % 3] as string,
    spanId: spanId(number),
    name: random.one(["agent", "tool"]),
    kind: random.below(5),
    startTime: new Date(start).toISOString(),
    attributes: {
      "entity.id": `e${number % 3}`,
      "entity.type": number % 3 === 0 ? "agent" : "workflow",
      note: random.one(VALUES),
    },
    status: random.one([{ code: 0 }, { code: 1 }, { code: 2, message: "broken" }]),
    events: random.some([{ name: "event", timestamp: new Date(start + 3).toISOString(), attributes: { a: 1 } }]),
    ...random.one([{}, { endTime: new Date(start + 5).toISOString(), duration: 5 }, { parentSpanId: "b".repeat(16) }]),
    ...random.one([{}, { resource: { "service.name": "s" }, instrumentationScope: { name: "scope", version: "1" } }]),
  } as ObservabilitySpan;
}

const spans: Generator<ObservabilityStorageAdapter>[] = [
  (random) => method("addSpan", [span(random)]),
  (random) => {
    const number = random.below(14);
    const { status, attributes, endTime, duration, name } = span(random, number); // of the same entity
    const changes = random.some([{ status }, { attributes }, { name }, ...(endTime ? [{ endTime, duration }] : [])]);
    return method("updateSpan", [spanId(number), Object.assign({}, ...changes)]);
  },
  (random) => method("getSpan", [spanId(random.below(14))]),
  (random) => method("getTrace", [random.one([...TRACES, "4".repeat(32)])]),
  (random) => {
    const filter = random.one([undefined, {}, { entityId: "e1" }, { entityId: "missing" }, { entityType: "agent" }]);
    return method("listTraces", [undefined, undefined, filter], (traces: string[]) => traces.toSorted());
  },
  (random) =>
    random.below(4) === 0 ? method("deleteOldSpans", [BEGIN + 10 * random.below(6)]) : method("getTrace", [TRACES[0]]),
];

/** A log record of OpenTelemetry's SDK. */
function logRecord(random: Random, number: number): object {
  const context = { traceId: random.one(TRACES), spanId: random.one(["a".repeat(16), "b".repeat(16)]), traceFlags: 1 };
  return {
    hrTime: [BEGIN / 1_000 + number, 0],
    ...random.one([{}, { spanContext: context }]),
    severityNumber: random.one([5, 9, 17]),
    severityText: random.one(["DEBUG", "INFO", "ERROR"]),
    body: random.one(["booked a train", "nothing", { text: "booked" }]),
    attributes: { note: random.one(VALUES) },
    resource: { attributes: { "service.name": "s" } },
    instrumentationScope: { name: random.one(["one", "two"]) },
  };
}

function logs(): Generator<ObservabilityStorageAdapter>[] {
  let number = 0;
  const time = (random: Random) => random.one([undefined, BEGIN, BEGIN + 5_000, BEGIN + 20_000]);
  return [
    (random) => method("saveLogRecord", [logRecord(random, number++)]),
    (random) => method("getLogsByTraceId", [random.one([...TRACES, "4".repeat(32)])]),
    (random) => method("getLogsBySpanId", [random.one(["a".repeat(16), "c".repeat(16)])]),
    (random) => {
      const all: [string, unknown][] = [
        ["traceId", random.one(TRACES)],
        ["spanId", "a".repeat(16)],
        ["severityNumber", random.one([5, 9])],
        ["severityText", "INFO"],
        ["bodyContains", random.one(["booked", "no"])],
      ];
      const filter = {
        ...Object.fromEntries(all.filter(() => random.below(4) === 0)),
        limit: random.one([undefined, 0]), // else the store in memory gives the oldest, databases the newest
      };
      return method("queryLogs", [{ ...filter, startTimeMin: time(random), startTimeMax: time(random) }]);
    },
    (random) =>
      random.below(5) === 0 ? method("deleteOldLogs", [BEGIN + 1_000 * random.below(9)]) : method("queryLogs", [{}]),
  ];
}

describe("RemoraObservabilityAdapter is as InMemoryObservabilityAdapter", () => {
  const adapters = (): [ObservabilityStorageAdapter, ObservabilityStorageAdapter] => [
    new RemoraObservabilityAdapter(fresh()),
    new InMemoryObservabilityAdapter(),
  ];

  test("for spans", () => compare(adapters, spans));
  test("for logs", () => compare(adapters, logs()));
});
