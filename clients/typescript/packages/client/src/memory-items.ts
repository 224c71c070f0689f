// Memory items: what a user's agents chose to remember, each by itself.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions } from "./calls.js";
import { InternalError } from "./errors.js";
import { type FilterSchema, Operator } from "./generated/remora/v1/filter_pb.js";
import type { MemoryItem, MemoryItemFilterSchema, MemoryItemSchema } from "./generated/remora/v1/memory_item_pb.js";
import type { MemoryService, SearchMemoryItemsResponse } from "./generated/remora/v1/memory_service_pb.js";
import type { ScalarSchema } from "./generated/remora/v1/scalar_pb.js";
import { taken } from "./pages.js";
import { invalidField, otherType, requireId, requireKnown, requireSome } from "./refusals.js";
import type { ServiceClient } from "./services.js";
import { type Fields, requireObject } from "./shapes.js";
import type { Dated } from "./times.js";

type Stored = "values" | "model" | "indexed" | "userId" | "createTime" | "updateTime";

/** An item to add: `{ text: "Sarah is vegan", tags: ["food"], metadata: { source: "chat" } }`. */
export type NewMemoryItem = Omit<Fields<typeof MemoryItemSchema, Stored>, "metadata"> & {
  /** What JSON can hold, up to 64 KiB; filters see its members. */
  metadata?: Readonly<Record<string, unknown>> | Uint8Array | undefined;
};

/** A value of a member of metadata. */
export type MemberValue = string | number | bigint | boolean | null;

/** Which items are meant: those that meet all that is given. */
export interface WhichItems {
  /** They have all of these tags. */
  tags?: readonly string[] | undefined;
  /** Their metadata has these members with these values; or a filter, which may compare values at any depth. */
  where?: Readonly<Record<string, MemberValue>> | MessageInitShape<typeof FilterSchema> | undefined;
}

/** Which items are found. */
export interface FoundItems extends WhichItems {
  /** At most so many. Default: 10. */
  k?: number | undefined;
  /** Only items with this score or a higher one, from 0 to 1. */
  threshold?: number | undefined;
}

/** Which items are listed. */
export interface ListedItems extends WhichItems {
  /** At most so many; Infinity: all. Default: 100. */
  limit?: number | undefined;
}

const WHICH = ["tags", "where"] as const satisfies readonly (keyof WhichItems)[];

/**
 * What the agents of a user remember of it; no call sees the items of another user. The metadata of a reply's item is
 * JSON in UTF-8. An item that is not there is a MemoryItemNotFoundError.
 */
export class MemoryItems {
  readonly #memory: ServiceClient<typeof MemoryService>;
  /** Whose items they are. */
  readonly userId: string;

  /** @internal Use `remora.user(id).memoryItems`. */
  constructor(memory: ServiceClient<typeof MemoryService>, userId: string) {
    requireId(userId, "userId");
    this.#memory = memory;
    this.userId = userId;
  }

  /**
   * Adds a text, an item or several, all or none, and returns their ids. One with a known id is replaced. They are found by
   * the next search: the server embeds them before it answers.
   */
  async add(
    items: string | NewMemoryItem | readonly (string | NewMemoryItem)[],
    options?: CallOptions,
  ): Promise<string[]> {
    const given = Array.isArray(items) ? (items as readonly (string | NewMemoryItem)[]) : [items as NewMemoryItem];
    const request = { userId: this.userId, items: given.map(itemOf) };
    return (await this.#memory.addMemoryItems(request, options)).ids;
  }

  /** The items that answer a text best, by their vectors and their words, best first, with their scores. */
  async search(query: string, which: FoundItems = {}, options?: CallOptions): Promise<SearchMemoryItemsResponse> {
    requireKnown(which, [...WHICH, "k", "threshold"], "option");
    requireSome(which.k, "k");
    const { k = 10, threshold } = which;
    const request = { userId: this.userId, query, k, filter: filterOf(which) };
    return this.#memory.searchMemoryItems({ ...request, ...(threshold !== undefined && { threshold }) }, options);
  }

  /** The item. */
  async get(itemId: string, options?: CallOptions): Promise<MemoryItem> {
    const { item } = await this.#memory.getMemoryItem({ userId: this.userId, itemId }, options);
    if (item === undefined) {
      throw new InternalError("the reply has no item");
    }
    return item;
  }

  /** The items, the newest first. Each page of 1,000 has the timeout. */
  async listItems(which: ListedItems = {}, options?: CallOptions): Promise<MemoryItem[]> {
    requireKnown(which, [...WHICH, "limit"], "option");
    const { limit = 100 } = which;
    const request = { userId: this.userId, filter: filterOf(which) };
    const listed = await taken(this.#memory.listMemoryItems, request, (page) => page.items, limit, options);
    return listed.flat().slice(0, limit);
  }

  /** Deletes the items of these ids, at most 1,000, all or none; returns how many there were. */
  async delete(ids: string | readonly string[], options?: CallOptions): Promise<bigint> {
    const listed = typeof ids === "string" ? [ids] : [...ids];
    return this.#delete({ case: "ids", value: { ids: listed } }, options);
  }

  /**
   * Deletes the items that are meant, all or none; returns how many there were.
   *
   * @throws InvalidFieldError if all are meant: `clear` deletes these.
   */
  async deleteWhere(which: WhichItems, options?: CallOptions): Promise<bigint> {
    requireKnown(which, WHICH, "option");
    const filter = filterOf(which);
    if (filter.tags?.length === 0 && filter.where === undefined) {
      throw invalidField("where", "has no condition, and there are no tags; clear() deletes all items");
    }
    return this.#delete({ case: "filter", value: filter }, options);
  }

  /** Deletes all items of the user; returns how many there were. */
  async clear(options?: CallOptions): Promise<bigint> {
    return this.#delete({ case: "filter", value: {} }, options);
  }

  async #delete(selection: Selection, options: CallOptions | undefined): Promise<bigint> {
    return (await this.#memory.deleteMemoryItems({ userId: this.userId, selection }, options)).deletedItems;
  }
}

type Selection = NonNullable<Parameters<ServiceClient<typeof MemoryService>["deleteMemoryItems"]>[0]["selection"]>;

/** What selects items on the wire. */
export function filterOf({ tags = [], where }: WhichItems): MessageInitShape<typeof MemoryItemFilterSchema> {
  const filter = where && whereOf(where);
  return { tags: [...tags], ...(filter && { where: filter }) };
}

function whereOf(where: NonNullable<WhichItems["where"]>): MessageInitShape<typeof FilterSchema> | undefined {
  requireObject(where, "where", "members and their values, or the fields of Filter");
  if (isFilter(where)) {
    return where;
  }
  const filters = Object.entries(where).map(([key, value]) => ({
    kind: {
      case: "condition" as const,
      value: {
        subject: { case: "key" as const, value: key },
        operator: Operator.EQ,
        values: [scalarOf(value, `where[${JSON.stringify(key)}]`)],
      },
    },
  }));
  return filters.length === 0 ? undefined : { kind: { case: "allOf", value: { filters } } };
}

function isFilter(where: object): where is MessageInitShape<typeof FilterSchema> {
  return "kind" in where && typeof where.kind === "object" && where.kind !== null;
}

function scalarOf(value: MemberValue, path: string): MessageInitShape<typeof ScalarSchema> {
  switch (typeof value) {
    case "string":
      return { kind: { case: "text", value } };
    case "boolean":
      return { kind: { case: "boolean", value } };
    case "bigint":
      return { kind: { case: "integer", value } };
    case "number":
      return { kind: { case: "number", value } };
    default:
      if (value === null) {
        return { kind: { case: "nullValue", value: 0 } };
      }
      throw otherType(path, value, "a string, a number, a bigint, a boolean or null");
  }
}

function itemOf(given: string | NewMemoryItem, place: number): Dated<MessageInitShape<typeof MemoryItemSchema>> {
  if (typeof given === "string") {
    return { text: given };
  }
  requireObject(given, `items[${place}]`, "the fields of MemoryItem");
  const { metadata, ...fields } = given;
  return { ...fields, ...(metadata && { metadata: encoded(metadata, `items[${place}].metadata`) }) };
}

function encoded(metadata: NonNullable<NewMemoryItem["metadata"]>, path: string): Uint8Array {
  if (metadata instanceof Uint8Array) {
    return metadata;
  }
  requireObject(metadata, path, "members that JSON can hold");
  try {
    return new TextEncoder().encode(JSON.stringify(metadata));
  } catch (error) {
    throw invalidField(
      path,
      `is nothing that JSON can hold: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}
