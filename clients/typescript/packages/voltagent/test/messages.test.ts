// Messages of RemoraMemoryAdapter: VoltAgent's contract, and what its own databases do wrong.

import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { ConversationNotFoundError, StorageError } from "@voltagent/core";
import type { UIMessage } from "ai";
import { RemoraMemoryAdapter } from "../src/index.js";
import { ids, metadataOf, said, server, tick } from "./fresh.js";

const { fresh } = server();
let storage: RemoraMemoryAdapter;

async function conversation(id = "c", userId = "u"): Promise<void> {
  await storage.createConversation({ id, userId, resourceId: "agent", title: "Trip", metadata: {} });
}

function step(conversationId: string) {
  return {
    id: `step of ${conversationId}`,
    conversationId,
    userId: "u",
    agentId: "agent",
    operationId: "o",
    stepIndex: 0,
    type: "text",
    role: "assistant",
    content: "hm",
    createdAt: "2026-01-02T03:04:05.678Z",
  } as const;
}

beforeEach(async () => {
  storage = new RemoraMemoryAdapter(fresh());
  await conversation();
});

describe("adding messages", () => {
  test("what is no message is refused by its name, and nothing is stored", async () => {
    const part = [{ type: "text", text: "hi" }];
    for (const [given, told] of [
      [null, /^TypeError: message is null; it must be an object with id, role and parts$/],
      ["hi", /^TypeError: message is "hi"; it must be an object with /],
      [{ id: "a", role: "user", parts: "hi" }, /^TypeError: message.parts is "hi"; it must be an array$/],
      [{ id: 5, role: "user", parts: part }, /^StorageError: messages\[0\].id is 5; it must be a string$/],
      [{ id: "a", role: {}, parts: part }, /^StorageError: messages\[0\].role is \{\}; it must be a string$/],
    ] as const) {
      await assert.rejects(storage.addMessage(given as never, "u", "c"), told);
    }
    await assert.rejects(storage.addMessages(said("a", "hi") as never, "u", "c"), /^TypeError: messages is .*array$/);
    await assert.rejects(storage.deleteMessages("a" as never, "u", "c"), /^TypeError: messageIds is "a"; it must /);

    assert.deepEqual(await storage.getMessages("u", "c"), []);
  });

  test("a message comes back with its parts, its metadata and the time when it was stored", async () => {
    const parts = [
      { type: "text", text: "two\u{1F682} lines\n" },
      { type: "reasoning", text: "hm", providerMetadata: { openai: { itemId: "rs_1" } } },
      { type: "tool-look", toolCallId: "t", state: "output-available", input: { a: [1, null] }, output: { b: 0.1 } },
      { type: "file", mediaType: "image/png", url: "data:image/png;base64,AAEC" },
      { type: "data-x", data: { deep: [{ er: true }] } },
    ] as UIMessage["parts"];
    const earliest = Date.now();

    await storage.addMessage({ id: "m", role: "assistant", parts, metadata: { k: { v: 1 } } }, "u", "c");

    const [message] = await storage.getMessages("u", "c");
    assert.ok(message?.metadata?.createdAt instanceof Date);
    assert.ok(message.metadata.createdAt.getTime() >= earliest - 1);
    const { createdAt, ...metadata } = message.metadata;
    assert.deepEqual({ ...message, metadata }, { id: "m", role: "assistant", parts, metadata: { k: { v: 1 } } });
  });

  test("a message without metadata has an object with its time, and nothing of where it is stored", async () => {
    await storage.addMessage(said("m"), "u", "c");

    const [message] = await storage.getMessages("u", "c");

    assert.deepEqual(Object.keys(message ?? {}).sort(), ["id", "metadata", "parts", "role"]);
    assert.deepEqual(Object.keys(message?.metadata ?? {}), ["createdAt"]);
  });

  test("a known id replaces parts, role and metadata, and keeps its place and its time", async () => {
    await storage.addMessages([said("a"), said("b")], "u", "c");
    const [before] = await storage.getMessages("u", "c");
    await tick();

    await storage.addMessage({ ...said("a", "new", "assistant"), metadata: { again: true } }, "u", "c");

    const [first, second] = await storage.getMessages("u", "c");
    assert.deepEqual([first?.id, second?.id], ["a", "b"]);
    assert.deepEqual(first?.parts, [{ type: "text", text: "new" }]);
    assert.equal(first?.role, "assistant");
    assert.deepEqual(first?.metadata, { again: true, createdAt: before?.metadata?.createdAt });
  });

  test("the order of a list survives, also beyond what one request holds", async () => {
    const messages = Array.from({ length: 1_203 }, (_, place) => said(`m${place}`));

    await storage.addMessages(messages, "u", "c");

    assert.deepEqual(ids(await storage.getMessages("u", "c")), ids(messages));
  });

  test("large messages are sent in several requests", async () => {
    const messages = Array.from({ length: 6 }, (_, place) => said(`m${place}`, "x".repeat(700_000)));

    await storage.addMessages(messages, "u", "c");

    const found = await storage.getMessages("u", "c");
    assert.deepEqual(
      found.map(({ parts }) => parts),
      messages.map(({ parts }) => parts),
    );
  });

  test("an object inside itself does not stop a message", async () => {
    const metadata: Record<string, unknown> = { twice: [{}, {}] };
    metadata["self"] = metadata;

    await storage.addMessage({ ...said("m"), metadata }, "u", "c");

    const [message] = await storage.getMessages("u", "c");
    const { self, twice } = metadataOf(message);
    assert.deepEqual({ self, twice }, { self: "[Circular]", twice: [{}, {}] });
  });

  test("a whole number without bounds is stored as its digits", async () => {
    const message = { ...said("m"), metadata: { block: 12345678901234567890n, list: [1n, 2] } };

    await storage.addMessage(message, "u", "c");

    const { block, list } = metadataOf((await storage.getMessages("u", "c"))[0]);
    assert.deepEqual({ block, list }, { block: "12345678901234567890", list: ["1", 2] });
  });

  test("adding no messages does nothing", async () => {
    await storage.addMessages([], "u", "c");

    assert.deepEqual(await storage.getMessages("u", "c"), []);
  });

  test("a missing conversation is VoltAgent's error, or is created by a lenient adapter", async () => {
    const lenient = new RemoraMemoryAdapter({ ...fresh(), strict: false });

    await lenient.addMessage(said("m"), "u", "new");

    assert.deepEqual(ids(await lenient.getMessages("u", "new")), ["m"]);
    await assert.rejects(storage.addMessage(said("m"), "u", "new"), (error: unknown) => {
      assert.ok(error instanceof ConversationNotFoundError);
      assert.deepEqual(error.details, { conversationId: "new" });
      return true;
    });
  });

  test("what the server refuses is a StorageError with the reason and the field", async () => {
    await assert.rejects(storage.addMessage(said("m".repeat(600)), "u", "c"), (error: unknown) => {
      assert.ok(error instanceof StorageError);
      assert.equal(error.details?.["reason"], "INVALID_FIELD");
      return true;
    });
  });
});

describe("getting messages", () => {
  test("the limit takes the most recent ones, oldest first", async () => {
    await storage.addMessages(
      [..."abcdef"].map((id) => said(id)),
      "u",
      "c",
    );

    assert.deepEqual(ids(await storage.getMessages("u", "c", { limit: 3 })), ["d", "e", "f"]);
  });

  test("no limit, 0 and negative ones give all", async () => {
    await storage.addMessages([said("a"), said("b")], "u", "c");

    for (const options of [{}, { limit: 0 }, { limit: -1 }, { limit: 10 }, { limit: Number.MAX_SAFE_INTEGER }]) {
      assert.deepEqual(ids(await storage.getMessages("u", "c", options)), ["a", "b"]);
    }
  });

  test("a limit that is no whole number is cut, as slice does", async () => {
    await storage.addMessages([said("a"), said("b"), said("c")], "u", "c");

    assert.deepEqual(ids(await storage.getMessages("u", "c", { limit: 1.5 })), ["c"]);
    assert.equal((await storage.queryConversations({ limit: 1.5, offset: 0.5 })).length, 1);
    assert.deepEqual(await storage.queryWorkflowRuns({ limit: 1.5, offset: 0.5 }), []);
  });

  test("the limit counts what the roles leave; no roles are no filter", async () => {
    const roles = ["user", "assistant", "user", "system", "assistant"] as const;
    const messages = roles.map((role, place) => said(`${role}${place}`, "x", role));
    await storage.addMessages(messages, "u", "c");

    assert.deepEqual(ids(await storage.getMessages("u", "c", { roles: ["user"], limit: 1 })), ["user2"]);
    const both = await storage.getMessages("u", "c", { roles: ["user", "system"] });
    assert.deepEqual(ids(both), ["user0", "user2", "system3"]);
    assert.equal((await storage.getMessages("u", "c", { roles: [] })).length, 5);
  });

  test("before and after are exclusive in milliseconds, as VoltAgent sees times", async () => {
    for (const id of ["a", "b", "c"]) {
      await storage.addMessage(said(id), "u", "c");
      await tick();
    }
    const [, middle] = await storage.getMessages("u", "c");
    const time = middle?.metadata?.createdAt as Date;

    assert.deepEqual(ids(await storage.getMessages("u", "c", { before: time })), ["a"]);
    assert.deepEqual(ids(await storage.getMessages("u", "c", { after: time })), ["c"]);
    assert.deepEqual(await storage.getMessages("u", "c", { before: time, after: time }), []);
  });

  test("the first and the last Date there is are bounds, too", async () => {
    await storage.addMessage(said("a"), "u", "c");
    const [first, last] = [new Date(-8.64e15), new Date(8.64e15)];

    assert.deepEqual(ids(await storage.getMessages("u", "c", { after: first, before: last })), ["a"]);
    assert.deepEqual(await storage.getMessages("u", "c", { before: first }), []);
    assert.deepEqual(await storage.getMessages("u", "c", { after: last }), []);
    await assert.rejects(storage.getMessages("u", "c", { before: new Date("soon") }), RangeError);
  });

  test("only the user's own messages are shown", async () => {
    await storage.addMessage(said("mine"), "u", "c");

    assert.deepEqual(await storage.getMessages("other", "c"), []);
  });

  test("a missing conversation has no messages", async () => {
    assert.deepEqual(await storage.getMessages("u", "missing"), []);
  });

  test("each call gives copies of its own", async () => {
    await storage.addMessage({ ...said("m"), metadata: { list: [1] } }, "u", "c");

    const [first] = await storage.getMessages("u", "c");
    (metadataOf(first)["list"] as number[]).push(2);
    first?.parts.pop();

    const [second] = await storage.getMessages("u", "c");
    assert.deepEqual(metadataOf(second)["list"], [1]);
    assert.deepEqual(second?.parts, [{ type: "text", text: "m" }]);
  });

  test("what was given is not changed by the caller afterwards", async () => {
    const message = said("m");

    const adding = storage.addMessage(message, "u", "c");
    (message.parts[0] as { text: string }).text = "changed";
    await adding;

    const [stored] = await storage.getMessages("u", "c");
    assert.deepEqual(stored?.parts, [{ type: "text", text: "m" }]);
  });
});

describe("removing messages", () => {
  test("some are deleted by id; unknown ids, and none, do nothing", async () => {
    await storage.addMessages([said("a"), said("b"), said("c")], "u", "c");

    await storage.deleteMessages(["b", "unknown"], "u", "c");
    await storage.deleteMessages([], "u", "c");
    await storage.deleteMessages(["a"], "other", "c");
    await storage.deleteMessages(["a"], "u", "missing");

    assert.deepEqual(ids(await storage.getMessages("u", "c")), ["a", "c"]);
  });

  test("a conversation is cleared with its steps, and others stay", async () => {
    await conversation("d");
    await storage.addMessage(said("a"), "u", "c");
    await storage.addMessage(said("b"), "u", "d");
    await storage.saveConversationSteps([step("c"), step("d")]);

    await storage.clearMessages("u", "c");

    assert.deepEqual(await storage.getMessages("u", "c"), []);
    assert.deepEqual(await storage.getConversationSteps("u", "c"), []);
    assert.deepEqual(ids(await storage.getMessages("u", "d")), ["b"]);
    assert.equal((await storage.getConversationSteps("u", "d")).length, 1);
    assert.ok(await storage.getConversation("c"));
  });

  test("all conversations of a user are cleared, and nobody else's", async () => {
    await conversation("d");
    await storage.addMessage(said("a"), "u", "c");
    await storage.addMessage(said("b"), "u", "d");
    await storage.addMessage(said("x"), "v", "d");

    await storage.clearMessages("u");

    assert.deepEqual([await storage.getMessages("u", "c"), await storage.getMessages("u", "d")], [[], []]);
    assert.deepEqual(ids(await storage.getMessages("v", "d")), ["x"]);
  });

  test("clearing for an unknown user, or a missing conversation, does nothing", async () => {
    await storage.clearMessages("nobody");
    await storage.clearMessages("u", "missing");
  });

  test("who has no name sees, deletes and clears what was stored for nobody, and nothing else", async () => {
    await storage.addMessage(said("a"), "u", "c");
    await storage.addMessage(said("b"), "", "c");
    await storage.saveConversationSteps([step("c")]);

    for (const nameless of ["", undefined as unknown as string]) {
      assert.deepEqual(ids(await storage.getMessages(nameless, "c")), ["b"]);
      assert.deepEqual(await storage.getConversationSteps(nameless, "c"), []);
      await storage.deleteMessages(["a"], nameless, "c");
    }
    await storage.clearMessages("", "c");
    assert.deepEqual(await storage.getMessages("", "c"), []);
    await storage.clearMessages("");

    assert.deepEqual(ids(await storage.getMessages("u", "c")), ["a"]);
    assert.deepEqual(ids(await storage.getConversationSteps("u", "c")), ["step of c"]);
  });

  test("working memory survives", async () => {
    await storage.setWorkingMemory({ scope: "conversation", conversationId: "c", content: "kept" });
    await storage.setWorkingMemory({ scope: "user", userId: "u", content: "kept, too" });

    await storage.clearMessages("u", "c");
    await storage.clearMessages("u");

    assert.equal(await storage.getWorkingMemory({ scope: "conversation", conversationId: "c" }), "kept");
    assert.equal(await storage.getWorkingMemory({ scope: "user", userId: "u" }), "kept, too");
  });
});

describe("what VoltAgent's databases do wrong", () => {
  test("twenty writers at once do not wait for each other for ever", async () => {
    const names = Array.from({ length: 20 }, (_, place) => `m${place}`);

    await Promise.all(names.map((id) => storage.addMessage(said(id), "u", "c")));

    assert.deepEqual(ids(await storage.getMessages("u", "c")).sort(), names.sort());
  });

  test("the newest of a batch are the last of it", async () => {
    const batch = [..."0123456789"].map((digit) => said(`m${digit}`));

    await storage.addMessages(batch, "u", "c");

    assert.deepEqual(ids(await storage.getMessages("u", "c", { limit: 3 })), ["m7", "m8", "m9"]);
  });

  test("a message of another user with the same id is another message", async () => {
    await storage.addMessages([said("a"), said("b")], "u", "c");

    await storage.addMessage(said("a", "of the other"), "v", "c");

    assert.deepEqual(ids(await storage.getMessages("u", "c")), ["a", "b"]);
    const [other] = await storage.getMessages("v", "c");
    assert.deepEqual(other?.parts, [{ type: "text", text: "of the other" }]);
  });

  test("a conversation that is deleted and created again is empty", async () => {
    await storage.addMessage(said("a"), "u", "c");
    await storage.addMessage(said("b"), "v", "c");
    await storage.saveConversationSteps([step("c")]);

    await storage.deleteConversation("c");
    await conversation("c");

    assert.deepEqual(await storage.getMessages("u", "c"), []);
    assert.deepEqual(await storage.getMessages("v", "c"), []);
    assert.deepEqual(await storage.getConversationSteps("u", "c"), []);
  });
});
