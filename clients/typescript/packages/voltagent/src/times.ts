// Times: the server's have microseconds, VoltAgent's milliseconds.

import { create } from "@bufbuild/protobuf";
import { type Timestamp, TimestampSchema, timestampFromDate } from "@bufbuild/protobuf/wkt";

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

/** The time of a Date, or of a text that has one; `undefined` for anything else. */
export function timestampOf(time: Date | string | null | undefined): Timestamp | undefined {
  const date = typeof time === "string" ? new Date(time) : time;
  return !date || Number.isNaN(date.getTime()) ? undefined : timestampFromDate(date);
}

/** The last time of the server that a Date stands for: what is after it is later in milliseconds, too. */
export function endOf(date: Date): Timestamp {
  const begin = timestampFromDate(date);
  return create(TimestampSchema, { seconds: begin.seconds, nanos: begin.nanos + NANOS_BELOW_MS });
}
