// History entries of agents and their steps as records of Remora, and back.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { EntryStep, HistoryEntry as Entry, HistoryEntrySchema, TimelineEvent } from "@remora/client/v1";
import { decodeJson, encodeJson } from "../json.js";
import { present } from "../steps.js";
import { keptPart, storedPart, storedValue } from "../telemetry-sizes.js";
import { dateOf, isoOf, timestampOf } from "../times.js";
import type { HistoryEntry, NewTimelineEvent } from "./types.js";

type Stored = MessageInitShape<typeof HistoryEntrySchema> & { $typeName?: never };

/** The entry's fields that have one in the record, but for the time. */
const OPAQUE = ["input", "output", "usage"] as const;
const KNOWN = new Set<string>([...OPAQUE, "timestamp", "status", "conversationId", "userId", "metadata"]);

/** The largest usage of an entry, and the largest message of an event's status. */
const LARGEST_SMALL_BYTES = 65_536;
const LARGEST_METADATA_BYTES = 1024 * 1024;

/** What stands in a record's metadata: the entry's own, and what else it has. */
export interface Rest {
  metadata?: unknown;
  more?: Record<string, unknown> | undefined;
}

/** The fields of a record that an entry names, and their names in the contract's spelling. */
export function entryChanges(value: HistoryEntry): { changes: Stored; paths: string[] } {
  const changes: Record<string, unknown> = {};
  for (const name of OPAQUE.filter((one) => one in value)) {
    changes[name] = name === "usage" ? storedPart(value[name], LARGEST_SMALL_BYTES) : storedValue(value[name]);
  }
  const startTime = value.timestamp && timestampOf(new Date(value.timestamp));
  Object.assign(
    changes,
    present({ status: value.status, conversation_id: value.conversationId, start_time: startTime }),
  );
  const paths = Object.keys(changes);
  const { conversation_id: conversationId, start_time: time, ...others } = changes;
  return { changes: { ...others, ...present({ conversationId, startTime: time }) } as Stored, paths };
}

/** What of an entry has no field in the record. */
export function restOf(value: HistoryEntry): Rest {
  const { id: _, ...fields } = value;
  const more = Object.fromEntries(
    Object.entries(fields).filter(([name]) => !KNOWN.has(name) && !/^(_agentId|events|steps)$/.test(name)),
  );
  return present({ metadata: value.metadata, more: Object.keys(more).length > 0 ? more : undefined });
}

/** It in JSON; if it is too large, with what half of that holds of each of its two parts. */
export function storedRest(rest: Rest): Uint8Array {
  const whole = encodeJson(rest);
  if (whole.length <= LARGEST_METADATA_BYTES) {
    return whole;
  }
  const half = LARGEST_METADATA_BYTES / 2 - LARGEST_SMALL_BYTES;
  return encodeJson(Object.fromEntries(Object.entries(rest).map(([name, part]) => [name, keptPart(part, half)])));
}

/** The entry as VoltAgent shows it. */
export function historyEntry(entry: Entry, steps: EntryStep[], events: TimelineEvent[]): HistoryEntry {
  const { metadata, more } = (decodeJson(entry.metadata) ?? {}) as Rest;
  const fields = {
    status: entry.status || undefined,
    input: decodeJson(entry.input),
    output: decodeJson(entry.output),
    usage: decodeJson(entry.usage),
    metadata,
    userId: entry.userId || undefined,
    conversationId: entry.conversationId || undefined,
  };
  return {
    ...more,
    ...present(fields),
    id: entry.id,
    timestamp: dateOf(entry.startTime ?? entry.createTime),
    _agentId: entry.agentId,
    steps: steps.map(historyStep),
    events: events.map(timelineEvent),
  };
}

/** A step, which is stored as a whole. */
export function historyStep(step: EntryStep): Record<string, unknown> {
  return { ...(decodeJson(step.content) as object), id: step.id };
}

/** The event of an agent. */
export function timelineEvent(event: TimelineEvent): NewTimelineEvent {
  const fields = {
    endTime: event.endTime && isoOf(event.endTime),
    status: event.status || undefined,
    statusMessage: decodeJson(event.statusMessage),
    level: event.level || undefined,
    input: decodeJson(event.input),
    output: decodeJson(event.output),
    metadata: decodeJson(event.metadata),
    version: event.version || undefined,
    parentEventId: event.parentEventId || undefined,
    traceId: event.traceId || undefined,
    tags: event.tags.length > 0 ? event.tags : undefined,
  };
  return { id: event.id, name: event.name, type: event.type, startTime: isoOf(event.startTime), ...present(fields) };
}

/** The event as the server takes it, of a run or an agent's entry. */
export function storedEvent(id: string, runId: string, event: Omit<NewTimelineEvent, "id">) {
  const startTime = timestampOf(event.startTime);
  const endTime = timestampOf(event.endTime);
  return {
    id,
    runId,
    name: event.name,
    type: event.type,
    status: event.status ?? "",
    statusMessage: storedPart(event.statusMessage, LARGEST_SMALL_BYTES),
    level: event.level ?? "",
    input: storedValue(event.input),
    output: storedValue(event.output),
    metadata: storedPart(event.metadata),
    version: event.version ?? "",
    parentEventId: event.parentEventId ?? "",
    traceId: event.traceId ?? "",
    tags: event.tags ?? [],
    ...(startTime && { startTime }),
    ...(endTime && { endTime }),
  };
}
