// What of spans, logs and histories is larger than the server takes: VoltAgent puts whole prompts into them, with their images.

import { byteLength, encodeJson } from "./json.js";
import { beginning } from "./messages.js";

const LARGEST_VALUE_BYTES = 1024 * 1024;
/** How much is kept of a value that is too large, or is among attributes that are together. */
const KEPT_BYTES = 16 * 1024;

/** Attributes, or other members of an object, in JSON; if they are too large, of the long ones only the beginning. */
export function storedAttributes(attributes: Readonly<Record<string, unknown>> | undefined): Uint8Array {
  const whole = encodeJson(attributes);
  if (whole.length <= LARGEST_VALUE_BYTES) {
    return whole;
  }
  return encodeJson(Object.fromEntries(Object.entries(attributes ?? {}).map(([name, value]) => [name, kept(value)])));
}

/** A value, such as the body of a log, in JSON; if it is too large, its beginning. */
export function storedValue(value: unknown): Uint8Array {
  const whole = encodeJson(value);
  return whole.length <= LARGEST_VALUE_BYTES ? whole : encodeJson(kept(value));
}

/** The beginning of a text that may take so many bytes; what is left out is said at its end. */
export function shortened(text: string | undefined, mostBytes: number): string {
  const whole = text ?? "";
  const bytes = byteLength(whole);
  const said = ` … (${bytes.toLocaleString("en")} bytes)`;
  return bytes <= mostBytes ? whole : beginning(whole, mostBytes - byteLength(said)) + said;
}

function kept(value: unknown): unknown {
  const text = typeof value === "string" ? value : Buffer.from(encodeJson(value)).toString();
  return byteLength(text) <= KEPT_BYTES ? value : shortened(text, KEPT_BYTES);
}
