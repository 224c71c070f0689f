// Unary gRPC calls over one HTTP/2 connection of Node's own: bytes in, bytes or a FailedCall out. Knows nothing of the
// contract, of retries or of Remora's errors.
//
// It follows gRPC's "gRPC over HTTP2": a message is framed by a byte for compression and four for its length; the status
// is in the trailers, or in the headers if there is no reply.

import * as http2 from "node:http2";
import * as net from "node:net";
import type { Target } from "./endpoint.js";
import { STATUS_CODES, type StatusCode } from "./errors.js";

/** How a call is made. */
export interface CallSettings {
  readonly headers: http2.OutgoingHttpHeaders;
  /** Milliseconds until the deadline. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
}

/** What ended a call without a reply: the server's status, or a connection that broke, which is UNAVAILABLE. */
export class FailedCall extends Error {
  override readonly name = "FailedCall";
  readonly code: StatusCode;
  /** google.rpc.Status, encoded, if the server sent it. */
  readonly details: Uint8Array | undefined;

  constructor(code: StatusCode, message: string, more: { details?: Uint8Array | undefined; cause?: unknown } = {}) {
    super(message, "cause" in more ? { cause: more.cause } : undefined);
    this.code = code;
    this.details = more.details;
  }
}

const FRAME_HEADER_BYTES = 5;
/** A server may be set to send larger replies than gRPC's usual 4 MiB. */
const LARGEST_REPLY_BYTES = 64 * 1024 * 1024;
const STREAM_WINDOW_BYTES = 1024 * 1024;
const CONNECTION_WINDOW_BYTES = 8 * 1024 * 1024;
/** What Node lets the calls of a session hold, before it refuses replies. */
const SESSION_MEGABYTES = 1024;
const LONGEST_TIMER_MS = 2 ** 31 - 1;
/** gRPC's timeouts have at most eight digits. */
const LARGEST_TIMEOUT = 99_999_999;
/** An HTTP/2 connection has identifiers for 2^30 streams. */
const CALLS_PER_SESSION = 1_000_000_000;
const PING_TIMEOUT_MS = 5_000;

const { NGHTTP2_CANCEL, NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_NO_ERROR, NGHTTP2_REFUSED_STREAM } = http2.constants;

/** gRPC's codes for what a proxy, or a server of another kind, answers. */
const CODE_OF_HTTP_STATUS: Readonly<Record<number, StatusCode>> = {
  400: "INTERNAL",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "UNIMPLEMENTED",
  429: "UNAVAILABLE",
  502: "UNAVAILABLE",
  503: "UNAVAILABLE",
  504: "UNAVAILABLE",
};

/** A connection that is opened by the first call, and again by the next call after it broke. It keeps no process alive. */
export class Connection {
  readonly #target: () => Target;
  readonly #callsPerSession: number;
  /** The newest takes the calls; others still answer theirs. */
  readonly #links = new Set<Link>();
  #newest: Link | undefined;

  /** `target` is asked each time that the connection is opened. */
  constructor(target: () => Target, callsPerSession = CALLS_PER_SESSION) {
    this.#target = target;
    this.#callsPerSession = callsPerSession;
  }

  /** The reply to one call. Throws FailedCall. */
  async unary(path: string, message: Uint8Array, settings: CallSettings): Promise<Uint8Array> {
    if (settings.signal?.aborted) {
      throw cancelled(settings.signal);
    }
    return this.#usableLink().unary(path, message, settings);
  }

  /** Closes the connection and cancels the calls in progress. */
  close(): void {
    for (const link of this.#links) {
      link.destroy();
    }
  }

  #usableLink(): Link {
    if (this.#newest?.usable) {
      return this.#newest;
    }
    this.#newest?.retire();
    const link = new Link(this.#target(), this.#callsPerSession);
    this.#newest = link;
    this.#links.add(link);
    void link.gone.then(() => this.#links.delete(link));
    return link;
  }
}

/** One HTTP/2 session, with the reason why it broke. */
class Link {
  readonly #session: http2.ClientHttp2Session;
  readonly #authority: string;
  /** Fulfilled when the session is at its end, and it is known why. */
  readonly gone: Promise<void>;
  #broken: FailedCall | undefined;
  #callsLeft: number;
  #calls = 0;
  #retired = false;
  #pinged = false;

  constructor(target: Target, mostCalls: number) {
    this.#callsLeft = mostCalls;
    this.#authority = "path" in target ? "localhost" : `${bracketed(target.host)}:${target.port}`;
    this.#session = http2.connect(`http://${this.#authority}`, {
      createConnection: () => net.connect(target),
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
      maxSessionMemory: SESSION_MEGABYTES,
    });
    this.#session.on("connect", () => {
      this.#session.setLocalWindowSize(CONNECTION_WINDOW_BYTES);
      this.#holdProcess();
    });
    this.#session.on("error", (error: Error) => {
      this.#broken ??= new FailedCall("UNAVAILABLE", error.message, { cause: error });
    });
    this.gone = new Promise((resolve) => {
      this.#session.on("close", () => {
        this.#broken ??= new FailedCall("UNAVAILABLE", "the connection was closed");
        resolve();
      });
    });
  }

  /** Whether it takes new calls: a server that stops says so while it still answers the earlier ones. */
  get usable(): boolean {
    return this.#callsLeft > 0 && !(this.#session.closed || this.#session.destroyed);
  }

  /** Ends it after the calls in progress. */
  retire(): void {
    this.#retired = true;
    this.#count(0);
  }

  destroy(): void {
    this.#broken ??= new FailedCall("CANCELLED", "the client was closed");
    this.#session.destroy();
  }

  unary(path: string, message: Uint8Array, { headers, timeoutMs, signal }: CallSettings): Promise<Uint8Array> {
    this.#callsLeft--;
    return new Promise((resolve, reject) => {
      const stream = this.#session.request({
        ...headers,
        ":method": "POST",
        ":path": path,
        ":authority": this.#authority,
        "content-type": "application/grpc",
        te: "trailers",
        "grpc-timeout": timeoutHeader(timeoutMs),
      });
      const reply = new Reply(stream);
      const stop = (failure: FailedCall) => {
        reject(failure);
        reset(stream);
      };
      const cancel = () => stop(cancelled(signal));
      const timer = setTimeout(
        () => {
          stop(new FailedCall("DEADLINE_EXCEEDED", "the deadline has passed"));
          this.#verify();
        },
        Math.min(timeoutMs, LONGEST_TIMER_MS),
      );
      signal?.addEventListener("abort", cancel, { once: true });
      this.#count(1);

      stream.on("error", () => {}); // `close` follows, and knows more
      stream.on("end", () => {
        if (!stream.writableFinished) {
          reset(stream); // the server has refused the rest of the request
        }
      });
      stream.on("close", () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", cancel);
        this.#count(-1);
        this.#outcome(reply, stream).then(resolve, reject);
      });
      stream.end(framed(message));
    });
  }

  async #outcome(reply: Reply, stream: http2.ClientHttp2Stream): Promise<Uint8Array> {
    if (!reply.hasStatus && this.#session.destroyed) {
      await this.gone;
    }
    if (reply.hasStatus) {
      return reply.message();
    }
    throw reply.refusal ?? this.#broken ?? brokenStream(stream.rstCode);
  }

  #count(change: 1 | 0 | -1): void {
    this.#calls += change;
    this.#holdProcess();
    if (this.#retired && this.#calls === 0) {
      this.#session.close();
    }
  }

  /** The process may end while no call is in progress. */
  #holdProcess(): void {
    if (this.#session.destroyed || this.#session.connecting) {
      return;
    }
    if (this.#calls > 0) {
      this.#session.ref();
    } else {
      this.#session.unref();
    }
  }

  /** Breaks a connection whose other end is gone without a word, which a deadline that passed may be a sign of. */
  #verify(): void {
    if (this.#pinged || this.#session.destroyed || this.#session.connecting) {
      return;
    }
    this.#pinged = true;
    const timer = setTimeout(
      () => this.#session.destroy(new Error("the server does not answer pings")),
      PING_TIMEOUT_MS,
    ).unref();
    this.#session.ping(() => {
      clearTimeout(timer);
      this.#pinged = false;
    });
  }
}

/** What has arrived of one reply. */
class Reply {
  readonly #chunks: Buffer[] = [];
  #size = 0;
  #headers: http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader = {};
  /** The headers or trailers with the status. */
  #ending: http2.IncomingHttpHeaders | undefined;

  constructor(stream: http2.ClientHttp2Stream) {
    stream.on("response", (headers) => {
      this.#headers = headers;
      this.#end(headers);
    });
    stream.on("trailers", (trailers) => this.#end(trailers));
    stream.on("data", (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#size += chunk.length;
      if (this.#isTooLarge) {
        reset(stream);
      }
    });
  }

  /** Whether the server said how the call ended. */
  get hasStatus(): boolean {
    return this.#ending !== undefined && !this.#isTooLarge;
  }

  /** Why there is no status, as far as that is to be seen in the reply. */
  get refusal(): FailedCall | undefined {
    if (this.#isTooLarge) {
      return new FailedCall("RESOURCE_EXHAUSTED", `the reply is larger than ${LARGEST_REPLY_BYTES} bytes`);
    }
    const status = this.#headers[":status"];
    const isGrpc = this.#headers["content-type"]?.startsWith("application/grpc");
    if (status === undefined || (status === 200 && isGrpc)) {
      return undefined;
    }
    const code = CODE_OF_HTTP_STATUS[status] ?? "UNKNOWN";
    return new FailedCall(code, `this is no gRPC server: it replies with HTTP's status ${status}`);
  }

  /** The message of a reply with a status. Throws FailedCall. */
  message(): Uint8Array {
    this.#requireOk(this.#ending ?? {});
    const [first = Buffer.alloc(0), ...others] = this.#chunks;
    const frame = others.length === 0 ? first : Buffer.concat(this.#chunks, this.#size);
    if (frame.length < FRAME_HEADER_BYTES || frame.length !== FRAME_HEADER_BYTES + frame.readUInt32BE(1)) {
      throw new FailedCall("INTERNAL", `the reply is not one message: it has ${frame.length} bytes`);
    }
    if (frame[0] !== 0) {
      throw new FailedCall("INTERNAL", "the reply is compressed, which was not asked for");
    }
    return frame.subarray(FRAME_HEADER_BYTES);
  }

  get #isTooLarge(): boolean {
    return this.#size > FRAME_HEADER_BYTES + LARGEST_REPLY_BYTES;
  }

  #end(headers: http2.IncomingHttpHeaders): void {
    if (headers["grpc-status"] !== undefined) {
      this.#ending = headers;
    }
  }

  #requireOk(ending: http2.IncomingHttpHeaders): void {
    const code = STATUS_CODES[Number(ending["grpc-status"])] ?? "UNKNOWN";
    if (code !== "OK") {
      throw new FailedCall(code, percentDecoded(ending["grpc-message"]), { details: detailsIn(ending) });
    }
  }
}

/** Ends a stream now: `close` alone waits until all of the request is written. */
function reset(stream: http2.ClientHttp2Stream): void {
  stream.close(NGHTTP2_CANCEL);
  stream.destroy();
}

function cancelled(signal: AbortSignal | undefined): FailedCall {
  return new FailedCall("CANCELLED", "the call was cancelled", { cause: signal?.reason });
}

function framed(message: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + message.length);
  frame[0] = 0;
  frame.writeUInt32BE(message.length, 1);
  frame.set(message, FRAME_HEADER_BYTES);
  return frame;
}

function timeoutHeader(milliseconds: number): string {
  const whole = Math.ceil(milliseconds);
  return whole <= LARGEST_TIMEOUT ? `${whole}m` : `${Math.min(Math.ceil(whole / 1000), LARGEST_TIMEOUT)}S`;
}

/** How a stream ended for which nothing else says it. */
function brokenStream(rstCode: number): FailedCall {
  return new FailedCall(codeOfReset(rstCode), `the stream ended without a status, with HTTP/2's code ${rstCode}`);
}

function codeOfReset(rstCode: number): StatusCode {
  switch (rstCode) {
    case NGHTTP2_NO_ERROR:
    case NGHTTP2_REFUSED_STREAM:
      return "UNAVAILABLE";
    case NGHTTP2_CANCEL:
      return "CANCELLED";
    case NGHTTP2_ENHANCE_YOUR_CALM:
      return "RESOURCE_EXHAUSTED";
    default:
      return "INTERNAL";
  }
}

function percentDecoded(text: string | string[] | undefined): string {
  const encoded = String(text ?? "");
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

function detailsIn(headers: http2.IncomingHttpHeaders): Uint8Array | undefined {
  const encoded = headers["grpc-status-details-bin"];
  return typeof encoded === "string" ? Buffer.from(encoded, "base64") : undefined;
}

function bracketed(host: string): string {
  return net.isIPv6(host) ? `[${host}]` : host;
}
