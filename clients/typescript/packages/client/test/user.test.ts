// Handles on users, and the search of all of them, with a real server without a chat model.

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { ConversationNotFoundError, embedding, type ListedConversations, Remora } from "../src/index.js";
import type { SearchMessagesResponse } from "../src/generated/v1.js";
import { failureOf } from "./failures.js";
import { server } from "./fresh.js";

const { fresh } = server();
let remora: Remora;

beforeEach(async () => {
  remora = new Remora(fresh());
  for (const [user, conversation, text] of [
    ["sarah", "trip", "Sarah takes the night train to Lisbon."],
    ["sarah", "work", "Sarah works in Lisbon."],
    ["tom", "tom-1", "Tom has never been to Lisbon."],
  ] as const) {
    await remora.conversation(conversation, { userId: user }).append({ role: "user", text });
  }
});
afterEach(() => remora.close());

function said({ hits }: SearchMessagesResponse): string[] {
  return hits.map(({ message }) => message?.text.split(" ")[0] ?? "").sort();
}

describe("a user", () => {
  test("is searched in all of its conversations, and no other user is", async () => {
    const found = await remora.user("sarah").search("Lisbon", { explain: true });

    assert.deepEqual(said(found), ["Sarah", "Sarah"]);
    assert.ok(found.hits.every(({ components }) => components.length > 0));
    assert.equal((await remora.receipts.get(found.receiptId)).userId, "sarah");
  });

  test("is searched page by page", async () => {
    const first = await remora.user("sarah").search("Lisbon", { k: 1 });
    const second = await remora.user("sarah").search("Lisbon", { k: 1, pageToken: first.nextPageToken });

    const ids = [first, second].flatMap(({ hits }) => hits.map(({ message }) => message?.id));
    assert.equal(new Set(ids).size, 2);
  });

  test("has facts, blocks and a working memory: those that the client has", async () => {
    const user = remora.user("sarah");
    await user.facts.add({ subject: "user", predicate: "likes", object: "tea" });
    await user.blocks.vector.update("session", "I like rain.");
    await user.workingMemory.set("Lisbon in May");

    assert.equal((await remora.facts("sarah").listFacts()).length, 1);
    assert.equal((await remora.blocks("sarah").vector.get("session", "rain")).length, 1);
    assert.equal((await remora.workingMemory("sarah").get())?.text, "Lisbon in May");
    assert.equal(await remora.user("tom").workingMemory.get(), undefined);
  });

  test("is searched by a vector, for messages with vectors of the same model", async () => {
    const chat = remora.conversation("vectors", { userId: "sarah" });
    await chat.append([
      { role: "user", text: "east", embedding: embedding("mine", [1, 0]) },
      { role: "user", text: "north", embedding: embedding("mine", Float32Array.of(0, 1)) },
    ]);

    for (const found of [
      await remora.user("sarah").search(embedding("mine", [0.1, 1]), { k: 2 }),
      await chat.search(embedding("mine", [0.1, 1]), { k: 2 }),
      await remora.searchAllUsers(embedding("mine", [0.1, 1]), { k: 2 }),
    ]) {
      assert.deepEqual(
        found.hits.map(({ message }) => message?.text),
        ["north", "east"],
      );
    }
    await assert.rejects(
      remora.user("sarah").search(5 as never),
      /^WrongTypeError: query is 5; it must be a string, or a vector that embedding\(model, values\) makes$/,
    );
    const reused = Float32Array.of(1, 0);
    const first = embedding("mine", reused);
    reused.fill(0);
    assert.deepEqual(first, embedding("mine", [1, 0]));
    assert.throws(() => embedding("", [1]), /^InvalidFieldError: model is empty/);
    assert.throws(() => embedding("mine", ["1"] as never), /^WrongTypeError: values is .*; it must be numbers/);
  });

  test("has conversations, which are listed in any order and in parts", async () => {
    const user = remora.user("sarah");
    await remora.conversation("trip").update({ title: "A trip" });
    await remora.conversation("work").update({ title: "Work" });
    const ids = async (which: ListedConversations) => (await user.conversations(which)).map(({ id }) => id);

    assert.deepEqual(await ids({}), ["work", "trip"]);
    assert.deepEqual(await ids({ orderBy: "createTime", descending: false }), ["trip", "work"]);
    assert.deepEqual(await ids({ orderBy: "title", descending: false }), ["trip", "work"]);
    assert.deepEqual(
      [await ids({ limit: 1 }), await ids({ skip: 1 }), await ids({ limit: 0 })],
      [["work"], ["trip"], []],
    );
    await assert.rejects(
      user.conversations({ orderBy: "name" as never }),
      /^InvalidFieldError: orderBy is "name"; it must be one of updateTime, createTime, title$/,
    );
  });

  test("loses its messages in all conversations, and keeps the conversations and all else", async () => {
    const user = remora.user("sarah");
    await user.workingMemory.set("Lisbon in May");

    assert.equal(await user.clearMessages({ requestId: "once" }), 2n);
    assert.equal(await user.clearMessages({ requestId: "once" }), 2n);

    assert.deepEqual([(await user.search("Lisbon")).hits, (await user.conversations()).length], [[], 2]);
    assert.equal((await user.workingMemory.get())?.text, "Lisbon in May");
    assert.deepEqual(said(await remora.user("tom").search("Lisbon")), ["Tom"]);
  });

  test("is deleted with everything that it has, and no other user is", async () => {
    const user = remora.user("sarah");
    await user.facts.add({ subject: "user", predicate: "likes", object: "tea" });
    await user.workingMemory.set("Lisbon in May");

    assert.equal(await user.delete({ requestId: "once" }), 2n);
    assert.equal(await user.delete({ requestId: "once" }), 2n);

    assert.ok((await failureOf(remora.conversation("trip").get())) instanceof ConversationNotFoundError);
    assert.deepEqual([await user.facts.listFacts(), await user.workingMemory.get()], [[], undefined]);
    assert.deepEqual(said(await remora.user("tom").search("Lisbon")), ["Tom"]);
  });
});

test("all users are searched by a call that says so", async () => {
  const found = await remora.searchAllUsers("Lisbon", { k: 5 });

  assert.deepEqual(said(found), ["Sarah", "Sarah", "Tom"]);
});
