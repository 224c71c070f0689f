// The messages of a graph in a conversation: an update does what LangGraph's reducers do.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  AIMessage,
  type BaseMessage,
  ChatMessage,
  HumanMessage,
  RemoveMessage,
  SystemMessage,
  ToolMessage,
} from "@langchain/core/messages";
import { messagesStateReducer, REMOVE_ALL_MESSAGES } from "@langchain/langgraph";
import { InvalidFieldError, MessageNotFoundError } from "@remora/client";
import { counted } from "../../client/test/counting.js";
import { server } from "../../client/test/fresh.js";
import { RemoraMessages } from "../src/index.js";

const { fresh } = server();

function made(): RemoraMessages {
  return new RemoraMessages({ ...fresh(), conversationId: "c", userId: "ana" });
}

function said(id: string, text = id): HumanMessage {
  return new HumanMessage({ id, content: text });
}

function shown(messages: readonly BaseMessage[]): string[] {
  return messages.map(({ id, content }) => `${id}: ${String(content)}`);
}

/** The same numbers each time. */
function* numbers(seed: number): Generator<number, never> {
  for (let state = seed; ;) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    yield state;
  }
}

describe("an update", () => {
  test("of a conversation that another update has created meanwhile is applied", async () => {
    const { client } = counted(fresh());
    const { createConversation } = client.conversations;
    const twice: typeof createConversation = async (request) => {
      await createConversation(request);
      return createConversation(request);
    };
    Object.assign(client.conversations, { createConversation: twice });
    const messages = new RemoraMessages({ client, conversationId: "c", userId: "ana" });

    await messages.update([said("a")]);

    assert.deepEqual(shown(await messages.list()), ["a: a"]);
  });

  test("of an array adds messages, which come back as they were", async () => {
    const messages = made();
    const given = [
      new SystemMessage({ id: "s", content: "Be brief." }),
      new HumanMessage({ id: "h", content: [{ type: "text", text: "What is this?" }], name: "Ana" }),
      new AIMessage({ id: "a", content: "", tool_calls: [{ id: "t1", name: "look", args: { deep: true } }] }),
      new ToolMessage({ id: "t", content: "a cat", tool_call_id: "t1", artifact: { sure: 1 } }),
      new ChatMessage({ id: "n", role: "narrator", content: "Night falls." }),
    ];
    await messages.update(given);

    const found = await messages.list();

    assert.deepEqual(
      found.map((message) => message.toDict()),
      given.map((message) => message.toDict()),
    );
    const stored = await messages.client.conversations.listMessages({ conversationId: "c", userId: "ana" });
    assert.deepEqual(
      stored.messages.map(({ role }) => role),
      ["system", "user", "assistant", "tool", "narrator"],
    );
    assert.deepEqual(stored.messages[2]?.toolCalls[0]?.name, "look");
    assert.deepEqual(stored.messages[3]?.toolResultIds, ["t1"]);
    assert.equal(stored.messages[1]?.text, "What is this?");
  });

  test("is one call, and gives ids to messages without one", async () => {
    const { client, calls } = counted(fresh());
    const messages = new RemoraMessages({ client, conversationId: "c" });
    await messages.update([said("a")]);
    calls.length = 0;
    const unnamed = new AIMessage("hello");

    await messages.update([said("b"), new RemoveMessage({ id: "a" }), unnamed]);

    assert.deepEqual(calls, ["editMessages"]);
    assert.deepEqual(shown(await messages.list()), ["b: b", `${unnamed.id}: hello`]);
    client.close();
  });

  test("keeps a slice, as Array.prototype.slice does", async () => {
    const letters = [..."abcdefgh"];
    for (const [from, to] of [[2], [-3], [1, 3], [-4, -1], [0, 100], [-100, 2], [5, 2], [undefined, 4], [1.9, 3.2]]) {
      const messages = made();
      await messages.update(letters.map((id) => said(id)));

      await messages.update({ type: "keep", from, to });

      const expected = letters.slice(from, to);
      assert.deepEqual(
        (await messages.list()).map(({ id }) => id),
        expected,
        JSON.stringify([from, to]),
      );
    }
  });

  test("that misspells a keep is refused by the name of the field, and changes nothing", async () => {
    const messages = made();
    await messages.update([said("a"), said("b"), said("c")]);
    const wrong: [object, string, RegExp][] = [
      [{ type: "keep", form: -2 }, "form", /^form is no key of a keep; it has from and to, such as/],
      [{ type: "keep", from: 1, too: 3 }, "too", /^too is no key of a keep/],
      [{ type: "keep", from: "1" }, "from", /^from is "1"; it must be a number$/],
      [{ type: "keep", from: 0, to: Number.NaN }, "to", /^to is NaN; it must be a number$/],
      [{ type: "keep", to: null }, "to", /^to is null; it must be a number$/],
      [{ type: "Keep", from: -1 }, "type", /^type is "Keep"; what keeps a slice is \{ type: "keep", from, to \}$/],
      [{ type: "keeep", from: -1 }, "type", /^type is "keeep"; /],
      [{ from: -1 }, "type", /^type is undefined; /],
    ];

    for (const [update, field, said] of wrong) {
      await assert.rejects(messages.update(update as never), (refused: Error) => {
        assert.ok(refused instanceof InvalidFieldError, String(refused));
        assert.deepEqual(
          refused.fieldViolations.map((each) => each.field),
          [field],
        );
        assert.match(refused.message, said);
        return true;
      });
    }

    assert.deepEqual(shown(await messages.list()), ["a: a", "b: b", "c: c"]);
  });

  test("of anything else changes nothing", async () => {
    const messages = made();
    await messages.update([said("a")]);
    for (const update of [{}, { type: "drop" }, 5, null, undefined, []]) {
      await messages.update(update as never).catch((failure: unknown) => {
        assert.fail(`${JSON.stringify(update)}: ${String(failure)}`);
      });
    }

    assert.deepEqual(shown(await messages.list()), ["a: a"]);
  });

  test("that removes what is not there is refused as a whole", async () => {
    const messages = made();
    await messages.update([said("a")]);

    await assert.rejects(messages.update([said("b"), new RemoveMessage({ id: "x" })]), MessageNotFoundError);

    assert.deepEqual(shown(await messages.list()), ["a: a"]);
  });

  test("does what LangGraph's reducer does, whatever it holds", async () => {
    const random = numbers(7);
    const next = (below: number) => Number(random.next().value >> 8) % below;
    for (let round = 0; round < 25; round++) {
      const messages = made();
      let expected: BaseMessage[] = [];
      for (let step = 0; step < 5; step++) {
        const update = Array.from({ length: 1 + next(5) }, () => {
          const id = "abcdef"[next(6)] ?? "a";
          return next(3) === 0 ? new RemoveMessage({ id }) : said(id, `${round}.${step}.${next(1_000)}`);
        });
        if (next(4) === 0) {
          // What follows it is taken as it is by LangGraph, ids that are there twice, too.
          const last = new Map(update.filter((one) => !(one instanceof RemoveMessage)).map((one) => [one.id, one]));
          update.splice(0, update.length, said("x"), new RemoveMessage({ id: REMOVE_ALL_MESSAGES }), ...last.values());
        }
        let reduced: BaseMessage[] | undefined;
        try {
          reduced = messagesStateReducer(expected, update);
        } catch {
          await assert.rejects(messages.update(update), MessageNotFoundError);
        }
        if (reduced) {
          await messages.update(update);
          expected = reduced;
        }
        assert.deepEqual(
          shown(await messages.list()),
          shown(expected),
          JSON.stringify(update.map((one) => one.toDict())),
        );
      }
    }
  });
});

test("a conversation that is not there has no messages", async () => {
  assert.deepEqual(await made().list(), []);
});

test("messages without a conversation say what to pass", () => {
  const example = 'RemoraMessages({ conversationId: "support-42" })';
  for (const conversationId of [undefined, null, "", 5]) {
    assert.throws(() => new RemoraMessages({ tenant: "acme", conversationId } as never), {
      name: "WrongTypeError",
      message:
        `conversationId is ${JSON.stringify(conversationId)}; it must be a string of 1 to 512 bytes: ` +
        `the conversation that holds the messages, as in new ${example}`,
    });
  }
  for (const options of [undefined, null, "conv1", []]) {
    assert.throws(() => new RemoraMessages(options as never), {
      name: "WrongTypeError",
      message: `options is ${JSON.stringify(options)}; it must be an object, such as { conversationId: "support-42" }`,
    });
  }
});
