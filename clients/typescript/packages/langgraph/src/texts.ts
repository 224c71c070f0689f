// The texts of a value by which it is found: those at paths such as `title`, `chapters[*].text`, `{a,b.c}` or `$`.

/** The texts at a path. `$` is the whole value as JSON; what is missing or null has none. */
export function textsAt(value: unknown, path: string): string[] {
  return path === "" || path === "$" ? [json(value)] : textsBehind(value, tokens(path));
}

/** A path in steps: `a.b[0]` is `a`, `b` and `[0]`. */
function tokens(path: string): string[] {
  return path.match(/\{[^}]*\}|\[[^\]]*\]|[^.[{]+/g) ?? [];
}

function textsBehind(value: unknown, [step, ...rest]: string[]): string[] {
  if (step === undefined) {
    return textOf(value);
  }
  return valuesAt(value, step).flatMap((found) => textsBehind(found, rest));
}

function valuesAt(value: unknown, step: string): unknown[] {
  if (step === "*") {
    return typeof value === "object" && value !== null ? Object.values(value) : [];
  }
  if (step.startsWith("[")) {
    return elementsAt(value, step.slice(1, -1));
  }
  if (step.startsWith("{")) {
    const fields = step.slice(1, -1).split(",");
    return fields.flatMap((field) => follow(value, tokens(field.trim())));
  }
  return memberOf(value, step);
}

function follow(value: unknown, steps: string[]): unknown[] {
  return steps.reduce<unknown[]>((found, step) => found.flatMap((one) => memberOf(one, step)), [value]);
}

function elementsAt(value: unknown, index: string): unknown[] {
  if (!Array.isArray(value)) {
    return [];
  }
  const position = index === "" ? Number.NaN : Number(index);
  return index === "*" ? value : value.slice(position, position === -1 ? undefined : position + 1);
}

function memberOf(value: unknown, name: string): unknown[] {
  const found = typeof value === "object" && value !== null && Object.hasOwn(value, name);
  return found ? [(value as Record<string, unknown>)[name]] : [];
}

function textOf(value: unknown): string[] {
  if (value === null || value === undefined) {
    return [];
  }
  return [typeof value === "object" ? json(value) : String(value as string | number | boolean)];
}

function json(value: unknown): string {
  return JSON.stringify(value, undefined, 2);
}
