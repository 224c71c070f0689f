// main.ts ENGINE PLACE: measures what it is told on standard input, a line for each slice: `{"load": "addMessage", "seconds": 1}`.
//
// It answers with a line: when each call began and ended, in seconds of the monotonic clock, and how many RPCs there were. A
// slice ends with the call during which its seconds pass, or with its most calls.

import { createInterface } from "node:readline";
import { ENGINES } from "./engines.js";
import { type Load, loads } from "./loads.js";

interface Slice {
  load: string;
  seconds: number;
}

const [name = "", place = ""] = process.argv.slice(2);
const engine = known(ENGINES, name)(place);
const all = loads(engine);
const numbers = new Map<string, number>();

function known<T>(things: Record<string, T>, name: string): T {
  const thing = things[name];
  if (thing === undefined) {
    throw new Error(`${name}: it must be one of: ${Object.keys(things).join(", ")}`);
  }
  return thing;
}

function now(): number {
  return Number(process.hrtime.bigint()) / 1e9;
}

async function measured(load: Load, { load: name, seconds }: Slice): Promise<[number, number][]> {
  const spans: [number, number][] = [];
  let number = numbers.get(name) ?? 0;
  const deadline = now() + seconds;
  for (let began = now(); spans.length < load.most && (began < deadline || spans.length === 0); began = now()) {
    await load.call(number++);
    spans.push([began, now()]);
  }
  numbers.set(name, number);
  return spans;
}

for await (const line of createInterface({ input: process.stdin })) {
  const slice = JSON.parse(line) as Slice;
  const load = known(all, slice.load);
  await load.before?.();
  const before = engine.rpcs();
  const spans = await measured(load, slice);
  await load.after?.();
  console.log(JSON.stringify({ spans, rpcs: engine.rpcs() - before }));
}
process.exit(); // VoltAgent would keep the process
