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
