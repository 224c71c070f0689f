// How much a caller asks for: limits and offsets of VoltAgent may have any size, numbers of the contract have 32 bits.

const LARGEST = 2 ** 31 - 1;

/** How many elements at most: all for no limit. */
export function limitOf(limit: number | null | undefined): number {
  return limit && limit > 0 ? limit : Number.POSITIVE_INFINITY;
}

/** The number, or the largest that the server takes: no list is that long. */
export function int32(count: number): number {
  return Math.min(count, LARGEST);
}
