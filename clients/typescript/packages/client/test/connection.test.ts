// Replies and ends of connections that only a peer of another kind, or a broken one, sends.

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttp1Server } from "node:http";
import * as net from "node:net";
import { afterEach, beforeEach, describe, test } from "node:test";
import {
  AssembleContextResponseSchema,
  CountConversationsResponseSchema,
  ListMessagesRequestSchema,
} from "../src/generated/v1.js";
import {
  ClientClosedError,
  ConnectionFailedError,
  Remora,
  type RemoraError,
  ResourceExhaustedError,
  UnimplementedError,
  UnknownError,
} from "../src/index.js";
import { failureInTime, failureOf, PATIENCE_MS } from "./failures.js";
import { Failure, type Handler, reply, ScriptedServer, send } from "./scripted-server.js";

let server: ScriptedServer;
let remora: Remora;

beforeEach(async () => {
  server = await ScriptedServer.start();
  remora = new Remora({ endpoint: server.endpoint, timeoutMs: PATIENCE_MS });
});

afterEach(() => {
  remora.close();
  server.stop();
});

const count = (timeoutMs = PATIENCE_MS) => remora.conversations.countConversations({}, { timeoutMs });

describe("a reply", () => {
  test("may come in pieces of any size", async () => {
    for (const pieceBytes of [1, 2, 3, 5, 7]) {
      server.answer("CountConversations", (stream) =>
        reply(stream, CountConversationsResponseSchema, { count: 2n ** 53n + 1n }, pieceBytes),
      );

      assert.equal((await count()).count, 2n ** 53n + 1n);
    }
  });

  test("beyond gRPC's usual limit is taken", async () => {
    const text = "x".repeat(6 << 20);
    server.answer("AssembleContext", (stream) => reply(stream, AssembleContextResponseSchema, { text }, 100_000));

    assert.equal((await remora.memory.assembleContext({ conversationId: "c", maxTokens: 9 })).text, text);
  });

  test("beyond 64 MiB is refused, and the connection stays", async () => {
    const tooLarge = Buffer.alloc(66 << 20);
    tooLarge.writeUInt32BE(tooLarge.length - 5, 1);
    server.answer("CountConversations", (stream) => send(stream, tooLarge, 1 << 20));

    assert.ok((await failureOf(count())) instanceof ResourceExhaustedError);
    await remora.conversations.listMessages({ conversationId: "c" });
    assert.equal(server.sessions.size, 1);
  });

  const malformed: [string, Buffer][] = [
    ["empty", Buffer.alloc(0)],
    ["shorter than its frame's header", Buffer.alloc(4)],
    ["shorter than its length", Buffer.from([0, 0, 0, 0, 9, 1])],
    ["compressed", Buffer.from([1, 0, 0, 0, 0])],
  ];
  for (const [what, body] of malformed) {
    test(`that is ${what} is an error`, async () => {
      server.answer("CountConversations", (stream) => send(stream, body));

      assert.match((await failureOf(count())).code, /UNIMPLEMENTED|UNKNOWN/);
    });
  }

  test("of a server that speaks no gRPC says so", async () => {
    const status = (code: number): Handler => {
      return (stream) => stream.respond({ ":status": code, "content-type": "text/html" }, { endStream: true });
    };
    server.answer("CountConversations", status(404), status(200), status(503), {});

    const missing = await failureOf(count());
    assert.ok(missing instanceof UnimplementedError);
    assert.match(missing.message, /HTTP status code 404/);
    assert.ok((await failureOf(count())) instanceof UnknownError);
    await count(); // 503 passes
    assert.equal(server.calls.length, 4);
  });
});

describe("a stream that ends without a status", () => {
  test("because the server refused it is sent again", async () => {
    server.answer("CountConversations", (stream) => stream.close(7), { count: 3n });

    assert.equal((await count()).count, 3n);
  });

  test("because of an error fails with gRPC's code for it", async () => {
    const codes: [number, string][] = [
      [2, "INTERNAL"],
      [8, "CANCELLED"],
      [11, "RESOURCE_EXHAUSTED"],
    ];
    for (const [rstCode, code] of codes) {
      server.answer("CountConversations", (stream) => stream.close(rstCode));

      assert.equal((await failureOf(count())).code, code);
    }
  });
});

describe("a write that ended without an answer says whether it was sent", () => {
  const ends: [string, number, (client: Remora, cancel: () => void) => void][] = [
    ["the end of the client", PATIENCE_MS, (client) => client.close()],
    ["its signal", PATIENCE_MS, (_, cancel) => cancel()],
    ["its deadline", 200, () => {}],
  ];
  for (const listening of ["unix", "tcp"] as const) {
    for (const [what, timeoutMs, end] of ends) {
      const ended = async (client: Remora, begun: Promise<unknown>): Promise<RemoraError> => {
        const controller = new AbortController();
        const options = { requestId: "r1", signal: controller.signal, timeoutMs };
        const call = failureOf(client.conversations.clearMessages({ conversationId: "c" }, options));
        await Promise.race([begun, call]);
        end(client, () => controller.abort());
        return call;
      };

      test(`over ${listening}, if ${what} came before there was a connection`, async () => {
        const silent = net.createServer();
        silent.listen(listening === "unix" ? { path: `${server.endpoint.slice("unix:".length)}2` } : { port: 0 });
        await once(silent, "listening");
        const opened = once(silent, "connection");
        const address = silent.address();
        const client = new Remora({
          endpoint: typeof address === "string" ? `unix:${address}` : `localhost:${address?.port}`,
        });

        const failure = await ended(client, opened);

        assert.match(failure.message, /; nothing was sent$/);
        client.close();
        const [socket] = (await opened) as [net.Socket];
        socket.destroy();
        silent.close();
      });

      test(`over ${listening}, if ${what} came after it had arrived`, async () => {
        const relay = new Relay(server.endpoint.slice("unix:".length));
        const client = new Remora({ endpoint: listening === "unix" ? server.endpoint : await relay.listen() });
        await client.conversations.countConversations({}, { timeoutMs: PATIENCE_MS });
        const arrived = new Promise<void>((resolve) => server.answer("ClearMessages", () => resolve()));

        const failure = await ended(client, arrived);

        assert.match(
          failure.message,
          /; it may have taken effect: the same call with requestId "r1" takes effect once$/,
        );
        client.close();
        relay.close();
      });
    }
  }
});

describe("a connection", () => {
  test("serves many calls at once", async () => {
    await Promise.all(Array.from({ length: 2_000 }, () => count()));

    assert.equal(server.calls.length, 2_000);
    assert.equal(server.sessions.size, 1);
  });

  test("that breaks fails its calls, which are sent again over a new one", async () => {
    const breaks: Handler = (stream) => stream.session?.destroy();
    server.answer("CountConversations", breaks, { count: 4n });

    assert.equal((await count()).count, 4n);
  });

  test("that the server closes serves its calls to the end, and others go over a new one", async () => {
    server.answer("CountConversations", async (stream) => {
      stream.session?.goaway(0, stream.id);
      await remora.conversations.listMessages({ conversationId: "c" });
      reply(stream, CountConversationsResponseSchema, { count: 5n });
    });

    assert.equal((await count()).count, 5n);
    assert.equal(server.requests(ListMessagesRequestSchema).length, 1);
  });

  test("that was replaced has its calls cancelled by the end of the client, too", async () => {
    const hangs = new Promise<void>((resolve) => {
      server.answer("CountConversations", (stream) => {
        stream.session?.goaway(0, stream.id);
        resolve();
      });
    });
    const call = failureOf(count());
    await hangs;
    await remora.conversations.listMessages({ conversationId: "c" });

    remora.close();

    assert.ok((await call) instanceof ClientClosedError);
  });

  test("that is not there is named with the way to start a server", async () => {
    server.stop();

    const failure = await failureInTime((timeoutMs) => failureOf(count(timeoutMs)));

    assert.ok(failure instanceof ConnectionFailedError);
    assert.equal(failure.endpoint, server.endpoint);
    const path = server.endpoint.slice("unix:".length);
    assert.ok(failure.message.includes(`no Remora server answers at ${server.endpoint} (connect ENOENT ${path});`));
    assert.match(failure.message, /`remora serve` starts one.*\$REMORA_ENDPOINT/);
  });

  test("to a port where nobody listens, or to a host that is not there, names it, too", async () => {
    for (const [endpoint, reason] of [
      ["127.0.0.1:1", "ECONNREFUSED"],
      ["no-such-host.invalid:7411", "Name resolution failed"],
    ] as const) {
      const client = new Remora({ endpoint });
      const failure = await failureInTime((timeoutMs) =>
        failureOf(client.conversations.countConversations({}, { timeoutMs })),
      );

      assert.match(failure.message, new RegExp(`no Remora server answers at ${endpoint} \\(.*(${reason})`));
    }
  });

  test("that is not there says of a write that nothing was sent", async () => {
    server.stop();

    const failure = await failureInTime((timeoutMs) =>
      failureOf(remora.conversations.clearMessages({ conversationId: "c" }, { timeoutMs })),
    );

    assert.match(failure.message, /; nothing was sent$/);
  });

  test("that broke says of a write that it may have taken effect, whatever follows", async () => {
    const failure = await failureInTime(async (timeoutMs) => {
      const breaking = await ScriptedServer.start();
      breaking.answer("ClearMessages", () => {
        breaking.stop();
      });
      const client = new Remora({ endpoint: breaking.endpoint, timeoutMs });
      const found = await failureOf(client.conversations.clearMessages({ conversationId: "c", requestId: "r1" }));
      client.close();
      breaking.stop();
      return found;
    });

    assert.ok(failure instanceof ConnectionFailedError);
    assert.match(failure.message, /; it may have taken effect: the same call with requestId "r1" takes effect once$/);
  });

  test("to a server of HTTP/1 fails", async () => {
    const http1 = createHttp1Server().listen(0, "127.0.0.1");
    await once(http1, "listening");
    const { port } = http1.address() as net.AddressInfo;
    const client = new Remora({ endpoint: `127.0.0.1:${port}` });
    const failure = await failureInTime((timeoutMs) =>
      failureOf(client.conversations.countConversations({}, { timeoutMs })),
    );

    assert.ok(failure instanceof ConnectionFailedError);
    http1.close();
    http1.closeAllConnections();
  });

  test("whose other end is gone without a word is replaced", async () => {
    const relay = new Relay(server.endpoint.slice("unix:".length));
    const client = new Remora({ endpoint: await relay.listen(), timeoutMs: 300 });
    await client.conversations.countConversations({}, { timeoutMs: PATIENCE_MS });

    relay.swallow();
    const failure = await failureOf(client.conversations.countConversations({}));
    assert.equal(failure.code, "DEADLINE_EXCEEDED");

    await client.conversations.countConversations({}, { timeoutMs: PATIENCE_MS });
    client.close();
    relay.close();
  });
});

test("a failure of the server's own is told as it is", async () => {
  server.answer("CountConversations", new Failure("DATA_LOSS", "STORE_DAMAGED"));

  assert.equal((await failureOf(count())).constructor.name, "StoreDamagedError");
});

/** Passes bytes on over TCP, until it swallows those of the connections that it has then. */
class Relay {
  readonly #server: net.Server;
  readonly #pairs: [net.Socket, net.Socket][] = [];

  constructor(path: string) {
    this.#server = net.createServer((near) => {
      const far = net.connect(path);
      near.pipe(far).pipe(near);
      near.on("error", () => {});
      far.on("error", () => {});
      this.#pairs.push([near, far]);
    });
  }

  async listen(): Promise<string> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
    return `127.0.0.1:${(this.#server.address() as net.AddressInfo).port}`;
  }

  swallow(): void {
    for (const [near, far] of this.#pairs) {
      near.unpipe(far);
      far.unpipe(near);
      near.resume();
      far.resume();
    }
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#pairs.flat()) {
      socket.destroy();
    }
  }
}
