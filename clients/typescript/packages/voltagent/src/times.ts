// Times: the server's have microseconds, VoltAgent's milliseconds.

import { create } from "@bufbuild/protobuf";
import { type Timestamp, TimestampSchema, timestampFromDate } from "@bufbuild/protobuf/wkt";

/** The server has times from the year 1 to the year 9999. */
const FIRST = Date.parse("0001-01-01T00:00:00.000Z");
const LAST = Date.parse("9999-12-31T23:59:59.999Z");
const NANOS_BELOW_MS = 999_000;
const NANOS_OF_MS = 1_000_000;

/** The time as a Date, never a later one, as protobuf's own rounding may give; 1970 for none. */
export function dateOf({ seconds, nanos }: Pick<Timestamp, "seconds" | "nanos"> = { seconds: 0n, nanos: 0 }): Date {
  return new Date(Number(seconds) * 1_000 + Math.floor(nanos / NANOS_OF_MS));
}

/** The time in ISO 8601, as VoltAgent's conversations and steps have it. */
export function isoOf(time: Timestamp | undefined): string {
  return dateOf(time).toISOString();
}

/** The time of a Date, of a text that has one, or of milliseconds since 1970; `undefined` for anything else. */
export function timestampOf(time: Date | string | number | null | undefined): Timestamp | undefined {
  const date = new Date(time ?? Number.NaN);
  return Number.isNaN(date.getTime()) ? undefined : timestampFromDate(date);
}

/** A Date, or milliseconds since 1970, as a bound of times: the nearest that the server has. Throws RangeError for no time. */
export function boundOf(time: Date | number): Timestamp {
  const milliseconds = Number(time);
  if (Number.isNaN(milliseconds)) {
    throw new RangeError("the bound of a time is an invalid Date, or not a number");
  }
  return timestampFromDate(new Date(Math.max(FIRST, Math.min(LAST, milliseconds))));
}

/** The last time of the server that a Date stands for: what is after it is later in milliseconds, too. */
export function endOf(date: Date): Timestamp {
  const begin = boundOf(date);
  return create(TimestampSchema, { seconds: begin.seconds, nanos: begin.nanos + NANOS_BELOW_MS });
}
