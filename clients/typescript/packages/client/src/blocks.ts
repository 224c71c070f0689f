// Long-term memory in blocks, after the proposal for Ballerina's agents: what a model is given of them.

import { createHash } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, severalWrites } from "./calls.js";
import { type AppendedMessage, Conversation } from "./conversation.js";
import { ConversationNotFoundError, RemoraError } from "./errors.js";
import { Facts } from "./facts.js";
import type { ConversationService } from "./generated/remora/v1/conversation_service_pb.js";
import { type Fact, type StaticFact, StaticFactSchema } from "./generated/remora/v1/fact_pb.js";
import type { MemoryItemFilterSchema } from "./generated/remora/v1/memory_item_pb.js";
import {
  type AssembleContextResponse,
  type Hit,
  type MemoryItemHit,
  MemoryItemHitSchema,
  type MemoryService,
  Section,
  WeightsSchema,
} from "./generated/remora/v1/memory_service_pb.js";
import { type Message, MessageSchema } from "./generated/remora/v1/message_pb.js";
import type { TextService } from "./generated/remora/v1/text_service_pb.js";
import { filterOf } from "./memory-items.js";
import { invalidField, otherType, requireId, requireKnown } from "./refusals.js";
import type { ServiceClient } from "./services.js";
import { requireShape } from "./shapes.js";

const STATIC = "static_memory";
const EXTRACTIVE = "extractive_memory";
const VECTOR = "vector_memory";
const SUMMARY_PREFIX = "CONVERSATION SUMMARY: ";
const ID_BYTES = 512;
const TEXT_BYTES = 65_536;
const QUERY_BYTES = 32_768;
const MOST_HITS = 1_000;
const LARGEST_PAGE = 1_000;
const HITS = 10;
const FACTS = 100;
const MAX_TOKENS = 2_000;
/** White space as the server and the client for Python split at it, among it all that begins a line in any language. */
// eslint-disable-next-line no-control-regex -- separators are control characters
const BLANKS = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/gu;
/** The weight of words beside a cosine, as in the scores of memory items. */
const WORDS = 0.5;

/** What a MemoryContent has besides chat messages. */
const APART = [Section.STATIC_FACTS, Section.FACTS, Section.RECALLED];

/** A text of the user's, or a message. */
export type Said = string | AppendedMessage;

/** Which facts extractive memory gives. */
export interface FactsWithin {
  /** Among how many of the best facts, 1 to 1,000. Default: 100. */
  k?: number | undefined;
  /** Of how many tokens together (o200k_base). Default: 2,000. */
  maxTokens?: number | undefined;
}

/** Which messages vector memory gives. */
export interface MessagesWithin {
  /** At most so many, 1 to 1,000. Default: 10. */
  k?: number | undefined;
}

/** What all blocks give. */
export interface ContentWithin {
  /** At most so many messages of vector memory, 1 to 1,000. Default: 10. */
  k?: number | undefined;
  /** Facts of so many tokens together (o200k_base). Default: 2,000. */
  maxTokens?: number | undefined;
}

/** Services that blocks call. */
interface Services {
  conversations: ServiceClient<typeof ConversationService>;
  memory: ServiceClient<typeof MemoryService>;
  text: ServiceClient<typeof TextService>;
}

/** A block that does not support an operation was asked for it. Nothing was sent. */
export class UnsupportedByBlockError extends RemoraError {}

/** What is remembered for the next call of a model. */
export class MemoryContent {
  /** The messages of the session's conversation that are in its window, behind its summary. */
  readonly chatMessages: readonly Message[];
  /** What holds for all users. */
  readonly staticFacts: readonly StaticFact[];
  /** What the user said of itself that answers the message, best first. */
  readonly extractedFacts: readonly Fact[];
  /** What was said in the session that resembles the message, best first. */
  readonly vectorMatches: readonly MemoryItemHit[];

  constructor(
    parts: {
      chatMessages?: readonly Message[];
      staticFacts?: readonly StaticFact[];
      extractedFacts?: readonly Fact[];
      vectorMatches?: readonly MemoryItemHit[];
    } = {},
  ) {
    this.chatMessages = parts.chatMessages ?? [];
    this.staticFacts = parts.staticFacts ?? [];
    this.extractedFacts = parts.extractedFacts ?? [];
    this.vectorMatches = parts.vectorMatches ?? [];
  }

  /**
   * A context as the proposal has it: static facts, facts and recalled messages apart. All other messages are
   * `chatMessages`: the system text, working memories, the summary and the newest messages. The best match has the score 1,
   * others a share of it, and what came with a match, but was not found, has 0. Facts come without their sources.
   */
  static ofContext({ items }: Pick<AssembleContextResponse, "items">): MemoryContent {
    const of = (...sections: Section[]) => items.filter(({ section }) => sections.includes(section));
    const chat = items.filter(({ section }) => !APART.includes(section));
    const recalled = of(Section.RECALLED).sort((left, right) => (right.score ?? 0) - (left.score ?? 0));
    const best = recalled[0]?.score || 1;
    return new MemoryContent({
      chatMessages: chat.map(({ message }) => message ?? create(MessageSchema)),
      staticFacts: of(Section.STATIC_FACTS).map(({ message: { id = "", text = "" } = {} }) =>
        create(StaticFactSchema, { id, content: text }),
      ),
      extractedFacts: of(Section.FACTS).flatMap(({ fact }) => (fact === undefined ? [] : [fact])),
      vectorMatches: recalled.map(({ conversationId, message, score = 0 }) =>
        saidHit(conversationId, message, score / best),
      ),
    });
  }

  /**
   * The facts and the matches as a text for the system prompt; empty if there are none. `<memory>` has an element for
   * each block that has something, and in it a line `- ...` for each. `&`, `<` and `>` are escaped, and line breaks are
   * blanks: what was stored cannot close an element or begin a line.
   */
  toXml(): string {
    const blocks = [
      element(
        STATIC,
        this.staticFacts.map(({ content }) => content),
      ),
      element(
        EXTRACTIVE,
        this.extractedFacts.map(({ text }) => text),
      ),
      element(
        VECTOR,
        this.vectorMatches.map(({ item }) => item?.text ?? ""),
      ),
    ].flat();
    return blocks.length > 0 ? ["<memory>", ...blocks, "</memory>"].join("\n") : "";
  }

  /** Your instructions, and behind them `toXml()`. */
  systemPrompt(instructions = ""): string {
    return [instructions, this.toXml()].filter((part) => part !== "").join("\n\n");
  }
}

/** What holds for all users: `remora.memory.setStaticFacts()` sets it, and no session changes it. */
export class StaticMemory {
  readonly #memory: ServiceClient<typeof MemoryService>;

  /** @internal Use `remora.blocks(userId).static`. */
  constructor({ memory }: Services) {
    this.#memory = memory;
  }

  /** All of it, whatever the session and the message are. */
  async get(_sessionId: string, _message: Said = "", options?: CallOptions): Promise<StaticFact[]> {
    return (await this.#memory.getStaticFacts({}, options)).facts;
  }

  /** @throws UnsupportedByBlockError */
  update(_sessionId: string, _message: Said): Promise<never> {
    return Promise.reject(unsupported("update"));
  }

  /** @throws UnsupportedByBlockError */
  delete(_sessionId: string): Promise<never> {
    return Promise.reject(unsupported("delete"));
  }
}

/** What the user says of itself, as facts: those of all of its sessions. */
export class ExtractiveMemory {
  /** The facts, to be added, listed, searched, corrected, retracted and forgotten one by one. */
  readonly facts: Facts;
  readonly #text: ServiceClient<typeof TextService>;

  /** @internal Use `remora.blocks(userId).extractive`. */
  constructor({ memory, text }: Services, userId: string) {
    this.facts = new Facts(memory, userId);
    this.#text = text;
  }

  /**
   * The facts that answer a message best, best first. If the server has a chat model, it picks those that bear on the
   * message among the `k` best. The first 32 KiB of the message count.
   */
  async get(sessionId: string, message: Said, within: FactsWithin = {}, options?: CallOptions): Promise<Fact[]> {
    requireId(sessionId, "sessionId");
    requireKnown(within, ["k", "maxTokens"], "option");
    const { k = FACTS, maxTokens = MAX_TOKENS } = within;
    requirePositive(maxTokens, "maxTokens");
    const query = queryOf(message);
    if (query === "") {
      return [];
    }
    const { hits } = await this.facts.search(query, { k, pick: true }, options);
    const found = hits.flatMap(({ fact }) => (fact === undefined ? [] : [fact]));
    return found.length === 0 ? [] : this.#fitting(found, maxTokens, options);
  }

  async #fitting(found: Fact[], maxTokens: number, options: CallOptions | undefined): Promise<Fact[]> {
    const { counts } = await this.#text.countTokens({ texts: found.map(({ text }) => text) }, options);
    let room = maxTokens;
    return found.filter((_, place) => {
      const tokens = counts[place] ?? 0;
      const fits = tokens <= room;
      room -= fits ? tokens : 0;
      return fits;
    });
  }

  /** Finds facts in what the user says, adds them, and returns them. Messages of other roles have none. */
  async update(sessionId: string, message: Said, options?: CallOptions): Promise<Fact[]> {
    requireId(sessionId, "sessionId");
    const given = messageOf(message);
    if (given.role !== "user" || !given.text) {
      return [];
    }
    const sentTime = given.sentTime ?? given.createTime;
    const source = { conversationId: sessionId, messageId: given.id ?? "", ...(sentTime && { sentTime }) };
    return this.facts.extract(given.text, { source }, options);
  }

  /** Deletes the facts that were said in this session and nowhere else; returns how many there were. */
  async delete(sessionId: string, options?: CallOptions): Promise<bigint> {
    requireId(sessionId, "sessionId");
    return this.facts.forgetConversation(sessionId, options);
  }
}

/**
 * What was said in the user's sessions, each message by itself, found by its vector and its words: what `update` was given,
 * and what the user's messages in the conversation of the session's name say, also those that have left its window.
 */
export class VectorMemory {
  readonly #memory: ServiceClient<typeof MemoryService>;
  readonly #userId: string;

  /** @internal Use `remora.blocks(userId).vector`. */
  constructor({ memory }: Services, userId: string) {
    this.#memory = memory;
    this.#userId = userId;
  }

  /** The messages of this session that resemble a message, its first 32 KiB, most; best first. */
  async get(
    sessionId: string,
    message: Said,
    within: MessagesWithin = {},
    options?: CallOptions,
  ): Promise<MemoryItemHit[]> {
    requireId(sessionId, "sessionId");
    requireKnown(within, ["k"], "option");
    const { k = HITS } = within;
    requirePositive(k, "k");
    const query = queryOf(message);
    if (query === "") {
      return [];
    }
    const filter = ofSession(sessionId);
    const { hits } = await this.#memory.searchMemoryItems({ userId: this.#userId, query, k, filter }, options);
    return bestHits(hits, await this.#said(sessionId, query, k, options), k);
  }

  /** The same among the messages of the session's conversation, if there is one. */
  async #said(
    conversationId: string,
    query: string,
    k: number,
    options: CallOptions | undefined,
  ): Promise<MemoryItemHit[]> {
    const request = {
      scope: { case: "conversation" as const, value: { conversationId, userId: this.#userId } },
      query: { case: "text" as const, value: query },
      options: { k, weights: likeItems() },
      withoutReceipt: true,
    };
    const found = await unlessMissing(this.#memory.searchMessages(request, options));
    const wordsOnly = found?.index?.wordsOnly ?? false;
    return (found?.hits ?? []).map((hit) => messageHit(conversationId, hit, wordsOnly));
  }

  /**
   * Stores a message of up to 64 KiB; one without a text is not stored. One with an id is stored once. What is appended
   * to the conversation of this name need not be stored here, too.
   */
  async update(sessionId: string, message: Said, options?: CallOptions): Promise<void> {
    requireId(sessionId, "sessionId");
    const { id = "", role = "", text = "" } = messageOf(message);
    requireShort(text);
    if (text !== "") {
      const item = { text, tags: [VECTOR], metadata: metadataOf(sessionId, role), id: id && itemId(sessionId, id) };
      await this.#memory.addMemoryItems({ userId: this.#userId, items: [item] }, options);
    }
  }

  /**
   * Deletes what `update` was given of this session; returns how many messages. The messages of the conversation are
   * deleted with it.
   */
  async delete(sessionId: string, options?: CallOptions): Promise<bigint> {
    requireId(sessionId, "sessionId");
    const selection = { case: "filter" as const, value: ofSession(sessionId) };
    return (await this.#memory.deleteMemoryItems({ userId: this.#userId, selection }, options)).deletedItems;
  }
}

/** The three blocks of a user together. */
export class MemoryBlocks {
  /** Whose blocks they are. */
  readonly userId: string;
  /** What holds for all users. */
  readonly static: StaticMemory;
  /** What the user says of itself. */
  readonly extractive: ExtractiveMemory;
  /** What was said in the user's sessions. */
  readonly vector: VectorMemory;
  readonly #services: Services;

  /** @internal Use `remora.blocks(userId)`. */
  constructor(services: Services, userId: string) {
    requireId(userId, "userId");
    this.userId = userId;
    this.static = new StaticMemory(services);
    this.extractive = new ExtractiveMemory(services, userId);
    this.vector = new VectorMemory(services, userId);
    this.#services = services;
  }

  /**
   * What all blocks have for a message: facts, and messages of the session. With them come the user's messages in the
   * window of the session's conversation, up to the newest 1,000, behind its summary; none of these is among the matches.
   */
  async get(
    sessionId: string,
    message: Said,
    within: ContentWithin = {},
    options?: CallOptions,
  ): Promise<MemoryContent> {
    requireId(sessionId, "sessionId");
    requireKnown(within, ["k", "maxTokens"], "option");
    const { k = HITS, maxTokens = MAX_TOKENS } = within;
    requirePositive(k, "k");
    const chatMessages = await this.#said(sessionId, options);
    const most = { k: Math.min(MOST_HITS, k + chatMessages.length) };
    const matches = await this.vector.get(sessionId, message, most, options);
    return new MemoryContent({
      chatMessages,
      staticFacts: await this.static.get(sessionId, message, options),
      extractedFacts: await this.extractive.get(sessionId, message, { maxTokens }, options),
      vectorMatches: others(matches, sessionId, chatMessages).slice(0, k),
    });
  }

  /**
   * The window of the session's conversation, if there is one. It may move between the two calls: what leaves it then is in
   * the messages, or in the summary.
   */
  async #said(sessionId: string, options: CallOptions | undefined): Promise<Message[]> {
    const chat = new Conversation(this.#services, sessionId, { userId: this.userId });
    const messages = (await unlessMissing(chat.messages(LARGEST_PAGE, {}, options))) ?? [];
    const { summary, systemSequence } = (await unlessMissing(chat.window(options))) ?? {};
    if (summary === undefined) {
      return messages;
    }
    const { text, coversThroughSequence } = summary;
    const rest = messages.filter(({ sequence }) => sequence > coversThroughSequence || sequence === systemSequence);
    return [create(MessageSchema, { role: "user", text: SUMMARY_PREFIX + text }), ...rest];
  }

  /**
   * Gives a message of up to 64 KiB to the blocks that take one: static memory takes none. It makes a write for each of
   * them. If it fails, a message with an id may be given again: it is stored once.
   */
  async update(sessionId: string, message: Said, options?: CallOptions): Promise<void> {
    await severalWrites(options, async () => {
      await this.vector.update(sessionId, message, options);
      await this.extractive.update(sessionId, message, options);
    });
  }

  /** Deletes what the blocks have of a session alone. What was said in other sessions, too, stays. */
  async delete(sessionId: string, options?: CallOptions): Promise<void> {
    await severalWrites(options, async () => {
      await this.extractive.delete(sessionId, options);
      await this.vector.delete(sessionId, options);
    });
  }
}

/** What static memory answers, in the proposal's words. */
function unsupported(operation: string): UnsupportedByBlockError {
  return new UnsupportedByBlockError(`Static memory does not support ${operation} operation`, {
    code: "UNIMPLEMENTED",
  });
}

function requirePositive(value: unknown, field: string): void {
  if (typeof value !== "number") {
    throw otherType(field, value, "a number");
  }
  if (!(value > 0)) {
    throw invalidField(field, `is ${String(value)}; it must be at least 1`);
  }
}

function requireShort(text: string): void {
  const bytes = Buffer.byteLength(text);
  if (bytes > TEXT_BYTES) {
    throw invalidField("message", `has ${bytes} bytes; at most ${TEXT_BYTES} are allowed`);
  }
}

function element(name: string, texts: readonly string[]): string[] {
  return texts.length > 0 ? [`<${name}>`, ...texts.map((text) => `- ${escaped(text)}`), `</${name}>`] : [];
}

function escaped(text: string): string {
  const oneLine = text.replaceAll(BLANKS, " ").replace(/^ | $/g, "");
  return oneLine.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** The message that was said. A text is the user's. */
function messageOf(said: Said): AppendedMessage {
  if (typeof said === "string") {
    return { role: "user", text: said };
  }
  requireShape(MessageSchema, said, "message");
  return said;
}

/** What to search for: what a message says, up to the longest query. */
function queryOf(said: Said): string {
  const bytes = new TextEncoder().encode(messageOf(said).text ?? "");
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(0, QUERY_BYTES), { stream: true });
}

/** The items of a session in vector memory. */
function ofSession(sessionId: string): MessageInitShape<typeof MemoryItemFilterSchema> {
  return filterOf({ tags: [VECTOR], where: { session_id: sessionId } });
}

function metadataOf(sessionId: string, role: string): Uint8Array {
  return new TextEncoder().encode(JSON.stringify({ session_id: sessionId, role }));
}

function roleOf(hit: MemoryItemHit): unknown {
  const metadata = new TextDecoder().decode(hit.item?.metadata);
  return metadata === "" ? undefined : (JSON.parse(metadata) as { role?: unknown }).role;
}

/** Weights by which messages are scored as memory items are. `late` is of another profile. */
function likeItems(): MessageInitShape<typeof WeightsSchema> {
  const names = WeightsSchema.fields.map(({ localName }) => localName).filter((name) => name !== "late");
  return { ...Object.fromEntries(names.map((name) => [name, 0])), cosine: 1, bm25: WORDS };
}

/** A message of a session's conversation as an item of vector memory. Its score is as that of items. */
function messageHit(sessionId: string, { message, score }: Hit, wordsOnly: boolean): MemoryItemHit {
  return saidHit(sessionId, message, score / (wordsOnly ? WORDS : 1 + WORDS));
}

/** A message of a session as an item of vector memory. A score below 0 is 0, one above 1 is 1. */
function saidHit(sessionId: string, message: Message | undefined, score: number): MemoryItemHit {
  const { id = "", text = "", role = "", userId = "", createTime, updateTime } = message ?? {};
  const times = { ...(createTime && { createTime }), ...(updateTime && { updateTime }) };
  const item = {
    ...{ id: itemId(sessionId, id), text, tags: [VECTOR], metadata: metadataOf(sessionId, role), userId },
    ...times,
  };
  return create(MemoryItemHitSchema, { item, score: Math.min(1, Math.max(0, score)) });
}

/** The `k` best of both, best first. What was both given and said is there once. */
function bestHits(given: readonly MemoryItemHit[], said: readonly MemoryItemHit[], k: number): MemoryItemHit[] {
  const known = new Set(given.flatMap((hit) => [idOf(hit), saidOf(hit)]));
  const rest = said.filter((hit) => !known.has(idOf(hit)) && !known.has(saidOf(hit)));
  return [...given, ...rest].sort((left, right) => right.score - left.score).slice(0, k);
}

/** The hits that are none of a session's messages, neither by their ids nor by what they say. */
function others(hits: readonly MemoryItemHit[], sessionId: string, said: readonly Message[]): MemoryItemHit[] {
  const known = new Set(said.flatMap(({ id, role, text }) => [`id ${itemId(sessionId, id)}`, key(role, text)]));
  return hits.filter((hit) => !known.has(idOf(hit)) && !known.has(saidOf(hit)));
}

const idOf = (hit: MemoryItemHit) => `id ${hit.item?.id}`;
const saidOf = (hit: MemoryItemHit) => key(roleOf(hit), hit.item?.text ?? "");
const key = (role: unknown, text: string) => `said ${JSON.stringify([role, text])}`;

/** The id of the item of a session's message: that of no other one, the same in all clients. */
function itemId(sessionId: string, messageId: string): string {
  const joined = `${sessionId}/${messageId}`;
  if (!sessionId.includes("/") && Buffer.byteLength(joined) <= ID_BYTES) {
    return joined;
  }
  return createHash("sha256")
    .update(`${Buffer.byteLength(sessionId)}/${joined}`)
    .digest("hex");
}

/** The result of a call; undefined where there is no such conversation. */
async function unlessMissing<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (failure) {
    if (failure instanceof ConversationNotFoundError) {
      return undefined;
    }
    throw failure;
  }
}
