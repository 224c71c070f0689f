// What a client is given for TLS, checked before it connects.

import { createSecureContext } from "node:tls";
import type { TlsOptions } from "./connection.js";
import { invalidField, requireKnown } from "./refusals.js";
import { requireObject } from "./shapes.js";

const PEM = {
  ca: { what: "certificate", begins: /-----BEGIN [A-Z0-9 ]*CERTIFICATE-----/ },
  cert: { what: "certificate", begins: /-----BEGIN [A-Z0-9 ]*CERTIFICATE-----/ },
  key: { what: "private key", begins: /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----/ },
} as const;

/** The options of a client for this endpoint. @throws InvalidFieldError */
export function requireTls(tls: TlsOptions | undefined, endpoint: string): TlsOptions | undefined {
  if (tls === undefined) {
    return undefined;
  }
  requireObject(tls, "tls", "ca, cert, key or serverName");
  requireKnown(tls, ["ca", "cert", "key", "serverName"], "option of tls", "tls.");
  if (endpoint.startsWith("unix:")) {
    throw invalidField("tls", `is for host:port, and the endpoint is ${JSON.stringify(endpoint)}; leave it out`);
  }
  if ((tls.cert === undefined) !== (tls.key === undefined)) {
    throw invalidField("tls", "has one of cert and key; it must have both, or neither");
  }
  requireUsable(pem("ca", tls.ca), pem("cert", tls.cert), pem("key", tls.key));
  return tls;
}

/** Node passes over authorities that are none; then no server can be verified, and nothing says why. */
function pem(name: keyof typeof PEM, given: unknown): Buffer | undefined {
  if (given === undefined) {
    return undefined;
  }
  const { what, begins } = PEM[name];
  const content = typeof given === "string" || given instanceof Uint8Array ? Buffer.from(given) : Buffer.of();
  if (!begins.test(content.toString("latin1"))) {
    throw invalidField(`tls.${name}`, `must be the content of a file in PEM that holds a ${what}`);
  }
  return content;
}

function requireUsable(ca: Buffer | undefined, cert: Buffer | undefined, key: Buffer | undefined): void {
  try {
    createSecureContext({ ca, cert, key });
  } catch (error) {
    throw invalidField("tls", `cannot be used: ${(error as Error).message}`);
  }
}
