// Values of the caller as opaque bytes: JSON in UTF-8, none for `undefined`.

const decoder = new TextDecoder();

/**
 * The value in JSON; empty for `undefined`. An object inside itself becomes `"[Circular]"`, as in VoltAgent's own adapters, and a
 * BigInt the text of its digits.
 */
export function encodeJson(value: unknown): Uint8Array {
  const text = jsonOf(value);
  return text === undefined ? new Uint8Array() : Buffer.from(text, "utf8");
}

/** Most values have no circle and no BigInt, and without a replacer they are written several times as fast. */
function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    return JSON.stringify(value, asJson());
  }
}

/** The value that was encoded; `undefined` for no bytes. */
export function decodeJson(bytes: Uint8Array): unknown {
  return bytes.length === 0 ? undefined : JSON.parse(decoder.decode(bytes));
}

/** A copy as a store gives it back: what JSON holds of the value. */
export function copied<T>(value: T): T {
  return decodeJson(encodeJson(value)) as T;
}

/** How many bytes a text takes in UTF-8. */
export function byteLength(text: string): number {
  return Buffer.byteLength(text, "utf8");
}

/** A replacer for JSON.stringify that knows the objects around the one it is given, and what has no JSON. */
function asJson(): (this: unknown, key: string, value: unknown) => unknown {
  const around: unknown[] = [];
  return function (_key, value) {
    while (around.length > 0 && around.at(-1) !== this) {
      around.pop();
    }
    if (typeof value === "bigint") {
      return value.toString();
    }
    if (typeof value !== "object" || value === null) {
      return value;
    }
    if (around.includes(value)) {
      return "[Circular]";
    }
    around.push(value);
    return value;
  };
}
