// Texts of callers whose types nobody checked.

import { shown } from "@remora/client";

/** The text itself. Throws TypeError for what is none: an object would be stored as `[object Object]`. */
export function requireText(field: string, given: unknown): string {
  if (typeof given !== "string") {
    throw new TypeError(`${field} is ${shown(given)}; it must be a text`);
  }
  return given;
}
