// Lists that are longer than one request may be.

import type { DescMessage, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import { create, toBinary } from "@bufbuild/protobuf";

const MOST_ELEMENTS = 1_000;
/** A request may have 4 MiB. */
const MOST_BYTES = 3 * 1024 * 1024;

/** The elements in runs that each fit into a request, in order; a single one that is larger stands alone. */
export function* batches<Desc extends DescMessage>(
  schema: Desc,
  elements: Iterable<MessageInitShape<Desc>>,
): Generator<MessageShape<Desc>[]> {
  let batch: MessageShape<Desc>[] = [];
  let bytes = 0;
  for (const element of elements) {
    const message = create(schema, element);
    const size = toBinary(schema, message).length;
    if (batch.length === MOST_ELEMENTS || (batch.length > 0 && bytes + size > MOST_BYTES)) {
      yield batch;
      batch = [];
      bytes = 0;
    }
    batch.push(message);
    bytes += size;
  }
  if (batch.length > 0) {
    yield batch;
  }
}

/** Equal parts of a list of strings. */
export function* chunks(elements: readonly string[], size: number): Generator<string[]> {
  for (let begin = 0; begin < elements.length; begin += size) {
    yield elements.slice(begin, begin + size);
  }
}
