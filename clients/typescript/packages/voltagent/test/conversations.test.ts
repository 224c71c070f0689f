// Conversations, steps and working memory of RemoraMemoryAdapter.

import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import {
  type Conversation,
  ConversationAlreadyExistsError,
  ConversationNotFoundError,
  type ConversationStepRecord,
  type CreateConversationInput,
  Memory,
} from "@voltagent/core";
import { z } from "zod";
import { RemoraMemoryAdapter } from "../src/index.js";
import { type Fresh, ids, said, server, tick } from "./fresh.js";

const { fresh } = server();
let options: Fresh;
let storage: RemoraMemoryAdapter;

beforeEach(() => {
  options = fresh();
  storage = new RemoraMemoryAdapter(options);
});

function lenient(): RemoraMemoryAdapter {
  return new RemoraMemoryAdapter({ ...options, strict: false });
}

async function created(id: string, more: Partial<CreateConversationInput> = {}): Promise<Conversation> {
  return storage.createConversation({ id, userId: "u", resourceId: "r", title: id, metadata: {}, ...more });
}

describe("one conversation", () => {
  test("it comes back as it was created, with times in ISO 8601", async () => {
    const input = { id: "c", userId: "u", resourceId: "r", title: "T", metadata: { a: { b: [1, null, "x"] } } };

    const conversation = await storage.createConversation(input);

    const { createdAt, updatedAt, ...rest } = conversation;
    assert.deepEqual(rest, input);
    assert.equal(createdAt, updatedAt);
    assert.equal(createdAt, new Date(createdAt).toISOString());
    assert.deepEqual(await storage.getConversation("c"), conversation);
  });

  test("what the caller changes afterwards is not stored", async () => {
    const metadata = { list: [1] };
    const conversation = await created("c", { metadata });

    metadata.list.push(2);
    (conversation.metadata as typeof metadata).list.push(3);

    assert.deepEqual((await storage.getConversation("c"))?.metadata, { list: [1] });
  });

  test("an id that is taken is VoltAgent's error, also among writers at once", async () => {
    await created("c");

    await assert.rejects(created("c"), ConversationAlreadyExistsError);
    const tried = await Promise.allSettled(Array.from({ length: 10 }, () => created("d")));
    assert.equal(tried.filter(({ status }) => status === "fulfilled").length, 1);
  });

  test("who is told that an id is taken finds the conversation", async () => {
    for (let number = 0; number < 50; number++) {
      const id = `c${number}`;
      const createOrGet = () => created(id).catch(() => storage.getConversation(id));

      const found = await Promise.all([createOrGet(), createOrGet(), createOrGet()]);

      assert.deepEqual(ids(found.filter((conversation) => conversation !== null)), [id, id, id]);
    }
  });

  test("a missing one is null", async () => {
    assert.equal(await storage.getConversation("missing"), null);
  });

  test("an update replaces what it names: metadata as a whole", async () => {
    const before = await created("c", { metadata: { a: 1, b: 2 } });
    await tick();

    const updated = await storage.updateConversation("c", { title: "New", metadata: { c: 3 } });

    const { updatedAt, ...rest } = updated;
    assert.deepEqual({ ...rest, updatedAt: before.updatedAt }, { ...before, title: "New", metadata: { c: 3 } });
    assert.ok(updatedAt > before.updatedAt);
    assert.deepEqual(await storage.getConversation("c"), updated);
  });

  test("an empty update sets the time of the update; the owner stays", async () => {
    const before = await created("c");
    await tick();

    const touched = await storage.updateConversation("c", {});
    const given = await storage.updateConversation("c", { userId: "thief" });

    assert.ok(touched.updatedAt > before.updatedAt);
    assert.equal(given.userId, "u");
  });

  test("updating or deleting a missing one is VoltAgent's error", async () => {
    await assert.rejects(storage.updateConversation("missing", { title: "x" }), ConversationNotFoundError);
    await assert.rejects(storage.deleteConversation("missing"), ConversationNotFoundError);
  });

  test("deleting it deletes the messages of all users", async () => {
    await created("c");
    await storage.addMessage(said("a"), "u", "c");
    await storage.addMessage(said("b"), "v", "c");

    await storage.deleteConversation("c");

    assert.equal(await storage.getConversation("c"), null);
    assert.deepEqual([await storage.getMessages("u", "c"), await storage.getMessages("v", "c")], [[], []]);
  });

  test("nobody else changes it if the owner is expected", async () => {
    const before = await created("c");
    const stranger = { expectedUserId: "v" };

    await assert.rejects(storage.updateConversation("c", { title: "x" }, stranger), ConversationNotFoundError);
    await assert.rejects(storage.deleteConversation("c", stranger), ConversationNotFoundError);

    await assert.rejects(storage.deleteConversation("c", { expectedUserId: "" }), ConversationNotFoundError);

    assert.deepEqual(await storage.getConversation("c"), before);
    await storage.deleteConversation("c", { expectedUserId: "u" });
    assert.equal(await storage.getConversation("c"), null);
  });
});

describe("lists of conversations", () => {
  beforeEach(async () => {
    for (const [id, more] of [
      ["one", { title: "b" }],
      ["two", { userId: "v", title: "C" }],
      ["three", { resourceId: "s", title: "a" }],
    ] as const) {
      await created(id, more);
      await tick();
    }
    await storage.updateConversation("one", {});
  });

  test("those of a resource come with the last updated first", async () => {
    assert.deepEqual(ids(await storage.getConversations("r")), ["one", "two"]);
    assert.deepEqual(await storage.getConversations("none"), []);
    assert.deepEqual(await storage.getConversations(""), []);
    await created("four", { resourceId: "" });
    assert.deepEqual(ids(await storage.getConversations("")), ["four"]);
  });

  test("those of a user", async () => {
    assert.deepEqual(ids(await storage.getConversationsByUserId("u")), ["one", "three"]);
    assert.deepEqual(ids(await storage.getConversationsByUserId("u", { resourceId: "s" })), ["three"]);
    assert.deepEqual(await storage.getConversationsByUserId("nobody"), []);
    assert.deepEqual(await storage.getConversationsByUserId(""), []);
  });

  test("they are ordered by each field, in both directions", async () => {
    const orders = {
      created_at: ["one", "two", "three"],
      updated_at: ["two", "three", "one"],
      title: ["three", "one", "two"],
    };
    for (const [orderBy, expected] of Object.entries(orders) as [keyof typeof orders, string[]][]) {
      const ascending = await storage.queryConversations({ orderBy, orderDirection: "ASC" });
      const descending = await storage.queryConversations({ orderBy, orderDirection: "DESC" });
      assert.deepEqual(ids(ascending), expected);
      assert.deepEqual(ids(descending), expected.toReversed());
    }
  });

  test("without an order, a strict adapter goes by updates and a lenient one by creation, newest first", async () => {
    assert.deepEqual(ids(await storage.queryConversations({})), ["one", "three", "two"]);
    assert.deepEqual(ids(await lenient().queryConversations({})), ["three", "two", "one"]);
  });

  test("without a direction, a strict adapter descends and a lenient one ascends", async () => {
    assert.deepEqual(ids(await storage.queryConversations({ orderBy: "title" })), ["two", "one", "three"]);
    assert.deepEqual(ids(await lenient().queryConversations({ orderBy: "title" })), ["three", "one", "two"]);
  });

  test("an order that is none is refused, and reaches no database", async () => {
    for (const orderBy of ["(select 1/0)", "toString"] as unknown as "title"[]) {
      const error = {
        name: "TypeError",
        message: `orderBy is "${orderBy}"; it must be one of created_at, updated_at, title`,
      };
      await assert.rejects(storage.queryConversations({ orderBy }), error);
    }
    const orderDirection = "; drop" as "ASC";
    await assert.rejects(storage.queryConversations({ orderDirection }), /must be one of ASC, DESC$/);
  });

  test("pages are cut by limit and offset, and an offset needs no limit", async () => {
    const order = { orderBy: "created_at", orderDirection: "ASC" } as const;

    assert.deepEqual(ids(await storage.queryConversations({ ...order, limit: 2 })), ["one", "two"]);
    assert.deepEqual(ids(await storage.queryConversations({ ...order, limit: 2, offset: 2 })), ["three"]);
    assert.deepEqual(ids(await storage.queryConversations({ ...order, offset: 1 })), ["two", "three"]);
    assert.deepEqual(await storage.queryConversations({ ...order, offset: 9 }), []);
    assert.deepEqual(await storage.queryConversations({ ...order, offset: 2 ** 40 }), []);
  });

  test("they are counted without limit and offset", async () => {
    assert.equal(await storage.countConversations({}), 3);
    assert.equal(await storage.countConversations({ userId: "u", limit: 1, offset: 1 }), 2);
    assert.equal(await storage.countConversations({ userId: "u", resourceId: "s" }), 1);
    assert.equal(await storage.countConversations({ userId: "nobody" }), 0);
  });
});

test("a strict adapter lists all conversations, a lenient one 50 unless it is told otherwise", async () => {
  await Promise.all(Array.from({ length: 60 }, (_, place) => created(`c${place}`)));

  assert.equal((await storage.queryConversations({})).length, 60);
  assert.equal((await lenient().queryConversations({})).length, 50);
  assert.equal((await lenient().queryConversations({ limit: 55 })).length, 55);
});

describe("steps", () => {
  const step = (id: string, stepIndex: number, more: Partial<ConversationStepRecord> = {}): ConversationStepRecord => ({
    id,
    conversationId: "c",
    userId: "u",
    agentId: "agent",
    operationId: "o",
    stepIndex,
    type: "text",
    role: "assistant",
    createdAt: "2026-01-02T03:04:05.678Z",
    ...more,
  });

  beforeEach(async () => {
    await created("c");
  });

  test("every field comes back", async () => {
    const called = step("a", 0, {
      type: "tool_call",
      agentName: "Agent",
      arguments: { q: [1, { deep: null }] },
      usage: { promptTokens: 1, completionTokens: 2, totalTokens: 3 },
      subAgentId: "sub",
      subAgentName: "Sub",
    });
    const answered = step("b", 1, { type: "tool_result", role: "tool", result: null });
    const text = step("d", 2, { content: "done" });

    await storage.saveConversationSteps([called, answered, text]);

    assert.deepEqual(await storage.getConversationSteps("u", "c"), [called, answered, text]);
  });

  test("they are ordered by index, and saving a known id replaces it; of two in one list the last wins", async () => {
    await storage.saveConversationSteps([step("b", 1, { content: "old" }), step("a", 0, { content: "" })]);
    await storage.saveConversationSteps([step("b", 1, { content: "older" }), step("b", 1, { content: "new" })]);

    const steps = await storage.getConversationSteps("u", "c");

    assert.deepEqual(
      steps.map(({ id, content }) => [id, content]),
      [
        ["a", ""],
        ["b", "new"],
      ],
    );
  });

  test("the limit keeps the last, of one operation if it is named", async () => {
    await storage.saveConversationSteps([0, 1, 2, 3].map((n) => step(`s${n}`, n, { operationId: n < 2 ? "o" : "p" })));

    assert.deepEqual(ids(await storage.getConversationSteps("u", "c", { limit: 2 })), ["s2", "s3"]);
    assert.equal((await storage.getConversationSteps("u", "c", { limit: Number.POSITIVE_INFINITY })).length, 4);
    assert.deepEqual(ids(await storage.getConversationSteps("u", "c", { operationId: "o" })), ["s0", "s1"]);
    assert.deepEqual(ids(await storage.getConversationSteps("u", "c", { operationId: "o", limit: 1 })), ["s1"]);
    assert.deepEqual(await storage.getConversationSteps("v", "c"), []);
    assert.deepEqual(await storage.getConversationSteps("u", "missing"), []);
  });

  test("those of a missing conversation are VoltAgent's error, or create it for a lenient adapter", async () => {
    const elsewhere = [step("a", 0, { conversationId: "new" })];

    await assert.rejects(storage.saveConversationSteps(elsewhere), ConversationNotFoundError);
    await lenient().saveConversationSteps(elsewhere);

    assert.deepEqual(ids(await storage.getConversationSteps("u", "new")), ["a"]);
    await storage.saveConversationSteps([]);
  });

  test("of what is too long the beginning is kept, and the other steps of the turn are stored", async () => {
    const long = "é".repeat(1 << 20);
    const said = step("a", 0, { content: long, agentName: long, subAgentName: "é".repeat(256) });
    const called = step("b", 1, { type: "tool_call", arguments: { long, k: [1] } });
    const usage = { totalTokens: 5, raw: long } as unknown as NonNullable<ConversationStepRecord["usage"]>;
    const answered = step("c", 2, { type: "tool_result", result: { rows: [long], n: 2 }, usage });
    const listed = step("d", 3, { type: "tool_result", result: [long, 2] as unknown as Record<string, unknown> });
    const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, place) => [`m${place}`, `${place}`.repeat(200)]));
    const scattered = step("e", 4, { type: "tool_call", arguments: many });

    await storage.saveConversationSteps([
      said,
      called,
      answered,
      listed,
      scattered,
      step("f", 5, { content: "short" }),
    ]);

    const [a, b, c, d, e, f] = await storage.getConversationSteps("u", "c");
    const cut = /^é{8000,} … \(2,097,\d{3} bytes\)$/;
    const listCut = /^\["é{8000,} … \(2,097,\d{3} bytes\)$/;
    assert.match(String(a?.content), /^é{500000,} … \(2,097,152 bytes\)$/);
    assert.match(String(a?.agentName), /^é{200,} … \(2,097,152 bytes\)$/);
    assert.equal(a?.subAgentName, said.subAgentName);
    assert.match(String(b?.arguments?.["long"]), cut);
    assert.deepEqual(b?.arguments?.["k"], [1]);
    assert.match(String(c?.result?.["rows"]), listCut);
    assert.match(String((c?.usage as unknown as { raw: string }).raw), cut);
    assert.deepEqual([c?.result?.["n"], c?.usage?.totalTokens], [2, 5]);
    assert.match(String(d?.result), listCut);
    const members = Object.entries(e?.arguments ?? {});
    assert.deepEqual([members.length, members[5]], [3_000, ["m5", "5".repeat(200)]]);
    assert.match(String(members.at(-1)?.[1]), /^(2999)+\d* … \(800 bytes\)$/);
    assert.equal(f?.content, "short");
  });

  test("one of another type than VoltAgent's is kept beside the others, and only a text is a type", async () => {
    const types = ["text", "reasoning", "", "toString", "étape 🚂", "t".repeat(64)] as "text"[];
    const steps = types.map((type, place) =>
      step(`s${place}`, place, { type, role: "narrator" as "user", content: "c" }),
    );

    await storage.saveConversationSteps(steps);

    assert.deepEqual(await storage.getConversationSteps("u", "c"), steps);
    for (const type of [undefined, 5] as unknown as "text"[]) {
      const error = {
        name: "TypeError",
        message: `type is ${type}; it must be a text, such as text, tool_call, tool_result`,
      };
      await assert.rejects(storage.saveConversationSteps([step("a", 0, { type })]), error);
    }
  });
});

describe("working memory", () => {
  const ofConversation = { scope: "conversation", conversationId: "c" } as const;
  const ofUser = { scope: "user", userId: "u" } as const;

  beforeEach(async () => {
    await created("c");
  });

  test("a conversation and a user have one each", async () => {
    await storage.setWorkingMemory({ ...ofConversation, content: "# Trip" });
    await storage.setWorkingMemory({ ...ofUser, content: '{"name":"Ann"}' });

    assert.equal(await storage.getWorkingMemory({ ...ofConversation, userId: "u" }), "# Trip");
    assert.equal(await storage.getWorkingMemory({ ...ofUser, conversationId: "c" }), '{"name":"Ann"}');
  });

  test("it is replaced, may be empty or begin with a mark of its byte order, and is null once deleted", async () => {
    for (const content of ["one", "two", "\ufeffthree", ""]) {
      await storage.setWorkingMemory({ ...ofConversation, content });
      assert.equal(await storage.getWorkingMemory(ofConversation), content);
    }

    await storage.deleteWorkingMemory(ofConversation);
    await storage.deleteWorkingMemory(ofConversation);

    assert.equal(await storage.getWorkingMemory(ofConversation), null);
  });

  test("there is none of what was never set, is missing or has no owner", async () => {
    assert.equal(await storage.getWorkingMemory(ofUser), null);
    assert.equal(await storage.getWorkingMemory({ ...ofConversation, conversationId: "missing" }), null);
    assert.equal(await storage.getWorkingMemory({ scope: "user" }), null);
    await storage.setWorkingMemory({ scope: "conversation", content: "nobody's" });
    await storage.deleteWorkingMemory({ ...ofConversation, conversationId: "missing" });
  });

  test("of a missing conversation, setting it is VoltAgent's error, or does nothing for a lenient adapter", async () => {
    const missing = { ...ofConversation, conversationId: "missing", content: "x" };

    await assert.rejects(storage.setWorkingMemory(missing), ConversationNotFoundError);
    await lenient().setWorkingMemory(missing);

    assert.equal(await storage.getWorkingMemory(missing), null);
  });

  test("VoltAgent's Memory replaces it, adds to it, and refuses what is not of its schema", async () => {
    const schema = z.object({
      tags: z.array(z.string()).optional(),
      city: z.string().optional(),
      n: z.number().max(9),
    });
    const notes = new Memory({ storage, workingMemory: { enabled: true, template: "# Notes" } });
    const facts = new Memory({ storage, workingMemory: { enabled: true, scope: "user", schema } });
    const owner = { conversationId: "c", userId: "u" };
    const added = { options: { mode: "append" } } as const;

    await notes.updateWorkingMemory({ ...owner, content: "# One" });
    await notes.updateWorkingMemory({ ...owner, content: "# Two", ...added });
    await facts.updateWorkingMemory({ ...owner, content: { tags: ["a", "b"], city: "Linz", n: 5 } });
    await facts.updateWorkingMemory({ ...owner, content: { tags: ["b", "c"], n: 6 }, ...added });
    await assert.rejects(facts.updateWorkingMemory({ ...owner, content: { n: 15 }, ...added }), /working memory/);

    assert.equal(await notes.getWorkingMemory(owner), "# One\n\n# Two");
    const known = JSON.parse((await facts.getWorkingMemory(owner)) ?? "") as unknown;
    assert.deepEqual(known, { tags: ["a", "b", "c"], city: "Linz", n: 6 });
    await facts.updateWorkingMemory({ ...owner, content: { n: 1 } });
    assert.deepEqual(JSON.parse((await facts.getWorkingMemory(owner)) ?? ""), { n: 1 });
    await facts.clearWorkingMemory(owner);
    assert.equal(await facts.getWorkingMemory(owner), null);
    assert.equal(await notes.getWorkingMemory(owner), "# One\n\n# Two");
  });

  test("what is no text is refused, and nothing is stored", async () => {
    for (const content of [{}, 5, null, undefined] as unknown as string[]) {
      const message = `content is ${JSON.stringify(content)}; it must be a text`;
      await assert.rejects(storage.setWorkingMemory({ ...ofConversation, content }), { name: "TypeError", message });
    }

    assert.equal(await storage.getWorkingMemory(ofConversation), null);
  });

  test("it stays when the metadata of its conversation is replaced", async () => {
    await storage.setWorkingMemory({ ...ofConversation, content: "kept" });

    await storage.updateConversation("c", { metadata: {} });

    assert.equal(await storage.getWorkingMemory(ofConversation), "kept");
  });
});
