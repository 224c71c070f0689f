// A gRPC server that speaks the contract and answers what it is told to.

import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import * as http2 from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  create,
  type DescMessage,
  type DescService,
  fromBinary,
  type Message,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { anyPack, durationFromMs } from "@bufbuild/protobuf/wkt";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../src/generated/google/rpc/error_details_pb.js";
import { StatusSchema } from "../src/generated/google/rpc/status_pb.js";
import * as v1 from "../src/generated/v1.js";
import { STATUS_CODES, type StatusCode } from "../src/index.js";

/** A status with google.rpc's details. */
export class Failure {
  readonly domain: string = "remora.dev";
  readonly metadata: Record<string, string> = {};
  readonly violations: { field: string; description: string }[] = [];
  readonly retryDelayMs: number | undefined = undefined;

  constructor(
    readonly code: StatusCode,
    readonly reason = "",
    more: Partial<Pick<Failure, "domain" | "metadata" | "violations" | "retryDelayMs">> = {},
  ) {
    Object.assign(this, more);
  }

  trailers(): http2.OutgoingHttpHeaders {
    const details = [
      anyPack(ErrorInfoSchema, create(ErrorInfoSchema, this)),
      anyPack(BadRequestSchema, create(BadRequestSchema, { fieldViolations: this.violations })),
    ].slice(this.reason === "" ? 1 : 0, this.violations.length === 0 ? 1 : 2);
    if (this.retryDelayMs !== undefined) {
      const retryDelay = durationFromMs(this.retryDelayMs);
      details.push(anyPack(RetryInfoSchema, create(RetryInfoSchema, { retryDelay })));
    }
    const code = STATUS_CODES.indexOf(this.code);
    const status = toBinary(StatusSchema, create(StatusSchema, { code, details }));
    return {
      "grpc-status": code,
      "grpc-message": "it failed, 100 %".replace(/[^ -$&-~]/gu, encodeURIComponent),
      "grpc-status-details-bin": Buffer.from(status).toString("base64").replace(/=+$/, ""),
    };
  }
}

/** One call that arrived. */
export interface ReceivedCall {
  readonly method: string;
  readonly headers: http2.IncomingHttpHeaders;
  readonly request: Message;
}

/** A handler may write the reply itself, or say which. */
export type Handler = (stream: http2.ServerHttp2Stream, call: ReceivedCall) => unknown;
export type Outcome = Failure | Record<string, unknown> | Handler;

const SERVICES = (Object.values(v1) as object[]).filter(
  (item): item is DescService => "kind" in item && item.kind === "service",
);
const METHODS = new Map(
  SERVICES.flatMap((service) => service.methods.map((method) => [`/${service.typeName}/${method.name}`, method])),
);

/** Answers a method with the outcomes it was given, in turn, the last again and again; else with an empty reply. */
export class ScriptedServer {
  readonly calls: ReceivedCall[] = [];
  readonly endpoint: string;
  readonly sessions = new Set<http2.ServerHttp2Session>();
  readonly #folder = mkdtempSync(join(tmpdir(), "remora-"));
  readonly #outcomes = new Map<string, Outcome[]>();
  readonly #server = http2.createServer();

  private constructor() {
    this.endpoint = `unix:${join(this.#folder, "s")}`;
    this.#server.on("stream", (stream, headers) => void this.#serve(stream, headers));
    this.#server.on("session", (session) => {
      this.sessions.add(session);
      session.on("close", () => this.sessions.delete(session));
    });
  }

  static async start(): Promise<ScriptedServer> {
    const scripted = new ScriptedServer();
    scripted.#server.listen(scripted.endpoint.slice("unix:".length));
    await once(scripted.#server, "listening");
    return scripted;
  }

  stop(): void {
    for (const session of this.sessions) {
      session.destroy();
    }
    this.#server.close();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Sets what the next calls of the method come to. */
  answer(method: string, ...outcomes: Outcome[]): void {
    this.#outcomes.set(method, outcomes);
  }

  /** The requests of this kind, in the order in which they came. */
  requests<Desc extends DescMessage>(schema: Desc): MessageShape<Desc>[] {
    const found = this.calls.filter((call) => call.request.$typeName === schema.typeName);
    return found.map((call) => call.request as MessageShape<Desc>);
  }

  async #serve(stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders): Promise<void> {
    stream.on("error", () => {}); // a client that goes away is a test's own doing
    const method = METHODS.get(String(headers[":path"]));
    if (method === undefined) {
      respondWith(stream, new Failure("UNIMPLEMENTED", "METHOD_UNKNOWN"));
      return;
    }
    const body = await bodyOf(stream);
    if (body === undefined) {
      return;
    }
    const call = { method: method.name, headers, request: fromBinary(method.input, body.subarray(5)) };
    this.calls.push(call);
    const outcome = this.#next(method.name);
    if (typeof outcome === "function") {
      await outcome(stream, call);
    } else if (outcome instanceof Failure) {
      respondWith(stream, outcome);
    } else {
      reply(stream, method.output, outcome);
    }
  }

  #next(method: string): Outcome {
    const outcomes = this.#outcomes.get(method) ?? [];
    return (outcomes.length > 1 ? outcomes.shift() : outcomes[0]) ?? {};
  }
}

/** The body of a request; undefined if its client went away. */
async function bodyOf(stream: http2.ServerHttp2Stream): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of stream) {
      chunks.push(chunk);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks);
}

/** Sends a reply, in pieces of so many bytes. */
export function reply<Desc extends DescMessage>(
  stream: http2.ServerHttp2Stream,
  schema: Desc,
  init: MessageInitShape<Desc>,
  pieceBytes = Number.POSITIVE_INFINITY,
): void {
  const message = toBinary(schema, create(schema, init));
  const header = Buffer.alloc(5);
  header.writeUInt32BE(message.length, 1);
  send(stream, Buffer.concat([header, message]), pieceBytes);
}

/** Sends bytes as the body of a call that succeeded. */
export function send(stream: http2.ServerHttp2Stream, body: Buffer, pieceBytes = Number.POSITIVE_INFINITY): void {
  stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  for (let start = 0; start < body.length; start += pieceBytes) {
    stream.write(body.subarray(start, start + pieceBytes));
  }
  stream.end();
}

/** Sends a status and no message, in the headers as gRPC's trailers-only reply has it. */
export function respondWith(stream: http2.ServerHttp2Stream, failure: Failure): void {
  stream.respond({ ":status": 200, "content-type": "application/grpc", ...failure.trailers() }, { endStream: true });
}
