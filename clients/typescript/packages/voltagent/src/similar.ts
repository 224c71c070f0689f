// Messages that a search has found, as VoltAgent's vector adapters would have found them.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Hit, SearchMessagesRequestSchema } from "@remora/client/v1";
import { isoOf } from "./times.js";

/** One message or document. `score` is (1 + cosine) / 2, and `distance` 1 - cosine. */
export interface SimilarMessage {
  id: string;
  score: number;
  distance?: number;
  content?: string;
  metadata?: Record<string, unknown>;
}

type Scope = Exclude<MessageInitShape<typeof SearchMessagesRequestSchema>["scope"], undefined>;

/** Where to search for what has such metadata; `undefined` if no message can. */
export function searchedPart(filter: Record<string, unknown>): { scope: Scope; roles: string[] } | undefined {
  const { userId, conversationId, role, ...others } = filter;
  // What is named and undefined matches nothing: without it, others' messages would be found, too.
  const isText = (value: unknown) => typeof value === "string" && value !== "";
  if (Object.keys(others).length > 0 || !Object.values(filter).every(isText)) {
    return undefined;
  }
  const roles = typeof role === "string" ? [role] : [];
  return { scope: scopeOf(userId as string | undefined, conversationId as string | undefined), roles };
}

function scopeOf(userId: string | undefined, conversationId: string | undefined): Scope {
  if (conversationId !== undefined) {
    return { case: "conversation", value: { conversationId, userId: userId ?? "" } };
  }
  return userId === undefined ? { case: "tenant", value: {} } : { case: "userId", value: userId };
}

/** A hit with the id and the metadata that VoltAgent's Memory gives the vector of a message. */
export function similarMessage({ message, conversationId, score }: Hit): SimilarMessage[] {
  if (message === undefined) {
    return [];
  }
  const { id: messageId, userId, role, createTime } = message;
  const metadata = { messageId, conversationId, userId, role, createdAt: isoOf(createTime) };
  return [{ id: `msg_${conversationId}_${messageId}`, score, distance: 2 - 2 * score, metadata }];
}
