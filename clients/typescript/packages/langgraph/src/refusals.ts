// Refusals in the names of LangGraph's arguments: the server says the fields of the contract.

import { InvalidFieldError, shown, WrongTypeError } from "@remora/client";

/** Patterns of fields, and what takes their place, applied one after the other. */
export type Names = readonly (readonly [RegExp, string])[];

/** Fields of operations on items. */
const OF_OPERATIONS: Names = [
  [/^(kind\.)?(put|delete|get\.key|search|listNamespaces)\./, ""],
  [/^(query\.)?(text|vector)$/, "query"],
  [/^vectors\[(\d+)\]\.(content\.)?text$/, "embedded text $1"],
  [/^vectors$/, "the list of embedded texts"],
  [/^matches\[(\d+)\]\.(kind\.)?(prefix|suffix)\.labels/, "matchConditions[$1].path"],
  [/^matches$/, "matchConditions"],
  [/^filter\..*\.text$/, "a text in filter"],
  [/^filter\..*\.steps\[\d+\]$/, "a name in filter"],
  [/^filter\..*\.steps$/, "a path in filter"],
  [/^filter\..*$/, "filter"],
];

/** Fields of checkpoints and of their writes. */
const OF_CHECKPOINTS: Names = [
  [/^checkpoints\[\d+\]\.checkpoint\.id$/, "checkpoint.id"],
  [/^checkpoints\[\d+\]\.checkpoint\.parentId$/, "checkpoint_id"],
  [/^(checkpoints\[\d+\]\.checkpoint|names\[\d+\]|writes\[\d+\](\.name)?|name)\./, ""],
  [/^threadId$/, "thread_id"],
  [/^checkpointNs$/, "checkpoint_ns"],
  [/^checkpointId$/, "checkpoint_id"],
  [/^userId$/, "user_id"],
  [/^runId$/, "run_id"],
];

const OF_LISTS: Names = [
  [/^beforeId$/, "before"],
  [/^pageSize$/, "limit"],
  [/^metadata$/, "filter"],
];

/** What a call failed with, where the server or the client refused fields: with the names that `nameOf` gives them. */
export function named(failure: unknown, nameOf: (field: string) => string): unknown {
  if (!(failure instanceof InvalidFieldError)) {
    return failure;
  }
  const { code, reason, metadata, requestId, cause } = failure;
  const fieldViolations = failure.fieldViolations.map((each) => ({ ...each, field: nameOf(each.field) }));
  const message = failure.fieldViolations.reduce(
    (text, { field }, place) => text.replace(field, () => fieldViolations[place]?.field ?? field),
    failure.message,
  );
  const Refused = failure.constructor as typeof InvalidFieldError;
  return new Refused(message, {
    ...{ code, reason, metadata, requestId, fieldViolations },
    ...(cause !== undefined && { cause }),
  });
}

/** The same for operations of a batch: `positionOf` says which one it was, where there are several. */
export function namedInBatch(failure: unknown, positionOf: (sent: number) => number | undefined): unknown {
  return named(failure, (field) => {
    const [, sent, within] = /^operations\[(\d+)\]\.(.+)$/.exec(field) ?? [];
    if (within === undefined) {
      return field;
    }
    const position = positionOf(Number(sent));
    const name = replaced(within, OF_OPERATIONS);
    return position === undefined ? name : `${name} of operations[${position}]`;
  });
}

/** The reply to a call about checkpoints. */
export async function aboutCheckpoints<Reply>(reply: Promise<Reply>): Promise<Reply> {
  try {
    return await reply;
  } catch (failure) {
    throw named(failure, (field) => replaced(field, OF_CHECKPOINTS));
  }
}

/** The replies to calls for a list of checkpoints. */
export async function* aboutLists<Reply>(replies: AsyncIterable<Reply>): AsyncGenerator<Reply> {
  try {
    yield* replies;
  } catch (failure) {
    throw named(failure, (field) => replaced(field, [...OF_CHECKPOINTS, ...OF_LISTS]));
  }
}

function replaced(field: string, names: Names): string {
  return names.reduce((name, [pattern, written]) => name.replace(pattern, written), field);
}

/** @throws TypeError for anything but a text. */
export function requireText(name: string, given: unknown): void {
  if (typeof given !== "string") {
    throw new TypeError(`${name} is ${shown(given)}; it must be a string.`);
  }
}

/** An argument that no call could be made with. */
export function invalidField(field: string, description: string): InvalidFieldError {
  return new InvalidFieldError(`${field} ${description}`, {
    code: "INVALID_ARGUMENT",
    reason: "INVALID_FIELD",
    fieldViolations: [{ field, description }],
  });
}

/** An argument of another type than the call takes. */
export function wrongType(field: string, value: unknown, expected: string): WrongTypeError {
  const description = `is ${shown(value)}; it must be ${expected}`;
  return new WrongTypeError(`${field} ${description}`, {
    code: "INVALID_ARGUMENT",
    reason: "WRONG_TYPE",
    fieldViolations: [{ field, description }],
  });
}
