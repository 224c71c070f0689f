// TLS with a real server, its certificate and the client's.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  ClientConnection,
  ConnectionFailedError,
  DeadlineExceededError,
  InvalidFieldError,
  Remora,
  type TlsFault,
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

  async function ask(tls: TlsOptions | undefined, timeoutMs = PATIENCE_MS, endpoint = server.endpoint): Promise<void> {
    const client = new Remora({ endpoint, tls, timeoutMs });
    try {
      await client.admin.getStatus({});
    } finally {
      client.close();
    }
  }

  /** Asks with more and more time: a busy machine may need it for the handshake. */
  async function askWithMoreTime(tls: TlsOptions | undefined, timeoutMs = 250, endpoint?: string): Promise<void> {
    try {
      await ask(tls, timeoutMs, endpoint);
    } catch (error) {
      if (!(error instanceof DeadlineExceededError) || timeoutMs > PATIENCE_MS) {
        throw error;
      }
      await askWithMoreTime(tls, 4 * timeoutMs, endpoint);
    }
  }

  function isFault(fault: TlsFault, told: string): (error: unknown) => boolean {
    return (error) => {
      assert.ok(error instanceof ConnectionFailedError);
      assert.deepEqual([error.tlsFault, error.message], [fault, told]);
      return true;
    };
  }

  test("is spoken by a client that shows its certificate", async () => {
    await ask(known);
  });

  test("is spoken by what plugs into a framework", async () => {
    const connection = new ClientConnection({ endpoint: server.endpoint, tls: known, timeoutMs: PATIENCE_MS });
    await connection.client.admin.getStatus({});
    connection.close();
  });

  const wrong: Record<string, [() => TlsOptions | undefined, TlsFault, string]> = {
    "shows no certificate": [
      () => ({ ca: known.ca }),
      "ENDED",
      "ended the TLS connection; if it requires certificates, the client's options `tls.cert` and `tls.key` show a valid one",
    ],
    "shows an expired certificate": [
      () => ({ ...known, cert: read("expired"), key: read("expired-key") }),
      "ENDED",
      "ended the TLS connection; if it requires certificates, the client's options `tls.cert` and `tls.key` show a valid one",
    ],
    "trusts another authority": [
      () => ({ ...known, ca: read("stranger") }),
      "UNTRUSTED",
      "has a TLS certificate that cannot be verified (unable to verify the first certificate); " +
        "the client's option `tls.ca` says who signed it",
    ],
    "wants another host": [
      () => ({ ...known, serverName: "other.example" }),
      "OTHER_NAME",
      "has a TLS certificate for another name; the client's option `tls.serverName` says which name it must have",
    ],
    "speaks no TLS": [
      () => undefined,
      "PLAIN_CLIENT",
      "closed the connection at once; if it speaks TLS, the client needs the option `tls`, such as { ca }",
    ],
  };
  for (const [what, [tls, fault, told]] of Object.entries(wrong)) {
    test(`connects no client that ${what}`, async () => {
      await assert.rejects(askWithMoreTime(tls()), isFault(fault, `the server at ${server.endpoint} ${told}`));
    });
  }

  test("connects no client that speaks it with a server that does not", async () => {
    const plain = createServer((socket) => socket.end("\0\0\0\x04\0\0\0\0\0")); // HTTP/2 begins so
    await once(plain.listen(0, "127.0.0.1"), "listening");
    const endpoint = `127.0.0.1:${(plain.address() as AddressInfo).port}`;
    const told = `the server at ${endpoint} speaks no TLS; leave out \`tls\`, or start it with --tls-cert and --tls-key`;

    await assert.rejects(askWithMoreTime(known, 250, endpoint), isFault("PLAIN_SERVER", told));

    plain.close();
  });

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
