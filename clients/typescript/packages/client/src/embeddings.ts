// Vectors on the wire: little-endian f32, 4 bytes for each dimension.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { EmbeddingSchema } from "./generated/remora/v1/message_pb.js";
import { invalidField, otherType, requireString } from "./refusals.js";

const LITTLE_ENDIAN = new Uint8Array(Uint16Array.of(1).buffer)[0] === 1;

/**
 * A vector that a model of yours made, for a message or for a search: `embedding("text-embedding-3-small", values)`.
 * Vectors of different models are never compared.
 *
 * @throws InvalidFieldError for a model without a name, WrongTypeError for values that are no numbers.
 */
export function embedding(
  model: string,
  values: Float32Array | readonly number[],
): MessageInitShape<typeof EmbeddingSchema> {
  requireString(model, "model");
  if (model === "") {
    throw invalidField("model", "is empty; it must have 1 to 256 bytes");
  }
  if (!(values instanceof Float32Array) && !(Array.isArray(values) && values.every((one) => typeof one === "number"))) {
    throw otherType("values", values, "numbers, as an array or a Float32Array");
  }
  return { model, values: littleEndian(Float32Array.from(values)) };
}

/**
 * The numbers as bytes, 4 for each; where the machine has them so, those of the array itself.
 *
 * @internal
 */
export function littleEndian(values: Float32Array): Uint8Array {
  if (LITTLE_ENDIAN) {
    return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
  }
  const view = new DataView(new ArrayBuffer(values.length * 4));
  values.forEach((value, place) => {
    view.setFloat32(place * 4, value, true);
  });
  return new Uint8Array(view.buffer);
}
