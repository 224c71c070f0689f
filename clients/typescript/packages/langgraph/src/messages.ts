// The messages of a graph in a conversation of Remora: an update of the graph's state is one EditMessages.

import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type BaseMessage,
  type BaseMessageLike,
  coerceMessageLikeToMessage,
  isBaseMessage,
  mapStoredMessagesToChatMessages,
  RemoveMessage,
  type StoredMessage,
  type ToolCall,
} from "@langchain/core/messages";
import {
  ClientConnection,
  type ConnectionOptions,
  ConversationExistsError,
  ConversationNotFoundError,
  pages,
  refuseMisspelt,
  type Remora,
  shown,
} from "@remora/client";
import { type EditSchema, type Message, type MessageSchema, PageOrder } from "@remora/client/v1";
import { invalidField, requireText, wrongType } from "./refusals.js";

const OWN = ["conversationId", "userId"] as const satisfies readonly (keyof RemoraMessagesOptions)[];
const EXAMPLE = '{ conversationId: "support-42" }';
const REMOVE_ALL = "__remove_all__";
const KEEP_KEYS = ["type", "from", "to"];
const PAGE = 1_000;
const ROLES: Record<string, string> = { human: "user", ai: "assistant" };

/** Keeps a slice of the messages, as Array.prototype.slice does, and removes the others. */
export interface Keep {
  type: "keep";
  from?: number | undefined;
  to?: number | undefined;
}

/** What a node returns for its messages: some to add, to replace or to remove, or what to keep. */
export type MessagesUpdate = BaseMessageLike | readonly BaseMessageLike[] | Keep;

/** Which conversation holds the messages, and where. */
export interface RemoraMessagesOptions extends ConnectionOptions {
  /** The conversation; the first update creates it. */
  conversationId: string;
  /** Whose messages they are. Default: the conversation's own user's. */
  userId?: string | undefined;
}

type Edit = MessageInitShape<typeof EditSchema>;

/**
 * The messages of a graph in a conversation of Remora, where recall and contexts find them.
 *
 * `update` does what LangGraph's reducers do, in one call: messages are appended, one with a known id replaces it in its
 * place, `RemoveMessage` removes one or (`REMOVE_ALL_MESSAGES`) all, and `{ type: "keep", from, to }` keeps a slice.
 */
export class RemoraMessages {
  readonly #connection: ClientConnection;
  readonly #conversationId: string;
  readonly #userId: string;

  /** @throws WrongTypeError for options without a conversation; InvalidFieldError for a misspelt one. */
  constructor(options: RemoraMessagesOptions) {
    requireObject(options);
    refuseMisspelt(options, OWN);
    const { conversationId, userId = "" } = options;
    requireConversation(conversationId);
    requireText("userId", userId);
    this.#connection = new ClientConnection(options, OWN);
    this.#conversationId = conversationId;
    this.#userId = userId;
  }

  /** The client that the calls are made with. */
  get client(): Remora {
    return this.#connection.client;
  }

  /**
   * Applies an update, all or nothing of it. Messages without an id get one. What is neither messages nor a `keep` changes
   * nothing.
   *
   * @throws MessageNotFoundError if a message is to be removed that is not there; InvalidFieldError, WrongTypeError for a `keep`
   * that is misspelt, or whose bounds are no numbers.
   */
  async update(update: MessagesUpdate): Promise<void> {
    const edits = editsOf(update);
    if (edits.length === 0) {
      return;
    }
    try {
      await this.#edit(edits);
    } catch (failure) {
      if (!(failure instanceof ConversationNotFoundError)) {
        throw failure;
      }
      await this.#create();
      await this.#edit(edits);
    }
  }

  /** All messages, in their order. */
  async list(): Promise<BaseMessage[]> {
    const request = { ...this.#scope, pageOrder: PageOrder.OLDEST_FIRST, pageSize: PAGE };
    const messages: BaseMessage[] = [];
    try {
      for await (const page of pages(this.client.conversations.listMessages, request)) {
        messages.push(...page.messages.map(fromWire));
      }
    } catch (failure) {
      if (!(failure instanceof ConversationNotFoundError)) {
        throw failure;
      }
    }
    return messages;
  }

  /** Closes the connection, unless the client was given. */
  close(): void {
    this.#connection.close();
  }

  get #scope(): { conversationId: string; userId: string } {
    return { conversationId: this.#conversationId, userId: this.#userId };
  }

  async #edit(edits: Edit[]): Promise<void> {
    await this.client.conversations.editMessages({ ...this.#scope, edits });
  }

  /** An append of nothing would be refused: the conversation is created as an append creates it, unless another update has done so. */
  async #create(): Promise<void> {
    const conversation = { id: this.#conversationId, userId: this.#userId };
    try {
      await this.client.conversations.createConversation({ conversation });
    } catch (failure) {
      if (!(failure instanceof ConversationExistsError)) {
        throw failure;
      }
    }
  }
}

/** @throws WrongTypeError for a text, which may be meant for the conversation. */
function requireObject(options: unknown): void {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw wrongType("options", options, `an object, such as ${EXAMPLE}`);
  }
}

/** @throws WrongTypeError */
function requireConversation(id: unknown): void {
  if (typeof id !== "string" || id === "") {
    const expected = `a string of 1 to 512 bytes: the conversation that holds the messages, as in new RemoraMessages(${EXAMPLE})`;
    throw wrongType("conversationId", id, expected);
  }
}

/** The edits that an update stands for. */
export function editsOf(update: MessagesUpdate): Edit[] {
  if (isKeep(update)) {
    return [{ action: { case: "keep", value: sliceOf(update) } }];
  }
  refuseMisspeltKeep(update);
  const given = Array.isArray(update) ? (update as BaseMessageLike[]) : [update as BaseMessageLike].filter(isMessage);
  const messages = given.map(identified);
  const cleared = messages.findLastIndex((message) => RemoveMessage.isInstance(message) && message.id === REMOVE_ALL);
  if (cleared === -1) {
    return netEdits(messages);
  }
  const kept = messages.slice(cleared + 1).filter((message) => !RemoveMessage.isInstance(message));
  return [{ action: { case: "removeAll", value: {} } }, ...kept.map(appended)];
}

/** The edits for what an update says of each id, in the order in which the ids come up. */
function netEdits(messages: readonly BaseMessage[]): Edit[] {
  const first = new Map<string, BaseMessage>();
  const last = new Map<string, BaseMessage>();
  for (const message of messages) {
    const id = message.id ?? "";
    first.set(id, first.get(id) ?? message);
    last.set(id, message);
  }
  return [...last].flatMap(([id, message]) => edited(id, first.get(id) ?? message, message));
}

/** What is removed first must be there; what is added first need not. */
function edited(id: string, first: BaseMessage, last: BaseMessage): Edit[] {
  const removed: Edit = { action: { case: "remove", value: id } };
  if (RemoveMessage.isInstance(first)) {
    return [RemoveMessage.isInstance(last) ? removed : { action: { case: "replace", value: toWire(last) } }];
  }
  return RemoveMessage.isInstance(last) ? [appended(first), removed] : [appended(last)];
}

function appended(message: BaseMessage): Edit {
  return { action: { case: "append", value: toWire(message) } };
}

function sliceOf(keep: Keep): { from?: bigint; to?: bigint } {
  const unknown = Object.keys(keep).find((key) => !KEEP_KEYS.includes(key));
  if (unknown !== undefined) {
    throw invalidField(unknown, 'is no key of a keep; it has from and to, such as { type: "keep", from: -2 }');
  }
  const { from, to } = keep;
  return {
    ...(from !== undefined && { from: position("from", from) }),
    ...(to !== undefined && { to: position("to", to) }),
  };
}

/** As `slice` reads its arguments: toward zero, and beyond an end is the end. NaN would be the position 0. */
function position(field: string, value: number): bigint {
  if (typeof value !== "number" || Number.isNaN(value)) {
    throw wrongType(field, value, "a number");
  }
  const bounded = Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, value));
  return BigInt(Math.trunc(bounded) || 0);
}

function isKeep(update: MessagesUpdate): update is Keep {
  return typeof update === "object" && (update as unknown) !== null && "type" in update && update.type === "keep";
}

/** @throws InvalidFieldError for what has bounds, or is called almost so, and is no `keep`: it would change nothing. */
function refuseMisspeltKeep(update: unknown): void {
  if (typeof update !== "object" || update === null || Array.isArray(update) || isMessage(update)) {
    return;
  }
  const { type } = update as { type?: unknown };
  const isAlmost = typeof type === "string" && type.trim().toLowerCase() === "keep";
  if (isAlmost || "from" in update || "to" in update) {
    throw invalidField("type", `is ${shown(type)}; what keeps a slice is { type: "keep", from, to }`);
  }
}

function isMessage(given: unknown): given is BaseMessageLike {
  if (typeof given !== "object" || given === null) {
    return typeof given === "string";
  }
  return isBaseMessage(given) || "role" in given || ("type" in given && "content" in given);
}

/** The message as an object with an id; one without gets one, in the caller's object, too. */
function identified(given: BaseMessageLike): BaseMessage {
  const message = coerceMessageLikeToMessage(given);
  message.id ??= randomUUID();
  return message;
}

function toWire(message: BaseMessage): MessageInitShape<typeof MessageSchema> {
  const {
    tool_calls = [],
    tool_call_id,
    role,
  } = message as BaseMessage & {
    tool_calls?: ToolCall[];
    tool_call_id?: string;
    role?: string;
  };
  return {
    id: message.id ?? "",
    role: message.type === "generic" && role ? role : (ROLES[message.type] ?? message.type),
    name: message.name ?? "",
    text: textOf(message),
    parts: Buffer.from(JSON.stringify(message.toDict())),
    toolCalls: tool_calls
      .filter(({ id, name }) => id !== undefined && id !== "" && name !== "")
      .map(({ id = "", name, args }) => ({ id, name, arguments: Buffer.from(JSON.stringify(args)) })),
    toolResultIds: message.type === "tool" && tool_call_id ? [tool_call_id] : [],
  };
}

/** What is said: of a content in blocks, its texts, each on lines of its own. */
function textOf({ content }: BaseMessage): string {
  if (typeof content === "string") {
    return content;
  }
  return content.flatMap((block) => ("text" in block && typeof block.text === "string" ? [block.text] : [])).join("\n");
}

/** The message as it was stored; one that others stored in another form is made of what the server reads of it. */
function fromWire(message: Message): BaseMessage {
  const [stored] = storedIn(message);
  if (stored) {
    return stored;
  }
  const { id, role, text, name, toolCalls, toolResultIds } = message;
  return coerceMessageLikeToMessage({
    id,
    role,
    content: text,
    ...(name !== "" && { name }),
    ...(toolCalls.length > 0 && { tool_calls: toolCalls.map(callOf) }),
    ...(toolResultIds[0] !== undefined && { tool_call_id: toolResultIds[0] }),
  } as BaseMessageLike);
}

function callOf({ id, name, arguments: data }: Message["toolCalls"][number]): ToolCall {
  return { type: "tool_call", id, name, args: JSON.parse(Buffer.from(data).toString() || "{}") as ToolCall["args"] };
}

function storedIn({ parts, id }: Message): BaseMessage[] {
  if (parts.length === 0) {
    return [];
  }
  try {
    const stored = JSON.parse(Buffer.from(parts).toString()) as StoredMessage;
    return mapStoredMessagesToChatMessages([{ ...stored, data: { ...stored.data, id } }]);
  } catch {
    return []; // another client's parts, in a form of its own
  }
}
