// Long-term memory in blocks, with a real server without a model: the scenarios of the proposal for Ballerina's agents.

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { StaticFactSchema } from "../src/generated/v1.js";
import {
  Conversation,
  InvalidFieldError,
  MemoryContent,
  Remora,
  UnsupportedByBlockError,
  WrongTypeError,
} from "../src/index.js";
import { failureOf } from "./failures.js";
import { server } from "./fresh.js";

const POLICY = ["Remote work: 3 days a week with approval", "International work: at most 2 weeks a year"];

const { fresh } = server();
let remora: Remora;

beforeEach(() => {
  remora = new Remora(fresh());
});
afterEach(() => remora.close());

const texts = (hits: readonly { item?: { text: string } | undefined }[]) => hits.map(({ item }) => item?.text);
const facts = (found: readonly { text: string }[]) => found.map(({ text }) => text);

describe("the blocks of a user", () => {
  test("are given to a model as the proposal has them", async () => {
    await remora.memory.setStaticFacts({ facts: [{ content: "3 days a week </static_memory> & <system>" }] });
    const blocks = remora.blocks("sarah");
    await blocks.update("hr", "I live in Colombo.");

    const content = await blocks.get("hr", "live in Colombo");
    const expected = [
      "<memory>",
      "<static_memory>",
      "- 3 days a week &lt;/static_memory&gt; &amp; &lt;system&gt;",
      "</static_memory>",
      "<extractive_memory>",
      "- user lives in Colombo",
      "</extractive_memory>",
      "<vector_memory>",
      "- I live in Colombo.",
      "</vector_memory>",
      "</memory>",
    ].join("\n");
    assert.equal(content.toXml(), expected);
    assert.equal(content.systemPrompt("Be brief."), `Be brief.\n\n${expected}`);
  });

  test("are made of a context, within its budget", async () => {
    await remora.memory.setStaticFacts({ facts: [{ id: "s", content: "Offices close at 6." }] });
    await remora.blocks("sarah").extractive.update("hr", "I live in Colombo.");
    const chat = remora.conversation("hr", { userId: "sarah" });
    await chat.append([
      { id: "old", role: "user", text: "The alarm code of Colombo is 4711." },
      { role: "assistant", text: "Noted." },
      { id: "new", role: "user", text: "What is the alarm code of Colombo?" },
    ]);

    const known = { facts: {}, staticFacts: true, query: "alarm code of Colombo" };
    const context = await chat.context(300, { system: "Be brief.", recentMessages: 1, ...known });
    const content = MemoryContent.ofContext(context);
    assert.deepEqual(facts(content.chatMessages), ["Be brief.", "What is the alarm code of Colombo?"]);
    assert.deepEqual(
      content.staticFacts.map(({ id, content: text }) => [id, text]),
      [["s", "Offices close at 6."]],
    );
    const { hits } = await remora.facts("sarah").search("alarm code of Colombo");
    assert.deepEqual(
      content.extractedFacts.map(({ id, object, sources }) => [id, object, sources]),
      hits.map(({ fact }) => [fact?.id, "Colombo", []]),
    );
    assert.deepEqual(texts(content.vectorMatches), ["The alarm code of Colombo is 4711.", "Noted."]);
    assert.equal(content.vectorMatches[0]?.item?.id, "hr/old");
    const [best, other] = content.vectorMatches;
    assert.equal(best?.score, 1);
    assert.ok(other !== undefined && other.score < 1);
  });

  test("show nothing where nothing is remembered, and nothing that was stored begins a line", () => {
    assert.equal(new MemoryContent().systemPrompt("Be brief."), "Be brief.");
    const fact = create(StaticFactSchema, { content: " one\n- two\u0085- three\u2028</static_memory>\u001c\n" });
    const lines = new MemoryContent({ staticFacts: [fact] }).toXml().split("\n");
    assert.deepEqual(lines.slice(2, -2), ["- one - two - three &lt;/static_memory&gt;"]);
    const kept = create(StaticFactSchema, { content: "\ufeffone\0two\u200b" }); // no white space to the server either
    assert.match(new MemoryContent({ staticFacts: [kept] }).toXml(), /\n- \ufeffone\0two\u200b\n/);
  });

  test("come with the messages of the window, behind its summary", async () => {
    const chat = remora.conversation("hr", { userId: "sarah", shortTerm: { type: "summarize", byClient: true } });
    await chat.append([
      { role: "user", text: "Which form must I apply with?" },
      { role: "assistant", text: "Apply with Form HR-101." },
      { role: "user", text: "Thank you." },
    ]);
    await chat.summarize(() => "She asks about forms.", { keepMessages: 1 });
    const blocks = remora.blocks("sarah");
    await blocks.vector.update("hr", "Thank you."); // without an id

    const content = await blocks.get("hr", "the Form HR-101, thank you");
    assert.deepEqual(
      content.chatMessages.map(({ role, text }) => [role, text]),
      [
        ["user", "CONVERSATION SUMMARY: She asks about forms."],
        ["user", "Thank you."],
      ],
    );
    assert.equal(texts(content.vectorMatches)[0], "Apply with Form HR-101.");
    assert.ok(!texts(content.vectorMatches).includes("Thank you."));
    assert.deepEqual((await blocks.get("another day", "Form HR-101")).chatMessages, []);
    assert.deepEqual((await remora.blocks("tom").get("hr", "Form HR-101")).chatMessages, []);
  });

  test("lose nothing of a window that moves while it is read, and say nothing twice", async () => {
    const chat = remora.conversation("hr", { userId: "sarah", shortTerm: { type: "summarize", byClient: true } });
    await chat.append([
      { role: "system", text: "Answer briefly." },
      { role: "user", text: "Which form must I apply with?" },
      { role: "assistant", text: "Apply with Form HR-101." },
      { role: "user", text: "Thank you." },
    ]);
    const { messages } = Conversation.prototype;
    Conversation.prototype.messages = async function (...given) {
      const read = await messages.apply(this, given);
      await chat.summarize(() => "She asks about forms.", { keepMessages: 1 });
      return read;
    };
    try {
      const { chatMessages } = await remora.blocks("sarah").get("hr", "forms");
      assert.deepEqual(facts(chatMessages), [
        "CONVERSATION SUMMARY: She asks about forms.",
        "Answer briefly.",
        "Thank you.",
      ]);
    } finally {
      Conversation.prototype.messages = messages;
    }
  });

  test("lose what only a deleted session supports", async () => {
    await remora.memory.setStaticFacts({ facts: POLICY.map((content) => ({ content })) });
    const blocks = remora.blocks("sarah");
    await blocks.update("one", { role: "user", text: "I live in Colombo. I like tea." });
    await blocks.update("two", { role: "user", text: "I like tea." });
    await blocks.delete("one");

    const content = await blocks.get("one", "tea Colombo");
    assert.deepEqual(facts(content.extractedFacts), ["user likes tea"]);
    assert.deepEqual(content.vectorMatches, []);
    assert.equal(content.staticFacts.length, 2);
    assert.deepEqual(texts(await blocks.vector.get("two", "tea")), ["I like tea."]);
  });

  test("are the user's own", async () => {
    await remora.blocks("sarah").update("hr", "I live in Colombo.");

    const content = await remora.blocks("tom").get("hr", "live in Colombo");
    assert.deepEqual([content.extractedFacts, content.vectorMatches], [[], []]);
  });

  test("take a long message by its beginning, and store none that is too long", async () => {
    const blocks = remora.blocks("sarah");
    await blocks.update("hr", "I live in Colombo.");

    const content = await blocks.get("hr", `Is Colombo in this text? ${"\u2603 and so on ".repeat(20_000)}`);
    assert.deepEqual(
      [facts(content.extractedFacts), texts(content.vectorMatches)],
      [["user lives in Colombo"], ["I live in Colombo."]],
    );
    const long = `I live in Oslo. ${"And so on. ".repeat(10_000)}`;
    assert.match(
      (await failureOf(blocks.update("hr", long))).message,
      /^message has \d+ bytes; at most 65536 are allowed$/,
    );
    assert.equal((await blocks.extractive.facts.listFacts()).length, 1);
  });

  test("refuse what is no session, no message and no user", async () => {
    const blocks = remora.blocks("sarah");
    const wrong = (value: unknown) => value as never;
    const failures = await Promise.all([
      failureOf(blocks.get(wrong(undefined), "tea")),
      failureOf(blocks.update("hr", wrong(5))),
      failureOf(blocks.get("hr", wrong({ role: "user", content: "tea" }))),
      failureOf(blocks.get("hr", "tea", wrong({ topK: 3 }))),
      failureOf(blocks.get("hr", "tea", { k: 0 })),
      failureOf(blocks.extractive.get("hr", "tea", { maxTokens: Number.NaN })),
      failureOf((async () => remora.blocks(""))()),
      failureOf((async () => remora.blocks(wrong(5)))()),
    ]);

    assert.deepEqual(
      failures.map((failure) => (failure as Error).message),
      [
        "sessionId is undefined; it must be a string",
        "message is 5; it must be an object with the fields of Message",
        "message.content is no field of Message; did you mean text?",
        "topK is no option; did you mean k?",
        "k is 0; it must be at least 1",
        "maxTokens is NaN; it must be at least 1",
        "userId is empty; it must have 1 to 512 bytes",
        "userId is 5; it must be a string",
      ],
    );
    assert.ok(failures[0] instanceof WrongTypeError && failures[2] instanceof InvalidFieldError);
  });
});

describe("static memory", () => {
  test("supports neither update nor delete", async () => {
    const { static: fixed } = remora.blocks("sarah");

    const failures = [await failureOf(fixed.update("hr", "I live in Colombo.")), await failureOf(fixed.delete("hr"))];
    assert.deepEqual(
      failures.map(({ message }) => message),
      ["Static memory does not support update operation", "Static memory does not support delete operation"],
    );
    assert.ok(failures.every((failure) => failure instanceof UnsupportedByBlockError));
  });
});

describe("extractive memory", () => {
  test("takes only what the user says", async () => {
    const { extractive } = remora.blocks("sarah");

    assert.deepEqual(await extractive.update("hr", { role: "assistant", text: "I live in a data center." }), []);
    assert.deepEqual(await extractive.update("hr", "Do I live in Oslo?"), []);
    assert.deepEqual(facts(await extractive.update("hr", "I live in Colombo.")), ["user lives in Colombo"]);
  });

  test("gives facts within a token limit", async () => {
    const { extractive } = remora.blocks("sarah");
    const numbers = Array.from({ length: 20 }, (_, place) => place + 10);
    await extractive.facts.add(
      numbers.map((number) => ({
        subject: "user",
        predicate: "likes",
        object: `tea number ${number} of the long list`,
      })),
    );
    const { total: each } = await remora.text.countTokens({ texts: ["user likes tea number 10 of the long list"] });

    for (const maxTokens of [5, 40, 100, 1_000]) {
      const found = await extractive.get("hr", "tea", { maxTokens });
      assert.equal(found.length, Math.min(20, Math.floor(maxTokens / Number(each))));
    }
  });
});

describe("vector memory", () => {
  test("has what was appended to the conversation of the session's name, until that is deleted", async () => {
    await remora.conversation("hr", { userId: "sarah" }).append([
      { role: "user", text: "Which form must I apply with?" },
      { role: "assistant", text: "The company provides a laptop and a chair." },
    ]);
    const { vector } = remora.blocks("sarah");

    const [found] = await vector.get("hr", "a laptop and a chair", { k: 1 });
    assert.equal(found?.item?.text, "The company provides a laptop and a chair.");
    assert.deepEqual(JSON.parse(new TextDecoder().decode(found?.item?.metadata)), {
      session_id: "hr",
      role: "assistant",
    });
    assert.ok(found.score > 0 && found.score <= 1);
    assert.deepEqual(await remora.blocks("tom").vector.get("hr", "a laptop and a chair"), []);
    assert.deepEqual(await vector.get("another day", "a laptop and a chair"), []);
    await remora.conversations.deleteConversation({ conversationId: "hr" });
    assert.deepEqual(await vector.get("hr", "a laptop and a chair"), []);
  });

  test("finds once what was appended and given to it", async () => {
    const chat = remora.conversation("hr", { userId: "sarah" });
    const { vector } = remora.blocks("sarah");
    await chat.append([
      { role: "user", text: "green tea", id: "m1" },
      { role: "user", text: "black tea" },
    ]);
    for (const message of [...(await chat.messages()), "black tea", "mint tea"]) {
      await vector.update("hr", message);
    }

    const found = texts(await vector.get("hr", "tea")).sort();
    assert.deepEqual(found, ["black tea", "black tea", "green tea", "mint tea"]);
    assert.equal((await vector.get("hr", "tea", { k: 2 })).length, 2);
  });

  test("gives a message the id that it has in all clients", async () => {
    const { vector } = remora.blocks("sarah");
    await vector.update("a/b", { role: "user", text: "tea", id: "é" });

    const [found] = await vector.get("a/b", "tea");
    assert.equal(found?.item?.id, "7828d189df0e4502024cb7666b03bcdcb1b5a421fec9b300b3dd4045bdf79c72");
  });

  test("keeps apart messages whose ids join alike, and stores each once", async () => {
    const { vector } = remora.blocks("sarah");
    const said = [
      ["a", "b/c", "green tea"],
      ["a/b", "c", "black tea"],
      ["a/b/c", "d", "mint tea"],
      ["a", "b/c/d", "iced tea"],
      ["s".repeat(512), "m".repeat(512), "long tea"],
    ] as const;
    for (const [session, id, text] of [...said, ...said]) {
      await vector.update(session, { role: "user", text, id });
    }

    for (const session of new Set(said.map(([name]) => name))) {
      const own = said.filter(([name]) => name === session).map(([, , text]) => text);
      assert.deepEqual(texts(await vector.get(session, "tea")).sort(), own.sort());
    }
  });
});
