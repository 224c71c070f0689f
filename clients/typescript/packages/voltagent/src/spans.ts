// Spans and logs of VoltAgent's observability as OpenTelemetry's records of Remora, and back.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { LogRecord, LogRecordSchema, SpanRecord, SpanRecordSchema } from "@remora/client/v1";
import type { ObservabilityLogRecord, ObservabilitySpan } from "@voltagent/core";
import { byteLength, decodeJson } from "./json.js";
import { present } from "./steps.js";
import { shortened, storedAttributes, storedPart, storedValue } from "./telemetry-sizes.js";
import { isoOf, timestampOf } from "./times.js";

type Span = MessageInitShape<typeof SpanRecordSchema> & { $typeName?: never };

/** A duration that does not follow from the times, which VoltAgent cuts to milliseconds, is an entry of the W3C trace state. */
const DURATION = "voltagent=duration:";
const LARGEST_NAME_BYTES = 1_024;
const LARGEST_USER_BYTES = 512;
const LARGEST_MESSAGE_BYTES = 65_536;
/** Also of the attributes of a link. */
const LARGEST_RESOURCE_BYTES = 65_536;
const LARGEST_SCOPE_BYTES = 512;
const LARGEST_SEVERITY_BYTES = 64;
/** Events, or links, of a span. */
const MOST_LISTED = 1_000;
/** The attributes of all events of a span together; those of its links take half of that at most. */
const LARGEST_EVENTS_BYTES = 1024 * 1024;

/** How each field of a span is stored; kinds are numbered from 1 there. */
const FIELDS: { [Field in keyof ObservabilitySpan]?: (value: never) => Span } = {
  parentSpanId: (parentSpanId = "") => ({ parentSpanId }),
  name: (name: string) => ({ name: shortened(name, LARGEST_NAME_BYTES) }),
  kind: (kind: ObservabilitySpan["kind"]) => ({ kind: kind + 1 }),
  startTime: (startTime: string) => timed("startTime", startTime),
  endTime: (endTime: string | undefined) => timed("endTime", endTime),
  duration: (duration: number | undefined) => ({ traceState: duration === undefined ? "" : `${DURATION}${duration}` }),
  attributes: (attributes: ObservabilitySpan["attributes"]) => ({ attributes: storedAttributes(attributes) }),
  status: ({ code, message = "" }: ObservabilitySpan["status"]) => ({
    status: { code: code as number, message: shortened(message, LARGEST_MESSAGE_BYTES) },
  }),
  events: (events: ObservabilitySpan["events"]) => ({ events: storedEvents(events ?? []) }),
  links: (links: ObservabilitySpan["links"]) => ({
    links: together((links ?? []).slice(0, MOST_LISTED), storedLink, LARGEST_EVENTS_BYTES / 2),
  }),
  resource: (resource: unknown) => ({ resource: storedPart(resource, LARGEST_RESOURCE_BYTES) }),
  instrumentationScope: (scope: ObservabilitySpan["instrumentationScope"]) => (scope ? { scope: scopeIn(scope) } : {}),
};

/** The names of the record's fields, in the contract's spelling, where they are other ones. */
const PATHS: { [Field in keyof ObservabilitySpan]?: string } = {
  parentSpanId: "parent_span_id",
  startTime: "start_time",
  endTime: "end_time",
  duration: "trace_state",
  instrumentationScope: "scope",
};

/** The record that a span is stored as. It is its user's, if its attributes name one. */
export function storedSpan(span: ObservabilitySpan): Span {
  const { duration, ...others } = span;
  const follows =
    duration === undefined || duration === between(timestampOf(span.startTime), timestampOf(span.endTime));
  return {
    ...fieldsOf(follows ? others : span),
    traceId: span.traceId,
    spanId: span.spanId,
    ...userIn(span.attributes),
  };
}

/** What an update changes. A span becomes the user's whom its attributes name then. */
export function spanChanges(updates: Partial<ObservabilitySpan>): { changes: Span; paths: string[] } {
  const required: string[] = ["name", "kind", "startTime", "status"];
  const named = Object.entries(updates).filter(([name, value]) => value !== undefined || !required.includes(name));
  const fields = named.map(([name]) => name as keyof ObservabilitySpan).filter((name) => name in FIELDS);
  const user = userIn(updates.attributes);
  return {
    changes: { ...fieldsOf(Object.fromEntries(named)), ...user },
    paths: [...fields.map((name) => PATHS[name] ?? name), ...("userId" in user ? ["user_id"] : [])],
  };
}

/** The span that was stored. */
export function spanOf(record: SpanRecord): ObservabilitySpan {
  const { startTime, endTime, status, scope } = record;
  const rest = {
    parentSpanId: record.parentSpanId || undefined,
    endTime: endTime && isoOf(endTime),
    duration: record.traceState.startsWith(DURATION)
      ? Number(record.traceState.slice(DURATION.length))
      : between(startTime, endTime),
    links: record.links.length > 0 ? record.links.map(linkOf) : undefined,
    resource: decodeJson(record.resource) as ObservabilitySpan["resource"],
    instrumentationScope: scope && scopeOf(scope),
  };
  return {
    traceId: record.traceId,
    spanId: record.spanId,
    name: record.name,
    kind: Math.max(0, record.kind - 1),
    startTime: isoOf(startTime),
    attributes: (decodeJson(record.attributes) ?? {}) as ObservabilitySpan["attributes"],
    status: { code: status?.code ?? 0, ...present({ message: status?.message || undefined }) },
    events: record.events.map(eventOf),
    ...present(rest),
  } as ObservabilitySpan;
}

/** The record that a log is stored as. */
export function storedLog(log: ObservabilityLogRecord): MessageInitShape<typeof LogRecordSchema> {
  const time = timestampOf(log.timestamp);
  return {
    traceId: log.traceId ?? "",
    spanId: log.spanId ?? "",
    traceFlags: log.traceFlags ?? 0,
    severityNumber: log.severityNumber ?? 0,
    severityText: shortened(log.severityText, LARGEST_SEVERITY_BYTES),
    body: storedValue(log.body),
    attributes: storedAttributes(log.attributes),
    resource: storedPart(log.resource, LARGEST_RESOURCE_BYTES),
    ...(time && { time }),
    ...(log.instrumentationScope && { scope: scopeIn(log.instrumentationScope) }),
    ...userIn(log.attributes),
  };
}

/** The log that was stored. */
export function logOf(record: LogRecord): ObservabilityLogRecord {
  const rest = {
    traceId: record.traceId || undefined,
    spanId: record.spanId || undefined,
    traceFlags: record.traceId === "" ? undefined : record.traceFlags,
    severityNumber: record.severityNumber || undefined,
    severityText: record.severityText || undefined,
    attributes: decodeJson(record.attributes) as ObservabilityLogRecord["attributes"],
    resource: decodeJson(record.resource) as ObservabilityLogRecord["resource"],
    instrumentationScope: record.scope && scopeOf(record.scope),
  };
  return { timestamp: isoOf(record.time), body: decodeJson(record.body), ...present(rest) } as ObservabilityLogRecord;
}

function fieldsOf(span: Partial<ObservabilitySpan>): Span {
  const parts = Object.entries(span).map(([name, value]) => FIELDS[name as keyof ObservabilitySpan]?.(value as never));
  return Object.assign({}, ...parts);
}

/** Milliseconds from one time to another. */
function between(start: Timestamp | undefined, end: Timestamp | undefined): number | undefined {
  return start && end && timestampMs(end) - timestampMs(start);
}

function timed(field: "startTime" | "endTime", text: string | undefined): Span {
  const time = timestampOf(text);
  return time === undefined ? {} : { [field]: time };
}

/** The user whom attributes name, as a field of a record. No user has a longer id: that stays an attribute alone. */
function userIn(attributes: Readonly<Record<string, unknown>> | undefined): { userId?: string } {
  const userId = attributes?.["user.id"];
  return typeof userId === "string" && byteLength(userId) <= LARGEST_USER_BYTES ? { userId } : {};
}

/** The first events of many, with how many there were. */
function storedEvents(events: ObservabilitySpan["events"]) {
  if (events.length <= MOST_LISTED) {
    return together(events, storedEvent, LARGEST_EVENTS_BYTES);
  }
  const first = together(events.slice(0, MOST_LISTED - 1), storedEvent, LARGEST_EVENTS_BYTES);
  return [...first, { name: `… (${events.length.toLocaleString("en")} events)`, attributes: new Uint8Array() }];
}

/** All elements, with less of the attributes of each where they are too large together. */
function together<T, Stored extends { attributes: Uint8Array }>(
  elements: readonly T[],
  stored: (element: T, mostBytes?: number) => Stored,
  mostBytes: number,
): Stored[] {
  const whole = elements.map((element) => stored(element));
  const bytes = whole.reduce((sum, { attributes }) => sum + attributes.length, 0);
  const share = Math.floor(mostBytes / elements.length);
  return bytes <= mostBytes ? whole : elements.map((element) => stored(element, share));
}

function storedEvent({ name, timestamp, attributes }: ObservabilitySpan["events"][number], mostBytes?: number) {
  const time: Timestamp | undefined = timestampOf(timestamp);
  const kept = storedAttributes(attributes, mostBytes);
  return { name: shortened(name, LARGEST_NAME_BYTES), attributes: kept, ...(time && { time }) };
}

function eventOf({ name, time, attributes }: SpanRecord["events"][number]) {
  return { name, timestamp: isoOf(time), ...present({ attributes: decodeJson(attributes) }) };
}

function storedLink(
  { traceId, spanId, attributes }: NonNullable<ObservabilitySpan["links"]>[number],
  mostBytes = LARGEST_RESOURCE_BYTES,
) {
  return { traceId, spanId, attributes: storedPart(attributes, Math.min(mostBytes, LARGEST_RESOURCE_BYTES)) };
}

function linkOf({ traceId, spanId, attributes }: SpanRecord["links"][number]) {
  return { traceId, spanId, ...present({ attributes: decodeJson(attributes) }) };
}

function scopeIn({ name, version = "" }: { name: string; version?: string }) {
  return { name: shortened(name, LARGEST_SCOPE_BYTES), version: shortened(version, LARGEST_SCOPE_BYTES) };
}

function scopeOf({ name, version }: { name: string; version: string }) {
  return { name, ...present({ version: version || undefined }) };
}
