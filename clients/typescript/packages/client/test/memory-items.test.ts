// Memory items of users, with a real server.

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { InvalidFieldError, type MemoryItems, MemoryItemNotFoundError, Remora, WrongTypeError } from "../src/index.js";
import { Operator, type MemoryItem } from "../src/generated/v1.js";
import { failureOf } from "./failures.js";
import { server } from "./fresh.js";

const { fresh } = server();
let remora: Remora;
let items: MemoryItems;

beforeEach(() => {
  remora = new Remora(fresh());
  items = remora.user("sarah").memoryItems;
});
afterEach(() => remora.close());

function texts(found: readonly (MemoryItem | undefined)[]): string[] {
  return found.map((item) => item?.text ?? "").sort();
}

describe("memory items", () => {
  test("are added, found, read and listed as they were given", async () => {
    const [first, second] = await items.add([
      "Sarah is vegan",
      { id: "trip", text: "Sarah flies to Lisbon", tags: ["trip"], metadata: { source: "chat", turn: 3 } },
    ]);

    assert.equal(second, "trip");
    const { hits } = await items.search("What does Sarah eat? vegan");
    assert.equal(hits[0]?.item?.id, first);
    const trip = await items.get("trip");
    assert.deepEqual([trip.userId, trip.tags], ["sarah", ["trip"]]);
    assert.deepEqual(JSON.parse(new TextDecoder().decode(trip.metadata)), { source: "chat", turn: 3 });
    assert.deepEqual(texts(await items.listItems()), ["Sarah flies to Lisbon", "Sarah is vegan"]);
    assert.equal((await items.listItems({ limit: 1 }))[0]?.id, "trip");
  });

  test("of another user are not seen", async () => {
    const [id = ""] = await items.add("Sarah is vegan");
    const others = remora.user("tom").memoryItems;

    assert.deepEqual(await others.listItems(), []);
    assert.deepEqual((await others.search("vegan")).hits, []);
    assert.equal(await others.delete(id), 0n);
    assert.ok((await failureOf(others.get(id))) instanceof MemoryItemNotFoundError);
  });

  test("are selected by their tags, by members of their metadata and by a filter", async () => {
    await items.add([
      { text: "one", tags: ["a", "b"], metadata: { turn: 1, source: "chat", old: true, by: null } },
      { text: "two", tags: ["a"], metadata: { turn: 2, source: "chat", at: { place: "Lisbon" } } },
      { text: "three", metadata: { turn: 3.5, source: "mail" } },
    ]);
    const found = async (which: Parameters<MemoryItems["listItems"]>[0]) => texts(await items.listItems(which));

    assert.deepEqual(await found({ tags: ["a"] }), ["one", "two"]);
    assert.deepEqual(await found({ tags: ["a", "b"] }), ["one"]);
    assert.deepEqual(await found({ where: { source: "chat", turn: 2 } }), ["two"]);
    assert.deepEqual(await found({ where: { turn: 3.5 } }), ["three"]);
    assert.deepEqual(await found({ where: { turn: 1n, old: true, by: null } }), ["one"]);
    assert.deepEqual(await found({ where: {} }), ["one", "three", "two"]);
    const late = { subject: { case: "key" as const, value: "turn" }, operator: Operator.GT };
    const after = { ...late, values: [{ kind: { case: "number" as const, value: 1.5 } }] };
    assert.deepEqual(await found({ where: { kind: { case: "condition", value: after } } }), ["three", "two"]);
    const { hits } = await items.search("one two three", { where: { source: "mail" }, k: 5 });
    assert.deepEqual(texts(hits.map(({ item }) => item)), ["three"]);
  });

  test("are deleted by their ids, by what selects them, or all", async () => {
    const [first = ""] = await items.add(["one", { text: "two", tags: ["a"] }, { text: "three" }, { text: "four" }]);
    await remora.user("tom").memoryItems.add("five");

    assert.equal(await items.delete([first, "missing"]), 1n);
    assert.equal(await items.deleteWhere({ tags: ["a"] }, { requestId: "once" }), 1n);
    assert.equal(await items.deleteWhere({ tags: ["a"] }, { requestId: "once" }), 1n);
    for (const all of [{}, { where: {} }, { tags: [] }]) {
      await assert.rejects(
        items.deleteWhere(all),
        /^InvalidFieldError: where has no condition, and there are no tags; clear\(\) deletes all items$/,
      );
    }
    assert.deepEqual(texts(await items.listItems()), ["four", "three"]);
    assert.equal(await items.clear(), 2n);
    assert.deepEqual(texts(await remora.user("tom").memoryItems.listItems()), ["five"]);
  });

  test("that are none are refused before a call", async () => {
    const circular: Record<string, unknown> = {};
    circular.itself = circular;

    for (const [call, message] of [
      [items.add({ txt: "x" } as never), /txt is no field of MemoryItem; did you mean text\?/],
      [
        items.add({ text: "x", metadata: "chat" as never }),
        /^items\[0\]\.metadata is "chat"; it must be an object with members/,
      ],
      [items.add({ text: "x", metadata: circular }), /^items\[0\]\.metadata is nothing that JSON can hold: /],
      [items.listItems({ where: { at: new Date() as never } }), /^where\["at"\] is .*; it must be a string, a number/],
      [items.search("x", { tag: ["a"] } as never), /^tag is no option; did you mean tags\?/],
    ] as const) {
      const failure = await failureOf(call);
      assert.ok(failure instanceof InvalidFieldError || failure instanceof WrongTypeError);
      assert.match(failure.message, message);
    }
  });
});
