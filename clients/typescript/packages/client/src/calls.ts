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
import { ClientClosedError, type RemoraError, RevisionUnknownError } from "./errors.js";
import type { Origin } from "./generated/remora/v1/calls_pb.js";
import { invalidField, otherType, requireKnown, wrongType } from "./refusals.js";
import { pauseBeforeRetry } from "./retry.js";
import { requireShape } from "./shapes.js";
import { asWritten, toError } from "./status.js";

/** What a call may be given besides its request. */
export interface CallOptions {
  /** Milliseconds until the call's deadline, retries included. Default: the client's `timeoutMs`. */
  timeoutMs?: number | undefined;
  /** Cancels the call. */
  signal?: AbortSignal | undefined;
}

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
  requestId?: string;
  minRevision?: bigint;
  origin?: Origin | undefined;
}

/** The calls of one client. */
export class Calls {
  #revision = 0n;
  #closed = false;
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
    this.#closed = true;
    this.#connection.close();
  }

  /** The reply to a unary call; a write takes effect once, and a read sees what this client has written. */
  async unary<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    init: MessageInitShape<I>,
    options: CallOptions = {},
  ): Promise<MessageShape<O>> {
    requireKnown(options, ["timeoutMs", "signal"], "option of a call");
    requireSignal(options.signal);
    const request = this.#request(method.input, init);
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
  #request<I extends DescMessage>(schema: I, init: MessageInitShape<I>): MessageShape<I> {
    requireShape(schema, init);
    const request = isMessage(init, schema) ? clone(schema, init) : create(schema, init);
    const fields = request as CommonFields;
    if ("requestId" in schema.field) {
      fields.requestId ||= randomUUID();
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
    { timeoutMs: allowedMs = this.#settings.timeoutMs, signal }: CallOptions,
  ): Promise<Uint8Array> {
    const message = encoded(method.input, request);
    const began = performance.now();
    const deadline = began + requireTimeout(allowedMs);
    let previous: RemoraError | undefined;
    let sent = false;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#once(method, message, deadline, signal);
      } catch (error) {
        sent ||= !(error instanceof FailedCall) || error.sent;
        const { endpoint, tls } = this.#settings;
        const failure = toError(error, { endpoint, tls: tls !== undefined, allowedMs, requestId, sent, previous });
        const now = performance.now();
        const pauseMs = pauseBeforeRetry(failure, attempt, now - began, deadline - now);
        if (pauseMs === undefined) {
          throw failure;
        }
        previous = failure;
        await pause(pauseMs, signal); // the next attempt sees the signal
      }
    }
  }

  #once(
    method: DescMethod,
    message: Uint8Array,
    deadline: number,
    signal: AbortSignal | undefined,
  ): Promise<Uint8Array> {
    if (this.#closed) {
      throw new ClientClosedError("the client is closed; make another", {
        code: "FAILED_PRECONDITION",
        reason: "CLIENT_CLOSED",
      });
    }
    return this.#connection.unary(`/${method.parent.typeName}/${method.name}`, message, {
      headers: this.#settings.headers,
      timeoutMs: Math.max(1, deadline - performance.now()),
      signal,
    });
  }
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
