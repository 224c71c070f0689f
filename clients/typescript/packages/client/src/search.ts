// What a search of messages may be given, and its request.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { SearchMessagesRequestSchema, SearchOptionsSchema } from "./generated/remora/v1/memory_service_pb.js";
import { EmbeddingSchema } from "./generated/remora/v1/message_pb.js";
import { invalidField, otherType, requireKnown, requireSome } from "./refusals.js";
import { type Fields, fieldsOf, requireObject, requireShape } from "./shapes.js";
import type { Dated } from "./times.js";

/** How a search ranks and filters, whatever it is for. */
const RANKING = fieldsOf(SearchOptionsSchema);
const OPTIONS = [
  ...RANKING,
  ...fieldsOf(SearchMessagesRequestSchema).filter((name) => !["scope", "query", "options"].includes(name)),
];

/** How messages that a context recalls are ranked and filtered. */
export type RecallOptions = Fields<typeof SearchOptionsSchema, never>;

/** How a search ranks and filters. */
export type SearchOptions = RecallOptions & Fields<typeof SearchMessagesRequestSchema, "scope" | "query" | "options">;

/** What to search for: a text, or a vector, as `embedding(model, values)` makes it. */
export type Query = string | MessageInitShape<typeof EmbeddingSchema>;

type Request = Dated<MessageInitShape<typeof SearchMessagesRequestSchema>>;

/**
 * The request of a search.
 *
 * @throws InvalidFieldError, WrongTypeError
 */
export function searchRequest(scope: NonNullable<Request["scope"]>, query: Query, how: SearchOptions): Request {
  requireKnown(how, OPTIONS, "option of a search");
  const { explain = false, minRevision = 0n, indexWait, pageToken = "", withoutReceipt = false, ...ranking } = how;
  requireSome(ranking.k, "k");
  return {
    ...{ explain, minRevision, pageToken, withoutReceipt },
    ...(indexWait && { indexWait }),
    scope,
    query: queryOf(query),
    options: ranking,
  };
}

function queryOf(query: Query): NonNullable<Request["query"]> {
  if (typeof query !== "string") {
    if (typeof query !== "object" || (query as object | null) === null) {
      throw otherType("query", query, "a string, or a vector that embedding(model, values) makes");
    }
    requireShape(EmbeddingSchema, query, "query");
    return { case: "embedding", value: query };
  }
  if (query === "") {
    throw invalidField("query", "is empty; it must have 1 to 32768 bytes");
  }
  return { case: "text", value: query };
}

/**
 * How a context recalls, if it does.
 *
 * @throws InvalidFieldError, WrongTypeError
 */
export function recallOf(recall: boolean | RecallOptions): RecallOptions | undefined {
  if (typeof recall === "boolean") {
    return recall ? {} : undefined;
  }
  requireObject(recall, "recall", "the options of a search, or a boolean");
  requireKnown(recall, RANKING, "option of a search", "recall.");
  requireSome(recall.k, "recall.k");
  return recall;
}
