// The conformance cases through this client. `tests/conformance/cases.py` says what a case means.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type DescMethod, type DescService, fromJson, type JsonValue, type Message, toJson } from "@bufbuild/protobuf";
import * as v1 from "../src/generated/v1.js";
import { type CallOptions, Remora, RemoraError } from "../src/index.js";
import { PATIENCE_MS } from "./failures.js";
import { type Listening, REPOSITORY, Server } from "./server.js";

interface Call {
  rpc: string;
  request: JsonValue;
}
interface Expected extends Call {
  reply: JsonValue;
}
interface Case extends Expected {
  refusal?: { code: string; reason: string };
  then?: Expected;
}
type Rpc = (request: Message, options?: CallOptions) => Promise<Message>;

const FOLDER = join(REPOSITORY, "tests/conformance");
const DOCUMENTS = readdirSync(FOLDER)
  .filter((name) => name.endsWith(".json"))
  .map((name) => JSON.parse(readFileSync(join(FOLDER, name), "utf8")) as { given: Call[]; cases: Case[] });
const SERVICES = (Object.values(v1) as object[]).filter(isService);
const METHODS = new Map(SERVICES.flatMap((service) => service.methods.map((method) => [fullName(method), method])));

for (const listening of ["unix", "tcp"] satisfies Listening[]) {
  describe(`the conformance cases over ${listening}`, () => {
    let server: Server;
    before(async () => {
      server = await Server.start(listening);
    });
    after(() => server.remove());

    for (const { given, cases } of DOCUMENTS) {
      for (const [number, expected] of cases.entries()) {
        test(`${number} ${expected.rpc}`, async () => {
          const remora = new Remora({ endpoint: server.endpoint, tenant: randomUUID(), timeoutMs: PATIENCE_MS });
          for (const call of given) {
            await ask(remora, call);
          }
          await check(remora, expected);
          remora.close();
        });
      }
    }
  });
}

test("every RPC of the contract has a case", () => {
  const rpcs = DOCUMENTS.flatMap(({ cases }) => cases.map((expected) => expected.rpc));

  assert.ok(METHODS.size > 40);
  assert.deepEqual(new Set(rpcs), new Set(METHODS.keys()));
});

test("a difference is seen wherever it is", () => {
  const found = { a: [{ b: 1 }], c: "x" };

  assert.equal(difference({ a: [{ b: "<any>" }], d: "<none>" }, found), "");
  assert.equal(difference({ a: [{ b: 2 }] }, found), "reply.a[0].b is 1 instead of 2");
  assert.equal(difference({ a: [] }, found), 'reply.a is [{"b":1}] instead of []');
  assert.equal(difference({ d: "<any>" }, found), "reply.d is missing");
  assert.equal(difference({ c: "<none>" }, found), 'reply.c is "x"');
});

async function check(remora: Remora, { rpc, request, reply, refusal, then }: Case): Promise<void> {
  if (refusal !== undefined) {
    const refused = await ask(remora, { rpc, request }).catch((error: unknown) => error);
    assert.ok(refused instanceof RemoraError);
    assert.deepEqual({ code: refused.code, reason: refused.reason }, refusal);
    return;
  }
  assert.equal(difference(reply, await ask(remora, { rpc, request })), "");
  if (then !== undefined) {
    assert.equal(difference(then.reply, await ask(remora, then)), "");
  }
}

async function ask(remora: Remora, { rpc, request }: Call): Promise<JsonValue> {
  const method = METHODS.get(rpc);
  assert.ok(method, rpc);
  const call = clientOf(remora, method.parent)[method.localName];
  assert.ok(call, rpc);
  return toJson(method.output, await call(fromJson(method.input, request)));
}

/** The client's own name for a service is that of the noun: `remora.conversations` for ConversationService. */
function clientOf(remora: Remora, service: DescService): Record<string, Rpc> {
  const noun = service.name.replace(/Service$/, "").toLowerCase();
  const clients = remora as unknown as Record<string, Record<string, Rpc>>;
  const client = clients[`${noun}s`] ?? clients[noun.replace(/y$/, "ies")] ?? clients[noun];
  assert.ok(client, `the client has no ${noun}`);
  return client;
}

function isService(item: object): item is DescService {
  return "kind" in item && item.kind === "service";
}

function fullName(method: DescMethod): string {
  return `${method.parent.typeName}.${method.name}`;
}

/** Where what was found is not as expected; empty where it is. */
function difference(expected: JsonValue | undefined, found: JsonValue | undefined, path = "reply"): string {
  if (expected === "<any>") {
    return found === undefined ? `${path} is missing` : "";
  }
  if (expected === "<none>") {
    return found === undefined ? "" : `${path} is ${JSON.stringify(found)}`;
  }
  if (Array.isArray(expected) && Array.isArray(found) && expected.length === found.length) {
    return first(expected.map((item, place) => difference(item, found[place], `${path}[${place}]`)));
  }
  if (isObject(expected) && isObject(found)) {
    return first(Object.keys(expected).map((key) => difference(expected[key], found[key], `${path}.${key}`)));
  }
  return expected === found ? "" : `${path} is ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`;
}

function isObject(value: JsonValue | undefined): value is Record<string, JsonValue> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function first(texts: string[]): string {
  return texts.find((text) => text !== "") ?? "";
}
