// Unary gRPC calls through grpc-js: bytes in, bytes or a FailedCall out. Knows nothing of the contract, of retries or of
// Remora's errors.

import * as net from "node:net";
import * as grpc from "@grpc/grpc-js";
import { onAbort } from "./aborts.js";
import type { Target } from "./endpoint.js";
import { STATUS_CODES, type StatusCode } from "./errors.js";

/** How TLS is spoken; certificates and keys in PEM. */
export interface TlsOptions {
  /** The authorities that may have signed the server's certificate. Default: those that Node trusts. */
  ca?: string | Uint8Array | undefined;
  /** The client's certificate, if the server requires one. */
  cert?: string | Uint8Array | undefined;
  /** The key of that certificate. */
  key?: string | Uint8Array | undefined;
  /** The name that the server's certificate must have. Default: the host of the endpoint. */
  serverName?: string | undefined;
}

/** How a call is made. */
export interface CallSettings {
  readonly headers: Readonly<Record<string, string>>;
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
  /** Whether the request may have reached a server. */
  readonly sent: boolean;

  constructor(
    code: StatusCode,
    message: string,
    more: { details?: Uint8Array | undefined; sent?: boolean; cause?: unknown } = {},
  ) {
    super(message, "cause" in more ? { cause: more.cause } : undefined);
    this.code = code;
    this.details = more.details;
    this.sent = more.sent ?? true;
  }
}

const OPTIONS: grpc.ChannelOptions = {
  "grpc.use_local_subchannel_pool": 1, // each client has a connection of its own
  "grpc.enable_http_proxy": 0,
  "grpc.service_config_disable_resolution": 1,
  "grpc.enable_retries": 0, // the client repeats calls itself
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 1_000,
  // A connection whose other end is gone without a word breaks after both.
  "grpc.keepalive_time_ms": 10_000,
  "grpc.keepalive_timeout_ms": 5_000,
  "grpc.max_send_message_length": -1, // the server's bound counts
  "grpc.max_receive_message_length": 64 * 1024 * 1024, // a server may be set to send larger replies than gRPC's usual ones
};

/** gRPC says a longer one in no header, and grpc-js ends the process over it. */
const LONGEST_TIMEOUT_MS = 99_999_999 * 3_600_000;

/** Around why there is no connection, grpc-js says what the client says better. */
const CONNECTING =
  /^No connection established\. Last error: (?:Error: )?(.*?)\s*(?:\(\d{4}-[^)]*Z\))?\. Resolution note: /s;

/** A connection that is opened by the first call, and again by the next call after it broke. It keeps no process alive. */
export class Connection {
  readonly #target: () => Target;
  readonly #tls: TlsOptions | undefined;
  readonly #calls = new Set<grpc.ClientUnaryCall>();
  #client: grpc.Client | undefined;

  /** `target` is asked when the connection is first opened. */
  constructor(target: () => Target, tls?: TlsOptions) {
    this.#target = target;
    this.#tls = tls;
  }

  /** The reply to one call. Throws FailedCall. */
  async unary(path: string, message: Uint8Array, { headers, timeoutMs, signal }: CallSettings): Promise<Uint8Array> {
    if (signal?.aborted) {
      throw cancelled(signal, false);
    }
    this.#client ??= opened(this.#target(), this.#tls);
    const client = this.#client;
    const metadata = metadataOf(headers);
    const deadline = timeoutMs > LONGEST_TIMEOUT_MS ? Number.POSITIVE_INFINITY : Date.now() + timeoutMs;
    return new Promise((resolve, reject) => {
      const call = client.makeUnaryRequest(path, asBuffer, asIs, message, metadata, { deadline }, (error, reply) => {
        this.#calls.delete(call);
        forget?.();
        if (error !== null) {
          const sent = isConnected(call, client);
          reject(signal?.aborted ? cancelled(signal, sent) : failedCall(error, sent));
        } else {
          resolve(reply as Buffer);
        }
      });
      this.#calls.add(call);
      const forget = signal && onAbort(signal, () => call.cancel());
    });
  }

  /** Closes the connection and cancels the calls in progress. */
  close(): void {
    for (const call of this.#calls) {
      call.cancel();
    }
    this.#client?.close();
    this.#client = undefined;
  }
}

function opened(target: Target, tls: TlsOptions | undefined): grpc.Client {
  const [address, authority] =
    "path" in target
      ? [`unix:${target.path}`, { "grpc.default_authority": "localhost" }]
      : [`${bracketed(target.host)}:${target.port}`, {}];
  return new grpc.Client(address, channelCredentials(tls), { ...OPTIONS, ...authority, ...named(tls) });
}

function channelCredentials(tls: TlsOptions | undefined): grpc.ChannelCredentials {
  if (tls === undefined) {
    return grpc.credentials.createInsecure();
  }
  return grpc.credentials.createSsl(pem(tls.ca), pem(tls.key), pem(tls.cert));
}

function named(tls: TlsOptions | undefined): grpc.ChannelOptions {
  return tls?.serverName === undefined ? {} : { "grpc.ssl_target_name_override": tls.serverName };
}

function pem(given: string | Uint8Array | undefined): Buffer | null {
  return given === undefined ? null : Buffer.from(given);
}

function metadataOf(headers: Readonly<Record<string, string>>): grpc.Metadata {
  const metadata = new grpc.Metadata();
  for (const [name, value] of Object.entries(headers)) {
    metadata.set(name, value);
  }
  return metadata;
}

/** Whether a call got a connection: its peer is then the address of the connection, and until then the channel's target. */
function isConnected(call: grpc.ClientUnaryCall, client: grpc.Client): boolean {
  return call.getPeer() !== client.getChannel().getTarget();
}

function failedCall(error: grpc.ServiceError, sent: boolean): FailedCall {
  const details = error.metadata?.get("grpc-status-details-bin")[0];
  return new FailedCall(STATUS_CODES[error.code] ?? "UNKNOWN", CONNECTING.exec(error.details)?.[1] ?? error.details, {
    details: details instanceof Buffer ? details : undefined,
    sent,
    cause: error,
  });
}

function cancelled(signal: AbortSignal, sent: boolean): FailedCall {
  return new FailedCall("CANCELLED", "the call was cancelled", { sent, cause: signal.reason });
}

function asBuffer(message: Uint8Array): Buffer {
  return Buffer.from(message.buffer, message.byteOffset, message.byteLength);
}

function asIs(message: Buffer): Buffer {
  return message;
}

function bracketed(host: string): string {
  return net.isIPv6(host) ? `[${host}]` : host;
}
