// The failures of calls, for which tests wait as long as it takes, on whatever machine.

import assert from "node:assert/strict";
import { DeadlineExceededError, RemoraError } from "../src/index.js";

/** Milliseconds after which something hangs: far more than anything takes on a busy machine. It bounds no speed. */
export const PATIENCE_MS = 300_000;

/** The error of a call that has to fail. */
export async function failureOf(call: Promise<unknown>): Promise<RemoraError> {
  const failure = await call.then(
    () => assert.fail("the call succeeded"),
    (error: unknown) => error,
  );
  assert.ok(failure instanceof RemoraError, String(failure));
  return failure;
}

/** The failure of a call within so many milliseconds. Where these were too few for any other, it is given more. */
export async function failureInTime(fail: (timeoutMs: number) => Promise<RemoraError>): Promise<RemoraError> {
  for (let timeoutMs = 200; timeoutMs < PATIENCE_MS; timeoutMs *= 4) {
    const failure = await fail(timeoutMs);
    if (!(failure instanceof DeadlineExceededError)) {
      return failure;
    }
  }
  return fail(PATIENCE_MS);
}
