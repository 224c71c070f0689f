// RemoraStorage beside the storages of VoltAgent 0.1: random calls, the same of both, have the same results.
//
// Left out is what sets VoltAgent's own storages apart from one another, and what docs/voltagent.md says is different here.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { InMemoryStorage, LibSQLStorage, type Memory } from "voltagent-0.1";
import { RemoraStorage } from "../src/legacy/index.js";
import { call, compare, type Generator, method } from "./compare.js";
import { server } from "./fresh.js";
import type { Random } from "./random.js";

const { fresh } = server();
const folder = mkdtempSync(join(tmpdir(), "remora-libsql-"));
after(() => rmSync(folder, { recursive: true }));

const BEGIN = Date.UTC(2026, 0, 2);
const STORAGE_LIMIT = 8;
const OWNERS = { c1: "ann", c2: "bob", c3: "ann" };
const CONVERSATIONS = Object.keys(OWNERS);
const USERS = ["ann", "bob"];
const RESOURCES = ["guide", "cook"];
const VALUES = ["pro", "", 0, 1.5, -7, true, ["a", 1, null], { b: { c: [] } }, "größe \u{1F600}"];
const WORKFLOWS = ["w1", "w2"];
const FIRST_RUNS = ["r0", "r1", "r2"];

const at = (offset: number) => new Date(BEGIN + offset);

function fields(random: Random, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(random.some(names).map((name) => [name, random.one(VALUES)]));
}

/** LibSQL and InMemoryStorage give times in several forms; a time of the storage's own is only known to be one. */
function comparable(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value ?? null), (name, one: unknown) => (name === "updatedAt" ? undefined : one));
}

/** Counts what has been made: each has an id of its own, and is later than those before. */
class Made {
  readonly #prefix: string;
  #count: number;

  constructor(prefix: string, count = 0) {
    this.#prefix = prefix;
    this.#count = count;
  }

  next(): { id: string; time: Date } {
    const number = this.#count++;
    return { id: `${this.#prefix}${number}`, time: at(1_000 * number) };
  }

  /** One of those that were made, or one that is missing. */
  one(random: Random): string {
    const number = random.below(this.#count + 1);
    return number === this.#count ? "missing" : `${this.#prefix}${number}`;
  }
}

function messages(): Generator<Memory>[] {
  const made = new Made("m");
  const conversation = (random: Random) => random.one(CONVERSATIONS);
  return [
    (random) => {
      const { id, time } = made.next();
      const [role, type] = random.one([
        ["user", "text"],
        ["assistant", "text"],
        ["assistant", "tool-call"],
        ["tool", "tool-result"],
      ] as const);
      const content = random.one(["hm", "größe \u{1F600}", [{ type: "text", text: "hm" }]]);
      return method("addMessage", [{ id, role, type, content, createdAt: time.toISOString() }, conversation(random)]);
    },
    (random) => {
      const time = () => random.one([undefined, undefined, 0, BEGIN + 1_000 * random.below(60)]);
      const filter = {
        role: random.one([undefined, undefined, "user", "assistant"]),
        types: random.one([undefined, [], ["text"], ["tool-call", "tool-result"]]),
        limit: random.one([undefined, 0, 1, 3, 50]),
        before: time(),
        after: time(),
      };
      return method("getMessages", [{ userId: random.one(USERS), conversationId: conversation(random), ...filter }]);
    },
    (random) => {
      const page = random.one([undefined, {}, { limit: 2 }, { limit: 3, offset: 2 }, { offset: 100 }]);
      return method("getConversationMessages", [random.one([...CONVERSATIONS, "missing"]), page]);
    },
    (random) =>
      random.below(4) > 0
        ? method("getConversationMessages", [conversation(random)])
        : method("clearMessages", [
            {
              userId: random.one([...USERS, "nobody"]),
              conversationId: random.one([undefined, ...CONVERSATIONS, "missing"]),
            },
          ]),
  ];
}

function conversations(): Generator<Memory>[] {
  const made = new Made("c");
  const found = (one: unknown) =>
    JSON.parse(JSON.stringify(one, (name, value: unknown) => (name === "createdAt" ? undefined : value)));
  const query = (random: Random) => ({
    resourceId: random.one([undefined, ...RESOURCES]),
    ...random.one([{}, { orderBy: random.one(["created_at", "updated_at", "title"]) }]),
    ...random.one([{}, { orderDirection: random.one(["ASC", "DESC"]) }]),
    ...random.one([{}, { limit: 0 }, { limit: 2 }, { limit: 2, offset: 1 }, { limit: 50, offset: 9 }]),
  });
  return [
    (random) => {
      const { id } = made.next();
      const owner = { resourceId: random.one(RESOURCES), userId: random.one(USERS) };
      const given = { id, ...owner, title: random.one(["a", "B"]) + id, metadata: fields(random, ["plan", "tags"]) };
      return method("createConversation", [given], found);
    },
    (random) => method("getConversation", [made.one(random)], found),
    (random) => method("getConversations", [random.one(RESOURCES)], found),
    (random) => method("getConversationsByUserId", [random.one(USERS), query(random)], found),
    (random) => method("queryConversations", [{ userId: random.one([undefined, ...USERS]), ...query(random) }], found),
    (random) => {
      const updates = {
        ...random.one([{}, { metadata: fields(random, ["plan", "x y"]) }]),
        ...random.one([{}, { resourceId: "cook" }]),
      };
      return method("updateConversation", [made.one(random), updates], found);
    },
    (random) =>
      random.below(4) === 0
        ? method("deleteConversation", [made.one(random)])
        : method("getConversation", [made.one(random)], found),
  ];
}

function histories(): Generator<Memory>[] {
  const [entries, steps, events] = [new Made("h"), new Made("s"), new Made("e")];
  const stepsOf = new Map<string, string>([["missing", "missing"]]);
  const agentOf = (entry: string) => (entry.length % 2 === 0 ? "guide" : "cook");
  const step = (random: Random) => ({ type: "tool", ...fields(random, ["name", "content", "arguments"]) });
  return [
    (random) => {
      const { id, time } = entries.next();
      const entry = { id, timestamp: time, ...random.one([{}, { userId: "ann", conversationId: "c1" }]) };
      const more = fields(random, ["status", "input", "output", "usage", "metadata", "model"]);
      return method("addHistoryEntry", [id, { ...entry, ...more, status: "running" }, agentOf(id)]);
    },
    (random) => {
      const id = entries.one(random);
      const changes = fields(random, ["input", "output", "usage", "metadata", "model"]);
      return method("updateHistoryEntry", [
        id,
        { ...changes, ...random.one([{}, { status: "completed" }]) },
        agentOf(id),
      ]);
    },
    (random) => method("getHistoryEntry", [entries.one(random)]),
    (random) => {
      const [id, entry] = [steps.next().id, entries.one(random)];
      // InMemoryStorage keeps a step of a missing entry, although it says that it failed.
      stepsOf.set(id, entry);
      return entry === "missing"
        ? method("getHistoryStep", ["missing"])
        : method("addHistoryStep", [id, step(random), entry, agentOf(entry)]);
    },
    (random) => {
      const id = steps.one(random);
      const entry = stepsOf.get(id) ?? "missing";
      return method("updateHistoryStep", [entry === "missing" ? "missing" : id, step(random), entry, agentOf(entry)]);
    },
    (random) => {
      const id = steps.one(random);
      return method("getHistoryStep", [stepsOf.get(id) === "missing" ? "missing" : id]);
    },
    (random) => {
      const { id, time } = events.next();
      const entry = entries.one(random);
      const event = {
        name: "agent:start",
        type: "agent",
        startTime: time.toISOString(),
        status: "running",
        level: "INFO",
      };
      const more = {
        ...fields(random, ["input", "output", "metadata"]),
        ...random.one([{}, { traceId: "t", tags: ["a"] }]),
      };
      return method("addTimelineEvent", [id, { ...event, ...more }, entry, agentOf(entry)]);
    },
    (random) =>
      method("getAllHistoryEntriesByAgent", [
        random.one(["guide", "cook", "nobody"]),
        random.below(3),
        random.one([1, 3, 100]),
      ]),
  ];
}

function run(random: Random, id: string, time: Date): Record<string, unknown> {
  const workflowId = random.one(WORKFLOWS);
  return {
    ...{
      id,
      workflowId,
      workflowName: workflowId,
      status: "running",
      startTime: time,
      createdAt: time,
      updatedAt: time,
    },
    ...{ steps: [], events: [] },
    ...fields(random, ["input", "output"]),
    ...random.one([{}, { metadata: fields(random, ["plan", "tags"]), userId: "ann", conversationId: "c1" }]),
  };
}

function workflows(): Generator<Memory>[] {
  const [runs, events] = [new Made("r", FIRST_RUNS.length), new Made("e")];
  const steps = Array.from({ length: 9 }, (_, number) => `s${number}`);
  const runOf = (step: string) => `r${Number(step.slice(1)) % FIRST_RUNS.length}`;
  const idsOf = (list: { id: string }[] = []) => list.map(({ id }) => id).sort();
  const withIds = (one: { steps?: []; events?: [] } | null) =>
    one && { ...one, steps: idsOf(one.steps), events: idsOf(one.events) };
  const ended = (random: Random) =>
    random.one([{}, { status: "completed", endTime: at(500_000 + random.below(1_000)) }, { status: "error" }]);
  return [
    (random) => {
      const { id, time } = runs.next();
      return method("storeWorkflowHistory", [run(random, id, time)]);
    },
    (random) => {
      const changes = { ...fields(random, ["input", "output"]), ...ended(random) };
      return method("updateWorkflowHistory", [runs.one(random), changes]);
    },
    (random) =>
      method(random.one(["getWorkflowHistory", "getWorkflowHistoryWithStepsAndEvents"]), [runs.one(random)], withIds),
    (random) =>
      method("getWorkflowHistoryByWorkflowId", [random.one([...WORKFLOWS, "none"])], (found: { id: string }[]) =>
        found.map((one) => ({ ...one, steps: [], events: [] })),
      ),
    (random) => {
      const id = random.one(steps);
      const step = {
        id,
        workflowHistoryId: runOf(id),
        stepIndex: Number(id.slice(1)),
        stepType: "func",
        stepName: id,
        status: "running",
      };
      const times = { startTime: at(1), createdAt: at(2), updatedAt: at(2) };
      return method("storeWorkflowStep", [{ ...step, ...times, ...fields(random, ["input", "output", "error"]) }]);
    },
    (random) =>
      method("updateWorkflowStep", [
        random.one([...steps, "missing"]),
        { ...fields(random, ["output", "error"]), ...random.one([{}, { status: "completed", endTime: at(9) }]) },
      ]),
    (random) => method("getWorkflowStep", [random.one([...steps, "missing"])]),
    (random) => method("getWorkflowSteps", [random.one([...FIRST_RUNS, "missing"])]),
    (random) => {
      const { id, time } = events.next();
      const event = {
        id,
        workflowHistoryId: runOf(id),
        eventId: id,
        name: "workflow:start",
        type: "workflow",
        status: "running",
      };
      const times = {
        startTime: time.toISOString(),
        createdAt: time,
        ...random.one([{}, { endTime: time.toISOString() }]),
      };
      const more = {
        level: "INFO",
        traceId: "t",
        eventSequence: Number(id.slice(1)),
        ...fields(random, ["input", "output", "metadata"]),
      };
      return method("storeWorkflowTimelineEvent", [{ ...event, ...times, ...more }]);
    },
    (random) => method("getWorkflowTimelineEvent", [events.one(random)]),
    (random) => method("getWorkflowTimelineEvents", [random.one([...FIRST_RUNS, "missing"])]),
    // InMemoryStorage knows workflows without runs, and takes the mean of other runs than LibSQLStorage.
    () =>
      call("getAllWorkflowIds", [], async (storage) => {
        const ids = await storage.getAllWorkflowIds();
        const histories = await Promise.all(ids.map((id) => storage.getWorkflowHistoryByWorkflowId(id)));
        return ids.filter((_, place) => histories[place]?.length).sort();
      }),
    (random) =>
      method(
        "getWorkflowStats",
        [random.one([...WORKFLOWS, "none"])],
        ({ averageExecutionTime: _, ...rest }: { averageExecutionTime: number }) => rest,
      ),
    (random) => {
      const rare = [
        () => method<Memory>("deleteWorkflowHistory", [random.one(["r0", "missing"])]),
        () => method<Memory>("deleteWorkflowHistoryWithRelated", [random.one(["r1", "missing"])]),
        () => method<Memory>("cleanupOldWorkflowHistories", ["w1", 3 + random.below(9)]),
        () => method<Memory>("deleteWorkflowStep", [random.one(steps)]),
        () => method<Memory>("deleteWorkflowTimelineEvent", [events.one(random)]),
      ];
      return random.below(3) === 0 ? random.one(rare)() : method("getWorkflowSteps", [random.one(FIRST_RUNS)]);
    },
  ];
}

describe("RemoraStorage is as LibSQLStorage of VoltAgent 0.1", () => {
  let files = 0;

  test("for messages", () => {
    const adapters = async (): Promise<[Memory, Memory]> => {
      const url = `file:${join(folder, `${files++}.db`)}`;
      const limit = { storageLimit: STORAGE_LIMIT };
      const both: [Memory, Memory] = [
        new RemoraStorage({ ...fresh(), ...limit }),
        new LibSQLStorage({ url, ...limit }),
      ];
      for (const [id, userId] of Object.entries(OWNERS)) {
        await Promise.all(
          both.map((one) => one.createConversation({ id, userId, resourceId: "guide", title: id, metadata: {} })),
        );
      }
      return both;
    };
    return compare(adapters, messages, comparable);
  });
});

describe("RemoraStorage is as InMemoryStorage of VoltAgent 0.1", () => {
  const adapters = (): [Memory, Memory] => [new RemoraStorage(fresh()), new InMemoryStorage()];

  test("for conversations", () => compare(adapters, conversations, comparable));
  test("for histories of agents", () => compare(adapters, histories, comparable));
  test("for histories of workflows", () => {
    const withRuns = async (): Promise<[Memory, Memory]> => {
      const both = adapters();
      for (const [number, id] of FIRST_RUNS.entries()) {
        const time = at(1_000 * number);
        const first = {
          id,
          workflowId: "w1",
          workflowName: "w1",
          status: "running" as const,
          input: {},
          steps: [],
          events: [],
        };
        await Promise.all(
          both.map((one) => one.storeWorkflowHistory({ ...first, startTime: time, createdAt: time, updatedAt: time })),
        );
      }
      return both;
    };
    return compare(withRuns, workflows, comparable);
  });
});
