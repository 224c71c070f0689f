// UIMessages of the AI SDK as messages of Remora, and back.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { littleEndian } from "@remora/client";
import type { Embedding, Message, MessageSchema } from "@remora/client/v1";
import type { UIMessage } from "ai";
import { requireFields, requireList } from "./given.js";
import { byteLength, decodeJson, encodeJson } from "./json.js";
import { dateOf } from "./times.js";

/** A message as VoltAgent's memory returns it. */
export type RecalledMessage = UIMessage<{ createdAt: Date }>;

const LARGEST_TEXT_BYTES = 1024 * 1024;

/** The message that a UIMessage is stored as: with its parts, and all else that it has, byte for byte. */
export function storedMessage(
  message: UIMessage,
  embedding?: MessageInitShape<typeof MessageSchema>["embedding"],
): MessageInitShape<typeof MessageSchema> {
  requireFields("message", message, "id, role and parts");
  if (message.parts !== undefined && message.parts !== null) {
    requireList("message.parts", message.parts);
  }
  const { id, role, metadata, ...rest } = message;
  return {
    id,
    role,
    // All of it is in the parts; this is what is searched and counted.
    text: beginning(textOf(message), LARGEST_TEXT_BYTES),
    parts: encodeJson(rest),
    metadata: encodeJson(metadata),
    ...(embedding !== undefined && { embedding }),
  };
}

/** The UIMessage that was stored, with the time when it first was. */
export function recalledMessage(message: Message): RecalledMessage {
  const rest = (decodeJson(message.parts) ?? { parts: [] }) as Pick<RecalledMessage, "parts">;
  const metadata = { ...(decodeJson(message.metadata) as object), createdAt: dateOf(message.createTime) };
  return { ...rest, id: message.id, role: message.role as RecalledMessage["role"], metadata };
}

/** The text that VoltAgent embeds: the text parts joined by spaces, or else the older `content`; empty for none. */
export function textOf(message: UIMessage): string {
  const texts = (message.parts ?? []).map((part) => (part?.type === "text" ? part.text : undefined));
  const text = texts.filter((one) => typeof one === "string").join(" ");
  if (text !== "") {
    return text;
  }
  const { content } = message as { content?: unknown };
  return typeof content === "string" ? content : "";
}

/** The beginning of a text that takes at most so many bytes. */
export function beginning(text: string, mostBytes: number): string {
  if (byteLength(text) <= mostBytes) {
    return text;
  }
  // A streaming decoder keeps the bytes of a character that is cut to itself.
  return new TextDecoder().decode(Buffer.from(text, "utf8").subarray(0, mostBytes), { stream: true });
}

/** An embedding of the caller, as the server takes it; `undefined` for one that points nowhere. */
export function embeddingOf(model: string, values: readonly number[]): Pick<Embedding, "model" | "values"> | undefined {
  const packed = Float32Array.from(values);
  const points = packed.every(Number.isFinite) && packed.some((value) => value !== 0);
  return points ? { model, values: littleEndian(packed) } : undefined;
}

/** The numbers that were packed. */
export function unpacked(bytes: Uint8Array): number[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: bytes.byteLength / 4 }, (_, place) => view.getFloat32(place * 4, true));
}
