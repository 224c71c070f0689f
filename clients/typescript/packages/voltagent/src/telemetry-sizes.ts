// What of steps, spans, logs, histories and runs is larger than the server takes: VoltAgent puts whole prompts into them, with their images.

import { byteLength, decodeJson, encodeJson } from "./json.js";
import { beginning } from "./messages.js";

const LARGEST_BYTES = 1024 * 1024;
/** How much is kept of a value that is too large, or is among others that are together; a fourth, and so on, if that is too much. */
const KEPT_BYTES = 16 * 1024;
const LEAST_KEPT_BYTES = 64;

/** Any value in JSON. Of one that is too large the beginning is kept, as text; of an object, of each of its long members. */
export function storedPart(value: unknown, mostBytes = LARGEST_BYTES): Uint8Array {
  const whole = encodeJson(value);
  if (whole.length <= mostBytes) {
    return whole;
  }
  const json = decodeJson(whole); // what JSON makes of a Date, or of whatever else has its own way
  const hasMembers = typeof json === "object" && json !== null && !Array.isArray(json);
  return hasMembers ? storedAttributes(json as Record<string, unknown>, mostBytes) : storedValue(json, mostBytes);
}

/** Attributes, or other members of an object, in JSON; if they are too large, of the long ones only the beginning. */
export function storedAttributes(
  attributes: Readonly<Record<string, unknown>> | undefined,
  mostBytes = LARGEST_BYTES,
): Uint8Array {
  const members = Object.entries(attributes ?? {});
  const ofEach = (bytes: number) => Object.fromEntries(members.map(([name, value]) => [name, kept(value, bytes)]));
  const beginningBytes = Math.min(KEPT_BYTES, Math.floor(mostBytes / 8)); // JSON may take six bytes for one
  return fitting(attributes, ofEach, mostBytes) ?? encodeJson({ beginning: kept(attributes, beginningBytes) });
}

/** A value, such as the body of a log, in JSON; if it is too large, its beginning. */
export function storedValue(value: unknown, mostBytes = LARGEST_BYTES): Uint8Array {
  return fitting(value, (bytes) => kept(value, bytes), mostBytes) ?? encodeJson(kept(value, LEAST_KEPT_BYTES));
}

/** The value as it comes back of what `storedPart` stores of it. */
export function keptPart(value: unknown, mostBytes = LARGEST_BYTES): unknown {
  return decodeJson(storedPart(value, mostBytes));
}

/** The beginning of a text that may take so many bytes; what is left out is said at its end. What is no text stays, and is refused by its name. */
export function shortened(text: string | undefined, mostBytes: number): string {
  if (typeof text !== "string") {
    return text ?? "";
  }
  const bytes = byteLength(text);
  const said = ` … (${bytes.toLocaleString("en")} bytes)`;
  return bytes <= mostBytes ? text : beginning(text, mostBytes - byteLength(said)) + said;
}

/** The whole in JSON, or with the most that is kept of each part so that it fits; `undefined` if nothing does. */
function fitting(whole: unknown, ofEach: (bytes: number) => unknown, mostBytes: number): Uint8Array | undefined {
  let encoded = encodeJson(whole);
  for (let bytes = KEPT_BYTES; encoded.length > mostBytes && bytes >= LEAST_KEPT_BYTES; bytes /= 4) {
    encoded = encodeJson(ofEach(bytes));
  }
  return encoded.length <= mostBytes ? encoded : undefined;
}

function kept(value: unknown, mostBytes: number): unknown {
  const text = typeof value === "string" ? value : Buffer.from(encodeJson(value)).toString();
  return byteLength(text) <= mostBytes ? value : shortened(text, mostBytes);
}
