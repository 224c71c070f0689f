// Values of channels and of writes: serialised by the saver's serializer, and read and sent in parts if they are long.

import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import type { Remora } from "@remora/client";
import type { ReadCheckpointValueRequestSchema, Value, ValueSchema } from "@remora/client/v1";

/** How many bytes of values one request holds. More are uploaded, the longest first. */
const INLINE_BYTES = 2_500_000;
const PART_BYTES = 1 << 20;

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

type ReadRequest = MessageInitShape<typeof ReadCheckpointValueRequestSchema>;

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
  const long = tooLong(values);
  return Promise.all(
    values.map(async (value) =>
      long.has(value) ? { type: value.type, upload: await uploaded(client, value.data, place) } : value,
    ),
  );
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

async function uploaded(client: Remora, data: Uint8Array, place: Place): Promise<{ id: string; parts: bigint }> {
  const id = randomUUID();
  const parts = Math.ceil(data.length / PART_BYTES);
  for (let index = 0; index < parts; index++) {
    const part = data.subarray(index * PART_BYTES, (index + 1) * PART_BYTES);
    await client.checkpoints.uploadCheckpointPart({ ...place, uploadId: id, index, data: part });
  }
  return { id, parts: BigInt(parts) };
}

/** The value of a reply; `request` names it, for the case that the reply has no room for it. */
export async function fromWire(
  client: Remora,
  serde: SerializerProtocol,
  value: Value,
  request: ReadRequest,
): Promise<unknown> {
  const { type, data } = value.omitted ? await readWhole(client, request) : value;
  const loaded: unknown = await serde.loadsTyped(type, data);
  return loaded === data ? new Uint8Array(data) : loaded; // those of a reply are a Buffer's, and hold on to all of it
}

/** All of a value, which may be replaced meanwhile. */
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
    }
    if (revision === first.valueRevision) {
      return { type: first.type, data: Buffer.concat(parts) };
    }
  }
}
