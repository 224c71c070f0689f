// Short-term policies: how many tokens the window of a conversation may have, and what happens when it has more.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { GetWindowResponse } from "./generated/remora/v1/conversation_service_pb.js";
import type {
  ConversationSummary,
  ShortTermPolicy,
  ShortTermPolicySchema,
} from "./generated/remora/v1/short_term_pb.js";
import { invalidField, otherType, requireKnown, requireSome, wrongType } from "./refusals.js";

const MAX_TOKENS = 100_000;
const SUMMARY_BYTES = 256 << 10;
const HALF = 0.5;
const KEEP_MESSAGES = 10;
const COMMON = ["type", "maxTokens", "encoding"] as const satisfies readonly (keyof Trim)[];
const KEYS: Readonly<Record<ShortTerm["type"], readonly string[]>> = {
  trim: [...COMMON, "keepTokens"],
  deleteOldest: [...COMMON, "messages"],
  flush: [...COMMON, "ratio", "extractFacts"],
  summarize: [...COMMON, "maxSummaryTokens", "keepMessages", "prompt", "byClient"],
};

/** What all policies have. */
interface Bounded {
  /** How many tokens the window may have. Default: 100,000. */
  maxTokens?: number | undefined;
  /** How they are counted: `o200k_base` (default), `cl100k_base` or `approximate`. */
  encoding?: string | undefined;
}

/** When a window has more than `maxTokens`, its oldest messages leave until at most `keepTokens` remain. */
export interface Trim extends Bounded {
  type: "trim";
  /** Default: half of `maxTokens`. */
  keepTokens?: number | undefined;
}

/** When a window has more than `maxTokens`, so many of its oldest messages leave, again and again until it has not. */
export interface DeleteOldest extends Bounded {
  type: "deleteOldest";
  /** How many leave at once. Default: 1. */
  messages?: number | undefined;
}

/**
 * When a window has more than `ratio` of `maxTokens`, its oldest messages leave until half of that remains. They are
 * recalled from then on, as all messages are.
 */
export interface Flush extends Bounded {
  type: "flush";
  /** From 0.01 to 1. Default: 0.5. */
  ratio?: number | undefined;
  /** Whether what they say of the user is added to its facts before. */
  extractFacts?: boolean | undefined;
}

/**
 * When a window has more than `maxTokens`, a summary takes the place of all messages but the newest. The server's chat
 * model writes it; if it has none, the most central sentences are kept as they were said. A later summary folds in the
 * one before. Contexts begin with it.
 */
export interface Summarize extends Bounded {
  type: "summarize";
  /** How long a summary may be. Default: a quarter of `maxTokens`, at most 1,000. */
  maxSummaryTokens?: number | undefined;
  /** How many of the newest messages stay as they were said; more where a call and its results would be parted. Default: 10. */
  keepMessages?: number | undefined;
  /** What the model is told to do, up to 16 KiB. Default: the server's own prompt. */
  prompt?: string | undefined;
  /** Whether the server writes no summary, because `Conversation.summarize` does. */
  byClient?: boolean | undefined;
}

/** A short-term policy. What leaves the window stays in the conversation: it is listed with `view: "all"`, and recalled. */
export type ShortTerm = Trim | DeleteOldest | Flush | Summarize;

/** What of a conversation is in its window. */
export interface Window {
  /** Messages before this sequence have left the window; 0: none has. */
  readonly firstSequence: bigint;
  /** The newest system message, if it stands before the window: it is in the window all the same. */
  readonly systemSequence: bigint;
  /** The revision that moved the window last; 0: it has not moved. */
  readonly windowRevision: bigint;
  /** Why messages that should leave the window have not left it yet; empty: nothing is wrong. */
  readonly failure: string;
  /** What stands before it for the messages that have left it. */
  readonly summary: ConversationSummary | undefined;
}

/**
 * The policy on the wire.
 *
 * @throws InvalidFieldError for a type or an option that is not known, and for a number of nothing.
 */
export function shortTermToProto(policy: ShortTerm): MessageInitShape<typeof ShortTermPolicySchema> {
  if (typeof policy !== "object") {
    throw otherType("shortTerm", policy, 'an object with a type, such as { type: "trim" }');
  }
  const known = Object.hasOwn(KEYS, policy.type) ? KEYS[policy.type] : undefined;
  if (known === undefined) {
    throw invalidField("shortTerm.type", `is ${String(policy.type)}; it must be ${Object.keys(KEYS).join(", ")}`);
  }
  requireKnown(policy, known, `option of the policy ${policy.type}`);
  for (const [key, value] of Object.entries(policy)) {
    if (key !== "ratio") {
      requireSome(value, `shortTerm.${key}`);
    }
  }
  const { maxTokens = MAX_TOKENS, encoding = "o200k_base" } = policy;
  return { maxTokens, encoding, overflow: overflowOf(policy) };
}

/** The policy from the wire; undefined: there is none. */
export function shortTermFromProto(policy: ShortTermPolicy | undefined): ShortTerm | undefined {
  if (policy === undefined) {
    return undefined;
  }
  const { maxTokens, encoding = "o200k_base", overflow } = policy;
  switch (overflow.case) {
    case "deleteOldest":
      return { type: "deleteOldest", maxTokens, encoding, messages: overflow.value.messages || 1 };
    case "flush":
      return {
        ...{ type: "flush", maxTokens, encoding, ratio: overflow.value.ratio ?? HALF },
        extractFacts: overflow.value.extractFacts,
      };
    case "summarize": {
      const { prompt, byClient, maxSummaryTokens, keepMessages } = overflow.value;
      return {
        ...{ type: "summarize", maxTokens, encoding, prompt, byClient, keepMessages: keepMessages || KEEP_MESSAGES },
        maxSummaryTokens: maxSummaryTokens || undefined,
      };
    }
    default:
      return { type: "trim", maxTokens, encoding, keepTokens: overflow.value?.keepTokens || undefined };
  }
}

/** The window from the wire. */
export function windowFromProto({ window, summary }: GetWindowResponse): Window {
  const { firstSequence = 0n, systemSequence = 0n, windowRevision = 0n, failure = "" } = window ?? {};
  return { firstSequence, systemSequence, windowRevision, failure, summary };
}

/**
 * What a caller's model wrote.
 *
 * @throws WrongTypeError, InvalidFieldError where that can be no summary.
 */
export function writtenSummary(text: unknown): string {
  const field = "the result of write";
  if (typeof text !== "string") {
    throw wrongType(field, `is ${String(text)}; it must be a string`, undefined);
  }
  const bytes = Buffer.byteLength(text);
  if (bytes === 0 || bytes > SUMMARY_BYTES) {
    throw invalidField(field, `has ${bytes} bytes; it must have 1 to ${SUMMARY_BYTES} bytes`);
  }
  return text;
}

type Overflow = NonNullable<MessageInitShape<typeof ShortTermPolicySchema>["overflow"]>;

function overflowOf(policy: ShortTerm): Overflow {
  switch (policy.type) {
    case "trim":
      return { case: "trim", value: { keepTokens: policy.keepTokens ?? 0 } };
    case "deleteOldest":
      return { case: "deleteOldest", value: { messages: policy.messages ?? 1 } };
    case "flush":
      return { case: "flush", value: { ratio: policy.ratio ?? HALF, extractFacts: policy.extractFacts ?? false } };
    case "summarize": {
      const { prompt = "", maxSummaryTokens = 0, keepMessages = KEEP_MESSAGES, byClient = false } = policy;
      return { case: "summarize", value: { prompt, maxSummaryTokens, keepMessages, byClient } };
    }
  }
}
