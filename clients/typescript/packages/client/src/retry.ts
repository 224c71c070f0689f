// Which failures are retried, and after which pause.

import { ModelUnreachableError, type RemoraError, ResourceExhaustedError, UnavailableError } from "./errors.js";

const FIRST_PAUSE_MS = 20;
export const GREATEST_PAUSE_MS = 1_000;
/**
 * How long a call is retried because of the server's embedding model: an endpoint that is down is seldom up again within
 * a deadline, so callers are better told the reason at once.
 */
export const MODEL_PATIENCE_MS = 1_000;

/**
 * Milliseconds to wait before the next attempt; undefined if there should be none.
 *
 * `attempt` counts the failed ones from 0; `elapsed` and `remaining` are the milliseconds since the first began and until
 * the deadline. The pause is drawn from [0, 20 ms * 2^attempt], at most 1 s (full jitter: Brooker, "Exponential Backoff
 * And Jitter", AWS Architecture Blog, 2015), and is at least what the server asks for.
 */
export function pauseBeforeRetry(
  failure: RemoraError,
  attempt: number,
  elapsed: number,
  remaining: number,
): number | undefined {
  if (!passes(failure)) {
    return undefined;
  }
  const ceiling = Math.min(GREATEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt);
  const pause = Math.max(Math.random() * ceiling, failure.retryDelayMs ?? 0);
  const left = failure instanceof ModelUnreachableError ? Math.min(remaining, MODEL_PATIENCE_MS - elapsed) : remaining;
  return pause < left ? pause : undefined;
}

function passes(failure: RemoraError): boolean {
  if (failure instanceof UnavailableError) {
    return true;
  }
  return failure instanceof ResourceExhaustedError && failure.retryDelayMs !== undefined;
}
