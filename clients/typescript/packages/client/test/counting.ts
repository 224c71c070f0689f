// Clients that say what they were asked.

import { Remora, type RemoraOptions } from "@remora/client";

/** A client and the names of the RPCs that were called with it, in order. */
export function counted(options: RemoraOptions): { client: Remora; calls: string[] } {
  const client = new Remora(options);
  const calls: string[] = [];
  for (const service of Object.values(client)) {
    if (typeof service === "object") {
      count(service as Record<string, (...given: unknown[]) => unknown>, calls);
    }
  }
  return { client, calls };
}

function count(service: Record<string, (...given: unknown[]) => unknown>, calls: string[]): void {
  for (const [name, rpc] of Object.entries(service)) {
    service[name] = (...given) => {
      calls.push(name);
      return rpc(...given);
    };
  }
}
