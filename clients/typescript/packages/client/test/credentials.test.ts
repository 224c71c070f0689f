// Who a client is to its server: as it is told, else as the environment says.

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, test } from "node:test";
import { ClientConnection, InvalidFieldError, Remora } from "../src/index.js";
import { PATIENCE_MS } from "./failures.js";
import { ScriptedServer } from "./scripted-server.js";

const environment = { ...process.env };
let server: ScriptedServer;

beforeEach(async () => {
  server = await ScriptedServer.start();
  delete process.env.REMORA_TOKEN;
  delete process.env.REMORA_TENANT;
});

afterEach(() => {
  server.stop();
  process.env = { ...environment };
});

interface Given {
  token?: string | undefined;
  tenant?: string | undefined;
}

/** What a call sends of a client that is given these. */
async function sent(given: Given = {}): Promise<Given> {
  const client = new Remora({ endpoint: server.endpoint, timeoutMs: PATIENCE_MS, ...given });
  return sentBy(client);
}

async function sentBy(client: Remora): Promise<Given> {
  await client.admin.getStatus({});
  client.close();
  const headers = server.calls.at(-1)?.headers;
  assert.ok(headers);
  return { token: headers.authorization, tenant: headers["remora-tenant"] as string | undefined };
}

describe("the token and the tenant", () => {
  test("are those of the environment where none is given", async () => {
    process.env.REMORA_TOKEN = "of-ana";
    process.env.REMORA_TENANT = "ana";

    assert.deepEqual(await sent(), { token: "Bearer of-ana", tenant: "ana" });
    assert.deepEqual(await sent({ token: undefined, tenant: undefined }), { token: "Bearer of-ana", tenant: "ana" });
  });

  test("of the environment are those of what plugs into a framework, too", async () => {
    process.env.REMORA_TOKEN = "of-ana";
    process.env.REMORA_TENANT = "ana";

    const { client } = new ClientConnection({ endpoint: server.endpoint, timeoutMs: PATIENCE_MS });

    assert.deepEqual(await sentBy(client), { token: "Bearer of-ana", tenant: "ana" });
  });

  test("of the environment give way to a given token", async () => {
    process.env.REMORA_TOKEN = "of-ana";
    process.env.REMORA_TENANT = "ana";

    assert.deepEqual(await sent({ token: "of-bob" }), { token: "Bearer of-bob", tenant: undefined });
    assert.deepEqual(await sent({ token: "of-bob", tenant: "bob" }), { token: "Bearer of-bob", tenant: "bob" });
  });

  test("are sent together where the tenant is given and the token is that of the environment", async () => {
    process.env.REMORA_TOKEN = "of-ana";
    process.env.REMORA_TENANT = "ana";

    assert.deepEqual(await sent({ tenant: "bob" }), { token: "Bearer of-ana", tenant: "bob" });
  });

  test("that are empty in the environment are none", async () => {
    process.env.REMORA_TOKEN = "";
    process.env.REMORA_TENANT = "";

    assert.deepEqual(await sent(), { token: undefined, tenant: undefined });
  });

  for (const name of ["REMORA_TOKEN", "REMORA_TENANT"]) {
    test(`in $${name} are refused by its name if they cannot be sent`, () => {
      process.env[name] = "s\nx";

      assert.throws(
        () => new Remora({ endpoint: server.endpoint }),
        (error: Error) => error instanceof InvalidFieldError && error.message === `$${name} must be printable ASCII`,
      );
    });
  }
});
