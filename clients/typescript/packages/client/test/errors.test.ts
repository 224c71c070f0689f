// A failed call throws the class of its reason, with all that the server said.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, describe, test } from "node:test";
import * as v1 from "../src/generated/v1.js";
import {
  BudgetTooSmallError,
  CLASS_OF_CODE,
  CLASS_OF_REASON,
  ConversationNotFoundError,
  classOf,
  InternalError,
  InvalidFieldError,
  NotFoundError,
  Receipts,
  Remora,
  type RemoraError,
  RequestTooLargeError,
  STATUS_CODES,
  type StatusCode,
} from "../src/index.js";
import { failureOf, PATIENCE_MS } from "./failures.js";
import { Failure, ScriptedServer } from "./scripted-server.js";
import { PYTHON } from "./server.js";

/** The reasons of clients alone. */
const OWN_REASONS = ["CLIENT_CLOSED", "CONNECTION_FAILED", "WRONG_TYPE"];

let server: ScriptedServer;
let remora: Remora;

before(async () => {
  server = await ScriptedServer.start();
  remora = new Remora({ endpoint: server.endpoint, timeoutMs: PATIENCE_MS });
});

after(() => {
  remora.close();
  server.stop();
});

function errorOf(failure: Failure): Promise<RemoraError> {
  server.answer("CountConversations", failure);
  return failureOf(remora.conversations.countConversations({}));
}

describe("the classes", () => {
  test("are there for every reason of the server, below the class of its code", () => {
    const script = `
import json
from google.rpc.code_pb2 import Code
from remora_server.rpc.errors import ANSWERS, INTERNAL
print(json.dumps({answer.reason: Code.Name(answer.code) for answer in [INTERNAL, *ANSWERS.values()]}))`;
    const reasons = JSON.parse(execFileSync(PYTHON, ["-c", script], { encoding: "utf8" })) as Record<
      string,
      StatusCode
    >;

    assert.ok(Object.keys(reasons).length > 30);
    assert.deepEqual(new Set([...Object.keys(reasons), ...OWN_REASONS]), new Set(Object.keys(CLASS_OF_REASON)));
    for (const [reason, code] of Object.entries(reasons)) {
      const kind = classOf(code, reason);
      assert.ok(kind === classOf(code, "") || kind.prototype instanceof classOf(code, ""), reason);
    }
  });

  test("are there for every code", () => {
    assert.deepEqual(new Set(["OK", ...Object.keys(CLASS_OF_CODE)]), new Set(STATUS_CODES));
  });

  test("have names that programs can show", () => {
    for (const kind of [...Object.values(CLASS_OF_CODE), ...Object.values(CLASS_OF_REASON)]) {
      assert.match(new kind("text").name, /^[A-Z]\w+Error$/);
    }
  });
});

test("the client has every service of the contract, and every RPC of it has one request and one reply", () => {
  const services = (Object.values(v1) as object[]).filter((item) => "kind" in item && item.kind === "service");
  const methods = services.flatMap((service) => (service as typeof v1.ConversationService).methods);
  const clients = Object.values(remora).filter((value) => typeof value === "object" && !(value instanceof Receipts));

  assert.ok(services.length >= 8);
  assert.equal(clients.length, services.length);
  assert.deepEqual(new Set(methods.map((method) => method.methodKind)), new Set(["unary"]));
});

describe("an error", () => {
  test("is of the class of its reason", async () => {
    const error = await errorOf(new Failure("NOT_FOUND", "CONVERSATION_NOT_FOUND", { metadata: { id: "c" } }));

    assert.equal(error.constructor, ConversationNotFoundError);
    assert.ok(error instanceof NotFoundError);
    assert.deepEqual([error.code, error.reason, error.metadata], ["NOT_FOUND", "CONVERSATION_NOT_FOUND", { id: "c" }]);
    assert.equal(error.message, "it failed, 100 %");
    assert.equal(error.name, "ConversationNotFoundError");
  });

  test("of an unknown reason is of the class of its code, and names the reason", async () => {
    const error = await errorOf(new Failure("NOT_FOUND", "SPROCKET_NOT_FOUND"));

    assert.equal(error.constructor, NotFoundError);
    assert.equal(error.reason, "SPROCKET_NOT_FOUND");
    assert.match(error.message, /^SPROCKET_NOT_FOUND: it failed/);
  });

  test("of another domain has no reason of ours", async () => {
    const error = await errorOf(new Failure("NOT_FOUND", "CONVERSATION_NOT_FOUND", { domain: "example.com" }));

    assert.equal(error.constructor, NotFoundError);
    assert.equal(error.reason, "");
  });

  test("carries what the server says, fields as the caller wrote them", async () => {
    const violations = [
      { field: "messages[2].role", description: "is empty" },
      { field: "create_if_missing.user_id", description: "512 bytes are the most" },
    ];
    const error = await errorOf(new Failure("INVALID_ARGUMENT", "INVALID_FIELD", { violations, retryDelayMs: 250 }));

    assert.ok(error instanceof InvalidFieldError);
    assert.deepEqual(error.fieldViolations[1], { ...violations[1], field: "createIfMissing.userId" });
    assert.equal(error.message, "messages[2].role is empty; createIfMissing.userId: 512 bytes are the most");
    assert.equal(error.retryDelayMs, 250);
  });

  test("gives the numbers of its reason", async () => {
    const budget = await errorOf(
      new Failure("INVALID_ARGUMENT", "BUDGET_TOO_SMALL", { metadata: { least_max_tokens: "51" } }),
    );
    const size = await errorOf(
      new Failure("INVALID_ARGUMENT", "REQUEST_TOO_LARGE", { metadata: { limit_bytes: "7" } }),
    );

    assert.ok(budget instanceof BudgetTooSmallError && budget.leastMaxTokens === 51);
    assert.ok(size instanceof RequestTooLargeError && size.limitBytes === 7 && size.sizeBytes === undefined);
  });

  test("with details that cannot be read keeps its code", async () => {
    server.answer("CountConversations", (stream) => {
      const status = { "grpc-status": 13, "grpc-message": "100 % wrong", "grpc-status-details-bin": "AAAA" };
      stream.respond({ ":status": 200, "content-type": "application/grpc", ...status }, { endStream: true });
    });
    const error = await failureOf(remora.conversations.countConversations({}));

    assert.ok(error instanceof InternalError);
    assert.equal(error.message, "100 % wrong");
  });
});
