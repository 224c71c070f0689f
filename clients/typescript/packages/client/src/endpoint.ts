// Which server a client calls, by the rules that the Python client and the server share.

import { lstatSync, statSync } from "node:fs";
import { isIPv6 } from "node:net";
import { isAbsolute, join, resolve } from "node:path";
import { geteuid, getuid, platform } from "node:process";
import { PermissionDeniedError } from "./errors.js";
import { invalidField } from "./refusals.js";

/** The environment variable with the endpoint of the server. */
export const ENDPOINT_VARIABLE = "REMORA_ENDPOINT";

const SOCKET_NAME = "remora.sock";
const LARGEST_PORT = 65_535;
const UNIX = "unix:";

/** Bytes of a socket's path, from the system's `sockaddr_un`. */
const LONGEST_PATH = platform === "darwin" ? 103 : 107;

/** Where a connection goes: a Unix socket's path, or a host and a port. */
export type Target = { readonly path: string } | { readonly host: string; readonly port: number };

/**
 * The endpoint itself if one is given, else `$REMORA_ENDPOINT`, else the default one.
 *
 * @throws InvalidFieldError for one that is neither `unix:/path` nor `host:port`, or whose path is longer than a socket's.
 */
export function resolveEndpoint(endpoint?: string): string {
  if (endpoint !== undefined) {
    return required(endpoint, "endpoint");
  }
  const fromEnvironment = process.env[ENDPOINT_VARIABLE];
  if (fromEnvironment) {
    return required(fromEnvironment, `$${ENDPOINT_VARIABLE}`);
  }
  const remedy = `set $XDG_RUNTIME_DIR to a shorter one, or $${ENDPOINT_VARIABLE}`;
  return short(defaultEndpoint(), "the usual endpoint", remedy);
}

/**
 * The default endpoint of server and clients: `unix:$XDG_RUNTIME_DIR/remora/remora.sock` if that variable is set, else
 * `unix:/tmp/remora-<uid>/remora.sock`. A relative `$XDG_RUNTIME_DIR` is ignored.
 */
export function defaultEndpoint(): string {
  return UNIX + join(runtimeDirectory(), SOCKET_NAME);
}

/** What an endpoint of a known form names. */
export function targetOf(endpoint: string): Target {
  if (endpoint.startsWith(UNIX)) {
    return { path: socketPath(endpoint) };
  }
  const colon = endpoint.lastIndexOf(":");
  return { host: endpoint.slice(0, colon).replace(/^\[(.*)\]$/, "$1"), port: Number(endpoint.slice(colon + 1)) };
}

/**
 * Refuses the default endpoint if its directory is another user's, who would be told all that is sent. Root may own it,
 * as the server allows; a directory that is not there is nobody's.
 */
export function requireOwnDefault(endpoint: string): void {
  const directory = runtimeDirectory();
  if (!endpoint.startsWith(UNIX) || socketPath(endpoint) !== join(directory, SOCKET_NAME)) {
    return;
  }
  const owner = otherOwner(directory);
  if (owner !== undefined) {
    throw new PermissionDeniedError(
      `${directory}, where the socket of a Remora server would be, belongs to user ${owner}, not to user ` +
        `${geteuid?.()}: set $XDG_RUNTIME_DIR, or say with $${ENDPOINT_VARIABLE} where the server listens`,
      { code: "PERMISSION_DENIED" },
    );
  }
}

/** The user, neither this process's nor root, to whom a directory belongs, or a symbolic link to one. */
function otherOwner(directory: string): number | undefined {
  return [lstatSync, statSync]
    .map((status) => status(directory, { throwIfNoEntry: false })?.uid)
    .find((uid) => uid !== undefined && uid !== 0 && uid !== geteuid?.());
}

function runtimeDirectory(): string {
  const runtime = process.env.XDG_RUNTIME_DIR ?? "";
  return isAbsolute(runtime) ? join(runtime, "remora") : `/tmp/remora-${getuid?.()}`;
}

function socketPath(endpoint: string): string {
  const path = endpoint.slice(UNIX.length);
  return resolve(path.replace(/^\/+/, "/"));
}

function required(endpoint: string, field: string): string {
  if (typeof endpoint !== "string" || !isEndpoint(endpoint)) {
    throw invalidField(field, `is ${JSON.stringify(endpoint)}; it must be unix:/path or host:port`);
  }
  return short(endpoint, field, "give a shorter one");
}

/** The endpoint itself, unless no socket can have its path. */
function short(endpoint: string, field: string, remedy: string): string {
  const bytes = endpoint.startsWith(UNIX) ? Buffer.byteLength(socketPath(endpoint)) : 0;
  if (bytes > LONGEST_PATH) {
    throw invalidField(field, `has a path of ${bytes} bytes, and a socket's has at most ${LONGEST_PATH}: ${remedy}`);
  }
  return endpoint;
}

function isEndpoint(text: string): boolean {
  if (text.includes("\0")) {
    return false;
  }
  if (text.startsWith(UNIX)) {
    return text.length > UNIX.length && !/^unix:\/\/(?!\/)/.test(text);
  }
  const form = /^(?:\[([^\]]+)\]|[^\s:/[\]]+):(\d{1,5})$/.exec(text);
  if (form === null || (form[1] !== undefined && !isIPv6(form[1]))) {
    return false;
  }
  return Number(form[2]) > 0 && Number(form[2]) <= LARGEST_PORT;
}
