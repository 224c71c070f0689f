// Lists that are longer than one request may be.

import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import { create, toBinary } from "@bufbuild/protobuf";
import { REQUEST_BYTES } from "@remora/client";

const MOST_ELEMENTS = 1_000;
/** More than a tag and a length take, or a number. */
const FIELD_BYTES = 16;

/** The elements in runs that each fit into a request, in order; a single one that is larger stands alone. */
export function batches<Desc extends DescMessage>(
  schema: Desc,
  elements: Iterable<MessageInitShape<Desc>>,
): Iterable<MessageInitShape<Desc>[]> {
  const messages = [...elements];
  const isOne = messages.length <= 1 || (messages.length <= MOST_ELEMENTS && mostBytes(messages) <= REQUEST_BYTES);
  return isOne ? [messages].filter(({ length }) => length > 0) : cut(schema, messages);
}

function* cut<Desc extends DescMessage>(
  schema: Desc,
  messages: readonly MessageInitShape<Desc>[],
): Generator<MessageInitShape<Desc>[]> {
  let batch: MessageInitShape<Desc>[] = [];
  let bytes = 0;
  for (const message of messages) {
    const size = toBinary(schema, create(schema, message)).length;
    if (batch.length === MOST_ELEMENTS || (batch.length > 0 && bytes + size > REQUEST_BYTES)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(message);
    bytes += size;
  }
  yield batch;
}

/** More bytes than a message, or a list of them, takes. It is quicker to say than how many they are. */
function mostBytes(value: unknown): number {
  if (typeof value === "string") {
    return FIELD_BYTES + 3 * value.length;
  }
  if (value instanceof Uint8Array) {
    return FIELD_BYTES + value.length;
  }
  if (typeof value !== "object" || value === null) {
    return FIELD_BYTES;
  }
  let bytes = FIELD_BYTES;
  for (const key in value) {
    bytes += 3 * key.length + mostBytes((value as Record<string, unknown>)[key]); // a map's keys are sent, too
  }
  return bytes;
}

/** Equal parts of a list of strings. */
export function* chunks(elements: readonly string[], size: number): Generator<string[]> {
  for (let begin = 0; begin < elements.length; begin += size) {
    yield elements.slice(begin, begin + size);
  }
}
