// Metadata of vectors as typed attributes, and VoltAgent's filters on it: each key strictly equal.

import { createHash } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { NullValue } from "@bufbuild/protobuf/wkt";
import { type FilterSchema, Operator, type ScalarSchema } from "@remora/client/v1";
import { byteLength } from "./json.js";

type Scalar = MessageInitShape<typeof ScalarSchema>;
type Filter = MessageInitShape<typeof FilterSchema>;

const MOST_ATTRIBUTES = 64;
const LARGEST_KEY_BYTES = 256;
const LARGEST_TEXT_BYTES = 1_024;

/** The metadata that filters see: of the first 64 keys the texts, numbers, booleans and nulls. */
export function attributesOf(metadata: Record<string, unknown> | undefined): Record<string, Scalar> {
  const known = Object.entries(metadata ?? {}).flatMap(([key, value]) => {
    const scalar = scalarOf(value);
    return scalar === undefined || key === "" || byteLength(key) > LARGEST_KEY_BYTES ? [] : [[key, scalar] as const];
  });
  return Object.fromEntries(known.slice(0, MOST_ATTRIBUTES));
}

/** The filter as the server takes it; `undefined` for none, `nothing` if no metadata can pass it. */
export function filterOf(filter: Record<string, unknown> | undefined): Filter | "nothing" | undefined {
  const entries = Object.entries(filter ?? {});
  if (entries.length === 0) {
    return undefined;
  }
  const conditions = entries.map(([key, value]) => conditionOf(key, value));
  const filters = conditions.filter((condition) => condition !== undefined);
  if (filters.length < entries.length) {
    return "nothing";
  }
  return { kind: { case: "allOf", value: { filters } } };
}

function conditionOf(key: string, value: unknown): Filter | undefined {
  const subject = { case: "key", value: key } as const;
  if (value === undefined) {
    return { kind: { case: "condition", value: { subject, operator: Operator.ABSENT } } };
  }
  const scalar = scalarOf(value);
  return scalar && { kind: { case: "condition", value: { subject, operator: Operator.EQ, values: [scalar] } } };
}

/** The value as an attribute; `undefined` for what is equal to nothing but itself, or not a number. */
function scalarOf(value: unknown): Scalar | undefined {
  if (typeof value === "string") {
    return { kind: { case: "text", value: byteLength(value) > LARGEST_TEXT_BYTES ? digest(value) : value } };
  }
  if (typeof value === "boolean") {
    return { kind: { case: "boolean", value } };
  }
  if (typeof value === "number") {
    return Number.isFinite(value) ? { kind: { case: "number", value } } : undefined;
  }
  return value === null ? { kind: { case: "nullValue", value: NullValue.NULL_VALUE } } : undefined;
}

/** What stands for a text that is longer than an attribute may be. */
function digest(text: string): string {
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}
