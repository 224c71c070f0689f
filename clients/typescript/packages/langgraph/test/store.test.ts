// A store of items: what LangGraph's stores do, and what they should.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Embeddings } from "@langchain/core/embeddings";
import {
  InMemoryStore,
  InvalidNamespaceError,
  type Item,
  type ListNamespacesOperation,
  type Operation,
} from "@langchain/langgraph-checkpoint";
import { InvalidFieldError } from "@remora/client";
import { counted } from "../../client/test/counting.js";
import { server } from "../../client/test/fresh.js";
import {
  type RemoraIndexConfig,
  RemoraMessages,
  type RemoraPutOperation,
  RemoraSaver,
  RemoraStore,
  type RemoraStoreOptions,
} from "../src/index.js";

const { fresh, restart } = server(true);

/** Counts letters, so that texts are near which have the same ones; and what it was asked. */
class Letters extends Embeddings {
  readonly embedded: string[] = [];

  constructor() {
    super({});
  }

  override embedDocuments(texts: string[]): Promise<number[][]> {
    this.embedded.push(...texts);
    return Promise.resolve(texts.map(counts));
  }

  override embedQuery(text: string): Promise<number[]> {
    return Promise.resolve(counts(text));
  }
}

function counts(text: string): number[] {
  return Array.from(
    { length: 26 },
    (_, letter) => text.toLowerCase().split(String.fromCharCode(97 + letter)).length - 1,
  );
}

function made(options: RemoraStoreOptions = {}): RemoraStore {
  return new RemoraStore({ ...fresh(), ...options });
}

function indexed(index: RemoraIndexConfig = {}): { store: RemoraStore; model: Letters } {
  const model = new Letters();
  return { store: made({ index: { dims: 26, embeddings: model, ...index } }), model };
}

function keys(items: readonly { key: string }[]): string[] {
  return items.map(({ key }) => key);
}

function tick(ms = 5): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

const NS = ["users", "ana"];

describe("items", () => {
  test("come back as they were put, also after a crash of the server", async () => {
    const options = fresh();
    const value = { text: "Grüße 🌍", list: [1, null, { a: true }], number: 1.5, nested: { deep: "x" } };
    await new RemoraStore(options).put(NS, "k", value);
    await restart();

    const item = await new RemoraStore(options).get(NS, "k");

    assert.deepEqual(item?.value, value);
    assert.deepEqual([item.namespace, item.key], [NS, "k"]);
    assert.ok(item.createdAt instanceof Date && Math.abs(Date.now() - item.createdAt.getTime()) < 3_600_000);
  });

  test("keep the time of their creation when they are put again", async () => {
    const store = made();
    await store.put(NS, "k", { n: 1 });
    const first = await store.get(NS, "k");
    await tick();
    await store.put(NS, "k", { n: 2 });
    const second = await store.get(NS, "k");

    assert.deepEqual(second?.value, { n: 2 });
    assert.deepEqual(second.createdAt, first?.createdAt);
    assert.ok(second.updatedAt > second.createdAt);
  });

  test("are the caller's own: what is done to them later changes nothing", async () => {
    const store = made();
    const value = { list: [1] };
    await store.put(NS, "k", value);
    value.list.push(2);
    const item = await store.get(NS, "k");
    (item?.value.list as number[]).push(3);

    assert.deepEqual((await store.get(NS, "k"))?.value, { list: [1] });
  });

  test("are gone when they are deleted, and leave no namespace", async () => {
    const store = made();
    await store.put(NS, "k", { n: 1 });
    await store.delete(NS, "k");
    await store.delete(NS, "unknown");

    assert.equal(await store.get(NS, "k"), null);
    assert.deepEqual(await store.listNamespaces(), []);
  });

  test("are one batch in one call: reads before writes, the last write of a key wins", async () => {
    const { client, calls } = counted(fresh());
    const store = new RemoraStore({ client });
    await store.put(NS, "k", { n: 0 });
    calls.length = 0;

    const results = await store.batch([
      { namespace: NS, key: "k", value: { n: 1 } },
      { namespace: NS, key: "k" },
      { namespacePrefix: ["users"], limit: 10, offset: 0 },
      { namespace: NS, key: "k", value: { n: 2 } },
      { matchConditions: [], limit: 10, offset: 0 },
      { namespace: NS, key: "gone", value: null },
    ]);

    assert.deepEqual(calls, ["executeOperations"]);
    const [, item, items, , namespaces] = results as unknown as [unknown, Item, Item[], unknown, string[][]];
    assert.deepEqual(item.value, { n: 0 });
    assert.deepEqual(
      items.map(({ value }) => value),
      [{ n: 0 }],
    );
    assert.deepEqual(namespaces, [NS]);
    assert.deepEqual((await store.get(NS, "k"))?.value, { n: 2 });
    client.close();
  });

  test("of a batch with a bad namespace are not written at all", async () => {
    const store = made();
    const bad = { namespace: ["a.b"], key: "k", value: {} };

    await assert.rejects(store.batch([{ namespace: NS, key: "k", value: {} }, bad]), InvalidNamespaceError);
    const listed: Operation = { matchConditions: [{ matchType: "prefix", path: ["a.b"] }], limit: 10, offset: 0 };
    await assert.rejects(store.batch([{ namespace: NS, key: "k", value: {} }, listed]), InvalidNamespaceError);
    await assert.rejects(store.put(["langgraph"], "k", {}), InvalidNamespaceError);
    await assert.rejects(store.put([], "k", {}), InvalidNamespaceError);

    assert.equal(await store.get(NS, "k"), null);
  });

  test("of a value that JSON cannot hold are refused, and the whole batch with it", async () => {
    const store = made();
    const cyclic: Record<string, unknown> = {};
    cyclic.self = cyclic;

    await assert.rejects(
      store.batch([
        { namespace: NS, key: "a", value: { n: 1 } },
        { namespace: NS, key: "b", value: cyclic },
      ]),
      TypeError,
    );

    assert.equal(await store.get(NS, "a"), null);
  });

  test("that are no objects, or too large, are named, and nothing is written", async () => {
    const store = made({ index: { fields: ["text"] } });
    const large = { text: "x".repeat(3_000_000) };
    const cyclic: Record<string, unknown> = {};
    cyclic.self = cyclic;
    const wrong: [unknown, RegExp][] = [
      ["tea", /The value of "k" in \["users","ana"\] is "tea"; it must be an object/],
      [[1], /is \[1\]; it must be an object/],
      [undefined, /is undefined; it must be an object/],
      [new Date(0), /is a Date, which is no object in JSON/],
      [new Map([["text", "tea"]]), /is Map\(1\) \{ 'text' => 'tea' \}; it must be an object/],
      [large, /has 3000011 bytes as JSON; at most 2097152 are allowed/],
      [{ n: 5n }, /The value of "k" in \["users","ana"\] cannot be stored as JSON: .*BigInt/],
      [cyclic, /The value of "k" in \["users","ana"\] cannot be stored as JSON: .*circular/],
      [
        { n: Number.NaN },
        /The value of "k" in \["users","ana"\] cannot be stored as JSON: n is NaN, which JSON does not have/,
      ],
      [{ list: [1, { deep: -Infinity }] }, /cannot be stored as JSON: deep is -Infinity, which JSON does not have/],
      [{ toJSON: () => undefined }, /The value of "k" in \["users","ana"\] is .*, which is no object in JSON/],
      [Promise.resolve({ text: "tea" }), /is Promise .*; it must be an object: await it/],
    ];
    for (const [value, said] of wrong) {
      await assert.rejects(store.put(NS, "k", value as Record<string, unknown>, false), said);
    }
    await assert.rejects(
      store.put(NS, "k", {}, [5] as unknown as string[]),
      /have 5; a path is a text, such as "text"/,
    );
    await assert.rejects(
      store.put(NS, "k", {}, "text" as unknown as string[]),
      /paths of an index are "text"; they must/,
    );

    assert.equal(await store.get(NS, "k"), null);
  });

  test("that cannot be are not found, and deleted without an error", async () => {
    const store = made();
    await store.put(NS, "k", {});

    await store.delete(NS, "");

    assert.equal(await store.get(NS, ""), null);
    await assert.rejects(store.put(NS, "", {}), InvalidFieldError);
  });

  test("with half a character have the sign for one instead, and only there", async () => {
    const store = made();
    const cut = "\u{1F600}".slice(0, 1);

    await store.put(NS, "a", { text: `so ${cut}`, [cut]: [cut, "\u{1F600}"], path: "C:\\ud83d\\\\ud83d" });

    const found = { text: "so \ufffd", "\ufffd": ["\ufffd", "\u{1F600}"], path: "C:\\ud83d\\\\ud83d" };
    assert.deepEqual((await store.get(NS, "a"))?.value, found);
    assert.equal((await store.search(NS, { filter: { text: `so ${cut}` } })).length, 1);
  });

  test("larger than a reply are still all found", async () => {
    const store = made();
    const text = "x".repeat(700_000);
    for (let n = 0; n < 8; n++) {
      await store.put(NS, `k${n}`, { n, text });
    }

    const [found, ...items] = await store.batch([
      { namespacePrefix: NS, limit: 10, offset: 0 },
      ...[0, 1, 2, 3, 4, 5].map((n) => ({ namespace: NS, key: `k${n}` })),
    ]);

    assert.deepEqual(keys(found as never), ["k7", "k6", "k5", "k4", "k3", "k2", "k1", "k0"]);
    assert.deepEqual(keys(items as never), ["k0", "k1", "k2", "k3", "k4", "k5"]);
  });
});

describe("a batch", () => {
  test("of any size is written, its reads first", async () => {
    const store = made();
    const text = "x".repeat(400_000);
    const puts = Array.from({ length: 30 }, (_, n) => ({ namespace: NS, key: `k${n}`, value: { n, text } }));

    const results: unknown[] = await store.batch([
      { namespace: NS, key: "k0" },
      ...puts,
      { namespace: NS, key: "k29" },
    ]);

    assert.deepEqual([results[0], results[31]], [null, null]);
    assert.equal((await store.search(NS, { limit: 100 })).length, 30);
  });
});

describe("a search without a query", () => {
  test("lists what was last written first, in pages, of a prefix of whole labels", async () => {
    const store = made();
    for (let n = 0; n < 20; n++) {
      await store.put(["users", n % 2 === 0 ? "ana" : "bob"], `k${n}`, { n });
    }
    await store.put(["users2"], "other", {});

    const pages = await Promise.all([0, 5, 10, 15, 20].map((offset) => store.search(["users"], { limit: 5, offset })));

    assert.deepEqual(
      pages.flatMap(keys),
      Array.from({ length: 20 }, (_, n) => `k${19 - n}`),
    );
    assert.deepEqual(keys(await store.search(NS, { limit: 3 })), ["k18", "k16", "k14"]);
    assert.equal((await store.search([])).length, 10);
    assert.deepEqual(await store.search(["users"], { limit: 0 }), []);
  });

  test("refuses a number of items that is none, by its name, and writes nothing of the batch", async () => {
    const store = made();
    await store.put(NS, "k", {});
    const wrong: [() => Promise<unknown>, RegExp][] = [
      [() => store.search(NS, { limit: -1 }), /^InvalidFieldError: limit is -1; it must be at least 0/],
      [() => store.search(NS, { limit: "5" as never }), /^WrongTypeError: limit is "5"; it must be a number/],
      [() => store.search(NS, { limit: true as never }), /^WrongTypeError: limit is true; it must be a number/],
      [() => store.search(NS, { limit: Number.NaN }), /^WrongTypeError: limit is NaN; it must be a number/],
      [() => store.search(NS, { offset: -1 }), /^InvalidFieldError: offset is -1; it must be at least 0/],
      [() => store.listNamespaces({ offset: -1 }), /^InvalidFieldError: offset is -1; it must be at least 0/],
      [() => store.search(NS, { offset: "1" as never }), /^WrongTypeError: offset is "1"; it must be a number/],
      [() => store.listNamespaces({ limit: -1 }), /^InvalidFieldError: limit is -1; it must be at least 0/],
      [() => store.listNamespaces({ maxDepth: "1" as never }), /^WrongTypeError: maxDepth is "1"; it must be a number/],
      [() => store.listNamespaces({ maxDepth: -1 }), /^InvalidFieldError: maxDepth is -1; it must be at least 0/],
      [
        () =>
          store.batch([
            { namespace: NS, key: "new", value: {} },
            { namespacePrefix: NS, limit: -1 },
          ]),
        /^InvalidFieldError: limit of operations\[1\] is -1; it must be at least 0$/,
      ],
    ];

    for (const [ask, said] of wrong) {
      await assert.rejects(ask, said);
    }

    assert.deepEqual(keys(await store.search(NS)), ["k"]);
  });

  test("returns more than a thousand where they are wanted", async () => {
    const store = made();
    const puts = Array.from({ length: 2_300 }, (_, n) => ({ namespace: ["n", String(n)], key: "k", value: { n } }));
    await store.batch(puts);

    assert.equal((await store.search(["n"], { limit: 2_100 })).length, 2_100);
    assert.equal((await store.listNamespaces({ limit: 5_000 })).length, 2_300);
    const everything = { matchConditions: [] } as unknown as ListNamespacesOperation;
    assert.equal((await store.batch([everything]))[0]?.length, 2_300);
  });

  const items = {
    cheap: {
      price: 5,
      tags: ["a", { b: 1 }],
      "x.y": 1,
      "kind-of": "x",
      owner: { id: 1, name: "ana" },
      on: "2026-01-02",
    },
    dear: { price: 50.5, tags: ["b"], owner: { id: 2, name: "bob" }, on: "2026-11-02", sold: true, at: new Date(0) },
    none: { price: null, on: "9", x: { y: 2 }, tags: [] },
  };
  const cases: [string, Record<string, unknown>, string[]][] = [
    ["equality", { price: 5 }, ["cheap"]],
    ["equality of booleans", { sold: true }, ["dear"]],
    ["null", { price: null }, ["none"]],
    ["several keys", { price: 5, on: "2026-01-02" }, ["cheap"]],
    ["$eq", { price: { $eq: 50.5 } }, ["dear"]],
    ["$ne, which what is missing passes", { sold: { $ne: true } }, ["cheap", "none"]],
    ["$gt and $lte together", { price: { $gt: 4, $lte: 5 } }, ["cheap"]],
    ["numbers by their value", { price: { $lt: 9 } }, ["cheap"]],
    ["texts by code point", { on: { $gte: "2026-06" } }, ["dear", "none"]],
    ["$in", { price: { $in: [5, 50.5] } }, ["cheap", "dear"]],
    ["$nin", { price: { $nin: [5] } }, ["dear", "none"]],
    ["$in of nothing", { price: { $in: [] } }, []],
    ["nested objects", { owner: { id: 1 } }, ["cheap"]],
    ["lists as a whole", { tags: ["a", { b: 1 }] }, ["cheap"]],
    ["lists that are shorter", { tags: ["a"] }, []],
    ["empty lists", { tags: [] }, ["none"]],
    ["$ne of a list", { tags: { $ne: ["b"] } }, ["cheap", "none"]],
    ["operators in nested objects", { owner: { id: { $gt: 1 } } }, ["dear"]],
    ["a member that is named with dots", { "x.y": 1 }, ["cheap"]],
    ["the path only without such a member", { "x.y": 2 }, ["none"]],
    ["what is missing", { sold: undefined }, ["cheap", "none"]],
    ["paths", { "owner.name": "bob" }, ["dear"]],
    ["keys with a hyphen", { "kind-of": "x" }, ["cheap"]],
    ["comparisons of another type, which match nothing", { on: { $gt: 3 } }, []],
    ["an empty filter", {}, ["cheap", "dear", "none"]],
    ["what is less than the infinite", { price: { $lt: Infinity } }, ["cheap", "dear"]],
    ["what is more than the infinite", { price: { $gte: Infinity } }, []],
    ["no number", { price: Number.NaN }, []],
    ["$ne of no number", { price: { $ne: Number.NaN } }, ["cheap", "dear", "none"]],
    ["$in of many", { price: { $in: [...Array(300).keys(), "5", null] } }, ["cheap", "none"]],
    ["$nin of many, and of an object", { price: { $nin: [...Array(300).keys(), { a: 1 }] } }, ["dear", "none"]],
    ["a Date, as it is in JSON", { at: new Date(0) }, ["dear"]],
    ["what is before a Date", { at: { $lt: new Date(1) } }, ["dear"]],
  ];
  test("filters by " + cases.map(([what]) => what).join("; "), async () => {
    const store = made();
    await store.batch(Object.entries(items).map(([key, value]) => ({ namespace: NS, key, value })));

    for (const [what, filter, expected] of cases) {
      assert.deepEqual(keys(await store.search(["users"], { filter })).sort(), expected, what);
    }
  });

  test("is refused by the name of its argument, as is what an item has", async () => {
    const store = made({ index: {} });
    const long = "x".repeat(2_000);
    const label = ["x".repeat(600)];
    const wrong: [() => Promise<unknown>, string][] = [
      [() => store.put(NS, long, {}), "key has 2,000 bytes; at most 1,024 are allowed"],
      [() => store.put(label, "k", {}), "namespace[0] has 600 bytes; at most 512 are allowed"],
      [() => store.put(NS, 5 as never, {}), "key is 5; it must be a string"],
      [() => store.put("users" as never, "k", {}), 'namespace is "users"; it must be an array of labels, such as'],
      [() => store.put(null as never, "k", {}), "namespace is null; it must be an array of labels"],
      [() => store.put(NS, "k", {}, undefined, 1e9), "ttl must be from 0"],
      [() => store.put(NS, "k", {}, undefined, { tll: 5 } as never), 'ttl has no key "tll"; it has ttl'],
      [() => store.put(NS, "k", {}, undefined, new Date() as never), "ttl is a Date; it must be a number of minutes"],
      [() => store.get(NS, undefined as never), "key is required"],
      [() => store.delete(NS, long), "key has 2,000 bytes"],
      [() => store.search("users" as never), 'namespacePrefix is "users"; it must be an array of labels'],
      [() => store.search(undefined as never), "namespacePrefix is undefined; it must be an array of labels"],
      [() => store.search(NS, { filtr: { a: 1 } } as never), 'options has no key "filtr"; it has filter, limit, '],
      [() => store.listNamespaces({ prefx: NS } as never), 'options has no key "prefx"; it has prefix, suffix, '],
      [() => store.search(label), "namespacePrefix[0] has 600 bytes"],
      [() => store.search(NS, { query: 5 as never }), "query is 5; it must be a string"],
      [() => store.search(NS, { query: "x".repeat(1_100_000) }), "query has 1,100,000 bytes"],
      [() => store.search(NS, { filter: { a: long } }), "a text in filter has 2,000 bytes"],
      [() => store.search(NS, { filter: { [long]: 1 } }), "a name in filter has 2,000 bytes"],
      [() => store.search(NS, { filter: { a: Array(100).fill(1) } }), "filter has 101 elements; at most 64"],
      [() => store.listNamespaces({ prefix: label }), "matchConditions[0].path[0] has 600 bytes"],
      [() => store.listNamespaces({ prefix: "users" as never }), 'matchConditions[0].path is "users"; it must be an'],
      [() => store.listNamespaces({ maxDepth: -1 }), "maxDepth is -1; it must be at least 0"],
      [() => store.deleteNamespaces(label), "prefix[0] has 600 bytes"],
      [() => store.deleteNamespaces("users" as never), 'prefix is "users"; it must be an array'],
      [() => store.batch(null as never), "operations is null; it must be an array of operations"],
      [() => store.batch([null] as never), "operations[0] is null; it must be an operation"],
      [
        () =>
          store.batch([
            { namespace: NS, key: "k", value: {} },
            { namespace: NS, key: "k", value: {} },
            { namespace: NS, key: long },
          ]),
        "key of operations[2] has 2,000 bytes",
      ],
    ];
    for (const [ask, said] of wrong) {
      await assert.rejects(ask, (refused: Error) => {
        assert.equal(refused.message.slice(0, said.length), said);
        return refused instanceof TypeError || refused instanceof InvalidFieldError;
      });
    }
    assert.deepEqual(await store.search([]), []);
  });

  test("refuses an operator or a value that it does not know, and says where", async () => {
    await assert.rejects(
      made().search([], { filter: { price: { $near: 5 } } }),
      /Unsupported operator: \$near at price/,
    );
    for (const [price, said] of [
      [5n, "5n"],
      [{ $gt: [1] }, "\\[1\\]"],
      [new Map([["id", 1]]), "Map\\(1\\) \\{ 'id' => 1 \\}"],
      [{ $in: [new Set([1])] }, "Set\\(1\\) \\{ 1 \\}"],
    ] as const) {
      const expected = new RegExp(`The filter at price is ${said}: it takes a text, a number, a boolean or null`);
      await assert.rejects(made().search([], { filter: { price } }), expected);
    }
  });

  test("refuses to order what has no order", async () => {
    for (const value of [null, true]) {
      await assert.rejects(
        made().search([], { filter: { price: { $gt: value } } }),
        new RegExp(`The filter at price is ${value}: \\$gt takes a text or a number`),
      );
    }
  });

  test("refuses a filter that can match nothing: operators among members, and what is no object", async () => {
    const store = made();
    for (const operator of ["$or", "$and", "$not", "$gt"]) {
      await assert.rejects(
        store.search([], { filter: { [operator]: [{ n: 1 }] } }),
        new RegExp(`Unsupported operator: \\${operator}\\. A filter has members`),
      );
    }
    await assert.rejects(
      store.search([], { filter: [1] as unknown as Record<string, unknown> }),
      /filter is \[1\]; it/,
    );
    assert.deepEqual(await store.search([], { filter: null as unknown as Record<string, unknown> }), []);
  });
});

describe("a search with a query", () => {
  test("finds the nearest by the caller's model, each item once, as InMemoryStore scores them", async () => {
    const { store, model } = indexed({ fields: ["text", "notes[*]"] });
    const other = new InMemoryStore({ index: { dims: 26, embeddings: new Letters(), fields: ["text", "notes[*]"] } });
    const values = [
      { text: "apple" },
      { text: "banana", notes: ["apple pie", "aaa"] },
      { text: "cherry" },
      { text: "papaya", notes: ["plea"] },
    ];
    for (const [n, value] of values.entries()) {
      await Promise.all([store, other].map((one) => one.put(["fruit", String(n)], `k${n}`, value)));
    }

    const found = await store.search(["fruit"], { query: "apple", limit: 3 });
    const expected = await other.search(["fruit"], { query: "apple", limit: 3 });

    assert.deepEqual(keys(found).sort(), keys(expected).sort());
    for (const [place, { score }] of found.entries()) {
      assert.ok(Math.abs((score ?? 0) - (expected[place]?.score ?? 9)) < 1e-3);
    }
    assert.deepEqual(model.embedded.sort(), ["aaa", "apple", "apple pie", "banana", "cherry", "papaya", "plea"]);
    assert.deepEqual(keys(await store.search(["fruit", "2"], { query: "apple" })), ["k2"]);
  });

  test("finds by Remora's own model, which needs no key", async () => {
    const store = made({ index: {} });
    await store.put(["docs"], "visa", { text: "A visa for Portugal takes six weeks." });
    await store.put(["docs"], "lunch", { text: "The canteen opens at noon." });

    const [hit] = await store.search(["docs"], { query: "travel documents" });

    assert.equal(hit?.key, "visa");
    assert.ok((hit.score ?? 0) > 0.1);
  });

  test("of several pages does not see the writes of its batch", async () => {
    const store = made();
    const names = Array.from({ length: 1_100 }, (_, index) => String(index).padStart(4, "0"));
    await store.batch(names.map((key) => ({ namespace: NS, key, value: { n: 1 } })));

    const changed = names.map((key) => ({ namespace: NS, key, value: key < "0550" ? { n: 2 } : null }));
    const search = { namespacePrefix: NS, filter: { n: 1 }, limit: 2_000 };
    const results: unknown[] = await store.batch([...changed, search]);

    assert.deepEqual(keys(results.at(-1) as Item[]).sort(), names);
  });

  test("filters may be as deep as values, and have long lists", async () => {
    const store = made();
    const deep = { a: { b: { c: { d: { e: [{ f: null }] } } } } };
    const tags = Array.from({ length: 60 }, (_, index) => index);
    await store.put(NS, "deep", deep);
    await store.put(NS, "tagged", { tags, u: { id: [{ n: 1 }] } });

    assert.deepEqual(keys(await store.search(NS, { filter: deep })), ["deep"]);
    assert.deepEqual(keys(await store.search(NS, { filter: { a: { $ne: deep.a } } })), ["tagged"]);
    assert.deepEqual(keys(await store.search(NS, { filter: { tags } })), ["tagged"]);
    assert.deepEqual(keys(await store.search(NS, { filter: { "u.id": { $ne: [{ n: 1 }] } } })), ["deep"]);
  });

  test("has exact pages, with a filter, too", async () => {
    const { store } = indexed({ fields: ["text"] });
    const puts = Array.from({ length: 20 }, (_, n) => ({
      namespace: NS,
      key: `k${n}`,
      value: { text: `${"a".repeat(20 - n)}${"b".repeat(n)}`, even: n % 2 === 0 },
    }));
    await store.batch(puts);

    const pages = await Promise.all(
      [0, 5, 10, 15, 20].map((offset) => store.search(NS, { query: "a", limit: 5, offset })),
    );

    assert.deepEqual(
      pages.flatMap(keys),
      puts.map(({ key }) => key),
    );
    const even = await store.search(NS, { query: "a", filter: { even: true }, limit: 3 });
    assert.deepEqual(keys(even), ["k0", "k2", "k4"]);
  });

  test("forgets the vectors of what was put again, with another index or none, and of what was deleted", async () => {
    const { store } = indexed({ fields: ["text"] });
    const found = async (query: string) => keys(await store.search(NS, { query }));
    await store.put(NS, "k", { text: "apple", more: "zzz" });
    await store.put(NS, "k", { text: "apple", more: "zzz" }, ["more"]);
    const [hit] = await store.search(NS, { query: "apple" });
    assert.equal(hit?.score, 0);

    await store.put(NS, "k", { text: "apple" }, false);
    assert.deepEqual(await found("apple"), []);

    await store.put(NS, "k", { text: "apple" });
    await store.delete(NS, "k");
    await store.put(NS, "k", { text: "apple" }, false);
    assert.deepEqual(await found("apple"), []);
  });

  test("embeds a text once that several items of a batch have", async () => {
    const { store, model } = indexed({ fields: ["text"] });
    await store.batch(["a", "b"].map((key) => ({ namespace: NS, key, value: { text: "same" } })));

    assert.deepEqual(model.embedded, ["same"]);
    assert.deepEqual(keys(await store.search(NS, { query: "same" })), ["a", "b"]);
  });

  test("embeds no text of an item that the same batch writes again or deletes", async () => {
    const { store, model } = indexed({ fields: ["text"] });
    await store.batch([
      { namespace: NS, key: "again", value: { text: "apple" } },
      { namespace: NS, key: "deleted", value: { text: "banana" } },
      { namespace: NS, key: "again", value: { text: "cherry" } },
      { namespace: NS, key: "deleted", value: null },
    ]);

    assert.deepEqual(model.embedded, ["cherry"]);
    assert.deepEqual(keys(await store.search(NS)), ["again"]);
  });

  test("says that a model made too few vectors, and writes nothing", async () => {
    const { store, model } = indexed({ fields: ["text"] });
    model.embedDocuments = () => Promise.resolve([counts("apple")]);
    const puts = ["apple", "banana"].map((text) => ({ namespace: NS, key: text, value: { text } }));

    await assert.rejects(store.batch(puts), /fewer vectors than it was given texts/);
    assert.deepEqual(await store.search(NS), []);
  });

  test("compares as the index says: more is always nearer", async () => {
    for (const [distanceType, score] of [
      ["cosine", 1],
      ["inner_product", 4],
      ["l2", 0],
    ] as const) {
      const { store } = indexed({ fields: ["text"], distanceType });
      await store.put(NS, "near", { text: "aa" });
      await store.put(NS, "far", { text: "b" });

      const hits = await store.search(NS, { query: "aa" });

      assert.equal(hits[0]?.key, "near", distanceType);
      assert.ok(Math.abs((hits[0].score ?? 9) - score) < 1e-3, distanceType);
    }
  });

  test("is a plain list where there is no index, or nothing to ask", async () => {
    const store = made();
    await store.put(NS, "k", { text: "apple" });

    const [item] = await store.search(NS, { query: "apple" });

    assert.deepEqual([item?.key, item?.score], ["k", undefined]);
  });

  test("is not made with vectors of another dimension than the index has", async () => {
    const { store } = indexed({ dims: 3 });

    await assert.rejects(store.put(NS, "k", { text: "apple" }), /26 dimensions; the index has 3/);
    assert.equal(await store.get(NS, "k"), null);
  });
});

describe("namespaces", () => {
  test("are listed by prefix, suffix and depth, as InMemoryStore lists them", async () => {
    const store = made();
    const other = new InMemoryStore();
    const namespaces = [["a", "b", "v1"], ["a", "c", "v1"], ["a", "b", "v2"], ["d", "b", "v1"], ["a"], ["A", "b"]];
    for (const namespace of namespaces) {
      await Promise.all([store, other].map((one) => one.put(namespace, "k", {})));
    }

    for (const options of [
      {},
      { prefix: ["a"] },
      { suffix: ["v1"] },
      { prefix: ["a"], suffix: ["v1"] },
      { prefix: ["*", "b"] },
      { prefix: ["a"], maxDepth: 2 },
      { suffix: ["b", "*"] },
      { prefix: ["none"] },
    ]) {
      const expected = await other.listNamespaces(options);
      assert.deepEqual((await store.listNamespaces(options)).sort(), expected.sort(), JSON.stringify(options));
    }
    assert.deepEqual(await store.listNamespaces({ limit: 2, offset: 1 }), [["a"], ["a", "b", "v1"]]);
  });

  test("are listed in a batch whatever the operation leaves out, as InMemoryStore lists them", async () => {
    const store = made();
    const other = new InMemoryStore();
    const puts = Array.from({ length: 120 }, (_, n) => ({ namespace: ["n", `${100 + n}`], key: "k", value: { n } }));
    await Promise.all([store.batch(puts), other.batch(puts)]);
    const left = [
      { matchConditions: [] },
      { matchConditions: undefined },
      { matchConditions: [{ matchType: "prefix", path: ["n"] }] },
      { matchConditions: [{ matchType: "suffix", path: ["150"] }], maxDepth: undefined, limit: undefined },
      { matchConditions: [], maxDepth: 1 },
      { matchConditions: [], offset: 100 },
      { matchConditions: [], limit: 3, offset: undefined },
      { matchConditions: [], limit: 1.5 },
      { matchConditions: [], limit: 2, offset: 2.5 },
      { matchConditions: [], offset: Number.POSITIVE_INFINITY },
      { namespacePrefix: ["n"], offset: 115 },
    ] as unknown as ListNamespacesOperation[];

    const found = await store.batch(left);

    const names = (lists: unknown[]) =>
      lists.map((list) =>
        (list as (string[] | Item)[]).map((one) => (Array.isArray(one) ? one : one.namespace)).sort(),
      );
    assert.deepEqual(names(found), names(await other.batch(left)));
    const wrong = [{ matchConditions: [{ matchType: "infix", path: [] }] }] as unknown as ListNamespacesOperation[];
    await assert.rejects(store.batch(wrong), /^Error: Unsupported match type: "infix"; there are prefix, suffix$/);
  });

  test("may name a user by their last label", async () => {
    const store = made({ userLabel: -1 });
    await store.put(NS, "k", {});
    await store.put(["users"], "k", {});

    await store.client.users.deleteUser({ userId: "ana" });

    assert.deepEqual(await store.listNamespaces(), [["users"]]);
  });

  test("may name a user, who is deleted with what is there", async () => {
    const store = made({ userLabel: 1 });
    await store.put(NS, "k", {});
    await store.put(["users", "bob"], "k", {});
    await store.put(["users"], "k", {});

    await store.client.users.deleteUser({ userId: "ana" });

    assert.deepEqual(await store.listNamespaces(), [["users"], ["users", "bob"]]);
  });

  test("are deleted with all that is in them", async () => {
    const store = made();
    await store.put(["a", "b"], "k", {});
    await store.put(["a", "c"], "k", {});
    await store.put(["ab"], "k", {});

    await store.deleteNamespaces(["a"]);

    assert.deepEqual(await store.listNamespaces(), [["ab"]]);
  });
});

describe("items with a time to live", () => {
  const SHORT = 0.3 / 60; // minutes

  test("are not seen when it has passed, and are swept", async () => {
    const store = made({ ttl: { defaultTtl: SHORT, refreshOnRead: false } });
    await store.put(NS, "short", {});
    await store.put(NS, "long", {}, undefined, 5);
    await store.batch([{ namespace: NS, key: "ever", value: {}, ttl: null } as RemoraPutOperation]);
    while ((await store.get(NS, "short")) !== null) {
      await tick(50);
    }

    assert.deepEqual(keys(await store.search(NS)).sort(), ["ever", "long"]);
    assert.ok((await store.sweepTtl()) <= 1);
  });

  test("may be given it as PostgresStore takes it", async () => {
    const store = made({ ttl: { defaultTtl: 10 } });
    await store.put(NS, "own", {}, undefined, { ttl: 5 });
    await store.put(NS, "default", {}, undefined, {});
    await store.put(NS, "ever", {}, undefined, null);
    const reply = await store.client.store.getItems({
      keys: ["own", "default", "ever"].map((key) => ({ namespace: NS, key })),
    });

    assert.deepEqual(
      reply.items.map(({ ttl }) => ttl && Number(ttl.seconds) * 1_000 + ttl.nanos / 1_000_000),
      [300_000, 600_000, undefined],
    );
    await assert.rejects(store.put(NS, "k", {}, undefined, Number.NaN), /ttl is NaN; it must be a number of minutes/);
  });

  test("live anew when they are read", async () => {
    const store = made({ ttl: { defaultTtl: 10 } });
    const { client } = store;
    await store.put(NS, "k", {});
    const expiry = async () =>
      (await client.store.getItems({ keys: [{ namespace: NS, key: "k" }] })).items[0]?.expireTime;
    const first = await expiry();
    await tick();
    await store.get(NS, "k");
    const second = await expiry();

    assert.ok(first && second);
    assert.ok(
      second.seconds * 1_000_000_000n + BigInt(second.nanos) > first.seconds * 1_000_000_000n + BigInt(first.nanos),
    );
  });
});

describe("a store", () => {
  test("is not made with what another store is made with", () => {
    const wrong: [unknown, RegExp][] = [
      [
        { index: { dims: 3, embed: () => [] } },
        /index has no key "embed"; it has dims, embeddings, fields, distanceType/,
      ],
      [{ ttl: { defaultTTL: 5 } }, /ttl has no key "defaultTTL"; it has defaultTtl, refreshOnRead/],
      [{ index: "text" }, /index is "text"; it must be an object with dims, embeddings, fields, distanceType/],
      [{ ttl: 5 }, /ttl is 5; it must be an object with defaultTtl, refreshOnRead/],
      [{ userLabel: "1" }, /userLabel is "1"; it must be a whole number: 0 is the first label/],
      [{ index: { distanceType: "l3" } }, /distanceType is one of cosine, inner_product, l2, not "l3"/],
      [{ index: { fields: "text" } }, /paths of an index are "text"; they must be an array, such as \["text"\]/],
      [{ index: { dims: "3" } }, /dims of index is "3"; it must be a whole number of at least 1/],
      [{ index: { embeddings: "openai:small" } }, /embeddings of index is "openai:small"; it must be a model/],
      [{ ttl: { defaultTtl: "5" } }, /defaultTtl is "5"; it must be a number of minutes/],
      [{ ttl: { refreshOnRead: "no" } }, /refreshOnRead of ttl is "no"; it must be true or false/],
    ];
    for (const [options, said] of wrong) {
      assert.throws(() => made(options as RemoraStoreOptions), said);
    }
    assert.equal(made({ index: null, ttl: null } as unknown as RemoraStoreOptions).indexConfig, undefined);
  });

  test("is not made with what is no object of options, nor is a saver", () => {
    for (const given of [null, "unix:/run/remora.sock", []] as never[]) {
      for (const make of [
        () => new RemoraStore(given),
        () => new RemoraSaver(given),
        () => RemoraStore.fromConnString("unix:/run/remora.sock", given),
        () => RemoraSaver.fromConnString("unix:/run/remora.sock", given),
      ]) {
        assert.throws(make, /^WrongTypeError: options is .*; it must be an object with agentId, client,/);
      }
    }
    const options = { ...fresh(), serde: "json" } as never;
    assert.throws(() => new RemoraSaver(options), /serde is "json"; it must be a serializer, with dumpsTyped/);
  });

  test("is not made with a misspelt option, nor is a saver, nor are messages", () => {
    const wrong = <T>(options: object) => ({ ...fresh(), ...options }) as unknown as T;
    const makes: [() => unknown, string][] = [
      [() => new RemoraStore(wrong({ idnex: {} })), "idnex is no option; did you mean index?"],
      [() => new RemoraStore(wrong({ user_lable: 1 })), "user_lable is no option; did you mean userLabel?"],
      [() => new RemoraSaver(wrong({ serder: {} })), "serder is no option; did you mean serde?"],
      [
        () => new RemoraMessages(wrong({ conversatonId: "c" })),
        "conversatonId is no option; did you mean conversationId?",
      ],
    ];
    for (const [make, message] of makes) {
      assert.throws(make, { name: "InvalidFieldError", message });
    }
    new RemoraStore(wrong({ ensureTables: true, schema: "public", connectionOptions: {} })).stop();
  });

  test("is used by many at a time, and loses nothing", async () => {
    const store = made();
    await Promise.all(Array.from({ length: 200 }, (_, n) => store.put(["n", String(n % 10)], `k${n}`, { n })));

    assert.equal((await store.search(["n"], { limit: 1_000 })).length, 200);
  });

  test("is found by its address", async () => {
    const { endpoint, tenant, timeoutMs } = fresh();
    const store = RemoraStore.fromConnString(endpoint, { tenant, timeoutMs });
    await store.setup();
    await store.put(NS, "k", { n: 1 });

    assert.deepEqual((await store.get(NS, "k"))?.value, { n: 1 });
    store.stop();
  });
});
