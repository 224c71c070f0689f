// What is measured, by name, and what fills the engines before.

import { setTimeout as sleep } from "node:timers/promises";
import { Agent, type WorkflowStateEntry } from "@voltagent/core";
import { MockLanguageModelV3 } from "ai/test";
import { filterOf, message, messages, text, USER, vector, vectorItems } from "./data.js";
import type { Engine } from "./engines.js";

/** Calls, one after the other; each is given a number that none before had. */
export interface Load {
  /** At most so many in a slice. */
  most: number;
  /** What is done before a slice, and is no part of it. */
  before?: () => Promise<unknown>;
  call: (number: number) => Promise<unknown>;
  after?: () => Promise<unknown>;
}

const CALLS = 500;
const CONVERSATIONS = 50;
const LENGTH = 1_000;
const BATCH = 100;
const VECTORS = 1_000;
const FRESH_BATCHES = 10;
const RUNS = 100;
const REMEMBERED = 10;
const K = 5;
const THRESHOLD = 0.7;
/** Texts and vectors of queries have numbers from here on. */
const ASKED = 10_000_000;
/** By then an agent has stored its turn, which it does in the background. */
const STORED_MS = 1_500;

export function loads(engine: Engine): Record<string, Load> {
  const empty = engine.emptyCall ? { "empty call": { most: CALLS, call: engine.emptyCall } } : {};
  return { ...storageLoads(engine), ...vectorLoads(engine), ...memoryLoads(engine), ...empty };
}

function storageLoads(engine: Engine): Record<string, Load> {
  const storage = engine.storage();
  const create = (id: string) =>
    storage.createConversation({ id, userId: USER, resourceId: "agent", title: "Trip", metadata: { plan: "pro" } });
  const read = (number: number) => `read-${number % CONVERSATIONS}`;
  const written = (number: number) => `written-${number % CONVERSATIONS}`;
  const run = (number: number) => `run-${number % RUNS}`;
  return {
    "fill conversations": {
      most: CONVERSATIONS,
      call: async (number) => {
        await create(written(number));
        await create(read(number));
        for (let first = 0; first < LENGTH; first += BATCH) {
          await storage.addMessages(messages(first, BATCH), USER, read(number));
        }
      },
    },
    "fill runs": { most: RUNS, call: (number) => storage.setWorkflowState(run(number), running(run(number))) },
    addMessage: { most: CALLS, call: (number) => storage.addMessage(message(number), USER, written(number)) },
    "addMessages(100)": {
      most: CALLS,
      call: (number) => storage.addMessages(messages(ASKED + BATCH * number, BATCH), USER, written(number)),
    },
    "getMessages(50)": { most: CALLS, call: (number) => storage.getMessages(USER, read(number), { limit: 50 }) },
    createConversation: { most: CALLS, call: (number) => create(`created-${number}`) },
    updateWorkflowState: {
      most: CALLS,
      call: (number) =>
        storage.updateWorkflowState(run(number), { workflowState: { step: number, note: text(number) } }),
    },
  };
}

function running(id: string): WorkflowStateEntry {
  const time = new Date();
  const input = { question: text(0) };
  return { id, workflowId: "w", workflowName: "W", status: "running", input, createdAt: time, updatedAt: time };
}

function vectorLoads(engine: Engine): Record<string, Load> {
  const fresh = engine.vectors("fresh");
  const items = Array.from({ length: FRESH_BATCHES }, (_, place) => vectorItems(place * VECTORS, VECTORS));
  return {
    "storeBatch(1000)": {
      most: FRESH_BATCHES,
      before: () => fresh.clear(),
      call: (number) => fresh.storeBatch(items[number % FRESH_BATCHES] ?? []),
    },
    ...searches(engine, 10_000),
    ...searches(engine, 100_000),
  };
}

function searches(engine: Engine, size: number): Record<string, Load> {
  const vectors = engine.vectors(`stored-${size}`);
  const options = { limit: K, threshold: THRESHOLD };
  return {
    [`fill ${size} vectors`]: {
      most: size / VECTORS,
      call: (number) => vectors.storeBatch(vectorItems(number * VECTORS, VECTORS)),
    },
    [`search of ${size}`]: { most: CALLS, call: (number) => vectors.search(vector(ASKED + number), options) },
    [`search of ${size}, filtered`]: {
      most: CALLS,
      call: (number) => vectors.search(vector(ASKED + number), { ...options, filter: filterOf(number) }),
    },
  };
}

function memoryLoads(engine: Engine): Record<string, Load> {
  const memory = engine.memory("memory");
  const agent = new Agent({ name: "guide", instructions: "Guide travellers.", model: answering(), memory });
  const turn = (number: number, conversationId: string) =>
    agent.generateText(text(ASKED + number), { memory: { userId: USER, conversationId } });
  const stored = () => sleep(STORED_MS);
  return {
    "fill memory": {
      most: REMEMBERED,
      call: async (number) => {
        const id = `remembered-${number}`;
        await memory.createConversation({ id, userId: USER, resourceId: "guide", title: "Trip", metadata: {} });
        for (let first = 0; first < LENGTH; first += BATCH) {
          await memory.addMessages(messages(number * LENGTH + first, BATCH), USER, id);
        }
      },
    },
    "semantic read": {
      most: CALLS,
      call: (number) =>
        memory.getMessagesWithContext(USER, `remembered-${number % REMEMBERED}`, {
          limit: 10,
          useSemanticSearch: true,
          currentQuery: text(ASKED + number),
          semanticLimit: K,
          semanticThreshold: THRESHOLD,
        }),
    },
    turn: { most: CALLS, call: (number) => turn(number, `turns-${number % REMEMBERED}`), after: stored },
    "first turn": { most: 1, call: (number) => turn(number, `first-${number}`), after: stored },
    "later turn": { most: 1, call: (number) => turn(number, "first-0"), after: stored },
  };
}

function answering(): MockLanguageModelV3 {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };
  const content = [{ type: "text" as const, text: text(0) }];
  return new MockLanguageModelV3({
    doGenerate: async () => ({ content, finishReason: { unified: "stop", raw: "stop" }, usage, warnings: [] }),
  });
}
