// What calls fail with, whichever they are: VoltAgent's errors.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Remora } from "@remora/client";
import { MemoryV2Error } from "@voltagent/core";
import { RemoraMemory, RemoraMemoryAdapter, RemoraObservabilityAdapter, RemoraVectorAdapter } from "../src/index.js";

const client = new Remora({ endpoint: "unix:/nowhere.sock" });
client.close();
const storage = new RemoraMemoryAdapter({ client });
const memory = new RemoraMemory({ client });
const telemetry = new RemoraObservabilityAdapter({ client });
const vectors = new RemoraVectorAdapter({ client });

const READS: Record<string, () => Promise<unknown>> = {
  getMessages: () => storage.getMessages("u", "c"),
  getConversation: () => storage.getConversation("c"),
  getConversations: () => storage.getConversations("r"),
  getConversationsByUserId: () => storage.getConversationsByUserId("u"),
  queryConversations: () => storage.queryConversations({}),
  countConversations: () => storage.countConversations({}),
  getConversationSteps: () => storage.getConversationSteps("u", "c"),
  getWorkingMemory: () => storage.getWorkingMemory({ scope: "user", userId: "u" }),
  getWorkflowState: () => storage.getWorkflowState("r"),
  queryWorkflowRuns: () => storage.queryWorkflowRuns({}),
  getSuspendedWorkflowStates: () => storage.getSuspendedWorkflowStates("w"),
  "getMessages of a memory": () => memory.getMessages("u", "c"),
  "queryConversations of a memory": () => memory.queryConversations({}),
  searchSimilar: () => memory.searchSimilar("which?"),
  getSpan: () => telemetry.getSpan("s"),
  getTrace: () => telemetry.getTrace("t"),
  listTraces: () => telemetry.listTraces(),
  getLogsByTraceId: () => telemetry.getLogsByTraceId("t"),
  getLogsBySpanId: () => telemetry.getLogsBySpanId("s"),
  queryLogs: () => telemetry.queryLogs({}),
  getStats: () => telemetry.getStats(),
  search: () => vectors.search([1]),
  get: () => vectors.get("v"),
  count: () => vectors.count(),
};

describe("a read that fails throws VoltAgent's error, with the reason", () => {
  for (const [name, read] of Object.entries(READS)) {
    test(name, async () => {
      await assert.rejects(read(), (error: unknown) => {
        assert.ok(error instanceof MemoryV2Error, String(error));
        assert.equal(error.details?.["reason"], "CLIENT_CLOSED");
        return true;
      });
    });
  }
});
