// Remora as the storage of VoltAgent's observability: spans, traces and logs.

import { ClientConnection, type ConnectionOptions, pages, type Remora, SpanNotFoundError } from "@remora/client";
import {
  type LogFilter,
  type ObservabilityLogRecord,
  type ObservabilitySpan,
  type ObservabilityStorageAdapter,
  readableLogRecordToObservabilityLog,
} from "@voltagent/core";
import { passes, translated, translatedPages } from "./failures.js";
import { encodeJson } from "./json.js";
import { int32, limitOf } from "./limits.js";
import { logOf, spanChanges, spanOf, storedLog, storedSpan } from "./spans.js";
import { present } from "./steps.js";
import { boundOf, dateOf } from "./times.js";
import { Turns } from "./turns.js";
import { Writes } from "./writes.js";

/** How many spans and traces there are. */
export interface ObservabilityStats {
  spanCount: number;
  traceCount: number;
  /** When the first trace began; none without traces. */
  oldestSpan?: Date;
  /** When the last trace began. */
  newestSpan?: Date;
}

const LARGEST_PAGE = 1_000;
const MOST_PRUNED = 1_000;
const MOST_REMEMBERED = 10_000;
const MOST_UNSTORED = 1_000;

/** Keeps spans, which updates end, and logs. */
export class RemoraObservabilityAdapter implements ObservabilityStorageAdapter {
  /** The client that it calls with. */
  readonly client: Remora;
  readonly #connection: ClientConnection;
  /** The traces of the spans that were added last: with its trace a span is found at once. */
  readonly #traces = new Map<string, string>();
  /** The last spans that could not be added, such as while the server was away: what ends them stores them. */
  readonly #unstored = new Map<string, ObservabilitySpan>();
  /** The last updates that an outage kept from being stored, by their spans. */
  readonly #unchanged = new Map<string, Partial<ObservabilitySpan>>();
  /** The spans of which an outage kept something from being stored: the next write that succeeds stores that, too. */
  readonly #delayed = new Map<string, true>();
  /** VoltAgent does not wait for a span to be added before it ends it. */
  readonly #turns = new Turns();
  readonly #writes = new Writes();

  constructor(options: ConnectionOptions = {}) {
    this.#connection = new ClientConnection(options);
    this.client = this.#connection.client;
  }

  /** Waits for what VoltAgent still stores, and closes the connection, unless the client was given. */
  async close(): Promise<void> {
    await this.#writes.ended();
    this.#connection.close();
  }

  async addSpan(span: ObservabilitySpan): Promise<void> {
    await this.#writes.add(this.#turns.take(span.spanId, () => this.#addSpan(span)));
    void this.#writes.add(this.#storeDelayed());
  }

  async #addSpan(span: ObservabilitySpan): Promise<void> {
    this.#unstored.delete(span.spanId);
    this.#unchanged.delete(span.spanId);
    try {
      await translated(this.client.history.saveSpans({ spans: [storedSpan(span)] }));
    } catch (failure) {
      remember(this.#unstored, span.spanId, span, MOST_UNSTORED);
      this.#delay(span.spanId, failure);
      throw failure;
    }
    remember(this.#traces, span.spanId, span.traceId, MOST_REMEMBERED);
  }

  /** Changes the fields that are given; an unknown span is left alone. One that could not be added is added now, or this fails. */
  async updateSpan(spanId: string, updates: Partial<ObservabilitySpan>): Promise<void> {
    await this.#writes.add(this.#turns.take(spanId, () => this.#updateSpan(spanId, updates)));
    void this.#writes.add(this.#storeDelayed());
  }

  async #updateSpan(spanId: string, given: Partial<ObservabilitySpan>): Promise<void> {
    const updates = { ...this.#unchanged.get(spanId), ...given };
    const unstored = this.#unstored.get(spanId);
    if (unstored !== undefined) {
      await this.#addSpan({ ...unstored, ...present(updates), spanId });
      return;
    }
    const { changes, paths } = spanChanges(updates);
    const traceId = updates.traceId ?? this.#traces.get(spanId) ?? "";
    if (paths.length > 0 && spanId !== "") {
      const span = { ...changes, spanId, traceId };
      try {
        await translated(this.client.history.updateSpan({ span, updateMask: { paths } }).catch(unlessMissing));
        this.#unchanged.delete(spanId);
      } catch (failure) {
        if (this.#delay(spanId, failure)) {
          remember(this.#unchanged, spanId, updates, MOST_UNSTORED);
        }
        throw failure;
      }
    }
  }

  /** Notes that an outage kept something of a span from being stored; false if it was something else. */
  #delay(spanId: string, failure: unknown): boolean {
    const delayed = passes(failure);
    if (delayed) {
      remember(this.#delayed, spanId, true, MOST_REMEMBERED);
    }
    return delayed;
  }

  /** Stores what outages kept from being stored, until another one begins. VoltAgent has been told of it, and forgets it. */
  async #storeDelayed(): Promise<void> {
    for (const spanId of [...this.#delayed.keys()]) {
      this.#delayed.delete(spanId);
      try {
        await this.#turns.take(spanId, () => this.#updateSpan(spanId, {}));
      } catch (failure) {
        if (passes(failure)) {
          return;
        }
        this.#unchanged.delete(spanId);
      }
    }
  }

  async getSpan(spanId: string): Promise<ObservabilitySpan | null> {
    if (spanId === "") {
      return null;
    }
    const request = { spanId, traceId: this.#traces.get(spanId) ?? "" };
    const reply = await translated(this.client.history.getSpan(request).catch(unlessMissing));
    return reply?.span ? spanOf(reply.span) : null;
  }

  /** The spans of a trace, the first begun first. */
  async getTrace(traceId: string): Promise<ObservabilitySpan[]> {
    const spans: ObservabilitySpan[] = [];
    if (traceId === "") {
      return spans;
    }
    for await (const page of translatedPages(
      pages(this.client.history.listSpans, { traceId, pageSize: LARGEST_PAGE }),
    )) {
      spans.push(...page.spans.map(spanOf));
    }
    return spans;
  }

  /** The ids of traces, the last begun first. */
  async listTraces(
    limit?: number,
    offset?: number,
    filter: { entityId?: string; entityType?: "agent" | "workflow" } = {},
  ): Promise<string[]> {
    const { entityId, entityType } = filter;
    const attributes = { ...(entityId && { "entity.id": entityId }), ...(entityType && { "entity.type": entityType }) };
    const most = limitOf(limit);
    const request = {
      attributes: encodeJson(attributes),
      skip: int32(Math.max(0, offset ?? 0)),
      pageSize: Math.min(most, LARGEST_PAGE),
    };
    const traces: string[] = [];
    for await (const page of translatedPages(pages(this.client.history.listTraces, request))) {
      traces.push(...page.traces.map(({ traceId }) => traceId));
      if (traces.length >= most) {
        break;
      }
    }
    return traces.slice(0, most);
  }

  /** Saves a log record of OpenTelemetry's SDK. */
  async saveLogRecord(logRecord: unknown): Promise<void> {
    const records = [storedLog(readableLogRecordToObservabilityLog(logRecord))];
    await this.#writes.add(translated(this.client.history.saveLogRecords({ records })));
  }

  async getLogsByTraceId(traceId: string): Promise<ObservabilityLogRecord[]> {
    return traceId === "" ? [] : this.#logs({ traceId }); // The server takes an empty id for any.
  }

  async getLogsBySpanId(spanId: string): Promise<ObservabilityLogRecord[]> {
    return spanId === "" ? [] : this.#logs({ spanId });
  }

  /** The logs that pass a filter, within a limit the most recent ones, the oldest first. */
  async queryLogs(filter: LogFilter): Promise<ObservabilityLogRecord[]> {
    const { attributeKey: key = "", attributeValue: value, severityNumber: severity = 0 } = filter;
    const fromTime = timeOf(filter.startTimeMin);
    const toTime = timeOf(filter.startTimeMax);
    const request = {
      traceId: filter.traceId ?? "",
      spanId: filter.spanId ?? "",
      minSeverityNumber: severity,
      maxSeverityNumber: severity,
      severityText: filter.severityText ?? "",
      scopeName: filter.instrumentationScope ?? "",
      bodyContains: filter.bodyContains ?? "",
      ...(key !== "" && value !== undefined && { attributes: encodeJson({ [key]: value }) }),
      ...(fromTime && { fromTime }),
      ...(toTime && { toTime }),
    };
    const hasKey = ({ attributes }: ObservabilityLogRecord) => key === "" || Object.hasOwn(attributes ?? {}, key);
    return this.#logs(request, limitOf(filter.limit), hasKey);
  }

  async #logs(
    request: object,
    limit = Number.POSITIVE_INFINITY,
    passes: (log: ObservabilityLogRecord) => boolean = () => true,
  ): Promise<ObservabilityLogRecord[]> {
    const logs: ObservabilityLogRecord[] = [];
    const newestFirst = Number.isFinite(limit);
    const first = { ...request, newestFirst, pageSize: Math.min(limit, LARGEST_PAGE) };
    for await (const page of translatedPages(pages(this.client.history.listLogRecords, first))) {
      logs.push(...page.records.map(logOf).filter(passes));
      if (logs.length >= limit) {
        break;
      }
    }
    return newestFirst ? logs.slice(0, limit).reverse() : logs;
  }

  /** Deletes the spans that began before a time, in milliseconds since 1970, and says how many. */
  async deleteOldSpans(beforeTimestamp: number): Promise<number> {
    const startedBefore = boundOf(beforeTimestamp);
    return repeated(async () => {
      const { deletedSpans } = await translated(this.client.history.pruneSpans({ startedBefore }));
      return Number(deletedSpans);
    });
  }

  /** Deletes the logs from before a time, in milliseconds since 1970, and says how many. */
  async deleteOldLogs(beforeTimestamp: number): Promise<number> {
    const recordedBefore = boundOf(beforeTimestamp);
    return repeated(async () => {
      const { deletedRecords } = await translated(this.client.history.pruneLogRecords({ recordedBefore }));
      return Number(deletedRecords);
    });
  }

  /** Deletes all spans and logs. */
  async clear(): Promise<void> {
    await this.deleteOldSpans(Number.POSITIVE_INFINITY);
    await this.deleteOldLogs(Number.POSITIVE_INFINITY);
    this.#traces.clear();
    this.#unstored.clear();
    this.#unchanged.clear();
    this.#delayed.clear();
  }

  /** Counts spans and traces, by a list of all traces. */
  async getStats(): Promise<ObservabilityStats> {
    const stats: ObservabilityStats = { spanCount: 0, traceCount: 0 };
    for await (const page of translatedPages(pages(this.client.history.listTraces, { pageSize: LARGEST_PAGE }))) {
      for (const { spanCount, startTime } of page.traces) {
        stats.spanCount += Number(spanCount);
        stats.traceCount += 1;
        stats.newestSpan ??= dateOf(startTime);
        stats.oldestSpan = dateOf(startTime);
      }
    }
    return stats;
  }

  getInfo(): { adapter: string; displayName: string; persistent: boolean; description: string } {
    return {
      adapter: this.constructor.name,
      displayName: "Remora",
      persistent: true,
      description: "Spans and logs are kept by a Remora server.",
    };
  }
}

/** Puts it last, and forgets the first if there are more than so many. */
function remember<T>(known: Map<string, T>, key: string, value: T, most: number): void {
  known.delete(key);
  known.set(key, value);
  const [oldest] = known.keys();
  if (known.size > most && oldest !== undefined) {
    known.delete(oldest);
  }
}

function timeOf(milliseconds: number | undefined) {
  return milliseconds === undefined ? undefined : boundOf(milliseconds);
}

/** How many went in all, where a call takes away a part of them. */
async function repeated(prune: () => Promise<number>): Promise<number> {
  let gone = 0;
  for (let last = MOST_PRUNED; last >= MOST_PRUNED; gone += last) {
    last = await prune();
  }
  return gone;
}

function unlessMissing(failure: unknown): undefined {
  if (!(failure instanceof SpanNotFoundError)) {
    throw failure;
  }
  return undefined;
}
