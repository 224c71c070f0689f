// Values of channels and of writes: serialised by the saver's serializer, and read and sent in parts if they are long.

import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import type { Remora } from "@remora/client";
import type { ReadCheckpointValueRequestSchema, UploadSchema, Value, ValueSchema } from "@remora/client/v1";

/** How many bytes of values one request holds. More are uploaded, the longest first. */
const INLINE_BYTES = 2_500_000;
const PART_BYTES = 1 << 20;
/** How many calls for values are under way at once, and for how many of their bytes. */
const CALLS_AT_ONCE = 16;
const BYTES_AT_ONCE = 4 * PART_BYTES;

/** Where a value belongs, and whose it is. */
export interface Place {
  threadId: string;
  checkpointNs: string;
  userId: string;
}

/** A serialised value. */
export interface Serialised {
  type: string;
  data: Uint8Array;
}

/** A value that a reply had no room for, and the request that reads it. */
export interface Omitted {
  value: Value;
  request: ReadRequest;
}

/** A part of an upload. */
interface Part {
  uploadId: string;
  index: number;
  data: Uint8Array;
}

type ReadRequest = MessageInitShape<typeof ReadCheckpointValueRequestSchema>;
type Upload = Required<Pick<MessageInitShape<typeof UploadSchema>, "id" | "parts">>;

/**
 * A value as its serializer writes it. What has no JSON, such as a function, is stored as `undefined`: LangGraph's serializer
 * writes nothing for it, which it cannot read.
 */
export async function serialised(serde: SerializerProtocol, value: unknown): Promise<Serialised> {
  const [type, data] = await serde.dumpsTyped(value);
  const hasNone = type === "json" && data.length === 0 && value !== undefined;
  return hasNone ? serialised(serde, undefined) : { type, data };
}

/** The values as a request has them, in their order: those for which it has no room are uploaded. */
export async function toWire(
  client: Remora,
  values: readonly Serialised[],
  place: Place,
): Promise<MessageInitShape<typeof ValueSchema>[]> {
  const uploads = new Map([...tooLong(values)].map((value) => [value, uploadOf(value)]));
  const parts = [...uploads].flatMap(([value, upload]) => partsOf(value, upload));
  for (const some of inTurns(parts, ({ data }) => data.length)) {
    await Promise.all(some.map((part) => client.checkpoints.uploadCheckpointPart({ ...place, ...part })));
  }
  return values.map((value) => {
    const upload = uploads.get(value);
    return upload ? { type: value.type, upload } : value;
  });
}

/** The longest values, so many that the others fit into one request. */
function tooLong(values: readonly Serialised[]): Set<Serialised> {
  let total = values.reduce((sum, { data }) => sum + data.length, 0);
  const long = new Set<Serialised>();
  for (const value of [...values].sort((a, b) => b.data.length - a.data.length)) {
    if (total <= INLINE_BYTES) {
      break;
    }
    long.add(value);
    total -= value.data.length;
  }
  return long;
}

function uploadOf({ data }: Serialised): Upload {
  return { id: randomUUID(), parts: BigInt(Math.ceil(data.length / PART_BYTES)) };
}

function partsOf({ data }: Serialised, { id, parts }: Upload): Part[] {
  return Array.from({ length: Number(parts) }, (_, index) => ({
    uploadId: id,
    index,
    data: data.subarray(index * PART_BYTES, (index + 1) * PART_BYTES),
  }));
}

/** Reads values that a reply had no room for, into their places in it. */
export async function fill(client: Remora, omitted: readonly Omitted[]): Promise<void> {
  for (const some of inTurns(omitted, ({ value }) => Number(value.size))) {
    await Promise.all(
      some.map(async ({ value, request }) =>
        Object.assign(value, await readWhole(client, request), { omitted: false }),
      ),
    );
  }
}

/** Items of calls, as many at a time as are under way at once, in their order. */
function* inTurns<Item>(items: readonly Item[], bytesOf: (item: Item) => number): Generator<Item[]> {
  let held: Item[] = [];
  let size = 0;
  for (const item of items) {
    if (held.length === CALLS_AT_ONCE || (held.length > 0 && size + bytesOf(item) > BYTES_AT_ONCE)) {
      yield held;
      [held, size] = [[], 0];
    }
    held.push(item);
    size += bytesOf(item);
  }
  if (held.length > 0) {
    yield held;
  }
}

/** The value of a reply, which has its bytes. */
export async function fromWire(serde: SerializerProtocol, { type, data }: Value): Promise<unknown> {
  const loaded: unknown = await serde.loadsTyped(type, data);
  return loaded === data ? new Uint8Array(data) : loaded; // those of a reply are a Buffer's, and hold on to all of it
}

/** All of a value, which may be replaced meanwhile. @throws Error if its parts end before its size. */
async function readWhole(client: Remora, request: ReadRequest): Promise<Serialised> {
  for (;;) {
    const first = await client.checkpoints.readCheckpointValue(request);
    const parts = [first.data];
    let read = first.data.length;
    let revision = first.valueRevision;
    while (read < Number(first.size) && revision === first.valueRevision) {
      const next = await client.checkpoints.readCheckpointValue({ ...request, offset: BigInt(read) });
      parts.push(next.data);
      read += next.data.length;
      revision = next.valueRevision;
      if (next.data.length === 0 && revision === first.valueRevision) {
        throw new Error("A value of a checkpoint ends before its size.");
      }
    }
    if (revision === first.valueRevision) {
      return { type: first.type, data: Buffer.concat(parts) };
    }
  }
}
