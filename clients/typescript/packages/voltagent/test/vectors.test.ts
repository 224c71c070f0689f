// RemoraVectorAdapter: VoltAgent's contract of vector adapters.

import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import { AiSdkEmbeddingAdapter, InMemoryVectorAdapter, Memory, VectorError } from "@voltagent/core";
import { MockEmbeddingModelV3 } from "ai/test";
import { RemoraEmbeddingAdapter, RemoraMemory, RemoraMemoryAdapter, RemoraVectorAdapter } from "../src/index.js";
import { type Fresh, ids, said, server } from "./fresh.js";

const { fresh } = server();
let options: Fresh;
let vectors: RemoraVectorAdapter;

beforeEach(() => {
  options = fresh();
  vectors = new RemoraVectorAdapter(options);
});

describe("storing", () => {
  test("what are no numbers is refused by its name, and nothing is stored", async () => {
    for (const given of ["text", null, { 0: 1 }] as unknown as number[][]) {
      const error = {
        name: "VectorError",
        message: `vector is ${JSON.stringify(given)}; it must be an array of numbers`,
      };
      await assert.rejects(vectors.store("a", given), error);
      await assert.rejects(vectors.search(given), error);
    }
    const batch = [{ id: "a", vector: [1] }, { id: "b" }] as unknown as { id: string; vector: number[] }[];
    await assert.rejects(
      vectors.storeBatch(batch),
      /^VectorError: items\[1\].vector is undefined; it must be an array /,
    );

    assert.equal(await vectors.count(), 0);
  });

  test("what was stored comes back with the very numbers, its metadata and its content", async () => {
    await vectors.store("a", [0.1, 1 / 3, -2e-300], { topic: "trains", deep: { n: [1] } });
    await vectors.storeBatch([{ id: "b", vector: [0.1, 0.2, 0.3], content: "text" }]);

    const a = { id: "a", vector: [0.1, 1 / 3, -2e-300], metadata: { topic: "trains", deep: { n: [1] } } };
    assert.deepEqual(await vectors.get("a"), a);
    assert.deepEqual(await vectors.get("b"), { id: "b", vector: [0.1, 0.2, 0.3], content: "text" });
    assert.equal(await vectors.get("missing"), null);
    assert.equal(await vectors.count(), 2);
  });

  test("numbers that f32 does not have come back, too", async () => {
    const strange = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN, Number.MAX_VALUE];

    await vectors.store("a", strange);

    assert.deepEqual((await vectors.get("a"))?.vector, strange);
  });

  test("beyond the cache, and in other processes, numbers are those of f32", async () => {
    const few = new RemoraVectorAdapter({ ...options, cacheSize: 1 });
    await few.storeBatch([
      { id: "a", vector: [0.1] },
      { id: "b", vector: [0.1] },
    ]);

    assert.deepEqual((await few.get("a"))?.vector, [Math.fround(0.1)]);
    assert.deepEqual((await few.get("b"))?.vector, [0.1]);
    assert.deepEqual((await vectors.get("b"))?.vector, [Math.fround(0.1)]);
    await vectors.store("b", [0.5]);
    assert.deepEqual((await few.get("b"))?.vector, [0.5]);
  });

  test("of a batch, too, each vector is stored as the nearest one that f32 has", async () => {
    const uncached = new RemoraVectorAdapter({ ...options, cacheSize: 0 });
    await uncached.storeBatch([
      { id: "a", vector: [1, 2] },
      { id: "b", vector: [Number.POSITIVE_INFINITY, Number.NaN] },
      { id: "c", vector: [-Number.MAX_VALUE, 0.1] },
    ]);

    assert.deepEqual((await uncached.get("a"))?.vector, [1, 2]);
    assert.deepEqual((await uncached.get("b"))?.vector, [Math.fround(1e17), 0]);
    assert.deepEqual((await uncached.get("c"))?.vector, [-Math.fround(1e17), Math.fround(0.1)]);
  });

  test("a known id replaces the vector and its metadata", async () => {
    await vectors.store("a", [1, 0], { old: true });
    await vectors.store("a", [0, 1]);

    assert.deepEqual(await vectors.get("a"), { id: "a", vector: [0, 1] });
    assert.equal(await vectors.count(), 1);
  });

  test("metadata inside itself does not stop a vector", async () => {
    const metadata: Record<string, unknown> = { a: 1 };
    metadata["self"] = metadata;

    await vectors.store("a", [1], metadata);

    assert.deepEqual((await vectors.get("a"))?.metadata, { a: 1, self: "[Circular]" });
  });

  test("the first vector fixes the dimension, until all are cleared", async () => {
    await vectors.store("a", [1, 0, 0]);

    await assert.rejects(vectors.store("b", [1, 0]), /dimension mismatch/);
    await assert.rejects(vectors.search([1, 0]), /dimension mismatch/);
    await assert.rejects(new RemoraVectorAdapter(options).store("c", [1, 0]), (error: unknown) => {
      assert.ok(error instanceof VectorError);
      assert.equal(error.message, "Vector dimension mismatch. Expected 3, got 2");
      return true;
    });

    await vectors.clear();
    await vectors.store("b", [1, 0]);
    assert.equal(await vectors.count(), 1);
    assert.equal(await vectors.get("a"), null);
  });

  test("a batch with a vector of another dimension is stored not at all", async () => {
    const batch = [
      { id: "a", vector: [1, 0] },
      { id: "b", vector: [1, 0, 0] },
    ];

    await assert.rejects(vectors.storeBatch(batch), /dimension mismatch/);

    assert.equal(await vectors.count(), 0);
    await vectors.storeBatch([]);
  });

  test("an empty vector is refused, and one with too many dimensions, which a batch may have", async () => {
    await assert.rejects(vectors.store("a", []), /empty/);
    await assert.rejects(vectors.store("a", Array(1_537).fill(1)), /exceed maximum/);
    await assert.rejects(
      new RemoraVectorAdapter({ ...options, maxVectorDimensions: 2 }).store("a", [1, 2, 3]),
      /exceed maximum/,
    );

    await vectors.storeBatch([{ id: "a", vector: Array(1_537).fill(1) }]);
    assert.equal(await vectors.count(), 1);
  });

  test("a large batch is stored as a whole", async () => {
    await vectors.storeBatch(many(5_000));

    assert.equal(await vectors.count(), 5_000);
    const [nearest] = await vectors.search(many(1)[0]?.vector ?? [], { limit: 1 });
    assert.equal(nearest?.id, "v0");
  });

  test("of a batch that is too large nothing is stored", async () => {
    const large = vectors.storeBatch(many(6_500));
    await assert.rejects(large, (error: unknown) => {
      assert.ok(error instanceof VectorError);
      assert.match(error.message, /larger than \d+ MiB/);
      return true;
    });
    const few = Array.from({ length: 10_001 }, (_, place) => ({ id: `v${place}`, vector: [place] }));
    await assert.rejects(vectors.storeBatch(few), VectorError);
    const nameless = vectors.storeBatch([...many(2_000), { id: "", vector: Array(1_536).fill(1) }]);
    await assert.rejects(nameless, VectorError);

    assert.equal(await vectors.count(), 0);
  });
});

/** Vectors of 1,536 dimensions, about 31 MB for 5,000; each points elsewhere. */
function many(count: number): { id: string; vector: number[]; metadata: Record<string, unknown> }[] {
  return Array.from({ length: count }, (_, place) => {
    const vector = Array<number>(1_536).fill(1);
    vector[place % 1_536] = 1_000 + place;
    return { id: `v${place}`, vector, metadata: { place } };
  });
}

describe("searching", () => {
  test("results are those of VoltAgent's adapter in memory, in its order", async () => {
    const original = new InMemoryVectorAdapter();
    const random = generator();
    const items = Array.from({ length: 200 }, (_, place) => ({
      id: `v${place}`,
      vector: Array.from({ length: 12 }, random),
      metadata: { parity: place % 2, third: place % 3 === 0, name: `n${place % 5}` },
    }));
    await Promise.all([vectors.storeBatch(items), original.storeBatch(items)]);
    const filters = [
      undefined,
      { parity: 1 },
      { third: true, name: "n1" },
      { name: "none" },
      { parity: "1" },
      { missing: 1 },
    ];

    for (const filter of filters) {
      for (const given of [{}, { limit: 3 }, { limit: 500 }, { threshold: 0.6 }, { limit: 0 }]) {
        const query = Array.from({ length: 12 }, random);
        const asked = { ...given, ...(filter && { filter }) };
        const [found, expected] = await Promise.all([vectors.search(query, asked), original.search(query, asked)]);
        assert.deepEqual(ids(found), ids(expected), JSON.stringify(asked));
        for (const [place, { score, distance, metadata }] of found.entries()) {
          assert.ok(Math.abs(score - (expected[place]?.score ?? 0)) < 1e-5);
          assert.ok(Math.abs((distance ?? 9) - (expected[place]?.distance ?? 0)) < 1e-5);
          assert.deepEqual(metadata, expected[place]?.metadata);
        }
      }
    }
  });

  test("a limit of any size gives all that there are, up to a thousand", async () => {
    const items = Array.from({ length: 1_001 }, (_, place) => ({ id: `v${place}`, vector: [1, place] }));
    await vectors.storeBatch(items.slice(0, 999));

    for (const limit of [1_001, 2 ** 40, Number.POSITIVE_INFINITY]) {
      assert.equal((await vectors.search([1, 0], { limit })).length, 999);
    }
    await vectors.storeBatch(items);
    assert.equal((await vectors.search([1, 0], { limit: 1_000 })).length, 1_000);
    await assert.rejects(vectors.search([1, 0], { limit: 1_001 }), /limit is 1001; a search gives at most 1,000/);
  });

  test("scores are of cosines: opposite ones 0, unrelated and empty ones a half", async () => {
    await vectors.storeBatch([
      { id: "same", vector: [2, 0] },
      { id: "right", vector: [0, 1] },
      { id: "zero", vector: [0, 0] },
      { id: "opposite", vector: [-1, 0] },
    ]);

    const found = await vectors.search([1, 0]);

    assert.deepEqual(
      new Map(found.map(({ id, score }) => [id, score])),
      new Map([
        ["same", 1],
        ["right", 0.5],
        ["zero", 0.5],
        ["opposite", 0],
      ]),
    );
    assert.deepEqual(ids(await vectors.search([1, 0], { threshold: 0.7 })), ["same"]);
  });

  test("filters are strict, and see long texts, nulls and what is missing", async () => {
    const long = "x".repeat(5_000);
    await vectors.storeBatch([
      { id: "a", vector: [1], metadata: { text: long, none: null, n: 1, object: {} } },
      { id: "b", vector: [1], metadata: { text: `${long}y`, n: "1" } },
      { id: "c", vector: [1] },
    ]);
    const found = async (filter: Record<string, unknown>) => ids(await vectors.search([1], { filter }));

    assert.deepEqual(await found({ text: long }), ["a"]);
    assert.deepEqual(await found({ none: null }), ["a"]);
    assert.deepEqual(await found({ n: "1" }), ["b"]);
    assert.deepEqual(await found({ object: {} }), []);
    assert.deepEqual(await found({ n: Number.NaN }), []);
    assert.deepEqual(await found({ n: 1, text: "other" }), []);
  });

  test("an empty collection has nothing to be found", async () => {
    assert.deepEqual(await vectors.search([1, 2, 3]), []);
    assert.equal(await vectors.count(), 0);
  });
});

test("an empty id is that of no vector", async () => {
  await vectors.store("a", [1]);

  assert.equal(await vectors.get(""), null);
  await vectors.delete("");
  await vectors.deleteBatch(["", "a"]);

  assert.equal(await vectors.count(), 0);
});

test("some are deleted, unknown ids and none do nothing", async () => {
  await vectors.storeBatch([..."abc"].map((id) => ({ id, vector: [1, 2] })));

  await vectors.delete("a");
  await vectors.deleteBatch(["b", "unknown"]);
  await vectors.deleteBatch([]);

  assert.deepEqual(ids(await vectors.search([1, 2])), ["c"]);
  assert.equal(await vectors.get("a"), null);
});

test("statistics: how many there are, of which dimension, in how many bytes", async () => {
  assert.deepEqual(await vectors.getStats(), { count: 0, dimensions: null, cacheSize: 0, tableSizeBytes: 0 });

  await vectors.store("a", [1, 2, 3]);

  const { tableSizeBytes, ...rest } = await vectors.getStats();
  assert.deepEqual(rest, { count: 1, dimensions: 3, cacheSize: 1 });
  assert.ok(tableSizeBytes >= 12);
  await vectors.close();
  await assert.rejects(vectors.count(), /closed/);
});

test("collections are apart, and so are tenants", async () => {
  await vectors.store("a", [1]);

  assert.equal(await new RemoraVectorAdapter({ ...options, collection: "other" }).count(), 0);
  assert.equal(await new RemoraVectorAdapter(fresh()).count(), 0);
});

describe("with a memory", () => {
  test("VoltAgent's own Memory finds messages with the three adapters", async () => {
    const memory = new Memory({
      storage: new RemoraMemoryAdapter(options),
      embedding: new RemoraEmbeddingAdapter(options),
      vector: vectors,
    });
    await memory.createConversation({ id: "c", userId: "u", resourceId: "r", title: "T", metadata: {} });
    await memory.addMessages([said("train", "The night train leaves at ten."), said("cake", "Four eggs.")], "u", "c");
    await memory.addMessage(said("bye"), "u", "c");

    const query = "When does the railway connection depart?";
    const found = await memory.getMessagesWithSemanticSearch("u", "c", query, { limit: 1, semanticLimit: 1 });

    assert.deepEqual(ids(found), ["bye", "train"]);
    await memory.deleteConversation("c");
    assert.equal(await vectors.count(), 0);
  });

  test("VoltAgent's own Memory embeds with a model of the AI SDK, for both adapters", async () => {
    const doEmbed = async ({ values }: { values: string[] }) => ({
      embeddings: values.map((value) => [1, value.includes("train") ? 5 : 0]),
      warnings: [],
    });
    const embedding = new AiSdkEmbeddingAdapter(new MockEmbeddingModelV3({ doEmbed }));
    const memory = new Memory({ storage: new RemoraMemoryAdapter(options), embedding, vector: vectors });
    await memory.createConversation({ id: "c", userId: "u", resourceId: "r", title: "T", metadata: {} });
    await memory.addMessages([said("late", "The train is late."), said("cake", "Four eggs.")], "u", "c");
    await memory.addMessage(said("bye"), "u", "c");

    const found = await memory.getMessagesWithSemanticSearch("u", "c", "which train?", { limit: 1, semanticLimit: 1 });

    assert.deepEqual(ids(found), ["bye", "late"]);
    assert.deepEqual((await vectors.get("msg_c_late"))?.vector, [1, 5]);
  });

  test("RemoraMemory finds documents beside messages", async () => {
    const memory = new RemoraMemory({ ...options, vector: vectors });
    await memory.createConversation({ id: "c", userId: "u", resourceId: "r", title: "T", metadata: {} });
    await memory.addMessage(said("train", "The night train leaves at ten."), "u", "c");
    await memory.addDocument({ id: "timetable", content: "The timetable of all trains.", metadata: { kind: "file" } });

    const found = await memory.searchSimilar("trains at night");

    assert.deepEqual(ids(found).sort(), ["msg_c_train", "timetable"]);
    const [document] = await memory.searchSimilar("trains", { filter: { kind: "file" } });
    assert.equal(document?.metadata?.["content"], "The timetable of all trains.");
    await memory.removeDocument("timetable");
    assert.deepEqual(ids(await memory.searchSimilar("trains at night")), ["msg_c_train"]);
  });
});

/** Numbers between -1 and 1 that are always the same. */
function generator(): () => number {
  let state = 1;
  return () => {
    state = (state * 48_271) % 0x7fff_ffff;
    return (2 * state) / 0x7fff_ffff - 1;
  };
}
