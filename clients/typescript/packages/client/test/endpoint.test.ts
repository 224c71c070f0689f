// Where a client looks for a server.

import assert from "node:assert/strict";
import { chownSync, lchownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { geteuid, getuid } from "node:process";
import { afterEach, beforeEach, describe, test } from "node:test";
import { requireOwnDefault, targetOf } from "../src/endpoint.js";
import { defaultEndpoint, InvalidFieldError, PermissionDeniedError, Remora } from "../src/index.js";
import { REPOSITORY } from "./server.js";

const ANOTHER_USER = 4_242;
const asRoot = { skip: geteuid?.() === 0 ? false : "only root can give a directory to another user" };

const environment = { ...process.env };
let runtime: string;
let directory: string;

beforeEach(() => {
  runtime = mkdtempSync(join(tmpdir(), "remora-"));
  directory = join(runtime, "remora");
  delete process.env.REMORA_ENDPOINT;
  process.env.XDG_RUNTIME_DIR = runtime;
});

afterEach(() => {
  rmSync(runtime, { recursive: true, force: true });
  process.env = { ...environment };
});

describe("the endpoint", () => {
  test("is by default in the runtime directory", () => {
    assert.equal(new Remora().endpoint, `unix:${directory}/remora.sock`);
  });

  for (const unset of [undefined, "", "run", "./run"]) {
    test(`is the user's own without a runtime directory (${unset})`, () => {
      delete process.env.XDG_RUNTIME_DIR;
      Object.assign(process.env, unset === undefined ? {} : { XDG_RUNTIME_DIR: unset });

      assert.equal(defaultEndpoint(), `unix:/tmp/remora-${getuid?.()}/remora.sock`);
    });
  }

  test("that is given comes before that of the environment", () => {
    process.env.REMORA_ENDPOINT = "sidecar:7411";

    assert.equal(new Remora({ endpoint: "unix:/tmp/r.sock" }).endpoint, "unix:/tmp/r.sock");
    assert.equal(new Remora().endpoint, "sidecar:7411");
  });

  test("that is empty in the environment is none", () => {
    process.env.REMORA_ENDPOINT = "";

    assert.equal(new Remora().endpoint, defaultEndpoint());
  });

  test("in the environment is named where it is refused", () => {
    process.env.REMORA_ENDPOINT = "localhost";

    assert.throws(() => new Remora(), /\$REMORA_ENDPOINT is "localhost"; it must be unix:\/path or host:port/);
  });

  test("has the documented forms", () => {
    assert.deepEqual(targetOf("localhost:7411"), { host: "localhost", port: 7411 });
    assert.deepEqual(targetOf("[::1]:7411"), { host: "::1", port: 7411 });
    for (const spelling of ["unix:/x/s", "unix:///x/s", "unix:x/s"]) {
      assert.deepEqual(targetOf(spelling), {
        path: spelling.startsWith("unix:x") ? join(process.cwd(), "x/s") : "/x/s",
      });
    }
  });

  test("has a form of the table of all clients, and no other", () => {
    const table = readFileSync(join(REPOSITORY, "tests/conformance/tables/endpoints.json"), "utf8");
    const { accepted, refused } = JSON.parse(table) as Record<"accepted" | "refused", string[]>;
    assert.ok(accepted.length > 0 && refused.length > 0);

    for (const endpoint of accepted) {
      assert.equal(new Remora({ endpoint }).endpoint, endpoint);
    }
    for (const endpoint of refused) {
      assert.throws(() => new Remora({ endpoint }), InvalidFieldError, JSON.stringify(endpoint));
    }
  });

  test("has no path that no socket can have", () => {
    const endpoint = `unix:/${"d".repeat(200)}`;
    assert.throws(() => new Remora({ endpoint }), /^InvalidFieldError: endpoint has a path of 201 bytes/);
    process.env.XDG_RUNTIME_DIR = `/${"d".repeat(100)}`;
    assert.throws(() => new Remora(), /set \$XDG_RUNTIME_DIR to a shorter one, or \$REMORA_ENDPOINT$/);
  });
});

describe("the default socket", () => {
  test("in another user's directory is not called", asRoot, async () => {
    mkdirSync(directory);
    chownSync(directory, ANOTHER_USER, 0);

    await assert.rejects(new Remora().admin.getStatus({}), (error: Error) => {
      return error instanceof PermissionDeniedError && error.message.includes(`belongs to user ${ANOTHER_USER}`);
    });
  });

  test("behind another user's link is not called, however its path is written", asRoot, () => {
    symlinkSync("/usr", directory);
    lchownSync(directory, ANOTHER_USER, 0);

    for (const slashes of ["/", "//", "///"]) {
      assert.throws(
        () => requireOwnDefault(defaultEndpoint().replace("unix:/", `unix:${slashes}`)),
        PermissionDeniedError,
      );
    }
  });

  test("behind one's own link to one's own directory may be called", () => {
    mkdirSync(join(runtime, "elsewhere"));
    symlinkSync(join(runtime, "elsewhere"), directory);

    requireOwnDefault(defaultEndpoint());
  });

  test("in one's own directory or in none may be called", () => {
    requireOwnDefault(defaultEndpoint());
    mkdirSync(directory);
    requireOwnDefault(defaultEndpoint());
  });

  test("is the only one whose directory matters", asRoot, () => {
    mkdirSync(directory);
    chownSync(directory, ANOTHER_USER, 0);

    requireOwnDefault(`unix:${directory}/another.sock`);
    requireOwnDefault("localhost:7411");
  });
});
