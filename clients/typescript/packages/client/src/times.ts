// Times in requests: a Date may stand wherever the contract has a Timestamp.

import { type DescField, type DescMessage, type DescOneof, isMessage } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromDate, TimestampSchema } from "@bufbuild/protobuf/wkt";
import { otherType } from "./refusals.js";

/** The same with a `Date` wherever there is a time, at any depth. */
export type Dated<T> = T extends Timestamp
  ? T | Date
  : T extends Uint8Array
    ? T
    : T extends object
      ? { [Key in keyof T]: Dated<T[Key]> }
      : T;

/**
 * A time on the wire.
 *
 * @throws WrongTypeError for what is neither a Timestamp nor a valid Date.
 */
export function timestampOf(time: Date | Timestamp, field: string): Timestamp {
  if (isMessage(time, TimestampSchema)) {
    return time;
  }
  requireDate(time, field);
  return timestampFromDate(time);
}

/** Refuses anything but a valid Date. */
export function requireDate(time: unknown, field: string): asserts time is Date {
  if (!(time instanceof Date) || Number.isNaN(time.getTime())) {
    throw otherType(field, time instanceof Date ? String(time) : time, "a valid Date or a Timestamp");
  }
}

/** The init of a message with a Timestamp for each Date. What has none is given as it is; nothing is changed. */
export function withTimestamps(schema: DescMessage, init: unknown): unknown {
  if (init instanceof Date) {
    return timestampFromDate(init);
  }
  if (isMessage(init as object)) {
    return init;
  }
  const given = init as Readonly<Record<string, unknown>>;
  const changed: Record<string, unknown> = {};
  for (const member of schema.members) {
    const value = given[member.localName];
    if (value !== undefined && value !== null) {
      const dated = memberWithTimestamps(member, value as object);
      if (dated !== value) {
        changed[member.localName] = dated;
      }
    }
  }
  return Object.keys(changed).length === 0 ? init : { ...given, ...changed };
}

function memberWithTimestamps(member: DescField | DescOneof, value: object): unknown {
  if (member.kind === "oneof") {
    const choice = value as { case?: string; value?: unknown };
    const field = member.fields.find(({ localName }) => localName === choice.case);
    const dated = field === undefined ? choice.value : memberWithTimestamps(field, choice.value as object);
    return dated === choice.value ? choice : { case: choice.case, value: dated };
  }
  const schema = member.message;
  if (schema === undefined) {
    return value;
  }
  if (member.fieldKind === "list") {
    return itemsWithTimestamps(schema, value as unknown[]);
  }
  if (member.fieldKind === "map") {
    const items = Object.values(value);
    const dated = itemsWithTimestamps(schema, items);
    return dated === items ? value : Object.fromEntries(Object.keys(value).map((key, place) => [key, dated[place]]));
  }
  return withTimestamps(schema, value);
}

function itemsWithTimestamps(schema: DescMessage, items: unknown[]): unknown[] {
  const dated = items.map((item) => withTimestamps(schema, item));
  return dated.some((item, place) => item !== items[place]) ? dated : items;
}
