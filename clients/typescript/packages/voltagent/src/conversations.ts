// Conversations of VoltAgent as those of Remora, and back.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { ConversationOrder, type ConversationSchema, Direction, type Conversation as Stored } from "@remora/client/v1";
import type { Conversation, ConversationQueryOptions, CreateConversationInput } from "@voltagent/core";
import { decodeJson, encodeJson } from "./json.js";
import { named } from "./names.js";
import { isoOf } from "./times.js";

/** What may change of a conversation. */
export type ConversationUpdates = Partial<Omit<Conversation, "id" | "createdAt" | "updatedAt">>;

const ORDERS = {
  created_at: ConversationOrder.CREATE_TIME,
  updated_at: ConversationOrder.UPDATE_TIME,
  title: ConversationOrder.TITLE,
} as const;
const DIRECTIONS = { ASC: Direction.ASCENDING, DESC: Direction.DESCENDING } as const;

/** The user of what has no user. */
const NOBODY = "default";

/** The user id to send. An empty one becomes `default`: the server takes it for any user, or for the conversation's owner. */
export function userOf(userId: string | null | undefined): string {
  return userId || NOBODY;
}

/** A conversation to create. */
export function newConversation(input: CreateConversationInput): MessageInitShape<typeof ConversationSchema> {
  return {
    id: input.id,
    userId: userOf(input.userId),
    resourceId: input.resourceId,
    title: input.title,
    metadata: encodeJson(input.metadata),
  };
}

/** The conversation that is stored. */
export function conversationOf(stored: Stored): Conversation {
  return {
    id: stored.id,
    resourceId: stored.resourceId,
    userId: stored.userId,
    title: stored.title,
    metadata: (decodeJson(stored.metadata) ?? {}) as Conversation["metadata"],
    createdAt: isoOf(stored.createTime),
    updatedAt: isoOf(stored.updateTime),
  };
}

/** The fields to update and their new values. The owner stays: `userId` is left out, as VoltAgent's databases do. */
export function changesOf(updates: ConversationUpdates): {
  changes: MessageInitShape<typeof ConversationSchema>;
  paths: string[];
} {
  const { resourceId, title, metadata } = updates;
  const changes = {
    ...(resourceId !== undefined && { resourceId }),
    ...(title !== undefined && { title }),
    ...(metadata !== undefined && { metadata: encodeJson(metadata) }),
  };
  return { changes, paths: Object.keys(changes).map((name) => (name === "resourceId" ? "resource_id" : name)) };
}

/** How conversations are ordered: by `preset` if the query does not say. A name that is none is refused. */
export function orderOf(
  query: ConversationQueryOptions,
  preset: { by: keyof typeof ORDERS; direction: Direction },
): { orderBy: ConversationOrder; direction: Direction } {
  const { orderBy = preset.by, orderDirection } = query;
  const fallback = query.orderBy === undefined ? Direction.DESCENDING : preset.direction;
  const direction = orderDirection === undefined ? fallback : named("orderDirection", orderDirection, DIRECTIONS);
  return { orderBy: named("orderBy", orderBy, ORDERS), direction };
}
