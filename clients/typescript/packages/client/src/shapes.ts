// What a plain object must be to become a message: a misspelt key would be left out, and a value of another type changed.

import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescOneof,
  isMessage,
  type Message,
  type MessageInitShape,
  ScalarType,
} from "@bufbuild/protobuf";
import { TimestampSchema } from "@bufbuild/protobuf/wkt";
import { invalidField, otherType, requireKnown } from "./refusals.js";
import { type Dated, requireDate } from "./times.js";

const NUMBERS: ReadonlySet<ScalarType> = new Set([
  ScalarType.INT32,
  ScalarType.UINT32,
  ScalarType.SINT32,
  ScalarType.FIXED32,
  ScalarType.SFIXED32,
  ScalarType.FLOAT,
  ScalarType.DOUBLE,
]);

const LARGEST_INT32 = 2 ** 31 - 1;

/** Fields that the server alone sets, as the contract says. They may be given, as in a message that was read, but not advised. */
export const OUTPUT_ONLY: Readonly<Record<string, readonly string[]>> = {
  ChannelVersion: ["fork"],
  Checkpoint: ["createTime"],
  Conversation: ["uid", "revision", "lastSequence", "messageCount", "createTime", "updateTime"],
  ConversationSummary: ["windowRevision"],
  Fact: ["userId", "sources", "mentions", "recordTime", "ceaseTime", "corrects"],
  MemoryItem: ["userId", "createTime", "updateTime"],
  Message: ["userId", "sequence", "revision", "createTime", "updateTime", "tokenCount"],
  StaticFacts: ["updateTime"],
  StoreItem: ["expireTime", "createTime", "updateTime", "revision"],
  Value: ["size", "omitted"],
  Vector: ["collectionId", "userId", "updateTime", "revision"],
  VectorCollection: ["currentDimension", "createTime"],
  WorkflowRun: ["revision"],
};

/** The fields of a message of the contract as a plain object has them, without some. */
export type Fields<Schema extends DescMessage, Without extends string> = Omit<
  Exclude<Dated<MessageInitShape<Schema>>, Message>,
  Without | "$typeName"
>;

/** What a plain object may have for a message, a oneof by its own name. */
export function fieldsOf(schema: DescMessage): string[] {
  return schema.members.map((member) => member.localName);
}

/**
 * Refuses what is no message, at any depth. What protobuf itself made of a schema is taken as it is.
 *
 * @throws InvalidFieldError, WrongTypeError
 */
export function requireShape(schema: DescMessage, init: unknown, path = ""): void {
  if (isMessage(init as object)) {
    return;
  }
  if (schema.typeName === TimestampSchema.typeName && (init instanceof Date || typeof init !== "object")) {
    requireDate(init, path);
    return;
  }
  requireObject(init, path || "request", `the fields of ${schema.name}`);
  if (init instanceof Date) {
    throw otherType(path || "request", init, `an object with the fields of ${schema.name}`);
  }
  if ("then" in init || Symbol.iterator in init) {
    const remedy = "then" in init ? "await it" : "an array is made of it by [...it]";
    throw otherType(path || "request", init, `an object with the fields of ${schema.name}: ${remedy}`);
  }
  const own = path && `${path}.`;
  const known = ["$typeName", "$unknown", ...fieldsOf(schema)];
  requireKnown(init, known, `field of ${schema.name}`, own, OUTPUT_ONLY[schema.name]);
  for (const member of schema.members) {
    const value = (init as Record<string, unknown>)[member.localName];
    if (value !== undefined && value !== null) {
      requireMember(member, value, own + member.localName);
    }
  }
}

function requireMember(member: DescField | DescOneof, value: unknown, path: string): void {
  if (member.kind === "oneof") {
    requireChoice(member, value, path);
  } else if (member.fieldKind === "list") {
    if (!Array.isArray(value)) {
      throw otherType(path, value, "an array");
    }
    value.forEach((item, position) => {
      requireValue(member, member.listKind, item, `${path}[${position}]`);
    });
  } else if (member.fieldKind === "map") {
    requireObject(value, path, "values by their keys");
    for (const [key, item] of Object.entries(value)) {
      requireValue(member, member.mapKind, item, `${path}[${JSON.stringify(key)}]`);
    }
  } else {
    requireValue(member, member.fieldKind, value, path);
  }
}

function requireChoice(oneof: DescOneof, value: unknown, path: string): void {
  requireObject(value, path, "a case and its value");
  const { case: chosen, value: inner } = value as { case?: unknown; value?: unknown };
  if (chosen === undefined) {
    return;
  }
  const field = oneof.fields.find(({ localName }) => localName === chosen);
  if (field === undefined) {
    const cases = oneof.fields.map(({ localName }) => localName);
    throw invalidField(`${path}.case`, `is ${JSON.stringify(chosen)}; it must be ${cases.join(" or ")}`);
  }
  requireMember(field, inner, `${path}.${field.localName}`);
}

function requireValue(field: DescField, kind: "scalar" | "enum" | "message", value: unknown, path: string): void {
  if (kind === "message") {
    requireShape(field.message as DescMessage, value, path);
  } else if (kind === "enum") {
    if (typeof value !== "number") {
      throw otherType(path, value, choicesOf(field.enum as DescEnum));
    }
  } else {
    requireScalar(field.scalar as ScalarType, value, path);
  }
}

/** The values that an enum has, but for the one that says nothing. */
function choicesOf({ name, values }: DescEnum): string {
  const chosen = values.filter(({ number }) => number !== 0).map(({ localName }) => `${name}.${localName}`);
  return `a ${name} of @remora/client/v1: ${[chosen.slice(0, -1).join(", "), ...chosen.slice(-1)].join(" or ")}`;
}

function requireScalar(type: ScalarType, value: unknown, path: string): void {
  if (type === ScalarType.STRING && typeof value !== "string") {
    throw otherType(path, value, "a string");
  }
  if (type === ScalarType.BOOL && typeof value !== "boolean") {
    throw otherType(path, value, "a boolean");
  }
  if (type === ScalarType.BYTES && !(value instanceof Uint8Array)) {
    throw otherType(path, value, "a Uint8Array");
  }
  if (NUMBERS.has(type) && typeof value !== "number") {
    throw otherType(path, value, "a number");
  }
  if (type === ScalarType.INT32 && !(Number.isInteger(value) && Math.abs(value as number) <= LARGEST_INT32)) {
    throw otherType(path, value, `a whole number of at most ${LARGEST_INT32}`);
  }
}

/** Refuses anything but an object with fields. */
export function requireObject(value: unknown, path: string, what: string): asserts value is object {
  if (typeof value !== "object" || value === null || Array.isArray(value) || value instanceof Uint8Array) {
    throw otherType(path, value, `an object with ${what}`);
  }
}
