// TLS with a real server, its certificate and the client's.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  ClientConnection,
  ConnectionFailedError,
  DeadlineExceededError,
  InvalidFieldError,
  Remora,
  type TlsOptions,
} from "../src/index.js";
import { PATIENCE_MS } from "./failures.js";
import { PYTHON, REPOSITORY, Server } from "./server.js";

describe("TLS", () => {
  const folder = mkdtempSync(join(tmpdir(), "remora-"));
  const pem = (name: string) => join(folder, `${name}.pem`);
  const read = (name: string) => readFileSync(pem(name));
  let known: TlsOptions;
  let server: Server;

  before(async () => {
    execFileSync(PYTHON, [join(REPOSITORY, "tests/certificates.py"), folder]);
    known = { ca: read("authority"), cert: read("client"), key: read("client-key") };
    const files = ["--tls-cert", pem("server"), "--tls-key", pem("server-key"), "--tls-client-ca", pem("authority")];
    server = await Server.start("tcp", { secured: { arguments: files, tls: known } });
  });

  after(async () => {
    await server.remove();
    rmSync(folder, { recursive: true });
  });

  async function ask(tls: TlsOptions, timeoutMs = PATIENCE_MS): Promise<void> {
    const client = new Remora({ endpoint: server.endpoint, tls, timeoutMs });
    try {
      await client.admin.getStatus({});
    } finally {
      client.close();
    }
  }

  /** Asks with more and more time: a busy machine may need it for the handshake. */
  async function askWithMoreTime(tls: TlsOptions, timeoutMs = 250): Promise<void> {
    try {
      await ask(tls, timeoutMs);
    } catch (error) {
      if (!(error instanceof DeadlineExceededError) || timeoutMs > PATIENCE_MS) {
        throw error;
      }
      await askWithMoreTime(tls, 4 * timeoutMs);
    }
  }

  test("is spoken by a client that shows its certificate", async () => {
    await ask(known);
  });

  test("is spoken by what plugs into a framework", async () => {
    const connection = new ClientConnection({ endpoint: server.endpoint, tls: known, timeoutMs: PATIENCE_MS });
    await connection.client.admin.getStatus({});
    connection.close();
  });

  const wrong: Record<string, () => TlsOptions> = {
    "shows no certificate": () => ({ ca: known.ca }),
    "shows an expired certificate": () => ({ ...known, cert: read("expired"), key: read("expired-key") }),
    "trusts another authority": () => ({ ...known, ca: read("stranger") }),
    "wants another host": () => ({ ...known, serverName: "other.example" }),
  };
  for (const [what, tls] of Object.entries(wrong)) {
    test(`connects no client that ${what}`, async () => {
      await assert.rejects(askWithMoreTime(tls()), ConnectionFailedError);
    });
  }

  test("is for ports, and needs a certificate with its key", () => {
    assert.throws(() => new Remora({ endpoint: "unix:/s", tls: {} }), InvalidFieldError);
    assert.throws(() => new Remora({ endpoint: "localhost:1", tls: { cert: "c" } }), InvalidFieldError);
  });

  const unusable: Record<string, [() => TlsOptions, RegExp]> = {
    "empty authorities": [
      () => ({ ca: "" }),
      /^tls\.ca must be the content of a file in PEM that holds a certificate$/,
    ],
    "authorities that are none": [() => ({ ca: Buffer.from("ca.pem") }), /^tls\.ca must be the content/],
    "a certificate that is none": [() => ({ ...known, cert: "c" }), /^tls\.cert must be the content/],
    "a key that is none": [() => ({ ...known, key: "k" }), /^tls\.key must be .* holds a private key$/],
    "the key of another certificate": [
      () => ({ ...known, key: read("server-key") }),
      /^tls cannot be used: .*mismatch/,
    ],
    "what is neither text nor bytes": [() => ({ ca: 5 }) as unknown as TlsOptions, /^tls\.ca must be the content/],
  };
  for (const [what, [tls, told]] of Object.entries(unusable)) {
    test(`is refused with ${what}`, () => {
      assert.throws(
        () => new Remora({ endpoint: "localhost:1", tls: tls() }),
        (error) => error instanceof InvalidFieldError && told.test(error.message),
      );
    });
  }
});
