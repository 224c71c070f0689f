// Who a client is to its server: the token and the tenant that are given, else those of the environment.

import { invalidField, wrongType } from "./refusals.js";

const TOKEN_VARIABLE = "REMORA_TOKEN";
const TENANT_VARIABLE = "REMORA_TENANT";

/** The token and the tenant, where they are given. */
export interface Credentials {
  readonly token?: string | undefined;
  readonly tenant?: string | undefined;
}

/**
 * The metadata that identifies the caller. `$REMORA_TOKEN` and `$REMORA_TENANT` stand for one that is not given; beside a
 * given token, `$REMORA_TENANT` is not read. An empty variable is as good as none.
 *
 * @throws InvalidFieldError for one that metadata cannot hold.
 */
export function resolveCredentials({ token, tenant }: Credentials): Record<string, string> {
  const headers: Record<string, string> = {};
  const knownTenant = sendable(tenant, "tenant") ?? (token === undefined ? variable(TENANT_VARIABLE) : undefined);
  if (knownTenant !== undefined) {
    headers["remora-tenant"] = knownTenant;
  }
  const knownToken = sendable(token, "token") ?? variable(TOKEN_VARIABLE);
  if (knownToken !== undefined) {
    headers.authorization = `Bearer ${knownToken}`;
  }
  return headers;
}

/** What the environment has there; undefined where it is empty or missing. */
function variable(name: string): string | undefined {
  return sendable(process.env[name] || undefined, `$${name}`);
}

/** The value itself if metadata can hold it, or undefined. Refusals do not show it: a token is a secret. */
function sendable(value: string | undefined, field: string): string | undefined {
  if (value === undefined) {
    return undefined;
  }
  if (typeof value !== "string") {
    throw wrongType(field, "must be a string", undefined);
  }
  if (value === "") {
    throw invalidField(field, "is empty; give one, or leave it out");
  }
  if (!/^[\x20-\x7e]+$/.test(value)) {
    throw invalidField(field, "must be printable ASCII");
  }
  return value;
}
