// RemoraMemory: what VoltAgent's Memory gives, in fewer calls.

import assert from "node:assert/strict";
import { createHash, randomUUID } from "node:crypto";
import { beforeEach, describe, type Mock, mock, test } from "node:test";
import {
  ConversationNotFoundError,
  EmbeddingAdapterNotConfiguredError,
  InMemoryStorageAdapter,
  InMemoryVectorAdapter,
  Memory,
  StorageError,
} from "@voltagent/core";
import type { UIMessage } from "ai";
import {
  type MergeStrategy,
  RemoraMemory,
  RemoraMemoryAdapter,
  type RemoraMemoryOptions,
  RemoraObservabilityAdapter,
  RemoraVectorAdapter,
} from "../src/index.js";
import { RemoraStorage } from "../src/legacy/index.js";
import { Turns } from "../src/turns.js";
import { counted } from "../../client/test/counting.js";
import { type Fresh, ids, said, server, tick } from "./fresh.js";

const { fresh } = server();
let options: Fresh;

beforeEach(() => {
  options = fresh();
});

/** A model whose vectors are arbitrary, but always the same for a text. */
class ArbitraryModel {
  embed: Mock<(text: string) => Promise<number[]>> = mock.fn(async (text: string) => arbitrary(text));
  embedBatch: Mock<(texts: string[]) => Promise<number[][]>> = mock.fn(async (texts: string[]) => texts.map(arbitrary));
  getDimensions = () => 16;
  getModelName = () => "arbitrary";
}

function arbitrary(text: string): number[] {
  return [...createHash("sha512").update(text).digest().subarray(0, 16)].map((byte) => byte / 255 - 0.5);
}

async function conversation(memory: Memory, id = "c"): Promise<void> {
  await memory.createConversation({ id, userId: "u", resourceId: "agent", title: "T", metadata: {} });
}

function remembering(more: RemoraMemoryOptions = {}): RemoraMemory {
  return new RemoraMemory({ ...options, ...more });
}

describe("a semantic read", () => {
  const STRATEGIES: MergeStrategy[] = ["append", "prepend", "interleave"];

  async function both(count: number): Promise<[RemoraMemory, Memory]> {
    const embedding = new ArbitraryModel();
    const remora = remembering({ embedding });
    const original = new Memory({
      storage: new InMemoryStorageAdapter(),
      vector: new InMemoryVectorAdapter(),
      embedding,
    });
    for (const memory of [remora, original]) {
      await conversation(memory);
      await conversation(memory, "other");
      const messages = Array.from({ length: count }, (_, place) => said(`m${place}`, `text ${place}`));
      await memory.addMessages(messages, "u", "c");
      await memory.addMessages([said("elsewhere", "text 0")], "u", "other");
      await memory.addMessages([said("of the other", "text 0")], "v", "c");
    }
    return [remora, original];
  }

  test("it gives the messages of VoltAgent's Memory in its order", async () => {
    const [remora, original] = await both(30);
    let different = 0;
    for (const mergeStrategy of STRATEGIES) {
      for (const limit of [0, 1, 4, 40]) {
        for (const semanticLimit of [1, 5, 12]) {
          for (const semanticThreshold of [undefined, 0, 0.55, 0.99]) {
            const query = `text ${limit + semanticLimit}`;
            const given = {
              limit,
              semanticLimit,
              mergeStrategy,
              ...(semanticThreshold !== undefined && { semanticThreshold }),
            };
            const [found, expected] = await Promise.all(
              [remora, original].map((memory) => memory.getMessagesWithSemanticSearch("u", "c", query, given)),
            );
            assert.deepEqual(ids(found ?? []), ids(expected ?? []), JSON.stringify(given));
            different += Number(found?.length !== limit);
          }
        }
      }
    }
    assert.ok(different > 50);
  });

  test("the defaults are Memory's", async () => {
    const [remora, original] = await both(30);
    for (const query of ["text 3", "nothing like it", ""]) {
      const [found, expected] = await Promise.all(
        [remora, original].map((memory) =>
          memory.getMessagesWithContext("u", "c", { limit: 3, useSemanticSearch: true, currentQuery: query }),
        ),
      );
      assert.deepEqual(ids(found ?? []), ids(expected ?? []), query);
    }
    const found = await remora.getMessagesWithSemanticSearch("u", "c", "text 3");
    assert.equal(found.length, 30);
  });

  test("it is one call, in which the server embeds", async () => {
    const { client, calls } = counted(options);
    const memory = remembering({ client });
    await conversation(memory);
    await memory.addMessages(
      [said("train", "The night train to Vienna leaves at ten."), said("cake", "Grandma's cake needs four eggs.")],
      "u",
      "c",
    );
    await memory.addMessages([said("a", "Hello there."), said("b", "How are you?")], "u", "c");
    // A busy machine may embed them later than a read waits for by default.
    const query = { case: "text", value: "train" } as const;
    const scope = { case: "userId", value: "u" } as const;
    await client.memory.searchMessages({ scope, query, indexWait: { seconds: 60n } });
    calls.length = 0;

    const found = await memory.getMessagesWithSemanticSearch("u", "c", "When does the railway connection depart?", {
      limit: 2,
      semanticLimit: 1,
    });

    assert.deepEqual(ids(found), ["a", "b", "train"]);
    assert.deepEqual(calls, ["readConversation"]);
  });

  test("a search that fails leaves the recent messages, and a warning", async (context) => {
    const embedding = new ArbitraryModel();
    const memory = remembering({ embedding });
    await conversation(memory);
    await memory.addMessage(said("a"), "u", "c");
    embedding.embed.mock.mockImplementation(() => Promise.reject(new Error("down")));
    const warn = context.mock.method(console, "warn", () => {});

    const found = await memory.getMessagesWithSemanticSearch("u", "c", "query");

    assert.deepEqual(ids(found), ["a"]);
    assert.equal(warn.mock.callCount(), 1);
  });

  test("messages that fill more than a reply come whole", async () => {
    const memory = remembering({ embedding: new ArbitraryModel() });
    await conversation(memory);
    const large = Array.from({ length: 9 }, (_, place) => said(`m${place}`, `${place}${"x".repeat(500_000)}`));
    await memory.addMessages(large, "u", "c");

    const recent = await memory.getMessages("u", "c", { limit: 8 });
    const query = `3${"x".repeat(500_000)}`;
    const found = await memory.getMessagesWithSemanticSearch("u", "c", query, { limit: 8, semanticLimit: 9 });

    assert.deepEqual(ids(recent), ids(large.slice(1)));
    assert.deepEqual(ids(found).slice(0, 8), ids(large.slice(1)));
  });

  test("a limit of any size is one", async () => {
    const memory = remembering();
    await conversation(memory);
    await memory.addMessages([said("a"), said("b")], "u", "c");

    for (const limit of [2 ** 31, Number.MAX_SAFE_INTEGER, Number.POSITIVE_INFINITY]) {
      assert.deepEqual(ids(await memory.getMessages("u", "c", { limit })), ["a", "b"]);
      assert.deepEqual(ids(await memory.getMessagesWithSemanticSearch("u", "c", "a", { limit })), ["a", "b"]);
    }
  });

  test("who has no name is given nobody's messages, not those of the owner", async () => {
    const memory = remembering();
    await conversation(memory);
    await memory.addMessage(said("a"), "u", "c");
    await memory.addMessage(said("b"), "", "c");

    assert.deepEqual(ids(await memory.getMessages("", "c")), ["b"]);
    assert.deepEqual(ids(await memory.getMessagesWithSemanticSearch("", "c", "a")), ["b"]);
    assert.deepEqual(ids(await memory.getMessages("u", "c")), ["a"]);
  });

  test("a missing conversation has nothing", async () => {
    assert.deepEqual(await remembering().getMessagesWithSemanticSearch("u", "missing", "query"), []);
  });
});

describe("vectors of the caller's model", () => {
  test("a message goes with its vector in one call, and a batch is embedded at once", async () => {
    const embedding = new ArbitraryModel();
    const { client, calls } = counted(options);
    const memory = remembering({ client, embedding });
    await conversation(memory);
    calls.length = 0;

    await memory.addMessage(said("a"), "u", "c");
    const silent = { id: "s", role: "assistant", parts: [{ type: "step-start" }] } as UIMessage;
    await memory.addMessages([said("b"), silent, said("d")], "u", "c");

    assert.deepEqual(calls, ["appendMessages", "appendMessages"]);
    assert.deepEqual(embedding.embed.mock.calls[0]?.arguments, ["a"]);
    assert.deepEqual(embedding.embedBatch.mock.calls[0]?.arguments, [["b", "d"]]);
    const found = await memory.searchSimilar("d", { limit: 1 });
    assert.equal(found[0]?.metadata?.["messageId"], "d");
  });

  test("messages stand as they were said, however long the model takes for each", async () => {
    const embedding = new ArbitraryModel();
    const memory = remembering({ embedding });
    await conversation(memory);
    let embedded: (vector: number[]) => void = () => {};
    embedding.embed.mock.mockImplementation((text) =>
      text === "a" ? new Promise((resolve) => (embedded = resolve)) : Promise.resolve(arbitrary(text)),
    );

    const first = memory.addMessage(said("a"), "u", "c");
    const second = memory.addMessage(said("b"), "u", "c");
    await tick();
    embedded(arbitrary("a"));
    await Promise.all([first, second]);

    assert.deepEqual(ids(await memory.getMessages("u", "c")), ["a", "b"]);
  });

  test("a write that hangs or fails holds up others of its conversation for a while at most", async () => {
    const turns = new Turns();
    void turns.take("c", () => new Promise(() => {}), 1);
    const failing = turns.take("c", () => Promise.reject(new Error("down")), 1);

    await assert.rejects(failing, { message: "down" });
    assert.equal(await turns.take("c", async () => "later", 1_000_000), "later");
    assert.equal(await turns.take("d", async () => "elsewhere", 1_000_000), "elsewhere");
  });

  test("a message is not lost while the model is down", async (context) => {
    const embedding = new ArbitraryModel();
    embedding.embed.mock.mockImplementation(() => Promise.reject(new Error("down")));
    const warn = context.mock.method(console, "warn", () => {});
    const memory = remembering({ embedding });
    await conversation(memory);

    await memory.addMessage(said("a"), "u", "c");

    assert.deepEqual(ids(await memory.getMessages("u", "c")), ["a"]);
    assert.equal(warn.mock.callCount(), 1);
  });

  test("the cache saves calls, forgets in time, is bounded, and compares texts", async (context) => {
    context.mock.timers.enable({ apis: ["Date"], now: Date.now() });
    const embedding = new ArbitraryModel();
    const memory = remembering({ embedding, enableCache: true, cacheSize: 2, cacheTTL: 1_000 });
    const embedded = async (text: string) => {
      const before = embedding.embed.mock.callCount();
      await memory.searchSimilar(text);
      return embedding.embed.mock.callCount() - before;
    };

    // VoltAgent's own cache has one hash, and one vector, for "Aa" and "BB".
    assert.deepEqual([await embedded("Aa"), await embedded("BB"), await embedded("Aa")], [1, 1, 0]);
    assert.deepEqual([await embedded("third"), await embedded("BB"), await embedded("third")], [1, 1, 0]);
    context.mock.timers.tick(1_001);
    assert.equal(await embedded("third"), 1);
  });
});

describe("similar messages", () => {
  test("they have VoltAgent's ids, scores and metadata", async () => {
    const embedding = new ArbitraryModel();
    const memory = remembering({ embedding });
    await conversation(memory);
    await memory.addMessages([said("a", "one"), said("b", "two", "assistant")], "u", "c");

    const [first, second] = await memory.searchSimilar("two");

    const createdAt = first?.metadata?.["createdAt"];
    const metadata = { messageId: "b", conversationId: "c", userId: "u", role: "assistant", createdAt };
    assert.equal(new Date(createdAt as string).toISOString(), createdAt);
    assert.deepEqual({ id: first?.id, metadata: first?.metadata }, { id: "msg_c_b", metadata });
    assert.ok(Math.abs((first?.score ?? 0) - 1) < 1e-6);
    assert.equal(second?.id, "msg_c_a");
  });

  test("they are filtered by metadata, as a vector adapter does, and limited", async () => {
    const memory = remembering({ embedding: new ArbitraryModel() });
    await conversation(memory);
    await conversation(memory, "d");
    await memory.addMessages([said("a"), said("b", "b", "assistant")], "u", "c");
    await memory.addMessage(said("x"), "u", "d");
    await memory.addMessage(said("y"), "v", "d");
    const found = async (filter: Record<string, unknown>, limit = 10) => {
      const results = await memory.searchSimilar("q", { filter, limit });
      return results.map(({ metadata }) => metadata?.["messageId"]).sort();
    };

    assert.deepEqual(await found({}), ["a", "b", "x", "y"]);
    assert.deepEqual(await found({ userId: "u" }), ["a", "b", "x"]);
    assert.deepEqual(await found({ userId: "u", conversationId: "c" }), ["a", "b"]);
    assert.deepEqual(await found({ userId: "u", role: "assistant" }), ["b"]);
    assert.deepEqual(await found({ conversationId: "missing" }), []);
    assert.deepEqual(await found({ colour: "red" }), []);
    assert.deepEqual(await found({ userId: 7 }), []);
    assert.deepEqual(await found({ userId: undefined }), []);
    assert.equal((await found({}, 2)).length, 2);
    assert.deepEqual(await memory.searchSimilar("q", { threshold: 1.1 }), []);
  });

  test("what is deleted is no longer found", async () => {
    const memory = remembering({ embedding: new ArbitraryModel() });
    await conversation(memory);
    await memory.addMessages([said("a"), said("b")], "u", "c");

    await memory.deleteMessages(["a"], "u", "c");
    assert.deepEqual(ids(await memory.searchSimilar("a")), ["msg_c_b"]);
    await memory.clearMessages("u", "c");
    assert.deepEqual(await memory.searchSimilar("a"), []);
    await memory.addMessage(said("a"), "u", "c");
    await memory.deleteConversation("c");
    assert.deepEqual(await memory.searchSimilar("a"), []);
  });
});

describe("what is known of conversations", () => {
  test("a message that is saved creates its conversation, in one call", async () => {
    const { client, calls } = counted(options);
    const memory = remembering({ client });
    memory._setResourceId("agent");

    await memory.saveMessageWithContext(said("a"), "u", "new");
    await memory.saveMessageWithContext(said("b"), "u", "new");

    assert.deepEqual(calls, ["appendMessages", "appendMessages"]);
    const created = await memory.getConversation("new");
    assert.deepEqual([created?.title, created?.resourceId, created?.userId], ["Conversation", "agent", "u"]);
    assert.deepEqual(ids(await memory.getMessages("u", "new")), ["a", "b"]);
    await memory.saveMessageWithContext(said("a"), "", "new");
    assert.equal(calls.filter((call) => call === "appendMessages").length, 2);
  });

  test("a strict memory adds no messages to a missing conversation, a lenient one does", async () => {
    await assert.rejects(remembering().addMessage(said("a"), "u", "new"), ConversationNotFoundError);

    const lenient = remembering({ strict: false });
    await lenient.addMessage(said("a"), "u", "new");

    assert.deepEqual(ids(await lenient.getMessages("u", "new")), ["a"]);
  });

  test("a conversation that is read while it is deleted is gone afterwards", async () => {
    const { client } = counted(options);
    const memory = remembering({ client });
    await conversation(memory);
    const { deleteConversation } = client.conversations;
    Object.assign(client.conversations, {
      deleteConversation: async (...given: Parameters<typeof deleteConversation>) => {
        assert.notEqual(await memory.getConversation("c"), null);
        return deleteConversation(...given);
      },
    });

    await memory.deleteConversation("c");

    assert.equal(await memory.getConversation("c"), null);
    client.close();
  });

  test("a conversation is gone after its deletion, though a read of before is answered later", async () => {
    const { client } = counted(options);
    const memory = remembering({ client });
    await conversation(new RemoraMemory({ ...options }));
    const { getConversation } = client.conversations;
    let read = () => {};
    let answer = () => {};
    const hasRead = new Promise<void>((resolve) => (read = resolve));
    const mayAnswer = new Promise<void>((resolve) => (answer = resolve));
    Object.assign(client.conversations, {
      getConversation: async (...given: Parameters<typeof getConversation>) => {
        const found = await getConversation(...given);
        read();
        await mayAnswer;
        return found;
      },
    });
    const before = memory.getConversation("c");
    await hasRead;

    await memory.deleteConversation("c");
    answer();

    assert.notEqual(await before, null);
    assert.equal(await memory.getConversation("c"), null);
    client.close();
  });

  test("a conversation is asked for once, and its own changes are seen at once", async () => {
    const { client, calls } = counted(options);
    const memory = remembering({ client });
    await conversation(new RemoraMemory({ ...options }));

    await Promise.all([memory.getConversation("c"), memory.getConversation("c")]);
    await memory.getConversation("c");
    assert.deepEqual(calls, ["getConversation"]);

    await memory.updateConversation("c", { title: "New" });
    assert.equal((await memory.getConversation("c"))?.title, "New");
    await memory.deleteConversation("c");
    assert.equal(await memory.getConversation("c"), null);
  });

  test("without a cache it is asked for each time", async () => {
    const memory = remembering({ conversationCacheMs: 0 });
    await conversation(memory);
    await memory.getConversation("c");

    await remembering().updateConversation("c", { title: "by another process" });

    assert.equal((await memory.getConversation("c"))?.title, "by another process");
  });

  for (const turns of [[20_000, 20_000], [30_001]]) {
    test(`what another process changed is seen after 30 s, with a message after each of ${turns.join(" and ")} ms`, async (context) => {
      const memory = remembering();
      await conversation(memory);
      context.mock.timers.enable({ apis: ["Date"], now: Date.now() });
      await memory.updateConversation("c", { title: "before" });
      await remembering().updateConversation("c", { title: "by another process" });

      for (const milliseconds of turns) {
        assert.equal((await memory.getConversation("c"))?.title, "before");
        context.mock.timers.tick(milliseconds);
        await memory.addMessage(said("a"), "u", "c");
      }

      assert.equal((await memory.getConversation("c"))?.title, "by another process");
    });
  }

  test("a touch is left to the message that follows it, or is sent in the end", async () => {
    const { client, calls } = counted(options);
    const memory = remembering({ client });
    await conversation(memory);
    const storage = new RemoraMemoryAdapter(options);
    const before = await storage.getConversation("c");
    await tick();
    calls.length = 0;

    const touched = await memory.updateConversation("c", {});
    await memory.addMessage(said("a"), "u", "c");
    assert.ok(before && touched.updatedAt > before.updatedAt);
    assert.deepEqual(calls, ["appendMessages"]);

    await memory.updateConversation("c", {});
    await memory.close();
    assert.deepEqual(calls, ["appendMessages", "updateConversation"]);
  });

  test("steps are saved when their conversation, which is being created, is there", async () => {
    const { client, calls } = counted(options);
    const { createConversation } = client.conversations;
    const held: (() => void)[] = [];
    const slow: typeof createConversation = async (request) => {
      await new Promise<void>((resolve) => held.push(resolve));
      return createConversation(request);
    };
    Object.assign(client.conversations, { createConversation: slow });
    const memory = remembering({ client });
    const step = {
      ...{ id: "s", conversationId: "c", userId: "u", agentId: "a", operationId: "o", stepIndex: 0 },
      ...{ type: "text" as const, role: "assistant" as const, createdAt: new Date(0).toISOString() },
    };

    const created = conversation(memory, "c");
    const saved = memory.saveConversationSteps([step]);
    await memory.getMessages("u", "other"); // what was sent before has been answered
    const before = [...calls];
    held.forEach((release) => {
      release();
    });
    await Promise.all([created, saved]);

    assert.deepEqual(before, ["readConversation"]);
    assert.deepEqual(ids(await memory.getConversationSteps("u", "c")), ["s"]);
  });

  test("a conversation that another process has deleted is created by the next message", async () => {
    const memory = remembering();
    await memory.createConversation({ id: "c", userId: "u", resourceId: "r", title: "Kept", metadata: { a: 1 } });
    await new RemoraMemoryAdapter(options).deleteConversation("c");

    await memory.saveMessageWithContext(said("a"), "u", "c");

    const again = await memory.getConversation("c");
    assert.deepEqual([again?.title, again?.resourceId, again?.metadata], ["Kept", "r", { a: 1 }]);
  });
});

describe("what it says of itself", () => {
  test("it is a Memory with Remora's model, unless it is given another, or none", async () => {
    const own = remembering();
    const others = remembering({ embedding: new ArbitraryModel(), enableCache: true });
    const none = remembering({ embedding: false });

    assert.ok(own instanceof Memory);
    assert.deepEqual(
      [own, others, none].map((memory) => memory.hasVectorSupport()),
      [true, true, false],
    );
    assert.deepEqual(others.getAdaptersInfo(), {
      storage: true,
      embedding: { configured: true, model: "arbitrary", dimensions: 16 },
      vector: true,
      cache: true,
    });
    assert.deepEqual(none.getAdaptersInfo(), {
      storage: true,
      embedding: { configured: false },
      vector: false,
      cache: false,
    });
    assert.deepEqual(own.getStorageMetadata(), { adapter: "RemoraMemoryAdapter" });
    await assert.rejects(none.searchSimilar("q"), EmbeddingAdapterNotConfiguredError);
  });

  test("Remora's embedding adapter gives vectors of one length, and none for none", async () => {
    const adapter = remembering().getEmbeddingAdapter();
    assert.equal(adapter?.getDimensions(), 0);

    const many = Array.from({ length: 300 }, (_, place) => `text ${place % 7}`);
    const vectors = await adapter?.embedBatch(many);
    const vector = await adapter?.embed("text 3");

    assert.equal(vectors?.length, 300);
    assert.deepEqual(vectors?.[3]?.length, adapter?.getDimensions());
    assert.ok(Math.abs((vector ?? []).reduce((sum, value) => sum + value * value, 0) - 1) < 1e-4);
    assert.deepEqual(await adapter?.embedBatch([]), []);
  });

  test("no adapter is made with a misspelt option, and each with those of other stores", () => {
    const wrong = <T>(given: object) => ({ ...options, ...given }) as unknown as T;
    const adapters: [(given: object) => unknown, misspelt: string, meant: string][] = [
      [(given) => new RemoraMemory(wrong(given)), "embeder", "embedding"],
      [(given) => new RemoraMemory(wrong(given)), "conversationCacheMS", "conversationCacheMs"],
      [(given) => new RemoraMemory(wrong(given)), "tenantId", "tenant"],
      [(given) => new RemoraMemoryAdapter(wrong(given)), "strct", "strict"],
      [(given) => new RemoraVectorAdapter(wrong(given)), "collectionName", "collection"],
      [(given) => new RemoraObservabilityAdapter(wrong(given)), "tenent", "tenant"],
      [(given) => new RemoraStorage(wrong(given)), "storage_limt", "storageLimit"],
    ];
    for (const [make, misspelt, meant] of adapters) {
      const message = `${misspelt} is no option; did you mean ${meant}?`;
      assert.throws(() => make({ [misspelt]: 1 }), { name: "InvalidFieldError", message });
      make({ agents: {}, url: "file::memory:", authToken: "t", tablePrefix: "v", debug: true, maxSpans: 5 });
    }
  });

  test("no adapter is made with a number or a switch that is none, and the error names it", () => {
    const missing = Number.NaN; // as Number(process.env.MISSING) gives it
    const mistakes: [make: () => unknown, said: string][] = [
      [() => new RemoraMemory({ ...options, contextLimit: missing }), "contextLimit is NaN; it must be a number"],
      [
        () => new RemoraMemory({ ...options, contextLimit: "20" as never }),
        'contextLimit is "20"; it must be a number',
      ],
      [() => new RemoraMemory({ ...options, conversationCacheMs: missing }), "conversationCacheMs is NaN; it must be"],
      [
        () => new RemoraMemory({ ...options, enableCache: true, cacheSize: -1 }),
        "cacheSize is -1; it must be a number",
      ],
      [() => new RemoraMemory({ ...options, enableCache: true, cacheTTL: missing }), "cacheTTL is NaN; it must be a"],
      [() => new RemoraMemory({ ...options, strict: "false" as never }), 'strict is "false"; it must be true or false'],
      [() => new RemoraVectorAdapter({ ...options, cacheSize: missing }), "cacheSize is NaN; it must be a number"],
      [() => new RemoraVectorAdapter({ ...options, maxVectorDimensions: missing }), "maxVectorDimensions is NaN; it"],
      [
        () => new RemoraMemory({ storage: new InMemoryStorageAdapter() as never }),
        "storage must be a RemoraMemoryAdapter",
      ],
    ];
    for (const [make, said] of mistakes) {
      assert.throws(make, (error) => error instanceof TypeError && error.message.startsWith(said), said);
    }
  });

  test("a semantic read asks a server that is not there once, not for recent messages again", async () => {
    const { client, calls } = counted({ endpoint: `unix:/tmp/${randomUUID()}`, timeoutMs: 200 });

    await assert.rejects(new RemoraMemory({ client }).getMessagesWithSemanticSearch("u", "c", "which?"), StorageError);
    assert.deepEqual(calls, ["readConversation"]);
  });

  test("without a server the error says how to start one", async () => {
    const memory = new RemoraMemory({ endpoint: `unix:/tmp/${randomUUID()}`, timeoutMs: 200 });

    await assert.rejects(memory.getConversation("c"), /`remora serve` starts one/);
  });
});
