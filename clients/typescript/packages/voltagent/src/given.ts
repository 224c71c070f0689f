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
