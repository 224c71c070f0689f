// Names that VoltAgent's types have for what the contract numbers.

/** What a name stands for. Throws TypeError for one that is none of them. */
export function named<T>(field: string, name: string, names: Readonly<Record<string, T>>): T {
  if (!Object.hasOwn(names, name)) {
    throw new TypeError(`${field} is ${JSON.stringify(name)}; it must be one of ${Object.keys(names).join(", ")}`);
  }
  return names[name] as T;
}
