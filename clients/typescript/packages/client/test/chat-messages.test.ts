// What a model is given of a context, beside what the Python client gives it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { afterEach, beforeEach, describe, test } from "node:test";
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  type AssembleContextResponse,
  AssembleContextResponseSchema,
  Merge,
  type MessageSchema,
  Rendering,
  Section,
} from "../src/generated/v1.js";
import { chatMessages, type ContextOptions, type Conversation, Remora } from "../src/index.js";
import { server } from "./fresh.js";
import { ENVIRONMENT, PYTHON } from "./server.js";

type Given = MessageInitShape<typeof MessageSchema>;

/** Prints what the Python client makes of the contexts that come in, each in base64 on a line of its own. */
const ORACLE = `
import base64, json, sys
from remora.context import Context
from remora.v1.memory_service_pb2 import AssembleContextResponse
contexts = [AssembleContextResponse.FromString(base64.b64decode(line)) for line in sys.stdin]
print(json.dumps([Context.from_proto(context, None).messages for context in contexts]))
`;

function ofPython(contexts: readonly AssembleContextResponse[]): unknown[] {
  const lines = contexts.map((context) =>
    Buffer.from(toBinary(AssembleContextResponseSchema, context)).toString("base64"),
  );
  return JSON.parse(
    execFileSync(PYTHON, ["-c", ORACLE], { input: lines.join("\n"), env: ENVIRONMENT, encoding: "utf8" }),
  ) as unknown[];
}

const bytes = (text: string) => new TextEncoder().encode(text);
const json = (value: unknown) => bytes(JSON.stringify(value));

const CALL = { id: "call-1", name: "find_train", arguments: bytes('{"to": "Lisbon"}') };
const SECOND = { id: "call-2", name: "find_boat", arguments: bytes("") };

const { fresh } = server();
let remora: Remora;

beforeEach(() => {
  remora = new Remora(fresh());
});
afterEach(() => remora.close());

async function trip(): Promise<Conversation> {
  const chat = remora.conversation("trip", { userId: "sarah" });
  await chat.append([
    { role: "system", text: "Be brief." },
    { role: "user", name: "Sarah", text: "Which train goes to Lisbon?" },
    { role: "assistant", toolCalls: [CALL, SECOND] },
    { role: "tool", text: "The night train.", toolResultIds: ["call-1"] },
    { role: "tool", text: "None.", toolResultIds: ["call-2"] },
    { role: "assistant", text: "The night train to Lisbon." },
    { role: "user", text: "My sister Ana lives in Lisbon." },
    { role: "assistant", text: "Let me see.", toolCalls: [{ ...CALL, id: "call-3" }] },
    { role: "tool", text: "Two beds are free.", toolResultIds: ["call-3"] },
    { role: "assistant", text: "There is room in the night train." },
    { role: "user", text: "Then which train to Lisbon?" },
  ]);
  await remora.memory.setStaticFacts({ facts: [{ content: "Offices close at 6." }] });
  await remora.facts("sarah").add({ subject: "user", predicate: "lives in", object: "Bergen" });
  await remora.workingMemory("sarah").set("# Plans\nLisbon in May");
  return chat;
}

describe("the messages of a context", () => {
  test("are those of the Python client, for all renderings and merges", async () => {
    const chat = await trip();
    const known: ContextOptions = { facts: {}, staticFacts: true, workingMemory: true };
    const contexts: AssembleContextResponse[] = [];
    for (const rendering of [Rendering.MESSAGES, Rendering.TRANSCRIPT, Rendering.SYSTEM_PROMPT]) {
      for (const merge of [Merge.EARLIER, Merge.APPEND, Merge.PREPEND, Merge.INTERLEAVE]) {
        for (const more of [{}, known, { ...known, system: "Be kind." }, { recall: false }]) {
          const how = { rendering, merge, recentMessages: 1, includeUnrelated: true };
          contexts.push(await chat.context(2_000, { query: "train to Lisbon", ...how, ...more }));
        }
      }
    }

    const sections = new Set(contexts.flatMap(({ items }) => items.map(({ section }) => section)));
    assert.deepEqual([...sections].sort(), [
      ...[Section.RECENT, Section.RECALLED, Section.SYSTEM, Section.STATIC_FACTS, Section.FACTS],
      Section.WORKING_MEMORY,
    ]);
    assert.ok(
      contexts.some(({ earlier, items }) => !earlier && items.some((item) => item.section === Section.RECALLED)),
    );
    assert.deepEqual(contexts.map(chatMessages), ofPython(contexts));
  });

  test("have what is remembered once, in the place of its items", async () => {
    const chat = await trip();
    const known = { facts: {}, staticFacts: true, query: "train to Lisbon", recentMessages: 1 };

    const context = await chat.context(2_000, known);
    const inSystem = await chat.context(2_000, { ...known, rendering: Rendering.SYSTEM_PROMPT });

    const newest = { role: "user", content: "Then which train to Lisbon?" };
    assert.deepEqual(chatMessages(context), [
      { role: "system", content: "Be brief." },
      { role: "user", content: context.memory?.text },
      { role: "user", content: context.earlier?.text },
      newest,
    ]);
    assert.deepEqual(chatMessages(inSystem), [{ role: "system", content: inSystem.memory?.text }, newest]);
  });

  test("have tool calls and the results of tools", async () => {
    const context = await (await trip()).context(2_000, { recall: false });

    assert.deepEqual(chatMessages(context).slice(1, 4), [
      { role: "user", content: "Which train goes to Lisbon?", name: "Sarah" },
      {
        role: "assistant",
        content: null,
        tool_calls: [
          { id: "call-1", type: "function", function: { name: "find_train", arguments: '{"to": "Lisbon"}' } },
          { id: "call-2", type: "function", function: { name: "find_boat", arguments: "" } },
        ],
      },
      { role: "tool", content: "The night train.", tool_call_id: "call-1" },
    ]);
  });

  test("are one of the user for a transcript", async () => {
    const context = await (await trip()).context(2_000, { rendering: Rendering.TRANSCRIPT });

    assert.deepEqual(chatMessages(context), [{ role: "user", content: context.text }]);
  });

  test("are those of a replay, too", async () => {
    const context = await (await trip()).context(2_000);
    const { reply } = await remora.receipts.replay(context.receiptId);

    assert.equal(reply.case, "context");
    assert.deepEqual(chatMessages(reply.value), chatMessages(context));
  });

  const call = { id: "call-1", type: "function", function: { name: "find_train", arguments: '{"to": "Lisbon"}' } };
  const image = { type: "image_url", image_url: { url: "https://example.org/map.png", detail: "low" } };
  const asked = { role: "user", content: [{ type: "text", text: "What is" }, image, { type: "text", text: "this?" }] };
  const responses = (id: string, text = ""): Given => ({
    ...{ role: "assistant", text, toolCalls: [{ ...CALL, id }] },
    parts: json({ type: "function_call", call_id: id, name: "find_train", arguments: '{"to": "Lisbon"}' }),
  });
  const result = (id: string): Given => ({ role: "tool", text: "At nine.", toolResultIds: [id] });
  const odd: Record<string, Given | Given[]> = {
    "that calls tools item by item": [responses("a"), responses("b"), result("a"), result("b"), responses("c")],
    "that calls tools beside one of its fields alone": [responses("a"), { role: "assistant", toolCalls: [CALL] }],
    "of nothing": { role: "user" },
    "of a role of one's own": { role: "narrator", name: "Ana", text: "Later." },
    "with the results of several calls": { role: "tool", text: "Both.", toolResultIds: ["call-1", "call-2"] },
    "of a user with results": { role: "user", text: "Done.", toolResultIds: ["call-1"] },
    "with results and calls": { role: "assistant", text: "x", toolResultIds: ["call-1"], toolCalls: [SECOND] },
    "of a tool without a call": { role: "tool", text: "Nobody asked." },
    "with arguments that are no UTF-8": {
      role: "assistant",
      toolCalls: [{ ...CALL, arguments: new Uint8Array([0xef, 0xbb, 0xbf, 0x7b, 0xff, 0xe2, 0x82, 0x7d]) }],
    },
    "with an image": { role: "user", text: "What is\nthis?", parts: json(asked) },
    "with keys of a provider": {
      role: "assistant",
      text: "Lisbon.",
      parts: json({ role: "assistant", content: "Lisbon.", reasoning_content: "It is far.", annotations: [] }),
    },
    "with a refusal": {
      role: "assistant",
      text: "I cannot.",
      parts: json({ role: "assistant", content: null, refusal: "I cannot." }),
    },
    "of a developer": { role: "system", text: "Be brief.", parts: json({ role: "developer", content: "Be brief." }) },
    "of nothing, as JSON": { role: "assistant", parts: json({ role: "assistant", content: null, refusal: null }) },
    "of audio": { role: "assistant", parts: json({ role: "assistant", content: null, audio: { id: "a" } }) },
    "with calls, as JSON": {
      role: "assistant",
      toolCalls: [CALL],
      parts: json({ role: "assistant", tool_calls: [{ ...call, index: 0 }] }),
    },
    "with a custom call": {
      role: "assistant",
      toolCalls: [{ id: "c", name: "run", arguments: bytes("ls") }],
      parts: json({
        role: "assistant",
        tool_calls: [{ id: "c", type: "custom", custom: { name: "run", input: "ls" } }],
      }),
    },
    "with a result of parts": {
      role: "tool",
      text: "one\ntwo",
      toolResultIds: ["call-1"],
      parts: json({
        ...{ role: "tool", tool_call_id: "call-1" },
        content: [
          { type: "text", text: "one" },
          { type: "text", text: "two" },
        ],
      }),
    },
    "whose parts say something else": { role: "user", text: "Now.", parts: json({ role: "user", content: "Then." }) },
    "whose parts are another's": {
      role: "assistant",
      text: "Let me see.",
      toolCalls: [{ ...CALL, arguments: bytes('{"to":"Lisbon"}') }],
      parts: json({
        role: "assistant",
        content: [
          { type: "text", text: "Let me see." },
          { type: "tool_use", id: "call-1", name: "find_train", input: { to: "Lisbon" } },
        ],
      }),
    },
    "whose parts are no JSON": { role: "user", text: "Now.", parts: bytes("{") },
    "whose parts are no object": { role: "user", text: "Now.", parts: json(["user", "Now."]) },
    "whose parts have no role": { role: "user", text: "Now.", parts: json({ type: "text", text: "Now." }) },
  };
  const contexts = Object.values(odd).map((messages) => {
    const items = [messages].flat().map((message) => ({ section: Section.RECENT, message }));
    return create(AssembleContextResponseSchema, { items });
  });
  let expected: unknown[] = [];
  for (const [place, what] of Object.keys(odd).entries()) {
    test(`are those of the Python client for a message ${what}`, () => {
      expected = expected.length === 0 ? ofPython(contexts) : expected;

      assert.deepEqual(chatMessages(contexts[place] ?? assert.fail()), expected[place]);
    });
  }

  test("are not those of a context that is still promised", () => {
    assert.throws(
      () => chatMessages(Promise.resolve() as never),
      /^WrongTypeError: context is Promise .*; it must be what context\(\) resolves to$/,
    );
  });
});
