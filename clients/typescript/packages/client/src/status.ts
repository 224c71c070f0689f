// Reads what ended a call: google.rpc's details in, an error of `errors.ts` out.

import { fromBinary } from "@bufbuild/protobuf";
import { anyUnpack, durationMs } from "@bufbuild/protobuf/wkt";
import { FailedCall } from "./connection.js";
import { ENDPOINT_VARIABLE } from "./endpoint.js";
import {
  ClientClosedError,
  ConnectionFailedError,
  classOf,
  type FieldViolation,
  ModelUnreachableError,
  type RemoraError,
  type StatusCode,
} from "./errors.js";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "./generated/google/rpc/error_details_pb.js";
import { tlsFailure } from "./tls-failures.js";
import { type Status, StatusSchema } from "./generated/google/rpc/status_pb.js";

const DOMAIN = "remora.dev";

/** Codes after which nobody knows whether a write took effect. */
const LEAVES_OPEN: ReadonlySet<StatusCode> = new Set([
  "UNAVAILABLE",
  "DEADLINE_EXCEEDED",
  "CANCELLED",
  "INTERNAL",
  "UNKNOWN",
]);

/** The call that failed. */
export interface CallContext {
  readonly endpoint: string;
  /** Whether the client speaks TLS. */
  readonly tls: boolean;
  /** Milliseconds that it had. */
  readonly allowedMs: number;
  /** The request id of a write; empty for a read. */
  readonly requestId: string;
  /** Whether this attempt, or one before it, may have reached a server. */
  readonly sent: boolean;
  /** Whether the client was closed meanwhile. */
  readonly closed: boolean;
  /** Why the attempt before failed. */
  readonly previous: RemoraError | undefined;
}

/** The error for what ended a call. What is no status of a call is thrown on. */
export function toError(failure: unknown, context: CallContext): RemoraError {
  if (!(failure instanceof FailedCall)) {
    throw failure;
  }
  if (failure.code === "DEADLINE_EXCEEDED" && isPassing(context.previous)) {
    return toError(context.previous.cause, { ...context, previous: undefined }); // during a reconnect, or a retry of the model
  }
  const status = statusOf(failure);
  const { reason, metadata } = infoIn(status);
  const isConnection = failure.code === "UNAVAILABLE" && reason === "";
  if (context.closed && (isConnection || failure.code === "CANCELLED")) {
    return clientClosed(failure, context);
  }
  if (isConnection) {
    return connectionFailed(failure, context);
  }
  const fieldViolations = violationsIn(status);
  const kind = classOf(failure.code, reason);
  const text = textOf(failure, fieldViolations, context);
  return new kind(reason === "" || kind !== classOf(failure.code, "") ? text : `${reason}: ${text}`, {
    code: failure.code,
    reason,
    metadata,
    fieldViolations,
    retryDelayMs: retryDelayIn(status),
    requestId: context.requestId,
    advice: repeat(failure.code, context),
    cause: failure,
  });
}

function isPassing(failure: RemoraError | undefined): failure is RemoraError {
  return failure instanceof ConnectionFailedError || failure instanceof ModelUnreachableError;
}

function clientClosed(failure: FailedCall, context: CallContext): ClientClosedError {
  return new ClientClosedError("the client was closed", {
    code: "FAILED_PRECONDITION",
    reason: "CLIENT_CLOSED",
    requestId: context.requestId,
    advice: repeat(failure.code, context),
    cause: failure,
  });
}

function connectionFailed(failure: FailedCall, context: CallContext): ConnectionFailedError {
  const found = failure.sent ? undefined : tlsFailure(failure.message, context.endpoint, context.tls);
  const text = found ? [found.finding, found.remedy].filter(Boolean).join("; ") : nobodyAnswers(failure, context);
  return new ConnectionFailedError(text, {
    code: "UNAVAILABLE",
    reason: "CONNECTION_FAILED",
    metadata: {
      endpoint: context.endpoint,
      ...(found && { tls_fault: found.fault, finding: found.finding }),
    },
    requestId: context.requestId,
    advice: repeat(failure.code, context),
    cause: failure,
  });
}

function nobodyAnswers(failure: FailedCall, { endpoint }: CallContext): string {
  return (
    `no Remora server answers at ${endpoint} (${failure.message}); \`remora serve\` starts one, and the client's ` +
    `option \`endpoint\` or $${ENDPOINT_VARIABLE} says where it listens`
  );
}

function textOf(failure: FailedCall, violations: readonly FieldViolation[], { allowedMs }: CallContext): string {
  if (failure.code === "DEADLINE_EXCEEDED") {
    return `no answer within ${allowedMs} ms, the call's timeout`;
  }
  return violations.map(sentence).join("; ") || failure.message || failure.code;
}

function sentence({ field, description }: FieldViolation): string {
  const isSentence = /^(are|cannot|has|have|is|must) /.test(description);
  return `${field}${isSentence ? " " : ": "}${description}`;
}

/** What to do about a write of which nobody knows whether it took effect; empty if it did not. */
function repeat(code: StatusCode, { requestId, sent }: CallContext): string {
  if (requestId === "" || !LEAVES_OPEN.has(code)) {
    return "";
  }
  if (!sent) {
    return "nothing was sent";
  }
  return `it may have taken effect: the same call with requestId ${JSON.stringify(requestId)} takes effect once`;
}

function statusOf(failure: FailedCall): Status | undefined {
  try {
    return failure.details && fromBinary(StatusSchema, failure.details);
  } catch {
    return undefined; // a proxy may have cut it; the code stays
  }
}

function infoIn(status: Status | undefined): { reason: string; metadata: Record<string, string> } {
  const infos = status?.details.map((detail) => anyUnpack(detail, ErrorInfoSchema));
  return infos?.find((info) => info?.domain === DOMAIN) ?? { reason: "", metadata: {} };
}

function violationsIn(status: Status | undefined): FieldViolation[] {
  const requests = status?.details.map((detail) => anyUnpack(detail, BadRequestSchema));
  const violations = requests?.find((request) => request !== undefined)?.fieldViolations ?? [];
  return violations.map(({ field, description }) => ({ field: asWritten(field), description }));
}

/** The name in TypeScript of a field that the server names as the contract does. */
export function asWritten(field: string): string {
  return field.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

function retryDelayIn(status: Status | undefined): number | undefined {
  const retries = status?.details.map((detail) => anyUnpack(detail, RetryInfoSchema));
  const delay = retries?.find((retry) => retry !== undefined)?.retryDelay;
  return delay && durationMs(delay);
}
