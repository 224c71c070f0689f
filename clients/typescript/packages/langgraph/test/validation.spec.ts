// LangGraph's own tests of checkpointers, with those of the history of delta channels, which it leaves to each saver.

import { randomUUID } from "node:crypto";
import {
  type CheckpointSaverTestInitializer,
  deltaChannelHistoryTests,
  validate,
} from "@langchain/langgraph-checkpoint-validation";
import { PATIENCE_MS } from "../../client/test/failures.js";
import { Server } from "../../client/test/server.js";
import { RemoraSaver } from "../src/index.js";

let server: Server | undefined;

const initializer: CheckpointSaverTestInitializer<RemoraSaver> = {
  checkpointerName: "@remora/langgraph",
  beforeAllTimeout: 60_000,
  async beforeAll() {
    server ??= await Server.start();
  },
  async afterAll() {
    await server?.remove();
  },
  createCheckpointer: () =>
    new RemoraSaver({ endpoint: server?.endpoint, tenant: randomUUID(), timeoutMs: PATIENCE_MS }),
  destroyCheckpointer: (checkpointer) => checkpointer.end(),
};

validate(initializer);
deltaChannelHistoryTests(initializer);
