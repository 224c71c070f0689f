// How much a caller asks for: limits and offsets of VoltAgent may have any size, numbers of the contract have 32 bits.

const LARGEST = 2 ** 31 - 1;

/** How many elements at most, as slice reads a number: all for no limit. */
export function limitOf(limit: number | null | undefined): number {
  const whole = Math.trunc(limit ?? 0);
  return whole > 0 ? whole : Number.POSITIVE_INFINITY;
}

/** The whole number, or the largest that the server takes: no list is that long. */
export function int32(count: number): number {
  return Math.min(Math.trunc(count), LARGEST);
}
