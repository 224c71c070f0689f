// How a client calls: deadlines, retries, request ids and the revision that reads must see.

import { randomUUID } from "node:crypto";
import {
  clone,
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodUnary,
  fromBinary,
  isMessage,
  type Message,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { pause } from "./aborts.js";
import { Connection, FailedCall, type TlsOptions } from "./connection.js";
import { requireOwnDefault, targetOf } from "./endpoint.js";
import { ClientClosedError, RemoraError, RevisionUnknownError } from "./errors.js";
import type { Origin } from "./generated/remora/v1/calls_pb.js";
import { AddFactsRequestSchema, AddMemoryItemsRequestSchema } from "./generated/remora/v1/memory_service_pb.js";
import { invalidField, otherType, requireKnown, requireString, shown, wrongType } from "./refusals.js";
import { pauseBeforeRetry } from "./retry.js";
import { requireShape } from "./shapes.js";
import { asWritten, toError } from "./status.js";
import { type Dated, withTimestamps } from "./times.js";

/** What a call may be given besides its request. */
export interface CallOptions {
  /**
   * Milliseconds until the call's deadline, retries included. Default: the client's `timeoutMs`; where facts or memory items
   * are added, 30 more for each but the first.
   */
  timeoutMs?: number | undefined;
  /** Cancels the call. */
  signal?: AbortSignal | undefined;
  /**
   * Makes a write idempotent, up to 128 bytes: that of a failed call, `error.requestId`, or one of your own. The same call
   * with the same id takes effect once. Default: a new one. Reads, and calls that make several writes, take none.
   */
  requestId?: string | undefined;
}

/** What a write may take longer for each text but the first that the server embeds: several times what the built-in model needs. */
const EMBEDDING_MS = 30;

const OPTIONS = ["timeoutMs", "signal", "requestId"] as const satisfies readonly (keyof CallOptions)[];

/** What is the same for all calls of a client. */
export interface CallsSettings {
  readonly endpoint: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly origin: Origin;
  readonly timeoutMs: number;
  readonly tls: TlsOptions | undefined;
}

/** The fields that requests have in common, as far as they have them. */
interface CommonFields {
  requestId?: string | undefined;
  minRevision?: bigint;
  origin?: Origin | undefined;
}

/** The calls of one client. */
export class Calls {
  #revision = 0n;
  readonly #closing = new AbortController();
  readonly #settings: CallsSettings;
  readonly #connection: Connection;

  constructor(settings: CallsSettings) {
    this.#settings = settings;
    this.#connection = new Connection(() => {
      requireOwnDefault(settings.endpoint);
      return targetOf(settings.endpoint);
    }, settings.tls);
  }

  /** The greatest revision that this client wrote or was told of. */
  get revision(): bigint {
    return this.#revision;
  }

  get timeoutMs(): number {
    return this.#settings.timeoutMs;
  }

  advanceTo(revision: bigint): void {
    if (revision > this.#revision) {
      this.#revision = revision;
    }
  }

  /** Cancels calls in progress and refuses later ones. */
  close(): void {
    this.#closing.abort();
    this.#connection.close();
  }

  /** The reply to a unary call; a write takes effect once, and a read sees what this client has written. */
  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    init: Dated<MessageInitShape<I>>,
    options: CallOptions = {},
  ): Promise<MessageShape<O>> {
    requireKnown(options, OPTIONS, "option of a call");
    requireSignal(options.signal);
    const request = this.#request(method, init, options.requestId);
    const { requestId = "" } = request as CommonFields;
    try {
      const reply = fromBinary(method.output, await this.#repeated(method, request, requestId, options));
      if (requestId !== "") {
        this.advanceTo((reply as { revision?: bigint }).revision ?? 0n);
      }
      return reply;
    } catch (failure) {
      if (failure instanceof RevisionUnknownError) {
        this.#revision = 0n; // the store of that revision is gone
      }
      throw failure;
    }
  }

  /** The request with what the client adds. The caller's own message stays as it is. */
  #request<I extends DescMessage>(
    method: DescMethodUnary<I, DescMessage>,
    init: Dated<MessageInitShape<I>>,
    requestId: string | undefined,
  ): MessageShape<I> {
    const schema = method.input;
    requireShape(schema, init);
    requireRequestId(requestId, method, init);
    const request = isMessage(init, schema)
      ? clone(schema, init)
      : create(schema, withTimestamps(schema, init) as MessageInitShape<I>);
    const fields = request as CommonFields;
    if ("requestId" in schema.field) {
      fields.requestId ||= requestId ?? randomUUID();
      fields.origin ??= this.#settings.origin;
    }
    if ("minRevision" in schema.field) {
      fields.minRevision ||= this.#revision;
    }
    return request;
  }

  async #repeated(
    method: DescMethod,
    request: Message,
    requestId: string,
    { timeoutMs, signal }: CallOptions,
  ): Promise<Uint8Array> {
    const ownMs = this.#settings.timeoutMs + EMBEDDING_MS * Math.max(0, embeddedIn(request) - 1);
    const allowedMs = timeoutMs === undefined ? ownMs : timeoutMs;
    const message = encoded(method.input, request);
    const began = performance.now();
    const deadline = began + requireTimeout(allowedMs);
    this.#requireOpen();
    let previous: RemoraError | undefined;
    let sent = false;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#once(method, message, deadline, signal);
      } catch (error) {
        sent ||= !(error instanceof FailedCall) || error.sent;
        const { endpoint, tls } = this.#settings;
        const closed = this.#closing.signal.aborted && signal?.aborted !== true;
        const context = { endpoint, tls: tls !== undefined, allowedMs, requestId, sent, closed, previous };
        const failure = toError(error, context);
        const now = performance.now();
        const pauseMs = pauseBeforeRetry(failure, attempt, now - began, deadline - now);
        if (pauseMs === undefined) {
          throw failure;
        }
        previous = failure;
        await pause(pauseMs, this.#closing.signal, ...(signal ? [signal] : [])); // the next attempt sees which it was
      }
    }
  }

  #requireOpen(): void {
    if (this.#closing.signal.aborted) {
      throw new ClientClosedError("the client is closed; make another", {
        code: "FAILED_PRECONDITION",
        reason: "CLIENT_CLOSED",
      });
    }
  }

  async #once(
    method: DescMethod,
    message: Uint8Array,
    deadline: number,
    signal: AbortSignal | undefined,
  ): Promise<Uint8Array> {
    if (this.#closing.signal.aborted) {
      throw new FailedCall("CANCELLED", "the client was closed", { sent: false });
    }
    return this.#connection.unary(`/${method.parent.typeName}/${method.name}`, message, {
      headers: this.#settings.headers,
      timeoutMs: Math.max(1, deadline - performance.now()),
      signal,
    });
  }
}

/** How many texts the server embeds before it answers a write. */
function embeddedIn(request: Message): number {
  if (isMessage(request, AddFactsRequestSchema)) {
    return request.facts.length;
  }
  return isMessage(request, AddMemoryItemsRequestSchema) ? request.items.length : 0;
}

/**
 * The timeout itself.
 *
 * @throws InvalidFieldError if it is not positive.
 */
export function requireTimeout(timeoutMs: number): number {
  if (typeof timeoutMs !== "number") {
    throw otherType("timeoutMs", timeoutMs, "a number");
  }
  if (!(timeoutMs > 0)) {
    throw invalidField("timeoutMs", `is ${timeoutMs}; it must be greater than 0`);
  }
  return timeoutMs;
}

/**
 * Refuses a request id that the call does not take, or another one than its request has.
 *
 * @throws InvalidFieldError, WrongTypeError
 */
function requireRequestId(given: string | undefined, method: DescMethod, init: object): void {
  if (given === undefined) {
    return;
  }
  requireString(given, "requestId");
  if (given === "") {
    throw invalidField("requestId", "is empty; give one of 1 to 128 bytes, or leave it out");
  }
  if (!("requestId" in method.input.field)) {
    throw invalidField("requestId", `is for writes; ${method.name} takes none, leave it out`);
  }
  const { requestId: own } = init as CommonFields;
  if (own && own !== given) {
    throw invalidField("requestId", `is ${shown(given)}, and ${shown(own)} in the request; give one of them`);
  }
}

/**
 * Refuses a request id for what makes several writes, of which it could be that of one.
 *
 * @throws InvalidFieldError
 */
export function requireNoRequestId(options: CallOptions | undefined): void {
  if (options?.requestId !== undefined) {
    throw invalidField("requestId", "is for one write, and this call makes several; leave it out");
  }
}

/**
 * Runs the writes of a call that makes several. It takes no request id, which could be that of one of them, and none is in what
 * it throws.
 *
 * @throws InvalidFieldError
 */
export async function severalWrites<T>(options: CallOptions | undefined, run: () => Promise<T>): Promise<T> {
  requireNoRequestId(options);
  try {
    return await run();
  } catch (failure) {
    throw failure instanceof RemoraError ? failure.ofSeveralWrites() : failure;
  }
}

/** What is none, such as its controller, could not cancel the call. */
function requireSignal(signal: Partial<AbortSignal> | null | undefined): void {
  if (signal && !(typeof signal.aborted === "boolean" && typeof signal.addEventListener === "function")) {
    throw otherType("signal", signal, "an AbortSignal");
  }
}

function encoded(schema: DescMessage, request: Message): Uint8Array {
  try {
    return toBinary(schema, request);
  } catch (error) {
    throw unencodable(error);
  }
}

/** protobuf's text names the field as the contract does: `cannot encode field remora.v1.X.page_size to binary: why`. */
function unencodable(error: unknown): RemoraError {
  const text = error instanceof Error ? error.message : String(error);
  const named = /field \S+\.(\w+) to binary: (.*)$/s.exec(text);
  return wrongType(asWritten(named?.[1] ?? "request"), named?.[2] ?? text, error);
}
