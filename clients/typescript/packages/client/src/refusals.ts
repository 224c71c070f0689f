// Errors of arguments, found before a call.

import { InvalidFieldError, WrongTypeError } from "./errors.js";

/** An argument that no call could be made with. */
export function invalidField(field: string, description: string): InvalidFieldError {
  return new InvalidFieldError(`${field} ${description}`, {
    code: "INVALID_ARGUMENT",
    reason: "INVALID_FIELD",
    fieldViolations: [{ field, description }],
  });
}

/** A field of another type than the contract says. */
export function wrongType(field: string, description: string, cause: unknown): WrongTypeError {
  return new WrongTypeError(`${field}: ${description}`, {
    code: "INVALID_ARGUMENT",
    reason: "WRONG_TYPE",
    fieldViolations: [{ field, description }],
    cause,
  });
}

/**
 * Refuses what has a key that is not known: a misspelt one would be left out without a word.
 *
 * @throws InvalidFieldError
 */
export function requireKnown(given: object, known: readonly string[], what: string): void {
  const unknown = Object.keys(given).find((key) => !known.includes(key));
  if (unknown !== undefined) {
    throw invalidField(unknown, `is no ${what}; there are ${[...known].sort().join(", ")}`);
  }
}
