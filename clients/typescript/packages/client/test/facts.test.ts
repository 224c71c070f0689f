// Facts of users, with a real server without a model.

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { FactNotFoundError, InvalidFieldError, type NewFact, Remora, timestampFromDate } from "../src/index.js";
import { failureOf } from "./failures.js";
import { server } from "./fresh.js";

const { fresh } = server();
let remora: Remora;

beforeEach(() => {
  remora = new Remora(fresh());
});
afterEach(() => remora.close());

function home(object: string, year: number): NewFact {
  const validFrom = timestampFromDate(new Date(Date.UTC(year, 0, 1)));
  return { subject: "user", predicate: "lives in", object, exclusive: true, validFrom };
}

describe("facts of a user", () => {
  test("end when others contradict them, and are asked for as of a time", async () => {
    const facts = remora.facts("sarah");
    await facts.add([home("Berlin", 2020), home("Munich", 2024)]);

    const objects = async (which = {}) => (await facts.listFacts(which)).map((fact) => fact.object).sort();
    assert.deepEqual(await objects(), ["Munich"]);
    assert.deepEqual(await objects({ validAt: new Date(Date.UTC(2021, 0, 1)) }), ["Berlin"]);
    assert.deepEqual(await objects({ atAnyTime: true }), ["Berlin", "Munich"]);
    assert.deepEqual(await objects({ recordedAt: new Date(Date.UTC(2021, 0, 1)) }), []);
    assert.deepEqual(await objects({ predicate: "likes" }), []);
    const { hits } = await facts.search("where does the user live", { k: 1, validAt: new Date(Date.UTC(2021, 0, 1)) });
    assert.deepEqual(
      hits.map((hit) => hit.fact?.object),
      ["Berlin"],
    );
  });

  test("are added and asked for with Dates and Timestamps alike", async () => {
    const facts = remora.facts("sarah");
    const [begin, between] = [new Date(Date.UTC(2020, 0, 1)), new Date(Date.UTC(2021, 0, 1))];
    const berlin = { subject: "user", predicate: "lives in", object: "Berlin", validFrom: begin };
    await facts.add(berlin, { conversationId: "c", messageId: "m", sentTime: between });

    for (const validAt of [between, timestampFromDate(between)]) {
      const [found] = await facts.listFacts({ validAt });
      assert.deepEqual(found?.validFrom, timestampFromDate(begin));
      assert.deepEqual(found?.sources[0]?.sentTime, timestampFromDate(between));
    }
    for (const validAt of [new Date(0), timestampFromDate(new Date(0))]) {
      assert.deepEqual(await facts.listFacts({ validAt }), []);
      assert.deepEqual((await facts.search("Berlin", { validAt })).hits, []);
    }
    assert.equal(berlin.validFrom, begin);
  });

  test("are found in what the user says, once for each message", async () => {
    await remora.conversation("trip", { userId: "sarah" }).append([
      { role: "user", text: "I live in Bergen. Do I live in Oslo?" },
      { role: "assistant", text: "I live in a data center." },
    ]);
    const facts = remora.facts("sarah");

    assert.equal((await facts.extractFrom("trip", { dryRun: true })).length, 1);
    assert.deepEqual(await facts.listFacts(), []);
    await facts.extractFrom("trip");
    await facts.extractFrom("trip");
    await facts.extract("I like tea.", { source: { conversationId: "mail", messageId: "m1" } });

    const found = await facts.listFacts();
    assert.deepEqual(
      found.map((fact) => [fact.text, fact.mentions, fact.sources[0]?.conversationId]),
      [
        ["user likes tea", 1, "mail"],
        ["user lives in Bergen", 1, "trip"],
      ],
    );
  });

  test("have the ids under which they were added where they were found", async () => {
    const facts = remora.facts("sarah");
    await remora.conversation("trip", { userId: "sarah" }).append({ role: "user", text: "I live in Bergen." });

    const [tea] = await facts.extract("I like tea.");
    const [home] = await facts.extractFrom("trip");
    const [rain] = await facts.extract("I like rain.", { dryRun: true });
    assert.deepEqual(
      [(await facts.get(tea?.id ?? "")).object, (await facts.get(home?.id ?? "")).object],
      ["tea", "Bergen"],
    );
    assert.equal(rain?.id, "");
    assert.equal(await facts.forget(tea?.id ?? ""), 1n);
  });

  test("end when the user says so", async () => {
    const facts = remora.facts("sarah");
    await facts.extract("I live in Bergen. I like tea.");
    await remora
      .conversation("trip", { userId: "sarah" })
      .append([{ role: "user", text: "I don't like tea any more." }]);

    const over = await facts.extract("I no longer live in Bergen. I used to live in Oslo.");
    assert.deepEqual(over, []);
    assert.deepEqual(
      [...over.ended, ...(await facts.extractFrom("trip")).ended].map((fact) => [
        fact.object,
        fact.validTo !== undefined,
      ]),
      [
        ["Bergen", true],
        ["tea", true],
      ],
    );
    assert.deepEqual(await facts.listFacts(), []);
    assert.equal((await facts.listFacts({ atAnyTime: true })).length, 2);
  });

  test("are corrected, retracted and forgotten", async () => {
    const facts = remora.facts("sarah");
    const [wrong = ""] = await facts.add(home("Berlin", 2020), { conversationId: "c", messageId: "m" });
    const [tea = ""] = await facts.add({ subject: "user", predicate: "likes", object: "tea" });

    const right = await facts.correct(wrong, {
      subject: "user",
      predicate: "lives in",
      object: "Bern",
      exclusive: true,
    });
    assert.equal((await facts.get(right)).corrects, wrong);
    assert.equal(await facts.retract([tea, "lost"]), 1n);
    assert.equal(await facts.forget([right]), 1n);
    assert.equal(await facts.forgetConversation("c"), 1n);
    assert.equal(await facts.clear(), 1n);
    assert.ok((await failureOf(facts.get(wrong))) instanceof FactNotFoundError);
  });

  test("are retracted and forgotten by one id, too", async () => {
    const facts = remora.facts("sarah");
    const [tea = ""] = await facts.add({ subject: "user", predicate: "likes", object: "tea" });
    const [mint = ""] = await facts.add({ subject: "user", predicate: "likes", object: "mint" });

    assert.equal(await facts.retract(tea), 1n);
    assert.equal(await facts.forget(mint), 1n);
    assert.deepEqual(await facts.listFacts(), []);
  });

  test("are the user's alone", async () => {
    const [factId = ""] = await remora.facts("sarah").add(home("Berlin", 2020));

    assert.deepEqual(await remora.facts("tom").listFacts(), []);
    assert.ok((await failureOf(remora.facts("tom").get(factId))) instanceof FactNotFoundError);
  });

  test("are not asked for with options that nobody knows", async () => {
    const unknown = { validat: new Date() } as object;

    assert.ok((await failureOf(remora.facts("sarah").listFacts(unknown))) instanceof InvalidFieldError);
  });
});
