// A handle on one conversation: its messages, search, context, window, summary and working memory.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, requireNoRequestId, severalWrites } from "./calls.js";
import { type Edit, editToProto } from "./edits.js";
import { InternalError, SummaryOutdatedError } from "./errors.js";
import type { Conversation as ConversationRecord, ConversationSchema } from "./generated/remora/v1/conversation_pb.js";
import {
  type AppendMessagesResponse,
  type ConversationService,
  type EditMessagesResponse,
  ListMessagesRequestSchema,
  MessageView,
  PageOrder,
} from "./generated/remora/v1/conversation_service_pb.js";
import {
  AssembleContextRequestSchema,
  type AssembleContextResponse,
  type MemoryService,
  type SearchMessagesResponse,
} from "./generated/remora/v1/memory_service_pb.js";
import type { Message, MessageSchema } from "./generated/remora/v1/message_pb.js";
import type { ConversationSummary } from "./generated/remora/v1/short_term_pb.js";
import { taken } from "./pages.js";
import {
  invalidField,
  otherType,
  requireId,
  requireKnown,
  requireRole,
  requireSome,
  requireString,
} from "./refusals.js";
import { type RecallOptions, recallOf, type Query, type SearchOptions, searchRequest } from "./search.js";
import type { ServiceClient } from "./services.js";
import { type Fields, fieldsOf } from "./shapes.js";
import { type ShortTerm, shortTermToProto, type Window, windowFromProto, writtenSummary } from "./short-term.js";
import type { Dated } from "./times.js";
import { WorkingMemory } from "./working-memory.js";

/** How often a summary is written whose messages change meanwhile. */
const SUMMARY_TRIES = 5;

const FIELDS = [
  "resourceId",
  "title",
  "metadata",
  "attributes",
  "storageLimit",
  "shortTerm",
] as const satisfies readonly (keyof ConversationFields)[];
const PATHS: Readonly<Record<(typeof FIELDS)[number], string>> = {
  resourceId: "resource_id",
  title: "title",
  metadata: "metadata",
  attributes: "attributes",
  storageLimit: "storage_limit",
  shortTerm: "short_term",
};

const OF_CALLS = ["conversationId", "userId", "pageSize", "pageToken", "pageOrder", "maxTokens", "search"];
const LIST_OPTIONS = [...fieldsOf(ListMessagesRequestSchema).filter((name) => !OF_CALLS.includes(name)), "oldestFirst"];
const CONTEXT_OPTIONS = [
  ...fieldsOf(AssembleContextRequestSchema).filter((name) => !OF_CALLS.includes(name)),
  "recall",
];

/** A message to append: an object with the fields that are set, such as `{ role: "user", text: "hello" }`. */
export type AppendedMessage = Dated<MessageInitShape<typeof MessageSchema>>;

/** The fields of a conversation that its caller sets. */
export interface ConversationFields extends Pick<
  Fields<typeof ConversationSchema, never>,
  "resourceId" | "title" | "metadata" | "attributes" | "storageLimit"
> {
  /**
   * How large its window may grow, such as `{ type: "summarize", maxTokens: 8_000 }`; null: it is all of its messages.
   * Where nothing is said, a new conversation gets the server's default policy, which is none unless its settings say so.
   */
  shortTerm?: ShortTerm | null | undefined;
}

/** How a handle is made. */
export interface ConversationOptions extends ConversationFields {
  /** Whose messages the handle sees. Default: the conversation's own user's. */
  userId?: string | undefined;
}

/** Which messages are listed, besides how many. */
export interface ListOptions extends Fields<
  typeof ListMessagesRequestSchema,
  "conversationId" | "userId" | "pageSize" | "pageToken" | "pageOrder" | "view"
> {
  /** Whether the limit counts from the oldest message on. Default: from the newest. */
  oldestFirst?: boolean | undefined;
  /** `all`: those that have left the window, too. Default: `window`. */
  view?: "window" | "all" | undefined;
}

/** What a context holds, besides its budget. */
export interface ContextOptions extends Fields<
  typeof AssembleContextRequestSchema,
  "conversationId" | "userId" | "maxTokens" | "search"
> {
  /** How to recall older messages; false: not at all. Default: true, as the server does. */
  recall?: boolean | RecallOptions | undefined;
}

/** How a summary is made. */
export interface SummarizeOptions {
  /** How many of the newest messages stay as they were said. Default: as the policy says, else 10. */
  keepMessages?: number | undefined;
  /** Whether to do so only if the window has more tokens than the policy allows. */
  ifOver?: boolean | undefined;
  /** What wrote it, which is recorded. */
  model?: string | undefined;
}

/** What happens where something is missing. */
export interface MissingOptions {
  /** Whether that is no error. */
  allowMissing?: boolean | undefined;
}

/** What writes a summary: it is told what to do, and given what to summarise, which names the summary so far. */
export type SummaryWriter = (instruction: string, text: string) => string | Promise<string>;

/** A handle on a conversation, existing or not; making one makes no call. */
export class Conversation {
  /** The conversation's id. */
  readonly id: string;
  /** Whose messages the handle sees; empty: the conversation's own user's. */
  readonly userId: string;
  readonly #conversations: ServiceClient<typeof ConversationService>;
  readonly #memory: ServiceClient<typeof MemoryService>;
  readonly #created: MessageInitShape<typeof ConversationSchema>;

  /** @internal Use `remora.conversation(id)`. */
  constructor(
    services: { conversations: ServiceClient<typeof ConversationService>; memory: ServiceClient<typeof MemoryService> },
    id: string,
    options: ConversationOptions = {},
  ) {
    requireId(id, "conversationId");
    requireKnown(options, ["userId", ...FIELDS], "option of a conversation");
    const { userId = "", ...fields } = options;
    requireString(userId, "userId");
    this.#conversations = services.conversations;
    this.#memory = services.memory;
    this.#created = { id, userId, ...toProto(fields) };
    this.id = id;
    this.userId = userId;
  }

  /** The conversation's working memory. */
  get workingMemory(): WorkingMemory {
    const scope = { owner: { case: "conversationId" as const, value: this.id } };
    return new WorkingMemory(this.#memory, { scope, userId: this.userId });
  }

  /**
   * Appends one message or several, all or none; durable and visible when it is done. A message whose id the user
   * already has here replaces that message. A missing conversation is created with the handle's user and fields; those of
   * one that is there stay as they are: `update` changes them. A role may be of your own, such as `narrator`, but not almost
   * one that models know, nor `human`, `ai` or `model`.
   */
  async append(messages: AppendedMessage | AppendedMessage[], options?: CallOptions): Promise<AppendMessagesResponse> {
    const several = Array.isArray(messages) ? messages : [messages];
    if (several.length === 0) {
      throw invalidField("messages", "is []; it must have 1 to 1,000 messages");
    }
    for (const [place, message] of several.entries()) {
      requireRole((message as Partial<AppendedMessage> | null)?.role, `messages[${place}].role`);
    }
    const request = { ...this.#key, messages: several, createIfMissing: this.#created };
    return this.#conversations.appendMessages(request, options);
  }

  /** The newest `limit` messages (Infinity: all), always in order, oldest first. Each page of 1,000 has the timeout. */
  async messages(limit = 100, which: ListOptions = {}, options?: CallOptions): Promise<Message[]> {
    requireKnown(which, LIST_OPTIONS, "option of a list");
    const { oldestFirst = false, view = "window", ...filters } = which;
    if (view !== "window" && view !== "all") {
      throw invalidField("view", `is ${JSON.stringify(view)}; it must be "window" or "all"`);
    }
    const request = {
      ...filters,
      ...this.#key,
      pageOrder: oldestFirst ? PageOrder.OLDEST_FIRST : PageOrder.NEWEST_FIRST,
      view: view === "all" ? MessageView.ALL : MessageView.WINDOW,
    };
    const found = await taken(this.#conversations.listMessages, request, (page) => page.messages, limit, options);
    const ordered = oldestFirst ? found.flat() : found.reverse().flat();
    return oldestFirst ? ordered.slice(0, limit) : ordered.slice(Math.max(0, ordered.length - limit));
  }

  /**
   * The messages of this conversation that answer a text or resemble a vector, best first. The reply's `receiptId` is its
   * receipt.
   */
  async search(query: Query, how: SearchOptions = {}, options?: CallOptions): Promise<SearchMessagesResponse> {
    const request = searchRequest({ case: "conversation", value: this.#key }, query, how);
    return this.#memory.searchMessages(request, options);
  }

  /**
   * The system text, the summary, recent messages, and older ones that the query recalls, of at most `maxTokens`
   * together. The reply's `receiptId` is its receipt.
   */
  async context(maxTokens = 4000, what: ContextOptions = {}, options?: CallOptions): Promise<AssembleContextResponse> {
    requireKnown(what, CONTEXT_OPTIONS, "option of a context");
    requireSome(maxTokens, "maxTokens");
    const { recall = true, ...fields } = what;
    const search = recallOf(recall);
    const request = { ...fields, ...(search && { search }), ...this.#key, maxTokens };
    return this.#memory.assembleContext(request, options);
  }

  /** What is in the window, and the summary of what has left it. */
  async window(options?: CallOptions): Promise<Window> {
    return windowFromProto(await this.#conversations.getWindow(this.#key, options));
  }

  /**
   * Summarises all messages but the newest with your own model; the summary, or undefined if there is none. Messages
   * that are appended meanwhile do not matter; what is summarised is planned again if another one changes.
   */
  async summarize(
    write: SummaryWriter,
    how: SummarizeOptions = {},
    options?: CallOptions,
  ): Promise<ConversationSummary | undefined> {
    requireKnown(how, ["keepMessages", "ifOver", "model"], "option");
    requireSome(how.keepMessages, "keepMessages");
    if (typeof write !== "function") {
      throw otherType("write", write, "a function");
    }
    requireNoRequestId(options);
    const { keepMessages, ifOver = false, model = "" } = how;
    for (let tries = SUMMARY_TRIES; ;) {
      const plan = await this.#conversations.planSummary(
        { ...this.#key, keepMessages: keepMessages ?? 0, ifOver },
        options,
      );
      if (plan.cover === undefined) {
        break;
      }
      const text = writtenSummary(await write(plan.instruction, plan.text));
      const summary = { ...this.#key, cover: plan.cover, text, model };
      const outdated = await severalWrites(options, () => this.#committed(summary, options));
      if (outdated !== undefined && --tries === 0) {
        throw outdated;
      }
      if (outdated === undefined && !plan.more) {
        break;
      }
    }
    return (await this.window(options)).summary;
  }

  /** The conversation as it is stored. */
  async get(options?: CallOptions): Promise<ConversationRecord> {
    const { conversation } = await this.#conversations.getConversation(this.#key, options);
    if (conversation === undefined) {
      throw new InternalError("the reply has no conversation");
    }
    return conversation;
  }

  /** Replaces the given fields; with none, only sets the time of the last update. `shortTerm: null` removes the policy. */
  async update(changes: ConversationFields, options?: CallOptions): Promise<void> {
    requireKnown(changes, FIELDS, "field of a conversation");
    const paths = FIELDS.filter((field) => changes[field] !== undefined).map((field) => PATHS[field]);
    const conversation = { id: this.id, ...toProto(changes) };
    const request = { conversation, userId: this.userId, updateMask: { paths } };
    await this.#conversations.updateConversation(request, options);
  }

  /** Deletes the messages of these ids, at most 10,000; returns how many there were. Unknown ids are ignored. */
  async deleteMessages(messageIds: string | readonly string[], options?: CallOptions): Promise<bigint> {
    const several = typeof messageIds === "string" ? [messageIds] : messageIds;
    if (!Array.isArray(several)) {
      throw otherType("messageIds", several, "an id or an array of ids");
    }
    const request = { ...this.#key, messageIds: several };
    return (await this.#conversations.deleteMessages(request, options)).deletedMessages;
  }

  /** Deletes all messages and steps of the user; returns how many messages. Working memory stays. */
  async clear(options?: CallOptions): Promise<bigint> {
    return (await this.#conversations.clearMessages(this.#key, options)).deletedMessages;
  }

  /**
   * Applies up to 1,000 edits in order, all or none; each sees the result of those before it:
   * `chat.edit([{ remove: id }, { append: { role: "user", text: "Or by boat?" } }])`.
   *
   * @throws MessageNotFoundError for replacing or removing a missing id, unless `allowMissing`.
   */
  async edit(
    edits: Edit | readonly Edit[],
    how: MissingOptions = {},
    options?: CallOptions,
  ): Promise<EditMessagesResponse> {
    requireKnown(how, ["allowMissing"], "option");
    const several = Array.isArray(edits) ? (edits as readonly Edit[]) : [edits as Edit];
    const request = {
      ...this.#key,
      edits: several.map((edit, place) => editToProto(edit, `edits[${place}]`)),
      allowMissing: how.allowMissing ?? false,
    };
    return this.#conversations.editMessages(request, options);
  }

  /**
   * Deletes the conversation with all that belongs to it; returns how many messages, of all users.
   *
   * @throws ConversationNotFoundError if there is none, unless `allowMissing`.
   */
  async delete(how: MissingOptions = {}, options?: CallOptions): Promise<bigint> {
    requireKnown(how, ["allowMissing"], "option");
    const request = { ...this.#key, allowMissing: how.allowMissing ?? false };
    return (await this.#conversations.deleteConversation(request, options)).deletedMessages;
  }

  get #key(): { conversationId: string; userId: string } {
    return { conversationId: this.id, userId: this.userId };
  }

  /** Commits a summary; the failure if what it covers has changed. */
  async #committed(
    request: Parameters<ServiceClient<typeof ConversationService>["commitSummary"]>[0],
    options: CallOptions | undefined,
  ): Promise<SummaryOutdatedError | undefined> {
    try {
      await this.#conversations.commitSummary(request, options);
      return undefined;
    } catch (error) {
      if (error instanceof SummaryOutdatedError) {
        return error;
      }
      throw error;
    }
  }
}

function toProto({ shortTerm, ...fields }: ConversationFields): MessageInitShape<typeof ConversationSchema> {
  return {
    ...fields,
    ...(shortTerm && { shortTerm: shortTermToProto(shortTerm) }),
    withoutShortTerm: shortTerm === null,
  };
}
