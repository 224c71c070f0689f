// RemoraObservabilityAdapter: spans, traces and logs of VoltAgent.

import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { Remora } from "@remora/client";
import {
  Agent,
  createVoltAgentObservability,
  type ObservabilitySpan,
  SpanKind,
  SpanStatusCode,
  StorageError,
} from "@voltagent/core";
import { MockLanguageModelV3 } from "ai/test";
import { RemoraMemory, RemoraObservabilityAdapter } from "../src/index.js";
import { type Fresh, server, tick } from "./fresh.js";

const { fresh } = server();
let options: Fresh;
let storage: RemoraObservabilityAdapter;

beforeEach(() => {
  options = fresh();
  storage = new RemoraObservabilityAdapter(options);
});

const BEGIN = Date.UTC(2026, 0, 2);
const at = (offset: number) => new Date(BEGIN + offset).toISOString();

function span(traceId: string, spanId: string, offset = 0, more: Partial<ObservabilitySpan> = {}): ObservabilitySpan {
  return {
    traceId,
    spanId,
    name: spanId,
    kind: SpanKind.INTERNAL,
    startTime: at(offset),
    attributes: {},
    status: { code: SpanStatusCode.UNSET },
    events: [],
    ...more,
  };
}

const FULL = span("t", "full", 0, {
  parentSpanId: "p",
  kind: SpanKind.CLIENT,
  endTime: at(1_500),
  duration: 1_500,
  attributes: { "entity.id": "agent", "entity.type": "agent", "user.id": "u", nested: { a: [1, null] }, n: 0.5 },
  status: { code: SpanStatusCode.ERROR, message: "no" },
  events: [
    { name: "retry", timestamp: at(10), attributes: { attempt: 2 } },
    { name: "bare", timestamp: at(11) },
  ],
  links: [
    { traceId: "x", spanId: "y", attributes: { why: "caused" } },
    { traceId: "x", spanId: "z" },
  ],
  resource: { "service.name": "guide" },
  instrumentationScope: { name: "voltagent", version: "2" },
});

describe("spans", () => {
  test("every field comes back", async () => {
    await storage.addSpan(FULL);
    await storage.addSpan(span("t", "bare"));

    assert.deepEqual(await storage.getSpan("full"), FULL);
    assert.deepEqual(await storage.getSpan("bare"), span("t", "bare"));
    assert.equal(await storage.getSpan("missing"), null);
  });

  test("an update changes what it names, also from another process", async () => {
    await storage.addSpan(span("t", "a"));

    await storage.updateSpan("a", { endTime: at(7), status: { code: SpanStatusCode.OK } });
    await new RemoraObservabilityAdapter(options).updateSpan("a", { attributes: { done: true }, traceId: "t" });
    await new RemoraObservabilityAdapter(options).updateSpan("a", { name: "renamed" });
    await storage.updateSpan("missing", { name: "x" });
    await storage.updateSpan("a", {});

    const changed = { endTime: at(7), duration: 7, status: { code: SpanStatusCode.OK }, attributes: { done: true } };
    assert.deepEqual(await storage.getSpan("a"), { ...span("t", "a"), ...changed, name: "renamed" });
  });

  test("a span is deleted with the user whom an update names", async () => {
    await storage.addSpan(span("t", "a"));
    await storage.updateSpan("a", { attributes: { "user.id": "ann", input: "my secret" } });

    await storage.client.users.deleteUser({ userId: "ann" });

    assert.equal(await storage.getSpan("a"), null);
  });

  test("a span whose user's id is longer than one may be is nobody's, and keeps it as an attribute", async () => {
    const attributes = { "user.id": "é".repeat(257) };
    await storage.addSpan(span("t", "long", 0, { attributes }));
    await storage.addSpan(span("t", "ends", 1, { attributes: { "user.id": "ann" } }));
    await storage.updateSpan("ends", { attributes, endTime: at(2) });

    assert.deepEqual(await storage.getSpan("long"), span("t", "long", 0, { attributes }));
    assert.equal((await storage.getSpan("ends"))?.endTime, at(2));

    await storage.client.users.deleteUser({ userId: "ann" });
    assert.deepEqual(await storage.getTrace("t"), [span("t", "long", 0, { attributes })]);
  });

  test("a span with very many or very large events, or long names, is stored and ends", async () => {
    const event = (attributes = {}) => ({ name: "e", timestamp: at(1), attributes });
    const many = Array.from({ length: 1_500 }, () => event({ n: 1, text: '"'.repeat(900) }));
    const link = { traceId: "x", spanId: "y", attributes: { text: "\u0001".repeat(60_000) } };
    await storage.addSpan(span("t", "many"));
    await storage.addSpan(span("t", "large", 0, { instrumentationScope: { name: "n".repeat(600), version: "1" } }));

    await storage.updateSpan("many", {
      events: many,
      links: Array.from({ length: 1_500 }, () => link),
      endTime: at(2),
    });
    const large = Array.from({ length: 6 }, () => event({ text: "x".repeat(900_000), short: 1 }));
    await storage.updateSpan("large", { events: large, endTime: at(2) });

    const ended = await storage.getSpan("many");
    assert.equal(ended?.endTime, at(2));
    assert.deepEqual([ended.events.length, ended.links?.length], [1_000, 1_000]);
    assert.equal(ended.events.at(-1)?.name, "… (1,500 events)");
    assert.equal(ended.events[0]?.attributes?.["n"], 1);
    const { events = [], instrumentationScope } = (await storage.getSpan("large")) ?? {};
    assert.deepEqual(
      events.map(({ attributes }) => attributes?.["short"]),
      Array(6).fill(1),
    );
    assert.match(String(events[0]?.attributes?.["text"]), /^x+ … \(900,000 bytes\)$/);
    assert.match(instrumentationScope?.name ?? "", /^n+ … \(600 bytes\)$/);
  });

  test("an update waits until the span is added, for which VoltAgent does not", async () => {
    const client = new Remora(options);
    const { saveSpans } = client.history;
    Object.assign(client.history, {
      saveSpans: async (...given: Parameters<typeof saveSpans>) => {
        await tick();
        return saveSpans(...given);
      },
    });
    const slow = new RemoraObservabilityAdapter({ client });
    assert.equal(await slow.getSpan("a"), null); // connected

    await Promise.all([
      slow.addSpan(span("t", "a")),
      slow.updateSpan("a", { endTime: at(7), duration: 7 }),
      slow.updateSpan("a", { name: "renamed" }),
    ]);

    assert.deepEqual(await slow.getSpan("a"), { ...span("t", "a"), name: "renamed", endTime: at(7), duration: 7 });
    client.close();
  });

  test("a span that could not be added is stored with what ends it, and until then its updates fail", async () => {
    const refused = { ...span("t", "a", 0, { attributes: { kept: 1 } }), traceId: "t".repeat(200) };
    await assert.rejects(storage.addSpan(refused), StorageError);

    await assert.rejects(storage.updateSpan("a", { endTime: at(1) }), /traceId has 200 bytes/);
    await storage.updateSpan("a", { traceId: "t", status: { code: SpanStatusCode.OK } });
    await storage.updateSpan("a", { name: "renamed" });
    await storage.updateSpan("unknown", { name: "renamed" });

    const ended = { ...span("t", "a", 0, { attributes: { kept: 1 }, endTime: at(1) }), name: "renamed", duration: 1 };
    assert.deepEqual(await storage.getTrace("t"), [{ ...ended, status: { code: SpanStatusCode.OK } }]);
  });

  test("what falls into an outage is stored with the next write after it", async () => {
    const client = new Remora(options);
    const nowhere = new Remora({ endpoint: "unix:/nowhere.sock", timeoutMs: 10 });
    const { saveSpans, updateSpan } = client.history;
    const adapter = new RemoraObservabilityAdapter({ client });
    await adapter.addSpan(span("t", "ended"));
    await adapter.addSpan(span("t", "changed", 1));

    Object.assign(client.history, { saveSpans: nowhere.history.saveSpans, updateSpan: nowhere.history.updateSpan });
    await assert.rejects(adapter.updateSpan("ended", { attributes: { kept: 1 }, name: "before" }), StorageError);
    await assert.rejects(adapter.updateSpan("ended", { endTime: at(7), name: "renamed" }), StorageError);
    await assert.rejects(adapter.updateSpan("changed", { name: "before" }), StorageError);
    await assert.rejects(adapter.addSpan(span("t", "added", 2)), StorageError);
    await assert.rejects(adapter.updateSpan("added", { endTime: at(8) }), StorageError);
    Object.assign(client.history, { saveSpans, updateSpan });
    await adapter.updateSpan("changed", { endTime: at(9) });
    await adapter.close();

    assert.deepEqual(
      (await storage.getTrace("t")).map(({ spanId, name, endTime, attributes }) => [spanId, name, endTime, attributes]),
      [
        ["ended", "renamed", at(7), { kept: 1 }],
        ["changed", "before", at(9), {}],
        ["added", "added", at(8), {}],
      ],
    );
    client.close();
    nowhere.close();
  });

  test("a duration is what it was said to be, else the time between", async () => {
    const fine = { endTime: at(3), duration: 2.6259765625 };
    await storage.addSpan(span("t", "fine", 0, fine));
    await storage.addSpan(span("t", "open", 0, { duration: 100 }));
    await storage.addSpan(span("t", "a"));
    await storage.updateSpan("a", { endTime: at(7), duration: 1_000 });

    assert.deepEqual(await storage.getSpan("fine"), span("t", "fine", 0, fine));
    assert.deepEqual(await storage.getSpan("open"), span("t", "open", 0, { duration: 100 }));
    assert.equal((await storage.getSpan("a"))?.duration, 1_000);
    await storage.updateSpan("a", { endTime: at(8), duration: undefined } as object);
    assert.equal((await storage.getSpan("a"))?.duration, 8);
  });

  test("a span ends though the server does not take all of it: of what is too long the beginning is kept", async () => {
    const image = `data:${"é".repeat(1 << 20)}`;
    const attributes = { input: image, messages: [{ content: image }], "entity.id": "agent", n: 0.5 };
    const events = [{ name: "e".repeat(2_000), timestamp: at(1), attributes: { stack: image } }];
    const status = { code: SpanStatusCode.ERROR, message: "m".repeat(1 << 20) };

    await storage.addSpan(span("t", "a", 0, { attributes, name: "n".repeat(2_000) }));
    await storage.updateSpan("a", { attributes, events, status, endTime: at(1) });

    const found = await storage.getSpan("a");
    const { input, messages, ...others } = found?.attributes ?? {};
    assert.deepEqual(
      [found?.endTime, found?.status.code, others],
      [at(1), status.code, { "entity.id": "agent", n: 0.5 }],
    );
    const [event] = found?.events ?? [];
    assert.match(String(input), /^data:é{8000,} … \(2,097,157 bytes\)$/);
    assert.match(String(messages), /^\[\{"content":"data:é{8000,} … \(2,097,173 bytes\)$/);
    assert.match(String(event?.attributes?.["stack"]), /^data:é{8000,} … \(2,097,157 bytes\)$/);
    for (const [text = "", most] of [
      [event?.name, 1_024],
      [found?.name, 1_024],
      [found?.status.message, 65_536],
    ] as const) {
      assert.equal(Buffer.byteLength(text), most);
    }
    assert.deepEqual(await storage.listTraces(1, 0, { entityId: "agent" }), ["t"]);
  });

  test("many attributes that are too long together are each kept as far as there is room, and a resource is, too", async () => {
    const attributes = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`a${n}`, '"'.repeat(10_000)]));
    const links = [{ traceId: "x", spanId: "y", attributes: { why: "w".repeat(100_000), n: 1 } }];
    await storage.addSpan(span("t", "s", 0, { attributes, resource: { long: "r".repeat(100_000), n: 1 }, links }));

    const found = await storage.getSpan("s");

    const values = Object.values(found?.attributes ?? {});
    assert.equal(values.length, 1_000);
    assert.match(String(values[0]), /^"{100,} … \(10,000 bytes\)$/);
    assert.match(String(found?.resource?.["long"]), /^r{1000,} … \(100,000 bytes\)$/);
    assert.match(String(found?.links?.[0]?.attributes?.["why"]), /^w{1000,} … \(100,000 bytes\)$/);
    assert.deepEqual([found?.resource?.["n"], found?.links?.[0]?.attributes?.["n"]], [1, 1]);
  });

  test("spans and traces are counted", async () => {
    assert.deepEqual(await storage.getStats(), { spanCount: 0, traceCount: 0 });
    for (const [traceId, offset] of [
      ["t1", 1],
      ["t1", 2],
      ["t2", 3],
    ] as const) {
      await storage.addSpan(span(traceId, `s${offset}`, offset));
    }

    const times = { oldestSpan: new Date(at(1)), newestSpan: new Date(at(3)) };
    assert.deepEqual(await storage.getStats(), { spanCount: 3, traceCount: 2, ...times });
    await storage.clear();
    assert.deepEqual(await storage.getStats(), { spanCount: 0, traceCount: 0 });
  });

  test("a trace has its spans, the first begun first", async () => {
    for (const [id, offset] of [
      ["c", 3],
      ["a", 1],
      ["b", 2],
    ] as const) {
      await storage.addSpan(span("t", id, offset));
    }
    await storage.addSpan(span("other", "x"));

    assert.deepEqual(
      (await storage.getTrace("t")).map(({ spanId }) => spanId),
      ["a", "b", "c"],
    );
    assert.deepEqual(await storage.getTrace("missing"), []);
  });

  test("traces are listed by page, of one entity or of one type", async () => {
    const of = (id: string, type: "agent" | "workflow") => ({ attributes: { "entity.id": id, "entity.type": type } });
    await storage.addSpan(span("t1", "a", 1, of("one", "agent")));
    await storage.addSpan(span("t1", "b", 2));
    await storage.addSpan(span("t2", "c", 3, of("two", "agent")));
    await storage.addSpan(span("t3", "d", 4, of("flow", "workflow")));

    assert.deepEqual(await storage.listTraces(), ["t3", "t2", "t1"]);
    assert.deepEqual(await storage.listTraces(1, 1), ["t2"]);
    assert.deepEqual(await storage.listTraces(-1, -1), ["t3", "t2", "t1"]);
    assert.deepEqual(await storage.listTraces(1, 2 ** 40), []);
    assert.deepEqual(await storage.listTraces(10, 0, { entityId: "one" }), ["t1"]);
    assert.deepEqual(await storage.listTraces(10, 0, { entityType: "agent" }), ["t2", "t1"]);
    assert.deepEqual(await storage.listTraces(10, 0, { entityId: "none" }), []);
  });

  test("old ones are deleted and counted, or all", async () => {
    for (const offset of [0, 10, 20]) {
      await storage.addSpan(span("t", `s${offset}`, offset));
    }

    assert.equal(await storage.deleteOldSpans(BEGIN + 20), 2);
    assert.equal(await storage.deleteOldSpans(BEGIN + 20), 0);
    assert.deepEqual(
      (await storage.getTrace("t")).map(({ spanId }) => spanId),
      ["s20"],
    );
    await storage.clear();
    assert.deepEqual(await storage.listTraces(), []);
  });
});

describe("logs", () => {
  const hrTime = (offset: number) => [(BEGIN + offset) / 1_000, 0];
  const log = (body: unknown, offset: number, more: object = {}) => ({ hrTime: hrTime(offset * 1_000), body, ...more });
  const of = (traceId: string, spanId: string) => ({ spanContext: { traceId, spanId, traceFlags: 1 } });

  beforeEach(async () => {
    await storage.saveLogRecord(
      log("first thing", 0, { ...of("t", "a"), severityNumber: 9, severityText: "INFO", attributes: { k: 1 } }),
    );
    await storage.saveLogRecord(
      log({ said: "second thing" }, 1, { ...of("t", "b"), severityNumber: 17, severityText: "ERROR" }),
    );
    await storage.saveLogRecord(log("third", 2, { instrumentationScope: { name: "lib" } }));
  });

  const bodies = (logs: { body: unknown }[]) => logs.map(({ body }) => body);

  test("they come back by trace and by span", async () => {
    const [first, ...others] = await storage.getLogsByTraceId("t");

    assert.deepEqual(bodies(others), [{ said: "second thing" }]);
    assert.deepEqual(
      [first?.body, first?.timestamp, first?.severityText, first?.attributes, first?.traceId, first?.spanId],
      ["first thing", at(0), "INFO", { k: 1 }, "t", "a"],
    );
    assert.deepEqual(bodies(await storage.getLogsBySpanId("b")), [{ said: "second thing" }]);
    assert.deepEqual(await storage.getLogsByTraceId("missing"), []);
  });

  test("of a body, attributes and a severity that are too long the beginning is kept", async () => {
    const long = "é".repeat(1 << 20);
    await storage.saveLogRecord(log(long, 3, { ...of("l", "a"), attributes: { long, k: 1 } }));
    await storage.saveLogRecord(log({ long }, 4, { ...of("l", "a"), severityText: "s".repeat(100) }));

    const [first, second] = await storage.getLogsByTraceId("l");

    assert.match(String(first?.body), /^é{8000,} … \(2,097,152 bytes\)$/);
    assert.match(String(first?.attributes?.["long"]), /^é{8000,} … \(2,097,152 bytes\)$/);
    assert.equal(first?.attributes?.["k"], 1);
    assert.match(String(second?.body), /^\{"long":"é{8000,} … \(2,097,163 bytes\)$/);
    assert.match(second?.severityText ?? "", /^s+ … \(100 bytes\)$/);
  });

  test("a log whose user's id is longer than one may be is kept", async () => {
    const attributes = { "user.id": "u".repeat(513) };
    await storage.saveLogRecord(log("said", 5, { ...of("u", "a"), attributes }));

    const [found] = await storage.getLogsByTraceId("u");

    assert.deepEqual(found?.attributes, attributes);
  });

  test("an empty id is none: it has no logs and no spans", async () => {
    assert.deepEqual(await storage.getLogsByTraceId(""), []);
    assert.deepEqual(await storage.getLogsBySpanId(""), []);
    assert.deepEqual(await storage.getTrace(""), []);
    assert.equal(await storage.getSpan(""), null);
    await storage.updateSpan("", { name: "x" });
  });

  test("they are filtered by each field", async () => {
    const found = async (filter: Parameters<typeof storage.queryLogs>[0]) => bodies(await storage.queryLogs(filter));
    const [first, second, third] = ["first thing", { said: "second thing" }, "third"];

    assert.deepEqual(await found({}), [first, second, third]);
    assert.deepEqual(await found({ limit: 2 }), [second, third]);
    assert.deepEqual(await found({ limit: 1, bodyContains: "thing" }), [second]);
    assert.deepEqual(await found({ limit: 3 }), [first, second, third]);
    assert.deepEqual(await found({ limit: -1 }), [first, second, third]);
    assert.deepEqual(await found({ severityNumber: 17 }), [second]);
    assert.deepEqual(await found({ severityText: "INFO" }), [first]);
    assert.deepEqual(await found({ startTimeMin: BEGIN + 1_000, startTimeMax: BEGIN + 2_000 }), [second, third]);
    assert.deepEqual(await found({ bodyContains: "thing" }), [first, second]);
    assert.deepEqual(await found({ instrumentationScope: "lib" }), [third]);
    assert.deepEqual(await found({ attributeKey: "k" }), [first]);
    assert.deepEqual(await found({ attributeKey: "" }), [first, second, third]);
    assert.deepEqual(await found({ attributeKey: "toString" }), []);
    assert.deepEqual(await found({ attributeKey: "k", attributeValue: 2 }), []);
    assert.deepEqual(await found({ traceId: "t", spanId: "a" }), [first]);
  });

  test("old ones are deleted and counted", async () => {
    assert.equal(await storage.deleteOldLogs(-8.64e15), 0);
    assert.equal((await storage.queryLogs({ startTimeMin: -8.64e15, startTimeMax: 8.64e15 })).length, 3);
    assert.equal(await storage.deleteOldLogs(BEGIN + 2_000), 2);
    assert.deepEqual(bodies(await storage.queryLogs({})), ["third"]);
    await storage.clear();
    assert.deepEqual(await storage.queryLogs({}), []);
  });
});

test("what a turn of an agent did is found, in another tenant than its memory", async () => {
  const observability = createVoltAgentObservability({ storage: new RemoraObservabilityAdapter(fresh()) });
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  const answer = { content: [{ type: "text", text: "Sure." }], finishReason: { unified: "stop" }, usage, warnings: [] };
  const model = new MockLanguageModelV3({ doGenerate: async () => answer as never });
  const memory = new RemoraMemory(options);
  const agent = new Agent({ name: "guide", instructions: "Guide.", model, memory, observability });

  await agent.generateText("Hello?", { memory: { userId: "u", conversationId: "c" } });
  await observability.shutdown();

  const traces = observability.getStorage();
  const [traceId = ""] = await traces.listTraces(10, 0, { entityId: "guide" });
  const names = (await traces.getTrace(traceId)).map(({ name }) => name);
  assert.ok(names.length >= 2, names.join());
  assert.deepEqual(await storage.listTraces(), []);
  assert.equal(new RemoraObservabilityAdapter(options).getInfo().persistent, true);
});

test("closing waits for what VoltAgent has not waited for", async () => {
  const numbers = [...Array(20).keys()];
  const writes = numbers.flatMap((number) => [
    storage.addSpan(span("t", `s${number}`)),
    storage.updateSpan(`s${number}`, { endTime: at(1) }),
    storage.saveLogRecord({ hrTime: [BEGIN / 1_000, number], body: number }),
  ]);

  await storage.close();

  await Promise.all(writes);
  const kept = new RemoraObservabilityAdapter(options);
  assert.equal((await kept.getTrace("t")).filter(({ endTime }) => endTime === at(1)).length, 20);
  assert.equal((await kept.queryLogs({})).length, 20);
});
