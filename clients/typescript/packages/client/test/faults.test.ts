// A real server that is killed, stopped, paused and overwhelmed.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, afterEach, before, describe, test } from "node:test";
import {
  ConnectionFailedError,
  DeadlineExceededError,
  MessageTooLargeError,
  pages,
  Remora,
  type RemoraOptions,
  RevisionUnknownError,
} from "../src/index.js";
import { failureInTime, failureOf, PATIENCE_MS } from "./failures.js";
import { type Listening, Server } from "./server.js";

const open: { remove(): Promise<void> | void }[] = [];

afterEach(async () => {
  for (const opened of open.splice(0).reverse()) {
    await opened.remove();
  }
});

async function start(listening: Listening = "unix", options: { keeps?: boolean } = {}): Promise<Server> {
  const server = await Server.start(listening, options);
  open.push(server);
  return server;
}

function connect(server: Server, options: RemoraOptions = {}): Remora {
  const remora = new Remora({ endpoint: server.endpoint, tenant: "acme", timeoutMs: PATIENCE_MS, ...options });
  open.push({ remove: () => remora.close() });
  return remora;
}

function append(remora: Remora, text: string, timeoutMs = PATIENCE_MS) {
  const request = { conversationId: "c", createIfMissing: { userId: "u" }, messages: [{ role: "user", text }] };
  return remora.conversations.appendMessages(request, { timeoutMs });
}

async function texts(remora: Remora): Promise<string[]> {
  const found: string[] = [];
  for await (const page of pages(remora.conversations.listMessages, { conversationId: "c", pageSize: 1000 })) {
    found.push(...page.messages.map((message) => message.text));
  }
  return found;
}

for (const listening of ["unix", "tcp"] satisfies Listening[]) {
  describe(`over ${listening}`, () => {
    test("a client finds the server again that was killed and started between its calls", async () => {
      const server = await start(listening, { keeps: true });
      const remora = connect(server);
      await append(remora, "before");

      for (const signal of ["SIGKILL", "SIGTERM"] as const) {
        await server.kill(signal);
        const down = await failureInTime((timeoutMs) => failureOf(append(remora, "down", timeoutMs)));
        await server.run();

        assert.ok(down instanceof ConnectionFailedError);
      }
      await append(remora, "after");
      assert.deepEqual(await texts(remora), ["before", "after"]);
    });

    test("every write that is in progress when the server is killed takes effect once", async () => {
      const server = await start(listening, { keeps: true });
      const remora = connect(server);
      const expected = Array.from({ length: 400 }, () => randomUUID());

      const writes = expected.map((text) => append(remora, text));
      await Promise.race(writes);
      await server.kill();
      await server.run();
      await Promise.all(writes);

      assert.deepEqual((await texts(remora)).sort(), [...expected].sort());
    });
  });
}

test("a server that does not answer exceeds the deadline, and answers when it is back", async () => {
  const server = await start();
  const remora = connect(server);
  await append(remora, "a");

  server.pause();
  const [failure, large] = await Promise.all(
    ["b", "x".repeat(3 << 20)].map((text) => failureOf(append(remora, text, 200))),
  );
  server.resume();

  assert.ok(failure instanceof DeadlineExceededError);
  assert.ok(large instanceof DeadlineExceededError); // the server had not even taken all of it
  await remora.conversations.appendMessages({
    conversationId: "c",
    requestId: failure.requestId,
    createIfMissing: { userId: "u" },
    messages: [{ role: "user", text: "b" }],
  });
  assert.deepEqual(await texts(remora), ["a", "b"]);
});

test("a call waits within its deadline for a server that is starting", async () => {
  const server = await start();
  await server.kill();
  const remora = connect(server);

  const failing = await server.refuseCalls();
  const call = remora.conversations.countConversations({});
  await failing.attempted;
  await failing.end();
  await server.run();

  assert.equal((await call).count, 0n);
});

test("a store that is lost is told once", async () => {
  const server = await start();
  const remora = connect(server);
  await append(remora, "a");
  await server.kill();
  await server.run();

  await assert.rejects(texts(remora), RevisionUnknownError);
  assert.equal((await remora.conversations.countConversations({})).count, 0n);
});

describe("a server under load", () => {
  let server: Server;
  before(async () => {
    server = await Server.start();
  });
  after(() => server.remove());

  test("a request beyond what the server takes is refused, and the connection stays", async () => {
    const remora = connect(server, { tenant: randomUUID() });

    for (const bytes of [4 << 20, 32 << 20]) {
      await assert.rejects(append(remora, "x".repeat(bytes)), MessageTooLargeError);
    }
    await append(remora, "y".repeat(1 << 20));
    assert.equal((await texts(remora))[0]?.length, 1 << 20);
  });

  test("two thousand calls at once are answered", async () => {
    const remora = connect(server, { tenant: randomUUID() });
    const expected = Array.from({ length: 2_000 }, (_, number) => `text ${number}`);

    await Promise.all(expected.map((text) => append(remora, text)));

    assert.deepEqual((await texts(remora)).sort(), [...expected].sort());
  });

  test("large replies of many calls arrive whole", async () => {
    const remora = connect(server, { tenant: randomUUID() });
    for (let number = 0; number < 5; number++) {
      await append(remora, String(number).repeat(500_000));
    }

    const lists = await Promise.all(Array.from({ length: 20 }, () => texts(remora)));

    for (const list of lists) {
      assert.deepEqual(
        list.map((text) => [text[0], text.length]),
        [..."01234"].map((digit) => [digit, 500_000]),
      );
    }
  });

  test("tenants are apart", async () => {
    await append(connect(server, { tenant: "acme" }), "a");

    assert.equal((await connect(server, { tenant: "other" }).conversations.countConversations({})).count, 0n);
  });
});
