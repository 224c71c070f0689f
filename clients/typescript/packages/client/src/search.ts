// What a search of messages may be given, and its request.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { SearchMessagesRequestSchema, SearchOptionsSchema } from "./generated/remora/v1/memory_service_pb.js";
import { invalidField, requireKnown, requireSome, requireString } from "./refusals.js";
import { type Fields, fieldsOf, requireObject } from "./shapes.js";
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

type Request = Dated<MessageInitShape<typeof SearchMessagesRequestSchema>>;

/**
 * The request of a search for a text.
 *
 * @throws InvalidFieldError, WrongTypeError
 */
export function searchRequest(scope: NonNullable<Request["scope"]>, query: string, how: SearchOptions): Request {
  requireKnown(how, OPTIONS, "option of a search");
  const { explain = false, minRevision = 0n, indexWait, pageToken = "", withoutReceipt = false, ...ranking } = how;
  requireString(query, "query");
  if (query === "") {
    throw invalidField("query", "is empty; it must have 1 to 32768 bytes");
  }
  requireSome(ranking.k, "k");
  return {
    ...{ explain, minRevision, pageToken, withoutReceipt },
    ...(indexWait && { indexWait }),
    scope,
    query: { case: "text", value: query },
    options: ranking,
  };
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
