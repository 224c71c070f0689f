// Messages of VoltAgent 0.1 as messages of Remora, and back.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Message, MessageSchema } from "@remora/client/v1";
import { decodeJson, encodeJson } from "../json.js";
import { beginning } from "../messages.js";
import { isoOf, timestampOf } from "../times.js";
import type { MemoryMessage } from "./types.js";

const LARGEST_TEXT_BYTES = 1024 * 1024;

/** The message that one of VoltAgent is stored as, its time also as it was written. */
export function storedMessage(message: MemoryMessage): MessageInitShape<typeof MessageSchema> {
  const { id, role, content, type, createdAt } = message;
  const sentTime = timestampOf(createdAt);
  const text = beginning(textOf(content), LARGEST_TEXT_BYTES);
  return { id, role, text, parts: encodeJson({ content, type, createdAt }), ...(sentTime && { sentTime }) };
}

/** The message that was stored. */
export function memoryMessage(message: Message): MemoryMessage {
  const stored = decodeJson(message.parts) as Pick<MemoryMessage, "content" | "type"> & { createdAt?: string };
  const { content, type, createdAt = isoOf(message.sentTime ?? message.createTime) } = stored;
  return { id: message.id, role: message.role as MemoryMessage["role"], content, type, createdAt };
}

function textOf(content: MemoryMessage["content"]): string {
  if (typeof content === "string") {
    return content;
  }
  return content.flatMap(({ text }) => (typeof text === "string" ? [text] : [])).join(" ");
}
