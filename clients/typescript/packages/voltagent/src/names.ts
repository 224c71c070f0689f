// Names that VoltAgent's types have for what the contract numbers.

import { shown } from "@remora/client";

/** What a name stands for. Throws TypeError for one that is none of them. */
export function named<T>(field: string, name: string, names: Readonly<Record<string, T>>): T {
  if (!Object.hasOwn(names, name)) {
    throw new TypeError(`${field} is ${shown(name)}; it must be one of ${Object.keys(names).join(", ")}`);
  }
  return names[name] as T;
}
