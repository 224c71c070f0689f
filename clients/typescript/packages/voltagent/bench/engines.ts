// What is compared: Remora, VoltAgent's memory in the process, and LibSQL in files.

import { join } from "node:path";
import { Client, credentials } from "@grpc/grpc-js";
import {
  InMemoryStorageAdapter,
  InMemoryVectorAdapter,
  Memory,
  type StorageAdapter,
  type VectorAdapter,
} from "@voltagent/core";
import { LibSQLMemoryAdapter, LibSQLVectorAdapter } from "@voltagent/libsql";
import { RemoraMemory, RemoraMemoryAdapter, RemoraVectorAdapter } from "../src/index.js";
import { counted } from "../../client/test/counting.js";
import { NumberedTexts } from "./data.js";

/** Each storage, collection and memory shares nothing with those of other names. */
export interface Engine {
  storage(): StorageAdapter;
  vectors(name: string): VectorAdapter;
  /** With semantic search. */
  memory(name: string): Memory;
  /** What any call costs where the engine is another process: the library of gRPC, and a server that has nothing to do. */
  emptyCall?: () => Promise<unknown>;
  /** How many RPCs were made. */
  rpcs(): number;
}

/** The server is stopped while others are measured. */
const TIMEOUT_MS = 600_000;
const HEALTH = "/grpc.health.v1.Health/Check";
const embedding = new NumberedTexts();

function emptyCall(endpoint: string): () => Promise<unknown> {
  const grpc = new Client(endpoint, credentials.createInsecure());
  const nothing = Buffer.alloc(0);
  return () =>
    new Promise((resolve, reject) => {
      const answered = (error: Error | null) => (error ? reject(error) : resolve(undefined));
      grpc.makeUnaryRequest(
        HEALTH,
        () => nothing,
        (reply) => reply,
        undefined,
        answered,
      );
    });
}

function remora(endpoint: string): Engine {
  const made: string[][] = [];
  const client = (tenant: string) => {
    const { client, calls } = counted({ endpoint, tenant, timeoutMs: TIMEOUT_MS });
    made.push(calls);
    return client;
  };
  return {
    storage: () => new RemoraMemoryAdapter({ client: client("storage") }),
    vectors: (collection) => new RemoraVectorAdapter({ client: client("vectors"), collection }),
    memory: (tenant) => new RemoraMemory({ client: client(tenant), embedding }),
    emptyCall: emptyCall(endpoint),
    rpcs: () => made.reduce((sum, calls) => sum + calls.length, 0),
  };
}

function inMemory(): Engine {
  return {
    storage: () => new InMemoryStorageAdapter(),
    vectors: () => new InMemoryVectorAdapter(),
    memory: () => new Memory({ storage: new InMemoryStorageAdapter(), vector: new InMemoryVectorAdapter(), embedding }),
    rpcs: () => 0,
  };
}

function libsql(folder: string): Engine {
  const url = (name: string) => `file:${join(folder, `${name}.db`)}`;
  const storage = (name: string) => new LibSQLMemoryAdapter({ url: url(name) });
  const vectors = (name: string) => new LibSQLVectorAdapter({ url: url(`${name}-vectors`) });
  return {
    storage: () => storage("storage"),
    vectors,
    memory: (name) => new Memory({ storage: storage(name), vector: vectors(name), embedding }),
    rpcs: () => 0,
  };
}

/** By name, with the place of their data: the endpoint of a server, or a folder. */
export const ENGINES: Record<string, (place: string) => Engine> = { remora, inmemory: inMemory, libsql };
