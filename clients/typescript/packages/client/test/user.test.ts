// Handles on users, and the search of all of them, with a real server without a chat model.

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { ConversationNotFoundError, Remora } from "../src/index.js";
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
