// The errors of calls: a class for each canonical code, with a subclass for each reason of the server.

/** gRPC's canonical codes, in the order of their numbers, which begin at 0. */
export const STATUS_CODES = [
  "OK",
  "CANCELLED",
  "UNKNOWN",
  "INVALID_ARGUMENT",
  "DEADLINE_EXCEEDED",
  "NOT_FOUND",
  "ALREADY_EXISTS",
  "PERMISSION_DENIED",
  "RESOURCE_EXHAUSTED",
  "FAILED_PRECONDITION",
  "ABORTED",
  "OUT_OF_RANGE",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
  "DATA_LOSS",
  "UNAUTHENTICATED",
] as const;

/** A canonical code of gRPC, such as `NOT_FOUND`. */
export type StatusCode = (typeof STATUS_CODES)[number];

/** One field of a request that was refused. */
export interface FieldViolation {
  /** The field as the caller wrote it, such as `messages[2].role`. */
  readonly field: string;
  /** What is wrong with it, for people. */
  readonly description: string;
}

/** What an error knows besides its text. */
export interface ErrorDetails {
  readonly code?: StatusCode;
  readonly reason?: string;
  readonly metadata?: Readonly<Record<string, string>>;
  readonly fieldViolations?: readonly FieldViolation[];
  readonly retryDelayMs?: number | undefined;
  readonly requestId?: string;
  /** What to do about a write that may have taken effect; the end of the error's text. */
  readonly advice?: string;
  readonly cause?: unknown;
}

/**
 * A call that failed. Texts are for people and may change; `reason` and the class do not.
 *
 * Where the server or the connection failed, `cause` is what HTTP/2 or gRPC said.
 */
export class RemoraError extends Error {
  /** The canonical code. */
  readonly code: StatusCode;
  /** Why, such as `CONVERSATION_NOT_FOUND`; empty if the failure did not come from Remora itself. */
  readonly reason: string;
  /** What the reason is about, such as the conversation's id. */
  readonly metadata: Readonly<Record<string, string>>;
  /** The fields of the request that were refused. */
  readonly fieldViolations: readonly FieldViolation[];
  /** Milliseconds after which the server asks to retry; undefined if it says nothing. */
  readonly retryDelayMs: number | undefined;
  /**
   * The request id of a write that failed. The same call with this `requestId` takes effect once, even if the failed one
   * did. Empty for reads, which may always be repeated, and for calls that were not sent.
   */
  readonly requestId: string;
  readonly #given: [message: string, details: ErrorDetails];

  constructor(message: string, details: ErrorDetails = {}) {
    super(
      [message, details.advice].filter(Boolean).join("; "),
      "cause" in details ? { cause: details.cause } : undefined,
    );
    this.#given = [message, details];
    this.name = new.target.name;
    this.code = details.code ?? "UNKNOWN";
    this.reason = details.reason ?? "";
    this.metadata = details.metadata ?? {};
    this.fieldViolations = details.fieldViolations ?? [];
    this.retryDelayMs = details.retryDelayMs;
    this.requestId = details.requestId ?? "";
  }

  /**
   * The same failure of a call that makes several writes and takes no request id.
   *
   * @internal
   */
  ofSeveralWrites(): RemoraError {
    if (this.requestId === "") {
      return this;
    }
    const [message, details] = this.#given;
    return new (this.constructor as typeof RemoraError)(message, { ...details, requestId: "", advice: "" });
  }
}

/** The request cannot be carried out as it is. */
export class InvalidArgumentError extends RemoraError {}

/** What the request names does not exist. */
export class NotFoundError extends RemoraError {}

/** What the request would create already exists. */
export class AlreadyExistsError extends RemoraError {}

/** The request is outside of what exists. */
export class OutOfRangeError extends RemoraError {}

/** The server's state does not allow the request. */
export class FailedPreconditionError extends RemoraError {}

/** Another writer came first. */
export class AbortedError extends RemoraError {}

/** Something is full. */
export class ResourceExhaustedError extends RemoraError {}

/** The server cannot answer now. */
export class UnavailableError extends RemoraError {}

/**
 * The deadline passed first. A read may be repeated as it is. A write may still have taken effect: repeat the same
 * call with `requestId: error.requestId`, and it takes effect once.
 */
export class DeadlineExceededError extends RemoraError {}

/** The call was cancelled. */
export class CancelledError extends RemoraError {}

/** The token is missing or unknown. */
export class UnauthenticatedError extends RemoraError {}

/** The token does not allow the request. */
export class PermissionDeniedError extends RemoraError {}

/** The server cannot do what the call asks: it is older than the client, or another program. */
export class UnimplementedError extends RemoraError {}

/** The server failed; its log says how. */
export class InternalError extends RemoraError {}

/** The server does not know the method: it is older than the client. */
export class MethodUnknownError extends UnimplementedError {}

/** The server does not know how the request is compressed. */
export class CompressionUnknownError extends UnimplementedError {}

/** The call reached the server in a form that breaks gRPC's protocol. */
export class CallMalformedError extends InternalError {}

/** The server's transport does not carry streams that wait for events. */
export class StreamUnsupportedError extends UnimplementedError {}

/** Stored data is damaged. */
export class DataLossError extends RemoraError {}

/** A failure without a code. */
export class UnknownError extends RemoraError {}

/** Arguments are missing or out of bounds: see `fieldViolations`. */
export class InvalidFieldError extends InvalidArgumentError {}

/** An argument is of another type than the call takes. Its reason, `WRONG_TYPE`, is the client's own. */
export class WrongTypeError extends InvalidFieldError {}

/** The page token is not from this list. */
export class PageTokenInvalidError extends InvalidArgumentError {}

/** The token budget does not hold the system text and the newest messages. */
export class BudgetTooSmallError extends InvalidArgumentError {
  /** The least budget that does. */
  get leastMaxTokens(): number {
    return Number(this.metadata.least_max_tokens ?? 0);
  }
}

/** The newest messages are larger than a reply may be, whatever the budget. */
export class ContextTooLargeError extends FailedPreconditionError {}

/** A message is longer than a message may be, or a write larger than the store takes. */
export class RequestTooLargeError extends InvalidArgumentError {
  /** How many bytes it has, where that is known. */
  get sizeBytes(): number | undefined {
    return numberOf(this.metadata.size_bytes);
  }

  /** How many bytes it may have, where that is known. */
  get limitBytes(): number | undefined {
    return numberOf(this.metadata.limit_bytes);
  }
}

/** There is no such conversation, or it is another user's. */
export class ConversationNotFoundError extends NotFoundError {}

/** There is no such message. */
export class MessageNotFoundError extends NotFoundError {}

/** The conversation's id is taken. */
export class ConversationExistsError extends AlreadyExistsError {}

/** A different record has the key of an imported one. */
export class RecordConflictError extends AlreadyExistsError {}

/** The backup no longer exists. */
export class BackupNotFoundError extends NotFoundError {}

/** No backup can be made now. */
export class BackupUnavailableError extends FailedPreconditionError {}

/** The token is of another tenant than the one that was named beside it. */
export class TenantMismatchError extends PermissionDeniedError {}

/** The client was closed before the call, or during it. Its reason, `CLIENT_CLOSED`, is the client's own. */
export class ClientClosedError extends FailedPreconditionError {}

/** Only the operator may make the call. */
export class OperatorOnlyError extends PermissionDeniedError {}

/** The request id belongs to another request. */
export class RequestIdReusedError extends AlreadyExistsError {}

/** The store never assigned the revision to wait for: it was replaced, or was in memory and restarted. */
export class RevisionUnknownError extends OutOfRangeError {}

/** The server has no embedding model. */
export class ModelUnavailableError extends FailedPreconditionError {}

/** The messages to be searched take more memory than the server allows one search. */
export class SearchTooLargeError extends FailedPreconditionError {}

/** The store has no room for the write. */
export class StoreFullError extends ResourceExhaustedError {}

/** The server's database has too little memory for the call. */
export class MemoryExhaustedError extends ResourceExhaustedError {}

/** The request is larger than the server receives. */
export class MessageTooLargeError extends ResourceExhaustedError {}

/** The server has too much to do. */
export class OverloadedError extends ResourceExhaustedError {}

/** The calls of this process or address hold as much of the server as they may: above all, replies not read. */
export class PeerOverloadedError extends ResourceExhaustedError {}

/** A stream was read more slowly than messages came, and some are missing. */
export class SlowReaderError extends ResourceExhaustedError {}

/** There is no such run of a workflow. */
export class WorkflowRunNotFoundError extends NotFoundError {}

/** There is no such step of a workflow's run. */
export class WorkflowStepNotFoundError extends NotFoundError {}

/** There is no such timeline event. */
export class TimelineEventNotFoundError extends NotFoundError {}

/** Another timeline event has the id: events never change. */
export class TimelineEventExistsError extends AlreadyExistsError {}

/** There is no such entry of an agent's history. */
export class HistoryEntryNotFoundError extends NotFoundError {}

/** The entry with the id is another user's: an entry stays its user's. */
export class HistoryEntryExistsError extends AlreadyExistsError {}

/** There is no such step of a history entry. */
export class EntryStepNotFoundError extends NotFoundError {}

/** A vector has another dimension than the vectors of its collection. */
export class DimensionMismatchError extends InvalidArgumentError {}

/** There is no such collection of vectors. */
export class CollectionNotFoundError extends NotFoundError {}

/** The user has no such memory item. */
export class MemoryItemNotFoundError extends NotFoundError {}

/** The user has no such fact. */
export class FactNotFoundError extends NotFoundError {}

/** The id of a collection is taken. */
export class CollectionExistsError extends AlreadyExistsError {}

/** The vectors to be searched take more memory than the server allows. */
export class VectorsTooLargeError extends FailedPreconditionError {}

/** The items to be searched take more memory than the server allows. */
export class ItemsTooLargeError extends FailedPreconditionError {}
/** A part of an upload is not there, or not as it must be: upload it again. */
export class UploadIncompleteError extends FailedPreconditionError {}

/** A write has named the upload, which takes no more parts. */
export class UploadNamedError extends FailedPreconditionError {}

/** There is no such value of a channel or of a write. */
export class CheckpointValueNotFoundError extends NotFoundError {}

/** There is no such receipt: it has expired, its user was deleted, or the server was killed before it was written. */
export class ReceiptNotFoundError extends NotFoundError {}

/** There is no such span. */
export class SpanNotFoundError extends NotFoundError {}

/** Another write came first: read again, and decide again. */
export class RevisionMismatchError extends AbortedError {}

/** The window has moved since a summary was planned, or a message that it covers has changed: plan it again. */
export class SummaryOutdatedError extends AbortedError {}

/** The data that the call reads is damaged on the server's disk. */
export class StoreDamagedError extends DataLossError {}

/** The endpoint of the tenant's embedding model gives no vectors now; the text says why. */
export class ModelUnreachableError extends UnavailableError {}

/** The store no longer accepts writes. */
export class StoreFailedError extends UnavailableError {}

/** The server is stopping and has ended the stream. */
export class ServerStoppingError extends UnavailableError {}

/** There was no connection to a server, or it broke. Its reason, `CONNECTION_FAILED`, is the client's own. */
export class ConnectionFailedError extends UnavailableError {
  /** The endpoint that was tried. */
  get endpoint(): string {
    return this.metadata.endpoint ?? "";
  }

  /** What went wrong with TLS; undefined if it was not that. */
  get tlsFault(): TlsFault | undefined {
    return this.metadata.tls_fault as TlsFault | undefined;
  }
}

/**
 * Why a connection with TLS failed, or one without it to a server that speaks it.
 *
 * - `UNTRUSTED`: the server's certificate cannot be verified.
 * - `OTHER_NAME`: the server's certificate is for another name than that of the endpoint.
 * - `PLAIN_SERVER`: the server speaks no TLS.
 * - `PLAIN_CLIENT`: the server closed the connection at once; probably it speaks TLS, and the client does not.
 * - `ENDED`: the server ended the connection; probably it refuses the client's certificate, or misses it.
 * - `DISAGREED`: server and client have no version or cipher in common.
 */
export type TlsFault = "UNTRUSTED" | "OTHER_NAME" | "PLAIN_SERVER" | "PLAIN_CLIENT" | "ENDED" | "DISAGREED";

function numberOf(text: string | undefined): number | undefined {
  return text ? Number(text) : undefined;
}

type ErrorClass = new (message: string, details?: ErrorDetails) => RemoraError;

/** The class of each canonical code. */
export const CLASS_OF_CODE: Readonly<Record<Exclude<StatusCode, "OK">, ErrorClass>> = {
  INVALID_ARGUMENT: InvalidArgumentError,
  NOT_FOUND: NotFoundError,
  ALREADY_EXISTS: AlreadyExistsError,
  OUT_OF_RANGE: OutOfRangeError,
  FAILED_PRECONDITION: FailedPreconditionError,
  ABORTED: AbortedError,
  RESOURCE_EXHAUSTED: ResourceExhaustedError,
  UNAVAILABLE: UnavailableError,
  DEADLINE_EXCEEDED: DeadlineExceededError,
  CANCELLED: CancelledError,
  UNAUTHENTICATED: UnauthenticatedError,
  PERMISSION_DENIED: PermissionDeniedError,
  UNIMPLEMENTED: UnimplementedError,
  INTERNAL: InternalError,
  DATA_LOSS: DataLossError,
  UNKNOWN: UnknownError,
};

/** The class of each reason. */
export const CLASS_OF_REASON: Readonly<Record<string, ErrorClass>> = {
  BACKUP_NOT_FOUND: BackupNotFoundError,
  BACKUP_UNAVAILABLE: BackupUnavailableError,
  BUDGET_TOO_SMALL: BudgetTooSmallError,
  CALL_MALFORMED: CallMalformedError,
  CLIENT_CLOSED: ClientClosedError,
  COLLECTION_EXISTS: CollectionExistsError,
  COLLECTION_NOT_FOUND: CollectionNotFoundError,
  COMPRESSION_UNKNOWN: CompressionUnknownError,
  CONNECTION_FAILED: ConnectionFailedError,
  CHECKPOINT_VALUE_NOT_FOUND: CheckpointValueNotFoundError,
  CONTEXT_TOO_LARGE: ContextTooLargeError,
  CONVERSATION_EXISTS: ConversationExistsError,
  CONVERSATION_NOT_FOUND: ConversationNotFoundError,
  DEADLINE_EXCEEDED: DeadlineExceededError,
  DIMENSION_MISMATCH: DimensionMismatchError,
  ENTRY_STEP_NOT_FOUND: EntryStepNotFoundError,
  FACT_NOT_FOUND: FactNotFoundError,
  HISTORY_ENTRY_EXISTS: HistoryEntryExistsError,
  HISTORY_ENTRY_NOT_FOUND: HistoryEntryNotFoundError,
  INTERNAL: InternalError,
  INVALID_FIELD: InvalidFieldError,
  MEMORY_EXHAUSTED: MemoryExhaustedError,
  MEMORY_ITEM_NOT_FOUND: MemoryItemNotFoundError,
  MESSAGE_NOT_FOUND: MessageNotFoundError,
  MESSAGE_TOO_LARGE: MessageTooLargeError,
  METHOD_UNKNOWN: MethodUnknownError,
  MODEL_UNAVAILABLE: ModelUnavailableError,
  MODEL_UNREACHABLE: ModelUnreachableError,
  OPERATOR_ONLY: OperatorOnlyError,
  OVERLOADED: OverloadedError,
  PAGE_TOKEN_INVALID: PageTokenInvalidError,
  PEER_OVERLOADED: PeerOverloadedError,
  RECORD_CONFLICT: RecordConflictError,
  REQUEST_ID_REUSED: RequestIdReusedError,
  REQUEST_TOO_LARGE: RequestTooLargeError,
  REVISION_MISMATCH: RevisionMismatchError,
  REVISION_UNKNOWN: RevisionUnknownError,
  SEARCH_TOO_LARGE: SearchTooLargeError,
  SERVER_STOPPING: ServerStoppingError,
  SLOW_READER: SlowReaderError,
  RECEIPT_NOT_FOUND: ReceiptNotFoundError,
  SPAN_NOT_FOUND: SpanNotFoundError,
  STORE_DAMAGED: StoreDamagedError,
  STORE_FAILED: StoreFailedError,
  SUMMARY_OUTDATED: SummaryOutdatedError,
  STORE_FULL: StoreFullError,
  STREAM_UNSUPPORTED: StreamUnsupportedError,
  TENANT_MISMATCH: TenantMismatchError,
  TIMELINE_EVENT_EXISTS: TimelineEventExistsError,
  TIMELINE_EVENT_NOT_FOUND: TimelineEventNotFoundError,
  UNAUTHENTICATED: UnauthenticatedError,
  UPLOAD_INCOMPLETE: UploadIncompleteError,
  UPLOAD_NAMED: UploadNamedError,
  VECTORS_TOO_LARGE: VectorsTooLargeError,
  ITEMS_TOO_LARGE: ItemsTooLargeError,
  WORKFLOW_RUN_NOT_FOUND: WorkflowRunNotFoundError,
  WORKFLOW_STEP_NOT_FOUND: WorkflowStepNotFoundError,
  WRONG_TYPE: WrongTypeError,
};

/** The class of the reason, or of the code if the reason is unknown. */
export function classOf(code: StatusCode, reason: string): ErrorClass {
  return CLASS_OF_REASON[reason] ?? (code === "OK" ? UnknownError : CLASS_OF_CODE[code]);
}
