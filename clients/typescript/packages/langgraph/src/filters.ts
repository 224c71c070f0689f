// Filters of the store's searches, as the server has them: conditions on paths into the values of items.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { shown } from "@remora/client";
import { type FilterSchema, Operator, type ScalarSchema } from "@remora/client/v1";

type Filter = MessageInitShape<typeof FilterSchema>;
type Scalar = MessageInitShape<typeof ScalarSchema>;
type Path = readonly string[];

const ORDERS: Record<string, Operator> = {
  $gt: Operator.GT,
  $gte: Operator.GTE,
  $lt: Operator.LT,
  $lte: Operator.LTE,
};
/** How many values one condition has. */
const MOST_VALUES = 256;
const OPERATORS = ["$eq", "$ne", ...Object.keys(ORDERS), "$in", "$nin"];
/** Operators where the name of a member stands: an item with such a member cannot be meant. */
const MISPLACED = new Set(["$and", "$or", "$nor", "$not", ...OPERATORS]);

/**
 * The filter on the wire; undefined if everything passes. A key with dots is also a path: `author.name`.
 *
 * @throws Error for what cannot be compared: it names the place.
 */
export function filterToWire(filter: Record<string, unknown> | undefined): Filter | undefined {
  const given: unknown = filter ?? {};
  if (!isObject(given)) {
    throw new TypeError(`filter is ${shown(given)}; it must be an object of members and values`);
  }
  const members = Object.entries(given).flatMap(([key, wanted]) => member(key, wanted));
  return members.length === 0 ? undefined : all(members);
}

/** A member may itself be named with dots; only without one, the name is a path. */
function member(key: string, wanted: unknown): Filter[] {
  if (MISPLACED.has(key)) {
    throw new Error(
      `Unsupported operator: ${key}. A filter has members, all of which must match: for a range, ` +
        "{ member: { $gte: 1, $lt: 5 } }; for one of several values, { member: { $in: [1, 2] } }.",
    );
  }
  if (!key.includes(".")) {
    return compared([key], wanted);
  }
  const own = all([condition([key], Operator.PRESENT), ...compared([key], wanted)]);
  const within = all([condition([key], Operator.ABSENT), ...compared(key.split("."), wanted)]);
  return [any([own, within])];
}

/** A plain value, or operators such as `{ $gt: 5 }`. */
function compared(path: Path, wanted: unknown): Filter[] {
  if (isObject(wanted) && Object.keys(wanted).some((name) => name.startsWith("$"))) {
    return Object.entries(wanted).flatMap(([operator, value]) => operated(path, operator, value));
  }
  return equal(path, wanted);
}

function operated(path: Path, operator: string, value: unknown): Filter[] {
  switch (operator) {
    case "$eq":
      return equal(path, value);
    case "$ne":
      return [not(all(equal(path, value)))];
    case "$in":
      return [any(oneOf(path, listed(path, operator, value)))];
    case "$nin":
      return oneOf(path, listed(path, operator, value)).map(not);
    default:
  }
  if (ORDERS[operator] === undefined) {
    throw new Error(`Unsupported operator: ${operator} at ${path.join(".")}; there are ${OPERATORS.join(", ")}`);
  }
  return [ordered(path, operator, ORDERS[operator], inJson(value))];
}

/** What is less or greater than a value: of the infinite ones, all numbers are, or none. */
function ordered(path: Path, operator: string, order: Operator, value: unknown): Filter {
  if (typeof value !== "number" || Number.isFinite(value)) {
    if (value === null || typeof value === "boolean") {
      throw new Error(`The filter at ${path.join(".")} is ${shown(value)}: ${operator} takes a text or a number`);
    }
    return condition(path, order, scalar(path, value));
  }
  if (value === (operator.startsWith("$lt") ? Infinity : -Infinity)) {
    const last = scalar(path, Math.sign(value) * Number.MAX_VALUE);
    return condition(path, value > 0 ? Operator.LTE : Operator.GTE, last);
  }
  return any([]);
}

/** What equals one of some values: scalars are compared together. */
function oneOf(path: Path, values: readonly unknown[]): Filter[] {
  const scalars = values.filter(isScalar).map((value) => scalar(path, value));
  const others = values.filter((value) => !isScalar(value)).map((value) => all(equal(path, value)));
  const groups = Array.from({ length: Math.ceil(scalars.length / MOST_VALUES) }, (_, group) =>
    scalars.slice(group * MOST_VALUES, (group + 1) * MOST_VALUES),
  );
  return [...groups.map((group) => condition(path, Operator.IN, ...group)), ...others];
}

function listed(path: Path, operator: string, values: unknown): unknown[] {
  if (!Array.isArray(values)) {
    throw new Error(`${operator} at ${path.join(".")} takes an array`);
  }
  return values;
}

/** What equals a value: of an object its members, more may be there; an array as a whole; undefined is what is missing. */
function equal(path: Path, given: unknown): Filter[] {
  const value = inJson(given);
  if (value === undefined) {
    return [condition(path, Operator.ABSENT)];
  }
  if (typeof value === "number" && !Number.isFinite(value)) {
    return [any([])]; // JSON has none
  }
  if (Array.isArray(value)) {
    const elements = value.flatMap((element, index) => equal([...path, String(index)], element ?? null));
    const there = elements.length === 0 ? composite(path) : elements;
    return [...there, condition([...path, String(value.length)], Operator.ABSENT)];
  }
  if (isObject(value) && !(Symbol.iterator in value)) {
    return [...composite(path), ...Object.entries(value).flatMap(([name, inner]) => compared([...path, name], inner))];
  }
  return [condition(path, Operator.EQ, scalar(path, value))];
}

/** What is there and is neither null, a boolean, a text nor a number: an object or an array. */
function composite(path: Path): Filter[] {
  const scalars = [
    condition(path, Operator.IN, scalar(path, null), scalar(path, false), scalar(path, true)),
    condition(path, Operator.GTE, scalar(path, "")),
    condition(path, Operator.GTE, scalar(path, -Number.MAX_VALUE)),
  ];
  return [condition(path, Operator.PRESENT), ...scalars.map(not)];
}

function all(filters: Filter[]): Filter {
  return { kind: { case: "allOf", value: { filters } } };
}

/** Of no filters, none holds. */
function any(filters: Filter[]): Filter {
  if (filters.length === 0) {
    const anything = condition(["$"], Operator.PRESENT);
    return all([anything, not(anything)]);
  }
  return { kind: { case: "anyOf", value: { filters } } };
}

function not(filter: Filter): Filter {
  return { kind: { case: "negated", value: filter } };
}

function condition(path: Path, operator: Operator, ...values: Scalar[]): Filter {
  const subject = { case: "path" as const, value: { steps: [...path] } };
  return { kind: { case: "condition", value: { subject, operator, values } } };
}

function scalar(path: Path, value: unknown): Scalar {
  switch (typeof value) {
    case "string":
      return { kind: { case: "text", value } };
    case "boolean":
      return { kind: { case: "boolean", value } };
    case "number":
      return Number.isSafeInteger(value)
        ? { kind: { case: "integer", value: BigInt(value) } }
        : { kind: { case: "number", value } };
    default:
  }
  if (value === null) {
    return { kind: { case: "nullValue", value: 0 } };
  }
  throw new Error(`The filter at ${path.join(".")} is ${shown(value)}: it takes a text, a number, a boolean or null`);
}

/** A value as JSON has it: of a Date, a text. */
function inJson(value: unknown): unknown {
  return isObject(value) && typeof value.toJSON === "function" ? (value.toJSON as () => unknown)() : value;
}

/** Whether it is a text, a number, a boolean or null, as JSON has them. */
function isScalar(value: unknown): boolean {
  return value === null || ["string", "boolean"].includes(typeof value) || Number.isFinite(value);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
