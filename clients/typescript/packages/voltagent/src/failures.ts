// Failures of calls as VoltAgent's own errors.

import {
  ConversationExistsError,
  ConversationNotFoundError as ConversationMissingError,
  DeadlineExceededError,
  InvalidFieldError,
  RemoraError,
  ResourceExhaustedError,
  UnavailableError,
} from "@remora/client";
import {
  ConversationAlreadyExistsError,
  ConversationNotFoundError,
  type MemoryV2Error,
  StorageError,
} from "@voltagent/core";

/** The fields of a run that have no bound in VoltAgent, by the names that the client's errors have for them. */
const LONG_FIELDS = /^run\.(input|output|context|workflowState|events|metadata|suspension\.\w+)$/;

/** What a call returns, or VoltAgent's error for its failure. */
export async function translated<T>(call: Promise<T>, conversationId = ""): Promise<T> {
  try {
    return await call;
  } catch (failure) {
    throw failure instanceof RemoraError ? errorFor(failure, conversationId) : failure;
  }
}

/** The pages of a list, or VoltAgent's error for the failure of one. */
export async function* translatedPages<Page>(listed: AsyncIterable<Page>): AsyncGenerator<Page, void, undefined> {
  try {
    yield* listed;
  } catch (failure) {
    throw failure instanceof RemoraError ? errorFor(failure, "") : failure;
  }
}

/** What a call returns, or `missing` if the conversation that it names does not exist. */
export async function orMissing<T, M>(call: Promise<T>, missing: M): Promise<T | M> {
  try {
    return await call;
  } catch (failure) {
    if (failure instanceof ConversationMissingError) {
      return missing;
    }
    throw failure;
  }
}

/** Whether a workflow's run was refused because of the size of a field, or of all of it. */
export function isTooLarge(failure: unknown): boolean {
  const { reason, fieldViolations = [] } = (failure instanceof StorageError ? failure.details : {}) as {
    reason?: string;
    fieldViolations?: { field: string }[];
  };
  return (
    reason === "MESSAGE_TOO_LARGE" ||
    reason === "REQUEST_TOO_LARGE" ||
    fieldViolations.some(({ field }) => LONG_FIELDS.test(field))
  );
}

/** Whether a call may succeed later as it is: the server was away, or too busy, or its disk full. */
export function passes(failure: unknown): boolean {
  const cause = failure instanceof Error ? failure.cause : undefined;
  return (
    cause instanceof UnavailableError ||
    cause instanceof DeadlineExceededError ||
    (cause instanceof ResourceExhaustedError && cause.retryDelayMs !== undefined)
  );
}

function errorFor(failure: RemoraError, conversationId: string): MemoryV2Error {
  const id = conversationId || (failure.metadata["conversation_id"] ?? "");
  if (failure instanceof ConversationMissingError) {
    return Object.assign(new ConversationNotFoundError(id), { cause: failure });
  }
  if (failure instanceof ConversationExistsError) {
    return Object.assign(new ConversationAlreadyExistsError(id), { cause: failure });
  }
  const details = {
    code: failure.code,
    reason: failure.reason,
    ...(failure instanceof InvalidFieldError && { fieldViolations: failure.fieldViolations }),
    ...(failure.requestId !== "" && { requestId: failure.requestId }),
  };
  return Object.assign(new StorageError(failure.message, details), { cause: failure });
}
