// Facts of a user: what holds, or did, with sources and in two times.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { type CallOptions, severalWrites } from "./calls.js";
import { InternalError } from "./errors.js";
import type { Fact, FactSchema, FactSourceSchema, FactTimesSchema } from "./generated/remora/v1/fact_pb.js";
import type {
  ExtractFactsResponse,
  MemoryService,
  SearchFactsResponse,
} from "./generated/remora/v1/memory_service_pb.js";
import { taken } from "./pages.js";
import { requireId, requireKnown, requireSome } from "./refusals.js";
import type { ServiceClient } from "./services.js";
import { type Dated, timestampOf } from "./times.js";

/** A fact to add: `{ subject: "user", predicate: "lives in", object: "Berlin", exclusive: true }`. */
export type NewFact = Dated<MessageInitShape<typeof FactSchema>>;
/** The message in which facts were said. The same message adds to the confidence of a fact once. */
export type SaidIn = Dated<MessageInitShape<typeof FactSourceSchema>>;

/** As of when facts are meant. */
export interface AsOf {
  /** Those that held at this time. Default: now. */
  validAt?: Date | Timestamp | undefined;
  /** As they were recorded at this time. Default: now. */
  recordedAt?: Date | Timestamp | undefined;
  /** Also those that no longer hold, or do not hold yet; without `validAt`. */
  atAnyTime?: boolean | undefined;
}

/** Which facts are found. */
export interface FoundFacts extends AsOf {
  /** At most so many. Default: 10. */
  k?: number | undefined;
  /** Only facts with this score or a higher one, from 0 to 1. */
  threshold?: number | undefined;
  /** Whether the server's chat model picks those of the best that bear on the query; `pickedBy` of the reply says if it did. */
  pick?: boolean | undefined;
}

/** How facts are extracted. */
export interface Extracting {
  /** Whether nothing is added. */
  dryRun?: boolean | undefined;
  /** Whether patterns find them also if the server has a chat model. */
  byPatterns?: boolean | undefined;
}

/** The facts that were found in what a user said. */
export interface ExtractedFacts extends Array<Fact> {
  /** Facts on record that ended because the user says that they no longer hold. Not enumerable. */
  readonly ended: Fact[];
  /**
   * Why patterns found them although the server has a chat model; empty: it found them, or there is none. Not enumerable.
   */
  readonly modelFailure: string;
}

/** Which facts are listed. */
export interface ListedFacts extends AsOf {
  /** Only those about this subject; case and white space do not count. */
  subject?: string | undefined;
  /** Only those with this predicate. */
  predicate?: string | undefined;
  /** At most so many; Infinity: all. Default: 100. */
  limit?: number | undefined;
}

const EXTRACTING = ["dryRun", "byPatterns"] as const satisfies readonly (keyof Extracting)[];
const AS_OF = ["validAt", "recordedAt", "atAnyTime"] as const satisfies readonly (keyof AsOf)[];

/**
 * What is known of a user, each fact by itself; no call sees those of another user. A fact that is not there is a
 * FactNotFoundError.
 */
export class Facts {
  readonly #memory: ServiceClient<typeof MemoryService>;
  /** Whose facts they are. */
  readonly userId: string;

  constructor(memory: ServiceClient<typeof MemoryService>, userId: string) {
    requireId(userId, "userId");
    this.#memory = memory;
    this.userId = userId;
  }

  /**
   * Adds facts, all or none, and returns their ids. A fact that is recorded already is not added again: its mentions and its
   * confidence grow. An exclusive one ends the one that it contradicts.
   */
  async add(facts: NewFact | readonly NewFact[], source?: SaidIn, options?: CallOptions): Promise<string[]> {
    const request = { userId: this.userId, facts: several(facts), ...(source && { source }) };
    return (await this.#memory.addFacts(request, options)).ids;
  }

  /**
   * Finds what the user says of itself in a text, adds it, and returns it with its ids. The server's chat model finds it;
   * without one, if it fails, or with `byPatterns`, patterns for English do: `extractor` of each fact says which. What the
   * user denies or says no longer holds, as in "I no longer live in Munich", ends the fact that is on record so: `ended`
   * of the result has the facts that ended.
   */
  async extract(
    text: string,
    how: Extracting & { source?: SaidIn | undefined } = {},
    options?: CallOptions,
  ): Promise<ExtractedFacts> {
    requireKnown(how, [...EXTRACTING, "source"], "option");
    const { source, dryRun = false, byPatterns = false } = how;
    const from = { case: "text" as const, value: { text, ...(source && { source }) } };
    const read = await this.#memory.extractFacts({ userId: this.userId, from, dryRun, byPatterns }, options);
    return extracted(added(read), read.ended, read.modelFailure);
  }

  /**
   * The same of all that the user says in a conversation. Each 1,000 messages, or with a chat model each 32 KiB, have the
   * timeout.
   */
  async extractFrom(
    conversationId: string,
    how: Extracting & { afterSequence?: bigint | undefined } = {},
    options?: CallOptions,
  ): Promise<ExtractedFacts> {
    requireKnown(how, [...EXTRACTING, "afterSequence"], "option");
    return severalWrites(options, () => this.#extractFrom(conversationId, how, options));
  }

  async #extractFrom(
    conversationId: string,
    { afterSequence = 0n, dryRun = false, byPatterns = false }: Extracting & { afterSequence?: bigint | undefined },
    options: CallOptions | undefined,
  ): Promise<ExtractedFacts> {
    const found: Fact[] = [];
    const ended: Fact[] = [];
    let modelFailure = "";
    let behind = afterSequence;
    for (;;) {
      const from = { case: "conversation" as const, value: { conversationId, afterSequence: behind } };
      const read = await this.#memory.extractFacts({ userId: this.userId, from, dryRun, byPatterns }, options);
      found.push(...added(read));
      ended.push(...read.ended);
      modelFailure ||= read.modelFailure;
      if (!read.more) {
        return extracted(found, ended, modelFailure);
      }
      behind = read.throughSequence;
    }
  }

  /** The facts that answer a text best, best first, with their scores. */
  async search(query: string, which: FoundFacts = {}, options?: CallOptions): Promise<SearchFactsResponse> {
    requireKnown(which, [...AS_OF, "k", "threshold", "pick"], "option");
    requireSome(which.k, "k");
    const { k = 10, threshold, pick = false } = which;
    const request = {
      userId: this.userId,
      query,
      k,
      pick,
      times: timesOf(which),
      ...(threshold !== undefined && { threshold }),
    };
    return this.#memory.searchFacts(request, options);
  }

  /** The fact as it is recorded now. */
  async get(factId: string, options?: CallOptions): Promise<Fact> {
    const { fact } = await this.#memory.getFact({ userId: this.userId, factId }, options);
    if (fact === undefined) {
      throw new InternalError("the reply has no fact");
    }
    return fact;
  }

  /** The facts, those recorded last first. Each page of 1,000 has the timeout. */
  async listFacts(which: ListedFacts = {}, options?: CallOptions): Promise<Fact[]> {
    requireKnown(which, [...AS_OF, "subject", "predicate", "limit"], "option");
    const { subject = "", predicate = "", limit = 100 } = which;
    const request = { userId: this.userId, subject, predicate, times: timesOf(which) };
    const listed = await taken(this.#memory.listFacts, request, (page) => page.facts, limit, options);
    return listed.flat().slice(0, limit);
  }

  /** Puts a fact in the place of one that is wrong, and returns its id. It holds since the wrong one did. */
  async correct(factId: string, fact: NewFact, options?: CallOptions): Promise<string> {
    return (await this.#memory.correctFact({ userId: this.userId, factId, fact }, options)).factId;
  }

  /** Ceases to record facts that never held; returns how many there were. */
  async retract(ids: string | readonly string[], options?: CallOptions): Promise<bigint> {
    const request = { userId: this.userId, facts: { ids: several(ids) } };
    return (await this.#memory.retractFacts(request, options)).retractedFacts;
  }

  /** Deletes facts with all that was recorded of them; returns how many there were. */
  async forget(ids: string | readonly string[], options?: CallOptions): Promise<bigint> {
    return this.#forget({ case: "ids", value: { ids: several(ids) } }, options);
  }

  /** Deletes the facts that were said in a conversation and nowhere else; returns how many there were. */
  forgetConversation(conversationId: string, options?: CallOptions): Promise<bigint> {
    return this.#forget({ case: "conversationId", value: conversationId }, options);
  }

  /** Deletes all facts of the user; returns how many there were. */
  clear(options?: CallOptions): Promise<bigint> {
    return this.#forget({ case: "all", value: {} }, options);
  }

  async #forget(selection: Selection, options?: CallOptions): Promise<bigint> {
    return (await this.#memory.forgetFacts({ userId: this.userId, selection }, options)).forgottenFacts;
  }
}

type Selection =
  | { case: "ids"; value: { ids: string[] } }
  | { case: "conversationId"; value: string }
  | { case: "all"; value: Record<string, never> };

/** The facts with those that ended, which no comparison of arrays sees. */
function extracted(facts: Fact[], ended: Fact[], modelFailure: string): ExtractedFacts {
  const properties = { ended: { value: ended }, modelFailure: { value: modelFailure } };
  return Object.defineProperties(facts, properties) as ExtractedFacts;
}

/** One value or several, as several. A text is one value: its letters are no ids. */
function several<Value>(given: Value | readonly Value[]): Value[] {
  return Array.isArray(given) ? [...(given as readonly Value[])] : [given as Value];
}

/** What was found, with the ids under which it was added; a dry run gives none. */
function added({ facts, ids }: ExtractFactsResponse): Fact[] {
  for (const [place, fact] of facts.entries()) {
    fact.id = ids[place] ?? "";
  }
  return facts;
}

function timesOf({ validAt, recordedAt, atAnyTime = false }: AsOf): MessageInitShape<typeof FactTimesSchema> {
  return {
    atAnyTime,
    ...(validAt && { validAt: timestampOf(validAt, "validAt") }),
    ...(recordedAt && { recordedAt: timestampOf(recordedAt, "recordedAt") }),
  };
}
