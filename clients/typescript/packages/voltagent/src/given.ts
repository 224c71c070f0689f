// What callers give whose types nobody checked.

import { shown } from "@remora/client";

/** The text itself. Throws TypeError for what is none: an object would be stored as `[object Object]`. */
export function requireText(field: string, given: unknown): string {
  if (typeof given !== "string") {
    throw new TypeError(`${field} is ${shown(given)}; it must be a text`);
  }
  return given;
}

/** Throws TypeError for what is no list. */
export function requireList(field: string, given: unknown): void {
  if (!Array.isArray(given)) {
    throw new TypeError(`${field} is ${shown(given)}; it must be an array`);
  }
}

/** Throws TypeError for what has no fields. */
export function requireFields(field: string, given: unknown, names: string): void {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new TypeError(`${field} is ${shown(given)}; it must be an object with ${names}`);
  }
}

/**
 * The number that an option has. Throws TypeError for what is no number of at least 0, such as the NaN of a missing variable: as
 * a bound it would be none.
 */
export function requireNumber(field: string, given: number): number {
  if (typeof given !== "number" || !(given >= 0)) {
    throw new TypeError(`${field} is ${shown(given)}; it must be a number of at least 0`);
  }
  return given;
}

/** The switch itself. Throws TypeError for what is neither true nor false, such as the text "false". */
export function requireBoolean(field: string, given: boolean): boolean {
  if (typeof given !== "boolean") {
    throw new TypeError(`${field} is ${shown(given)}; it must be true or false`);
  }
  return given;
}
