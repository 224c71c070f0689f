// Deadlines, repeats, request ids, revisions and what travels with a call.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { getEventListeners, once } from "node:events";
import { afterEach, beforeEach, describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  AppendMessagesRequestSchema,
  CountConversationsRequestSchema,
  ListMessagesRequestSchema,
  SearchMessagesRequestSchema,
} from "../src/generated/v1.js";
import {
  CancelledError,
  ClientClosedError,
  DeadlineExceededError,
  InternalError,
  InvalidFieldError,
  ModelUnreachableError,
  OverloadedError,
  pages,
  Remora,
  type RemoraOptions,
  RevisionUnknownError,
  StoreFullError,
  UnavailableError,
  WrongTypeError,
} from "../src/index.js";
import { GREATEST_PAUSE_MS, MODEL_PATIENCE_MS, pauseBeforeRetry } from "../src/retry.js";
import { failureInTime, failureOf, PATIENCE_MS } from "./failures.js";
import { Failure, type Handler, respondWith, ScriptedServer } from "./scripted-server.js";

const UNAVAILABLE = new Failure("UNAVAILABLE", "STORE_FAILED");
const OVERLOADED = new Failure("RESOURCE_EXHAUSTED", "OVERLOADED", { retryDelayMs: 10 });
const HANG: Handler = () => {};
const APPEND = { conversationId: "c", messages: [{ role: "user", text: "hello" }] };

let server: ScriptedServer;
let remora: Remora;
let opened: Remora[] = [];

function connect(options: RemoraOptions = {}): Remora {
  const client = new Remora({ endpoint: server.endpoint, timeoutMs: PATIENCE_MS, ...options });
  opened.push(client);
  return client;
}

beforeEach(async () => {
  server = await ScriptedServer.start();
  remora = connect();
});

afterEach(() => {
  for (const client of opened) {
    client.close();
  }
  opened = [];
  server.stop();
});

describe("a deadline", () => {
  test("is two seconds by default, and the server is told", async () => {
    const client = new Remora({ endpoint: server.endpoint });
    opened.push(client);

    const told = () => server.calls.map((call) => Number.parseInt(String(call.headers["grpc-timeout"]), 10));
    while (!told().some((milliseconds) => milliseconds > 1_000)) {
      await client.conversations.countConversations({}).catch(() => {}); // on a busy machine it may pass
    }

    assert.ok(told().every((milliseconds) => milliseconds <= 2_000));
    assert.match(String(server.calls[0]?.headers["grpc-timeout"]), /m$/);
  });

  test("may be the client's own or the call's", async () => {
    const client = connect({ timeoutMs: 1_000_000 });

    await client.conversations.countConversations({});
    await client.conversations.countConversations({}, { timeoutMs: 1e9 });

    const timeouts = server.calls.map((call) => Number.parseInt(String(call.headers["grpc-timeout"]), 10));
    assert.ok(timeouts[0] && timeouts[0] <= 1_000_000 && timeouts[0] > 1_000_000 - PATIENCE_MS);
    assert.equal(server.calls[1]?.headers["grpc-timeout"], "1000000S");
  });

  test("ends a call that takes too long", async () => {
    server.answer("CountConversations", HANG);

    const failure = await failureOf(remora.conversations.countConversations({}, { timeoutMs: 50 }));

    assert.ok(failure instanceof DeadlineExceededError);
    assert.match(failure.message, /no answer within 50 ms/);
  });

  test("that is too far for gRPC to say is none", async () => {
    for (const timeoutMs of [1e15, Number.MAX_SAFE_INTEGER, Number.MAX_VALUE, Number.POSITIVE_INFINITY]) {
      await remora.conversations.countConversations({}, { timeoutMs });
    }

    assert.deepEqual(
      server.calls.map((call) => call.headers["grpc-timeout"]),
      [undefined, undefined, undefined, undefined],
    );
  });

  test("that is none is refused before any call", async () => {
    for (const timeoutMs of [0, -1, Number.NaN]) {
      assert.throws(() => new Remora({ endpoint: server.endpoint, timeoutMs }), InvalidFieldError);
      assert.ok((await failureOf(remora.users.deleteUser({}, { timeoutMs }))) instanceof InvalidFieldError);
    }
    assert.equal(server.calls.length, 0);
  });
});

describe("a repeat", () => {
  for (const failure of [UNAVAILABLE, OVERLOADED]) {
    test(`of a read follows ${failure.reason}`, async () => {
      server.answer("CountConversations", failure, failure, { count: 5n });

      assert.equal((await remora.conversations.countConversations({})).count, 5n);
      assert.equal(server.calls.length, 3);
    });

    test(`of a write after ${failure.reason} has the same request id`, async () => {
      server.answer("AppendMessages", failure, failure, { revision: 9n });

      await remora.conversations.appendMessages(APPEND);

      const [first, ...others] = server.requests(AppendMessagesRequestSchema);
      assert.ok(first?.requestId);
      assert.deepEqual(others, [first, first]);
    });
  }

  for (const failure of [
    new Failure("INVALID_ARGUMENT", "INVALID_FIELD"),
    new Failure("NOT_FOUND", "CONVERSATION_NOT_FOUND"),
    new Failure("ALREADY_EXISTS", "REQUEST_ID_REUSED"),
    new Failure("ABORTED", "REVISION_MISMATCH"),
    new Failure("INTERNAL", "INTERNAL"),
    new Failure("RESOURCE_EXHAUSTED"),
  ]) {
    test(`does not follow ${failure.code}, which stays`, async () => {
      server.answer("AppendMessages", failure);

      await failureOf(remora.conversations.appendMessages(APPEND));

      assert.equal(server.calls.length, 1);
    });
  }

  test("is not made after a pause longer than the deadline", async () => {
    server.answer("CountConversations", new Failure("RESOURCE_EXHAUSTED", "STORE_FULL", { retryDelayMs: 3_600_000 }));

    const failure = await failureOf(remora.conversations.countConversations({}));

    assert.ok(failure instanceof StoreFullError);
    assert.equal(failure.retryDelayMs, 3_600_000);
    assert.equal(server.calls.length, 1);
  });

  test("because of the model ends long before the deadline", async () => {
    server.answer("Embed", new Failure("UNAVAILABLE", "MODEL_UNREACHABLE", { retryDelayMs: 100 }));

    const failure = await failureOf(remora.text.embed({ texts: ["tea"] }));

    assert.ok(failure instanceof ModelUnreachableError);
    assert.ok(server.calls.length <= MODEL_PATIENCE_MS / 100);
  });

  test("that meets the deadline fails for the reason before", async () => {
    const failure = await failureInTime((timeoutMs) => {
      server.answer("Embed", new Failure("UNAVAILABLE", "MODEL_UNREACHABLE", { retryDelayMs: 1 }), HANG);
      return failureOf(remora.text.embed({ texts: ["tea"] }, { timeoutMs }));
    });

    assert.ok(failure instanceof ModelUnreachableError);
  });

  test("comes after a pause that is bounded and within the deadline", () => {
    for (let attempt = 0; attempt < 2_000; attempt++) {
      const remaining = Math.random() * 2_000;
      const pause = pauseBeforeRetry(new UnavailableError("down"), attempt, 500, remaining);

      assert.ok(pause === undefined || (pause >= 0 && pause <= Math.min(GREATEST_PAUSE_MS, remaining)));
    }
  });

  test("comes after at least the pause that the server asks for", () => {
    for (let attempt = 0; attempt < 100; attempt++) {
      const retryDelayMs = Math.random() * 10_000;
      const pause = pauseBeforeRetry(new OverloadedError("busy", { retryDelayMs }), attempt, 500, 1e6);

      assert.ok(pause !== undefined && pause >= retryDelayMs);
    }
  });
});

describe("a write", () => {
  test("has a request id of its own", async () => {
    await Promise.all(Array.from({ length: 50 }, () => remora.conversations.appendMessages(APPEND)));

    const ids = server.requests(AppendMessagesRequestSchema).map((request) => request.requestId);
    assert.equal(new Set(ids).size, 50);
  });

  test("keeps the request id that it is given, and tells it when it fails", async () => {
    server.answer("AppendMessages", new Failure("INTERNAL", "INTERNAL"));

    const failure = await failureOf(remora.conversations.appendMessages({ ...APPEND, requestId: "mine" }));

    assert.equal(failure.requestId, "mine");
    assert.match(failure.message, /the same call with requestId "mine" takes effect once/);
  });

  test("that is called by a handle is repeated with the request id of its error", async () => {
    server.answer("AppendMessages", new Failure("INTERNAL", "INTERNAL"), {});
    const chat = remora.conversation("c");
    const message = { role: "user", text: "hello" };

    const failure = await failureOf(chat.append(message));
    await chat.append(message, { requestId: failure.requestId });

    const [first, second] = server.requests(AppendMessagesRequestSchema);
    assert.ok(first?.requestId);
    assert.deepEqual(second, first);
  });

  test("that is one of several of a call advises no request id, as the call takes none", async () => {
    for (const method of ["AddMemoryItems", "DeleteMemoryItems", "ExtractFacts", "CommitSummary"]) {
      server.answer(method, new Failure("INTERNAL", "INTERNAL"), new Failure("INTERNAL", "INTERNAL"));
    }
    server.answer("PlanSummary", { cover: { throughSequence: 2n }, text: "user: hello" });
    const blocks = remora.blocks("ana");

    const found = [
      await failureOf(blocks.update("c", "I like tea.")),
      await failureOf(blocks.delete("c")),
      await failureOf(remora.facts("ana").extractFrom("c")),
      await failureOf(remora.conversation("c").summarize(() => "They met.")),
    ];

    for (const failure of found) {
      assert.ok(failure instanceof InternalError);
      assert.equal(failure.requestId, "");
      assert.doesNotMatch(failure.message, /requestId|request id/);
    }
    assert.match((await failureOf(blocks.vector.update("c", "I like tea."))).message, /the same call with requestId/);
    const own = new InternalError("of the writer", { requestId: "own" });
    assert.equal(await failureOf(remora.conversation("c").summarize(() => Promise.reject(own))), own);
  });

  test("whose texts the server embeds has 30 ms more for each but the first, unless it is given a timeout", async () => {
    const items = (count: number) => Array.from({ length: count }, (_, place) => `item ${place}`);
    const facts = items(101).map((object) => ({ subject: "user", predicate: "likes", object }));
    const client = connect({ timeoutMs: 1_000_000 });
    const { memoryItems } = client.user("ana");

    await memoryItems.add(items(1));
    await memoryItems.add(items(101));
    await memoryItems.add(items(101), { timeoutMs: 500_000 });
    await client.facts("ana").add(facts);

    const allowed = server.calls.map(({ headers }) => timeoutOf(headers["grpc-timeout"]));
    for (const [place, expected] of [1_000_000, 1_003_000, 500_000, 1_003_000].entries()) {
      const found = allowed[place] ?? 0;
      assert.ok(found > expected - 2_500 && found <= expected, `${found} of ${expected}`);
    }
  });

  test("takes one request id, in its request or beside it", async () => {
    await remora.conversations.appendMessages({ ...APPEND, requestId: "mine" }, { requestId: "mine" });
    await assert.rejects(
      remora.conversations.appendMessages({ ...APPEND, requestId: "mine" }, { requestId: "another" }),
      /^InvalidFieldError: requestId is "another", and "mine" in the request; give one of them$/,
    );

    assert.deepEqual(
      server.requests(AppendMessagesRequestSchema).map(({ requestId }) => requestId),
      ["mine"],
    );
  });

  test("that was refused has had no effect, and its error says nothing of one", async () => {
    server.answer("AppendMessages", new Failure("NOT_FOUND", "CONVERSATION_NOT_FOUND"));

    const failure = await failureOf(remora.conversations.appendMessages(APPEND));

    assert.doesNotMatch(failure.message, /takes effect/);
  });

  test("leaves the caller's message as it is", async () => {
    const request = create(AppendMessagesRequestSchema, APPEND);

    await remora.conversations.appendMessages(request);

    assert.deepEqual(request, create(AppendMessagesRequestSchema, APPEND));
  });
});

describe("a read", () => {
  test("sees the greatest revision that the client wrote", async () => {
    server.answer("AppendMessages", { revision: 9n }, { revision: 7n });

    await remora.conversations.appendMessages(APPEND);
    await remora.conversations.appendMessages(APPEND);
    await remora.conversations.listMessages({ conversationId: "c" });
    await remora.memory.searchMessages({ query: { case: "text", value: "hello" } });

    assert.equal(remora.revision, 9n);
    assert.equal(server.requests(ListMessagesRequestSchema)[0]?.minRevision, 9n);
    assert.equal(server.requests(SearchMessagesRequestSchema)[0]?.minRevision, 9n);
  });

  test("before any write waits for nothing", async () => {
    await remora.conversations.listMessages({ conversationId: "c" });

    assert.equal(server.requests(ListMessagesRequestSchema)[0]?.minRevision, 0n);
  });

  test("sees a revision that the client is told of", async () => {
    remora.advanceTo(12n);
    remora.advanceTo(5n);

    await remora.conversations.countConversations({});

    assert.equal(server.requests(CountConversationsRequestSchema)[0]?.minRevision, 12n);
  });

  test("that fails because the store lost the revision fails once", async () => {
    remora.advanceTo(12n);
    server.answer("CountConversations", new Failure("OUT_OF_RANGE", "REVISION_UNKNOWN"), { count: 0n });

    assert.ok((await failureOf(remora.conversations.countConversations({}))) instanceof RevisionUnknownError);
    await remora.conversations.countConversations({});

    assert.equal(remora.revision, 0n);
  });

  test("of a list goes through its pages", async () => {
    const message = (text: string) => ({ messages: [{ text }] });
    server.answer("ListMessages", { ...message("a"), nextPageToken: "2" }, { ...message("b"), nextPageToken: "" });

    const texts: string[] = [];
    for await (const page of pages(remora.conversations.listMessages, { conversationId: "c", pageSize: 1 })) {
      texts.push(...page.messages.map(({ text }) => text));
    }

    assert.deepEqual(texts, ["a", "b"]);
    assert.deepEqual(
      server.requests(ListMessagesRequestSchema).map(({ pageToken, pageSize }) => [pageToken, pageSize]),
      [
        ["", 1],
        ["2", 1],
      ],
    );
  });
});

describe("a conversation that is created", () => {
  for (const [shortTerm, withoutShortTerm] of [
    [undefined, false],
    [null, true],
    [{ type: "trim" } as const, false],
  ] as const) {
    test(`with the policy ${shortTerm && shortTerm.type} ${withoutShortTerm ? "wants" : "does not ask for"} none`, async () => {
      await remora.conversation("c", { shortTerm }).append({ role: "user", text: "hello" });

      const created = server.requests(AppendMessagesRequestSchema)[0]?.createIfMissing;
      assert.equal(created?.withoutShortTerm, withoutShortTerm);
      assert.equal(created.shortTerm?.overflow.case, shortTerm?.type);
    });
  }
});

describe("what identifies the caller", () => {
  test("travels with a call", async () => {
    const client = connect({ token: "secret", tenant: "acme", agentId: "planner", runId: "r1" });

    await client.conversations.appendMessages(APPEND);

    const { headers } = server.calls[0] ?? assert.fail();
    assert.equal(headers.authorization, "Bearer secret");
    assert.equal(headers["remora-tenant"], "acme");
    const origin = server.requests(AppendMessagesRequestSchema)[0]?.origin;
    assert.deepEqual([origin?.agentId, origin?.runId], ["planner", "r1"]);
  });

  test("is not sent if it is not given", async () => {
    await remora.conversations.countConversations({});

    const { headers } = server.calls[0] ?? assert.fail();
    assert.equal(headers.authorization, undefined);
    assert.equal(headers["remora-tenant"], undefined);
  });

  test("is refused before any call if metadata cannot carry it, and not shown", () => {
    for (const field of ["token", "tenant"]) {
      for (const value of ["", "\xfc", "line\n", "\x7f"]) {
        assert.throws(
          () => connect({ [field]: value }),
          (error: Error) => {
            return error instanceof InvalidFieldError && (value === "" || !error.message.includes(value));
          },
        );
      }
    }
  });

  test("has the authority localhost over a Unix socket", async () => {
    await remora.conversations.countConversations({});

    assert.equal(server.calls[0]?.headers[":authority"], "localhost");
  });
});

describe("a call that is cancelled", () => {
  test("ends at once", async () => {
    const controller = new AbortController();
    server.answer("CountConversations", () => controller.abort(new Error("enough")));

    const failure = await failureOf(remora.conversations.countConversations({}, { signal: controller.signal }));

    assert.ok(failure instanceof CancelledError);
    assert.match(String((failure.cause as Error).cause), /enough/);
  });

  test("is not repeated", async () => {
    const controller = new AbortController();
    server.answer("CountConversations", UNAVAILABLE, (stream) => {
      controller.abort();
      stream.close();
    });

    await failureOf(remora.conversations.countConversations({}, { signal: controller.signal }));

    assert.equal(server.calls.length, 2);
  });

  test("is not sent if it was cancelled before", async () => {
    await failureOf(remora.conversations.countConversations({}, { signal: AbortSignal.abort() }));

    assert.equal(server.calls.length, 0);
  });

  test("may share its signal with many: no listener is left, and Node warns of no leak", async () => {
    const { signal } = new AbortController();
    const warnings: Error[] = [];
    const warn = (warning: Error) => warnings.push(warning);
    process.on("warning", warn);
    const failures = Array.from(
      { length: 40 },
      () => new Failure("RESOURCE_EXHAUSTED", "OVERLOADED", { retryDelayMs: 100 }),
    );
    server.answer("CountConversations", ...failures, {}); // the pauses before the repeats can be cancelled, too

    await Promise.all(Array.from({ length: 40 }, () => remora.conversations.countConversations({}, { signal })));

    process.off("warning", warn);
    assert.deepEqual(warnings, []);
    assert.equal(getEventListeners(signal, "abort").length, 0);
    assert.equal(server.calls.length, 80);
  });

  test("ends all calls that share its signal, waiting ones too", async () => {
    const controller = new AbortController();
    server.answer("CountConversations", HANG);
    server.answer("ListMessages", () => controller.abort(), new Failure("RESOURCE_EXHAUSTED", "OVERLOADED"));
    const { signal } = controller;
    const calls = Array.from({ length: 20 }, () => failureOf(remora.conversations.countConversations({}, { signal })));
    calls.push(failureOf(remora.conversations.listMessages({ conversationId: "c" }, { signal })));

    for (const failure of await Promise.all(calls)) {
      assert.ok(failure instanceof CancelledError);
    }
  });

  test("leaves the others alone", async () => {
    const controller = new AbortController();
    server.answer("CountConversations", HANG);
    const cancelled = failureOf(remora.conversations.countConversations({}, { signal: controller.signal }));
    const others = Array.from({ length: 20 }, () => remora.conversations.listMessages({ conversationId: "c" }));
    controller.abort();

    assert.ok((await cancelled) instanceof CancelledError);
    assert.equal((await Promise.all(others)).length, 20);
  });
});

describe("a client", () => {
  test("that is closed ends its calls and makes no others", async () => {
    server.answer("CountConversations", () => remora.close());

    const ended = await failureOf(remora.conversations.countConversations({}));
    assert.ok(ended instanceof ClientClosedError);
    assert.deepEqual([ended.code, ended.reason], ["FAILED_PRECONDITION", "CLIENT_CLOSED"]);
    assert.equal(ended.message, "the client was closed");
    const refused = await failureOf(remora.conversations.appendMessages(APPEND));
    assert.ok(refused instanceof ClientClosedError);
    assert.deepEqual([refused.message, refused.requestId], ["the client is closed; make another", ""]);
    remora.close();
  });

  const waitsForRepeat = new Failure("RESOURCE_EXHAUSTED", "OVERLOADED", { retryDelayMs: PATIENCE_MS / 2 });
  for (const [which, answer] of [
    ["that has no answer yet", undefined],
    ["that waits for a repeat", waitsForRepeat],
  ] as const) {
    test(`that is closed says of a write ${which} that it may have taken effect`, async () => {
      const arrived = new Promise<void>((resolve) => {
        server.answer("AppendMessages", (stream) => {
          if (answer === undefined) {
            resolve();
          } else {
            stream.on("close", resolve);
            respondWith(stream, answer);
          }
        });
      });
      const appending = failureOf(remora.conversations.appendMessages(APPEND, { requestId: "mine" }));
      await arrived;

      remora.close();

      const ended = await appending;
      assert.ok(ended instanceof ClientClosedError);
      assert.equal(ended.requestId, "mine");
      assert.equal(
        ended.message,
        'the client was closed; it may have taken effect: the same call with requestId "mine" takes effect once',
      );
      assert.equal(server.calls.length, 1);
    });
  }

  test("that is closed ends its repeats", async () => {
    server.answer("CountConversations", UNAVAILABLE, (stream) => {
      remora.close();
      stream.close();
    });

    const failure = await failureOf(remora.conversations.countConversations({}));

    assert.ok(failure instanceof ClientClosedError);
    assert.equal(server.calls.length, 2);
  });

  test("that is open keeps no process alive", async () => {
    const script = `
      import { Remora } from "./dist/esm/index.js";
      const remora = new Remora({ endpoint: ${JSON.stringify(server.endpoint)}, timeoutMs: ${PATIENCE_MS} });
      await remora.conversations.countConversations({});`;
    const child = spawn(process.execPath, ["--input-type=module", "--eval", script], { stdio: "inherit" });

    const [status] = await once(child, "exit");

    assert.equal(status, 0);
    assert.equal(server.calls.length, 1);
  });
});

test("a value of another type is refused before it is sent, with the field as the caller wrote it", async () => {
  const request = { conversationId: "c", pageSize: "ten" as unknown as number };

  const failure = await failureOf(remora.conversations.listMessages(request));

  assert.ok(failure instanceof WrongTypeError);
  assert.equal(failure.fieldViolations[0]?.field, "pageSize");
  assert.equal(server.calls.length, 0);
});

describe("a misspelt name", () => {
  test("of an option is refused, since the client would be another tenant's", () => {
    const options = { tennant: "acme" } as object;

    assert.throws(() => new Remora(options), /^InvalidFieldError: tennant is no option; did you mean tenant\?$/);
  });

  test("of a field is refused before it is sent", async () => {
    const request = { conversation_id: "c" } as object;

    await assert.rejects(
      remora.conversations.getConversation(request),
      /conversation_id is no field of GetConversationRequest; did you mean conversationId\?$/,
    );
    assert.equal(server.calls.length, 0);
  });
});

/** Milliseconds of gRPC's header. */
function timeoutOf(header: string | string[] | undefined): number {
  const [, digits, unit = ""] = /^(\d+)([mS])$/.exec(String(header)) ?? [];
  return Number(digits) * (unit === "S" ? 1_000 : 1);
}
