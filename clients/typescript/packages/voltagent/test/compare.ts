// The same random calls of two adapters, and whether they have the same results.

import assert from "node:assert/strict";
import { tick } from "./fresh.js";
import { Random } from "./random.js";

/** `SEED=7 SEQUENCES=100 npm test differential.test.ts legacy-differential.test.ts` tries more. */
const SEED = Number(process.env["SEED"] ?? 1);
const SEQUENCES = Number(process.env["SEQUENCES"] ?? 2);
const CALLS = 120;

/** A call with its arguments, and what it says of itself if the results differ. */
export interface Call<Adapter> {
  text: string;
  of: (adapter: Adapter) => Promise<unknown>;
}

export type Generator<Adapter> = (random: Random) => Call<Adapter>;

/** Makes the same random calls of two adapters, and compares the results. Both are made anew, as is what makes the calls, if it may. */
export async function compare<Adapter>(
  adapters: () => [Adapter, Adapter] | Promise<[Adapter, Adapter]>,
  generators: Generator<Adapter>[] | (() => Generator<Adapter>[]),
  compared: (result: unknown) => unknown = (result) => result,
): Promise<void> {
  for (let seed = SEED; seed < SEED + SEQUENCES; seed++) {
    const random = new Random(seed);
    const [ours, theirs] = await adapters();
    const possible = typeof generators === "function" ? generators() : generators;
    const made: string[] = [];
    for (let number = 0; number < CALLS; number++) {
      const call = random.one(possible)(random);
      made.push(call.text);
      const [found, expected] = [await outcome(call.of(ours)), await outcome(call.of(theirs))];
      assert.deepEqual(compared(found), compared(expected), `seed ${seed}, after:\n${made.join("\n")}`);
      await tick(); // no two calls at one time
    }
  }
}

/** What a call came to: its result, or the class and the text of its error. */
async function outcome(call: Promise<unknown>): Promise<unknown> {
  try {
    return normal(await call);
  } catch (error) {
    assert.ok(error instanceof Error);
    const text = error.message.replace(/^StorageError: /, "");
    return { thrown: /dimension mismatch|not found|already exists/.exec(text)?.[0] ?? error };
  }
}

/** A value without properties that are `undefined`. */
function normal(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(normal);
  }
  if (typeof value !== "object" || value === null || value instanceof Date) {
    return value;
  }
  const entries = Object.entries(value).filter(([, one]) => one !== undefined);
  return Object.fromEntries(entries.map(([name, one]) => [name, normal(one)]));
}

export function call<Adapter>(name: string, given: unknown[], of: Call<Adapter>["of"]): Call<Adapter> {
  return { text: `${name}(${given.map((one) => JSON.stringify(one)).join(", ")})`, of };
}

/** A call of a method with arguments, of whose result only a part is compared. */
export function method<Adapter>(
  name: keyof Adapter & string,
  given: unknown[],
  compared: (result: never) => unknown = (result) => result,
): Call<Adapter> {
  return call(name, given, async (adapter) => {
    // A copy, so that neither adapter can change what the other is given.
    const copies = structuredClone(given);
    return compared((await (adapter[name] as (...given: unknown[]) => Promise<unknown>)(...copies)) as never);
  });
}
