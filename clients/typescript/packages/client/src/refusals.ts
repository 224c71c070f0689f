// Errors of arguments, found before a call.

import { inspect } from "node:util";
import { InvalidFieldError, WrongTypeError } from "./errors.js";

/** Characters of a value in a sentence. */
const LONGEST_SHOWN = 60;
/** Names of fewer letters are misspelt by one of them at most. */
const SHORT_NAME = 5;
/** Names of so many letters may end in other ones: `embedder` for `embedding`. */
const LONG_NAME = 8;

/** Names that people know from elsewhere, with what Remora calls the same. */
const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  after: ["sentAfter"],
  apiKey: ["token"],
  before: ["sentBefore"],
  body: ["text"],
  content: ["text"],
  count: ["k", "limit"],
  createdAt: ["sentTime"],
  date: ["sentTime"],
  host: ["endpoint"],
  last: ["recentMessages"],
  limit: ["k"],
  message: ["text"],
  minScore: ["threshold"],
  mode: ["profile"],
  scoreThreshold: ["threshold"],
  since: ["sentAfter"],
  tags: ["attributes"],
  time: ["sentTime"],
  timestamp: ["sentTime"],
  topK: ["k"],
  until: ["sentBefore"],
  url: ["endpoint"],
  where: ["filter"],
};

/** The roles that models know. */
const ROLES = ["user", "assistant", "system", "tool", "developer", "function"];
/** What LangChain and Gemini call them. */
const ROLES_ELSEWHERE: ReadonlyMap<unknown, string> = new Map([
  ["human", "user"],
  ["ai", "assistant"],
  ["model", "assistant"],
]);

/** An argument that no call could be made with. */
export function invalidField(field: string, description: string): InvalidFieldError {
  return new InvalidFieldError(`${field} ${description}`, {
    code: "INVALID_ARGUMENT",
    reason: "INVALID_FIELD",
    fieldViolations: [{ field, description }],
  });
}

/** A field of another type than the contract says. */
export function wrongType(field: string, description: string, cause: unknown): WrongTypeError {
  return new WrongTypeError(`${field}: ${description}`, {
    code: "INVALID_ARGUMENT",
    reason: "WRONG_TYPE",
    fieldViolations: [{ field, description }],
    cause,
  });
}

/** A value of another type than its field has. */
export function otherType(field: string, value: unknown, expected: string): WrongTypeError {
  const description = `is ${shown(value)}; it must be ${expected}`;
  return new WrongTypeError(`${field} ${description}`, {
    code: "INVALID_ARGUMENT",
    reason: "WRONG_TYPE",
    fieldViolations: [{ field, description }],
  });
}

/** Refuses anything but a string. */
export function requireString(value: unknown, field: string): void {
  if (typeof value !== "string") {
    throw otherType(field, value, "a string");
  }
}

/** Refuses anything but an id: an empty one means another thing to the contract, or nothing. */
export function requireId(value: unknown, field: string): void {
  requireString(value, field);
  if (value === "") {
    throw invalidField(field, "is empty; it must have 1 to 512 bytes");
  }
}

/** Refuses a number of nothing, which the contract would take for the default. */
export function requireSome(value: unknown, field: string): void {
  if (value === 0) {
    throw invalidField(field, "is 0; it must be at least 1");
  }
}

/**
 * Refuses what are no options: the letters of a text would be taken for their names.
 *
 * @throws WrongTypeError
 */
export function requireOptions(given: unknown, known: readonly string[]): asserts given is object {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw otherType("options", given, `an object with ${namesOf(known)}`);
  }
}

/**
 * Refuses what has a key that is not known: a misspelt one would be left out without a word. `place` is before its name.
 * It is answered with the name that is meant, or with all of them; `unadvised` ones and those of protobuf are not told.
 *
 * @throws InvalidFieldError, WrongTypeError
 */
export function requireKnown(
  given: unknown,
  known: readonly string[],
  what: string,
  place = "",
  unadvised: readonly string[] = [],
): void {
  requireOptions(given, known);
  const unknown = Object.keys(given).find((key) => !known.includes(key));
  if (unknown !== undefined) {
    const advised = known.filter((name) => !name.startsWith("$") && !unadvised.includes(name));
    const likely = meant(unknown, advised);
    const advice = likely === undefined ? `there are ${namesOf(advised)}` : `did you mean ${likely}?`;
    throw invalidField(place + unknown, `is no ${what}; ${advice}`);
  }
}

function namesOf(known: readonly string[]): string {
  return known.toSorted().join(", ");
}

/**
 * Refuses a key that is almost a known one: `tenantId` for `tenant`. Those of `others` are never meant so.
 *
 * @throws InvalidFieldError
 */
export function requireMeant(given: unknown, known: readonly string[], others: readonly string[], what: string): void {
  requireOptions(given, known);
  for (const key of Object.keys(given).filter((name) => !known.includes(name) && !others.includes(name))) {
    const likely = closest(key, known);
    if (likely !== undefined) {
      throw invalidField(key, `is no ${what}; did you mean ${likely}?`);
    }
  }
}

/**
 * Refuses a role that is almost one that models know, such as `usr`, or another framework's name of it, such as `human`. Any
 * other is one of the caller's own.
 *
 * @throws InvalidFieldError
 */
export function requireRole(value: unknown, field: string): void {
  if (typeof value !== "string" || value === "" || ROLES.includes(value)) {
    return; // the request's own check says what is wrong
  }
  const likely = ROLES_ELSEWHERE.get(value.toLowerCase()) ?? closest(value, ROLES);
  if (likely !== undefined) {
    throw invalidField(field, `is ${shown(value)}; did you mean ${likely}?`);
  }
}

/** The known name that somebody who wrote this one probably meant. */
function meant(given: string, known: readonly string[]): string | undefined {
  const others = Object.hasOwn(SYNONYMS, given) ? SYNONYMS[given] : undefined;
  return others?.find((name) => known.includes(name)) ?? closest(given, known);
}

/** The known name of which this one is misspelt by the fewest letters. */
function closest(given: string, known: readonly string[]): string | undefined {
  const alike = known.filter((name) => isMisspelt(given, name));
  return alike.sort((left, right) => changes(given, left) - changes(given, right))[0];
}

/**
 * Whether two changes of a letter make a name of another; one, where that is short; four, where it is long and the first
 * half is the same. Case and `_` do not count.
 */
function isMisspelt(given: string, name: string): boolean {
  const [left, right] = [plain(given), plain(name)];
  const half = Math.ceil(Math.max(left.length, right.length) / 2);
  const beginsAlike = name.length >= LONG_NAME && left.slice(0, half) === right.slice(0, half);
  const most = beginsAlike ? 4 : name.length < SHORT_NAME ? 1 : 2;
  return editDistance(left, right) <= most;
}

const changes = (given: string, name: string) => editDistance(plain(given), plain(name));
const plain = (name: string) => name.replaceAll(/[_-]/g, "").toLowerCase();

/** Levenshtein's: how many letters are to be added, removed or replaced. */
function editDistance(left: string, right: string): number {
  let row = Array.from({ length: right.length + 1 }, (_, column) => column);
  for (const [line, letter] of [...left].entries()) {
    const next = [line + 1];
    for (const [column, other] of [...right].entries()) {
      const replaced = (row[column] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

/** A value in a sentence: as JSON, or as Node shows what JSON does not have, and no more than the beginning of it. */
export function shown(value: unknown): string {
  const isPlain = typeof value !== "object" || value === null || !hasOwnWay(value);
  const text =
    value instanceof Date
      ? "a Date"
      : ((isPlain ? jsonOf(value) : undefined) ?? inspect(value, { breakLength: Infinity, compact: true }));
  return text.length <= LONGEST_SHOWN ? text : `${text.slice(0, LONGEST_SHOWN - 3)}...`;
}

/** Whether it is a promise, a map, a set or a generator, of which JSON has nothing. */
function hasOwnWay(value: object): boolean {
  return "then" in value || (Symbol.iterator in value && !Array.isArray(value) && !ArrayBuffer.isView(value));
}

/** The value in JSON; undefined for what JSON does not have. */
function jsonOf(value: unknown): string | undefined {
  try {
    return typeof value === "number" ? String(value) : JSON.stringify(value);
  } catch {
    return undefined; // a bigint, or an object within itself
  }
}
