// Handles on conversations, short-term policies, summaries and receipts, with a real server without a chat model.

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type Conversation,
  ConversationNotFoundError,
  InvalidFieldError,
  MessageNotFoundError,
  ReceiptNotFoundError,
  Remora,
  shortTermFromProto,
  type ShortTerm,
  SummaryOutdatedError,
  timestampFromDate,
  WrongTypeError,
} from "../src/index.js";
import { Section } from "../src/generated/v1.js";
import { failureOf, PATIENCE_MS } from "./failures.js";
import { server } from "./fresh.js";

const SAID = [
  "My sister Ana lives in Lisbon.",
  "The harbour in Lisbon is lovely in May.",
  "Ana works at the harbour.",
  "I take the night train to Lisbon.",
];

const { fresh } = server();
let remora: Remora;

beforeEach(() => {
  remora = new Remora(fresh());
});
afterEach(() => remora.close());

function said(chat: Conversation, ...texts: string[]): Promise<unknown> {
  return chat.append(texts.map((text) => ({ role: "user", text })));
}

async function eventually(holds: () => Promise<boolean>): Promise<void> {
  const end = performance.now() + PATIENCE_MS;
  while (!(await holds())) {
    assert.ok(performance.now() < end, "it never came true");
    await sleep(20);
  }
}

async function texts(chat: Conversation, view: "window" | "all" = "window"): Promise<string[]> {
  return (await chat.messages(Infinity, { view })).map(({ text }) => text);
}

describe("a conversation", () => {
  test("is created by its first append, with the handle's user and fields", async () => {
    const chat = remora.conversation("c", { userId: "sarah", title: "Trip", storageLimit: 50 });

    await chat.append({ role: "user", text: "hello" });

    const record = await chat.get();
    assert.deepEqual([record.userId, record.title, record.storageLimit], ["sarah", "Trip", 50]);
  });

  test("has messages of a role of one's own", async () => {
    const chat = remora.conversation("own-role");

    await chat.append({ role: "narrator", text: "Night falls." });
    await chat.edit({ append: { role: "critic", text: "Slowly." } });

    assert.deepEqual(
      (await chat.messages()).map(({ role }) => role),
      ["narrator", "critic"],
    );
  });

  test("is appended to once by calls with the same request id", async () => {
    const chat = remora.conversation("c");

    const first = await chat.append({ role: "user", text: "hello" }, { requestId: "turn-1" });
    const again = await chat.append({ role: "user", text: "hello" }, { requestId: "turn-1" });
    await chat.append({ role: "user", text: "hello" }, { requestId: "turn-2" });

    assert.deepEqual(again, first);
    assert.deepEqual(await texts(chat), ["hello", "hello"]);
  });

  test("lists its newest messages in order, or its oldest", async () => {
    const chat = remora.conversation("c");
    await said(chat, ...SAID);

    assert.deepEqual(
      (await chat.messages(2)).map(({ text }) => text),
      SAID.slice(2),
    );
    assert.deepEqual(
      (await chat.messages(3, { oldestFirst: true })).map(({ text }) => text),
      SAID.slice(0, 3),
    );
  });

  test("lists more messages than a page has", async () => {
    const chat = remora.conversation("c");
    const many = Array.from({ length: 1_203 }, (_, index) => `m${index}`);
    await said(chat, ...many.slice(0, 900));
    await said(chat, ...many.slice(900));

    assert.deepEqual(await texts(chat), many);
    assert.deepEqual(
      (await chat.messages(1_100)).map(({ text }) => text),
      many.slice(-1_100),
    );
  });

  test("takes Dates and Timestamps alike, wherever a time is", async () => {
    const chat = remora.conversation("c");
    const [early, middle, late] = [new Date(1_000), new Date(2_000), new Date(-3_001)] as const;
    const message = { role: "user", text: "Lisbon in May", sentTime: late };
    await chat.append([
      { role: "user", text: "Lisbon in June", sentTime: early },
      { role: "user", text: "Lisbon in July", sentTime: timestampFromDate(new Date(3_000)) },
    ]);
    await chat.edit({ append: message });

    const july = ["Lisbon in July"];
    for (const sentAfter of [middle, timestampFromDate(middle)]) {
      const listed = await chat.messages(10, { sentAfter });
      const { hits } = await chat.search("Lisbon", { filter: { sentAfter } });
      const context = await chat.context(500, {
        ...{ query: "Lisbon", recentMessages: 0, includeUnrelated: true },
        recall: { filter: { sentAfter } },
        facts: { times: { validAt: sentAfter } },
      });
      assert.deepEqual(
        listed.map(({ text }) => text),
        july,
      );
      assert.deepEqual(
        hits.map(({ message }) => message?.text),
        july,
      );
      assert.deepEqual(
        context.items.map(({ message }) => message?.text),
        july,
      );
    }
    const listed = await chat.messages();
    assert.deepEqual(listed.at(-1)?.sentTime, timestampFromDate(late));
    assert.equal(message.sentTime, late);
  });

  test("recalls in its contexts unless it is told not to", async () => {
    const chat = remora.conversation("c");
    await said(chat, ...SAID);
    const what = { query: "Ana's sister Lisbon", recentMessages: 1, includeUnrelated: true };

    const recalled = await chat.context(300, what);
    const recent = await chat.context(300, { ...what, recall: false });

    assert.ok(recalled.items.some(({ section }) => section === Section.RECALLED));
    assert.deepEqual(
      recent.items.map(({ section }) => section),
      [Section.RECENT],
    );
  });

  test("refuses an option that it does not know", () => {
    assert.throws(() => remora.conversation("c", { shorTerm: null } as object), /shorTerm is no option/);
  });
});

describe("messages of a conversation", () => {
  let chat: Conversation;
  let ids: string[];

  beforeEach(async () => {
    chat = remora.conversation("c", { userId: "sarah" });
    const { messages } = await chat.append(SAID.map((text) => ({ role: "user", text })));
    ids = messages.map(({ id }) => id);
  });

  test("are deleted by their ids, of which unknown ones are ignored", async () => {
    assert.equal(await chat.deleteMessages([ids[0] ?? "", ids[2] ?? "", "lost"]), 2n);
    assert.equal(await chat.deleteMessages(ids[1] ?? ""), 1n);
    assert.equal(await chat.deleteMessages([]), 0n);

    assert.deepEqual(await texts(chat), SAID.slice(3));
  });

  test("are cleared, those of the handle's user alone, and the working memory stays", async () => {
    const tom = remora.conversation("c", { userId: "tom" });
    await said(tom, "I am Tom.");
    const other = remora.conversation("d", { userId: "sarah" });
    await said(other, "Elsewhere.");
    await chat.workingMemory.set("kept");

    assert.equal(await chat.clear(), 4n);

    assert.deepEqual([await texts(chat), await texts(tom), await texts(other)], [[], ["I am Tom."], ["Elsewhere."]]);
    assert.equal((await chat.workingMemory.get())?.text, "kept");
  });

  test("are edited in order", async () => {
    const [first = "", second = ""] = ids;

    const { messages, deletedMessages } = await chat.edit([
      { append: { role: "user", text: "Last.", id: "last" } },
      { replace: { role: "user", text: "My brother lives in Lisbon.", id: first } },
      { remove: second },
      { keep: { start: 0, stop: -2 } },
    ]);

    assert.deepEqual(
      messages.map(({ id, replaced }) => [id, replaced]),
      [
        ["last", false],
        [first, true],
      ],
    );
    assert.equal(deletedMessages, 2n);
    assert.deepEqual(await texts(chat), ["My brother lives in Lisbon.", SAID[2]]);
    await chat.edit({ keep: { start: -1 } });
    assert.deepEqual(await texts(chat), [SAID[2]]);
    await chat.edit({ removeAll: true });
    assert.deepEqual(await texts(chat), []);
  });

  test("are all left as they are by an edit of a missing one, unless it may be missing", async () => {
    const edits = [{ remove: ids[0] ?? "" }, { remove: "lost" }];

    assert.ok((await failureOf(chat.edit(edits))) instanceof MessageNotFoundError);
    assert.deepEqual(await texts(chat), SAID);
    await chat.edit(edits, { allowMissing: true });
    assert.deepEqual(await texts(chat), SAID.slice(1));
  });

  test("are edited and deleted once by calls with the same request id", async () => {
    const edit = { append: { role: "user", text: "Once." } };
    await chat.edit(edit, {}, { requestId: "edit" });
    await chat.edit(edit, {}, { requestId: "edit" });
    assert.equal((await texts(chat)).length, 5);

    assert.equal(await chat.clear({ requestId: "clear" }), 5n);
    assert.equal(await chat.clear({ requestId: "clear" }), 5n);
  });

  test("are deleted with their conversation, those of all users", async () => {
    await said(remora.conversation("c", { userId: "tom" }), "I am Tom.");

    assert.equal(await chat.delete(), 5n);

    assert.ok((await failureOf(chat.get())) instanceof ConversationNotFoundError);
    assert.ok((await failureOf(chat.delete())) instanceof ConversationNotFoundError);
    assert.equal(await chat.delete({ allowMissing: true }), 0n);
  });
});

describe("a short-term policy", () => {
  const policies: ShortTerm[] = [
    { type: "trim", maxTokens: 30, keepTokens: 10, encoding: "cl100k_base" },
    { type: "deleteOldest", maxTokens: 30, messages: 2, encoding: "o200k_base" },
    { type: "flush", maxTokens: 30, ratio: 0.75, encoding: "approximate", extractFacts: true },
    {
      ...{ type: "summarize", maxTokens: 30, encoding: "o200k_base", maxSummaryTokens: 10, keepMessages: 1 },
      ...{ prompt: "Be brief.", byClient: true },
    },
  ];
  for (const policy of policies) {
    test(`that is ${policy.type} is kept as it was given`, async () => {
      const chat = remora.conversation("c", { shortTerm: policy });

      await said(chat, "hello");

      assert.deepEqual(shortTermFromProto((await chat.get()).shortTerm), policy);
    });
  }

  test("has defaults", async () => {
    const chat = remora.conversation("c", { shortTerm: { type: "summarize" } });

    await said(chat, "hello");

    assert.deepEqual(shortTermFromProto((await chat.get()).shortTerm), {
      ...{ type: "summarize", maxTokens: 100_000, encoding: "o200k_base", maxSummaryTokens: 1_000 },
      ...{ keepMessages: 10, prompt: "", byClient: false },
    });
  });

  test("makes messages leave the window, which stay in the conversation", async () => {
    const chat = remora.conversation("c", { shortTerm: { type: "trim", maxTokens: 24, keepTokens: 12 } });

    await said(chat, ...SAID);

    await eventually(async () => (await chat.window()).firstSequence > 0n);
    assert.deepEqual(await texts(chat), SAID.slice(3));
    assert.deepEqual(await texts(chat, "all"), SAID);
  });

  test("is changed and removed", async () => {
    const chat = remora.conversation("c", { title: "Trip", shortTerm: { type: "trim" } });
    await said(chat, "hello");

    await chat.update({ shortTerm: { type: "flush", maxTokens: 9 } });
    const changed = await chat.get();
    await chat.update({ shortTerm: null });
    const removed = await chat.get();

    assert.deepEqual([changed.title, changed.shortTerm?.maxTokens], ["Trip", 9]);
    assert.equal(removed.shortTerm, undefined);
  });

  test("with another name or option is refused before any call", async () => {
    const other = { type: "forget" } as unknown as ShortTerm;
    const misspelt = { type: "trim", keep_tokens: 5 } as ShortTerm;

    assert.throws(
      () => remora.conversation("c", { shortTerm: other }),
      /shortTerm.type is forget; it must be trim, deleteOldest, flush, summarize/,
    );
    assert.throws(() => remora.conversation("c", { shortTerm: misspelt }), InvalidFieldError);
  });

  for (const policy of [
    { type: "trim", maxTokens: 0 },
    { type: "trim", keepTokens: 0 },
    { type: "deleteOldest", messages: 0 },
    { type: "summarize", keepMessages: 0 },
    { type: "summarize", maxSummaryTokens: 0 },
  ] as const satisfies ShortTerm[]) {
    test(`of nothing is refused by name: ${JSON.stringify(policy)}`, () => {
      const option = Object.keys(policy)[1];

      assert.throws(
        () => remora.conversation("c", { shortTerm: policy }),
        (error: Error) => error.message === `shortTerm.${option} is 0; it must be at least 1`,
      );
    });
  }
});

describe("a summary", () => {
  test("of the server's takes the place of older messages", async () => {
    const shortTerm = { type: "summarize", maxTokens: 24, maxSummaryTokens: 10, keepMessages: 1 } as const;
    const chat = remora.conversation("c", { shortTerm });

    await said(chat, ...SAID);

    await eventually(async () => (await chat.window()).summary !== undefined);
    const { summary } = await chat.window();
    assert.deepEqual([summary?.model, summary?.coversThroughSequence], ["extractive", 3n]);
    const context = await chat.context(200, { recall: false });
    assert.deepEqual(
      context.items.map(({ section }) => section),
      [Section.SUMMARY, Section.RECENT],
    );
    assert.equal(context.items[0]?.message?.text, `CONVERSATION SUMMARY: ${summary?.text}`);
  });

  test("is written by one's own model, once", async () => {
    const chat = remora.conversation("c", {
      shortTerm: { type: "summarize", maxTokens: 24, keepMessages: 1, byClient: true },
    });
    await said(chat, ...SAID);
    const asked: string[] = [];
    const llm = async (instruction: string, text: string): Promise<string> => {
      asked.push(instruction);
      return `${text.includes("Ana") ? "Ana" : "Nobody"} lives in Lisbon.`;
    };

    const first = await chat.summarize(llm, { model: "my-model", ifOver: true });
    const again = await chat.summarize(llm, { ifOver: true });

    assert.deepEqual([first?.text, first?.model], ["Ana lives in Lisbon.", "my-model"]);
    assert.deepEqual(again, first);
    assert.equal(asked.length, 1);
    assert.deepEqual(await texts(chat), SAID.slice(3));
  });

  test("is written again if what it is of changes meanwhile", async () => {
    const chat = remora.conversation("c");
    await said(chat, ...SAID);
    const [first] = await chat.messages();
    const given: string[] = [];

    await chat.summarize(
      async (_instruction, text) => {
        given.push(text);
        if (given.length === 1) {
          await chat.append({ role: "user", text: "My brother lives in Lisbon.", id: first?.id ?? "" });
        }
        return "Somebody lives in Lisbon.";
      },
      { keepMessages: 1 },
    );

    assert.deepEqual(
      given.map((text) => [text.includes("sister"), text.includes("brother")]),
      [
        [true, false],
        [false, true],
      ],
    );
  });

  test("that is always outdated is given up", async () => {
    const chat = remora.conversation("c");
    await said(chat, ...SAID);
    const [first] = await chat.messages();

    const failure = await failureOf(
      chat.summarize(
        async () => {
          await chat.append({ role: "user", text: "Changed again.", id: first?.id ?? "" });
          return "Too late.";
        },
        { keepMessages: 1 },
      ),
    );

    assert.ok(failure instanceof SummaryOutdatedError);
    assert.equal((await chat.window()).summary, undefined);
  });

  test("fails with the model's own failure, and changes nothing", async () => {
    const chat = remora.conversation("c");
    await said(chat, ...SAID);

    await assert.rejects(
      chat.summarize(() => Promise.reject(new RangeError("down")), { keepMessages: 1 }),
      /^RangeError: down$/,
    );

    assert.equal((await chat.window()).firstSequence, 0n);
  });

  for (const [written, kind] of [
    [undefined, WrongTypeError],
    ["", InvalidFieldError],
    ["x".repeat(262_145), InvalidFieldError],
  ] as const) {
    test(`of ${typeof written} with ${written?.length} bytes is refused`, async () => {
      const chat = remora.conversation("c");
      await said(chat, ...SAID);

      const failure = await failureOf(chat.summarize(() => written as string, { keepMessages: 1 }));

      assert.ok(failure instanceof kind);
      assert.match(failure.message, /^the result of write/);
      assert.equal((await chat.window()).summary, undefined);
    });
  }

  test("that keeps no message, or that nothing writes, is refused", async () => {
    const chat = remora.conversation("c");
    await said(chat, ...SAID);

    await assert.rejects(
      chat.summarize(() => "In short.", { keepMessages: 0 }),
      /keepMessages is 0; it must be at least 1/,
    );
    await assert.rejects(chat.summarize("gpt" as never), /write is "gpt"; it must be a function/);
  });

  test("is none if there is nothing to summarise", async () => {
    const chat = remora.conversation("c");
    await said(chat, "hello");

    assert.equal(await chat.summarize(() => assert.fail("the model was asked")), undefined);
  });
});

describe("a receipt", () => {
  let chat: Conversation;

  beforeEach(async () => {
    chat = remora.conversation("trip", { userId: "sarah" });
    await chat.append([
      { role: "user", text: "Which train goes to Lisbon?" },
      { role: "assistant", text: "The night train." },
      { role: "user", text: "And back?" },
    ]);
  });

  test("says what a context was made of", async () => {
    const context = await chat.context(200, { query: "Lisbon" });

    const receipt = await remora.receipts.get(context.receiptId);

    assert.deepEqual([receipt.userId, receipt.conversationId, receipt.isContext], ["sarah", "trip", true]);
    assert.deepEqual([receipt.request.case, receipt.tokensUsed], ["context", context.tokensUsed]);
    assert.deepEqual(
      receipt.items.map(({ section, tokens }) => [section, tokens]),
      context.items.map(({ section, tokens }) => [section, tokens]),
    );
  });

  test("replays what was replaced since as it was", async () => {
    const context = await chat.context(200);
    const [first] = await chat.messages();
    await chat.append({ role: "user", text: "Which boat goes to Lisbon?", id: first?.id ?? "" });

    const replay = await remora.receipts.replay(context.receiptId);

    assert.ok(replay.identical);
    assert.equal(replay.reply.case, "context");
    assert.deepEqual(replay.reply.value, context);
    assert.equal((await chat.messages())[0]?.text, "Which boat goes to Lisbon?");
  });

  test("names what was erased since", async () => {
    const found = await chat.search("Lisbon", { k: 2 });
    const gone = found.hits[0]?.message?.id ?? assert.fail();
    await remora.conversations.deleteMessages({ conversationId: "trip", messageIds: [gone] });

    const replay = await remora.receipts.replay(found.receiptId);

    assert.equal(replay.reply.case, "search");
    assert.ok(!replay.identical);
    assert.deepEqual(
      replay.erased.map(({ messageId }) => messageId),
      [gone],
    );
  });

  test("compared with a later one says what came in", async () => {
    const before = await chat.context(200);
    await chat.append({ role: "assistant", text: "On Sunday." });
    const later = await chat.context(200);

    const found = await remora.receipts.diff(before.receiptId, later.receiptId);

    assert.deepEqual(
      found.cameIn.map(({ after }) => after?.messageId),
      [later.items.at(-1)?.message?.id],
    );
    assert.deepEqual([found.wentOut, found.unchanged], [[], 3]);
  });

  test("is listed by user and conversation, the newest first", async () => {
    const ids = [(await chat.context(200)).receiptId, (await chat.search("train")).receiptId];

    const listed = async (which: object): Promise<string[]> =>
      (await remora.receipts.listReceipts(which)).map(({ id }) => id);
    assert.deepEqual(await listed({}), ids.toReversed());
    assert.deepEqual(await listed({ conversationId: "trip", limit: 1 }), ids.slice(1));
    assert.deepEqual(await listed({ userId: "tom" }), []);
  });

  test("of another user is not found", async () => {
    const { receiptId } = await chat.context(200);

    const tom = { userId: "tom" };
    assert.ok((await failureOf(remora.receipts.get(receiptId, tom))) instanceof ReceiptNotFoundError);
    assert.ok((await failureOf(remora.receipts.replay(receiptId, tom))) instanceof ReceiptNotFoundError);
  });
});
