// A context as OpenAI's chat messages: what a model is given. The Python client's `context.messages` are the same, but for what
// messages of other formats hold besides text, tool calls and results.

import { isMessage } from "@bufbuild/protobuf";
import {
  type AssembleContextResponse,
  AssembleContextResponseSchema,
  Section,
} from "./generated/remora/v1/memory_service_pb.js";
import type { Message } from "./generated/remora/v1/message_pb.js";
import { otherType } from "./refusals.js";

/** A part of a content. Other parts that a message was stored with, such as audio, are given as they are. */
export type ChatPart =
  { type: "text"; text: string } | { type: "image_url"; image_url: { url: string; detail?: "auto" | "low" | "high" } };

/** A call of a tool, with its arguments as the model wrote them. */
export interface ChatToolCall {
  id: string;
  type: "function";
  function: { name: string; arguments: string };
}

/** A chat message, as OpenAI's API and those like it take it. A role of your own is given as it was stored. */
export type ChatMessage =
  | { role: "system" | "developer"; content: string | { type: "text"; text: string }[]; name?: string }
  | { role: "user"; content: string | ChatPart[]; name?: string }
  | {
      role: "assistant";
      /** null: it only calls tools. */
      content: string | { type: "text"; text: string }[] | null;
      name?: string;
      tool_calls?: ChatToolCall[];
    }
  | { role: "tool"; content: string | { type: "text"; text: string }[]; tool_call_id: string };

/** What a message has besides its role, whichever it is. */
interface Fields {
  readonly role: string;
  readonly text: string;
  readonly name: string;
  readonly calls: readonly (readonly [id: string, name: string, written: string])[];
  readonly resultIds: readonly string[];
}

const FACTS: ReadonlySet<Section> = new Set([Section.STATIC_FACTS, Section.FACTS]);
const IN_SYSTEM: ReadonlySet<Section> = new Set([...FACTS, Section.SYSTEM, Section.RECALLED]);
/** Types of parts that are those of the Responses API, or of Anthropic's messages, and not of chat messages. */
const OTHERS_PARTS: ReadonlySet<unknown> = new Set([
  ...["input_text", "output_text", "input_image", "input_file"],
  ...["tool_use", "tool_result", "image", "document", "thinking", "redacted_thinking", "server_tool_use"],
  ...["web_search_tool_result", "code_execution_tool_result", "container_upload", "search_result"],
]);
const SYSTEM_ROLES: ReadonlySet<unknown> = new Set(["system", "developer"]);

/**
 * The messages of a context for a chat model, in order, ready to send. Facts and recalled messages are in the message that
 * quotes them, which takes their place; a transcript is one message of the role `user`. A message whose `parts` are OpenAI's
 * JSON of it is that JSON; any other has its text, its tool calls and the results of tools, without images.
 *
 * @throws WrongTypeError for what is no context, such as a promise of one.
 */
export function chatMessages(context: AssembleContextResponse): ChatMessage[] {
  if (!isMessage(context, AssembleContextResponseSchema)) {
    throw otherType("context", context, "what context() resolves to");
  }
  return joined(sent(context).flatMap(chatMessagesOf)) as ChatMessage[];
}

/** A chat message, and whether it was written anew, because its message is in another format. */
interface Written {
  readonly message: Record<string, unknown>;
  readonly isNew: boolean;
}

/** The messages, those next to each other as one that were written anew and call tools: results must follow right after. */
function joined(written: readonly Written[]): object[] {
  const done: Written[] = [];
  for (const { message, isNew } of written) {
    const last = done.at(-1);
    if (isNew && last?.isNew && "tool_calls" in message && "tool_calls" in last.message) {
      done[done.length - 1] = { isNew, message: together(last.message, message) };
    } else {
      done.push({ message, isNew });
    }
  }
  return done.map(({ message }) => message);
}

function together(first: Written["message"], second: Written["message"]): Written["message"] {
  const texts = [first.content, second.content].filter((text) => typeof text === "string" && text !== "");
  const calls = [...recordsOf(first.tool_calls), ...recordsOf(second.tool_calls)];
  return { ...first, content: texts.join("\n") || null, tool_calls: calls };
}

type Spoken = Pick<Message, "role" | "text"> & Partial<Message>;

/** The messages that a model is sent. One that quotes items takes the place of all of them. */
function sent(context: AssembleContextResponse): Spoken[] {
  if (context.text !== "") {
    return [{ role: "user", text: context.text }];
  }
  const found: Spoken[] = [];
  let last: Spoken | undefined;
  for (const { section, message } of context.items) {
    const quoting = quotes(context, section);
    const next = quoting ?? message;
    if (next !== undefined && (quoting === undefined || quoting !== last)) {
      found.push(next);
    }
    last = quoting;
  }
  return found;
}

/** The message that takes the place of a section's items; undefined if they stand by themselves. */
function quotes({ memory, earlier }: AssembleContextResponse, section: Section): Message | undefined {
  if (FACTS.has(section) || (memory?.role === "system" && IN_SYSTEM.has(section))) {
    return memory;
  }
  return section === Section.RECALLED ? earlier : undefined;
}

function chatMessagesOf(message: Spoken): Written[] {
  const fields = fieldsOf(message);
  const { role, text, calls, resultIds } = fields;
  const stored = storedAs(message.parts, fields);
  if (stored !== undefined) {
    return [{ message: stored, isNew: false }];
  }
  if (resultIds.length === 0 || (role === "tool" && resultIds.length === 1)) {
    return [{ message: rendered(fields), isNew: isOtherFormat(message.parts) }];
  }
  const results = resultIds.map((id, place) => ({ role: "tool", tool_call_id: id, content: place === 0 ? text : "" }));
  const called = calls.length === 0 ? [] : [rendered({ ...fields, text: "", resultIds: [] })];
  return [...results, ...called].map((each) => ({ message: each, isNew: true }));
}

/** Whether a message was stored as JSON of another format than chat messages, such as an item of the Responses API. */
function isOtherFormat(parts: Uint8Array | undefined): boolean {
  const stored = parts === undefined || parts.length === 0 ? undefined : parsed(decoded(parts));
  return isRecord(stored) && !isChatMessage(stored);
}

/** The chat message that the fields make. */
function rendered({ role, text, name, calls, resultIds }: Fields): Record<string, unknown> {
  return {
    role,
    content: calls.length > 0 && text === "" ? null : text,
    ...(name !== "" && { name }),
    ...(calls.length > 0 && {
      tool_calls: calls.map(([id, tool, written]) => ({
        ...{ id, type: "function" },
        function: { name: tool, arguments: written },
      })),
    }),
    ...(role === "tool" && resultIds.length === 1 && { tool_call_id: resultIds[0] }),
  };
}

function fieldsOf({ role, text, name = "", toolCalls = [], toolResultIds: resultIds = [] }: Spoken): Fields {
  const calls = toolCalls.map((call) => [call.id, call.name, decoded(call.arguments)] as const);
  return { role, text, name, calls, resultIds };
}

const decoded = (bytes: Uint8Array) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);

/** The chat message in JSON that a message was made from, if OpenAI takes it; undefined for any other parts. */
function storedAs(parts: Uint8Array | undefined, fields: Fields): Record<string, unknown> | undefined {
  const stored = parts === undefined || parts.length === 0 ? undefined : parsed(decoded(parts));
  if (!isRecord(stored) || !isChatMessage(stored) || isNothing(stored)) {
    return undefined;
  }
  return JSON.stringify(said(stored)) === JSON.stringify(fields) ? stored : undefined;
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return undefined; // a framework's own form need not be JSON
  }
}

type JsonObject = Readonly<Record<string, unknown>>;

const isRecord = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const recordOf = (value: unknown): JsonObject => (isRecord(value) ? value : {});
const recordsOf = (value: unknown): JsonObject[] => (Array.isArray(value) ? value.map(recordOf) : []);
const stringOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** Whether it is in no other format that has roles. */
function isChatMessage(stored: JsonObject): boolean {
  const isReply = stored.type === "message" && "stop_reason" in stored;
  return typeof stored.role === "string" && !isReply && !recordsOf(stored.content).some(isOthers);
}

const isOthers = ({ type }: JsonObject) => OTHERS_PARTS.has(type);

/** Whether it is an assistant's that neither says nor calls anything, which OpenAI refuses. */
function isNothing({ role, name: _, content, ...rest }: JsonObject): boolean {
  return role === "assistant" && (content ?? null) === null && Object.values(rest).every(isEmpty);
}

const isEmpty = (value: unknown) => !value || (typeof value === "object" && Object.keys(value).length === 0);

/** What a chat message says, as its fields would have it. */
function said(stored: JsonObject): Fields {
  const { role, content, refusal, tool_calls, tool_call_id: id } = stored;
  const texts = typeof content === "string" ? [content] : recordsOf(content).map(textOf);
  return {
    role: SYSTEM_ROLES.has(role) ? "system" : stringOf(role),
    text: [...texts, stringOf(refusal)].filter((text) => text !== "").join("\n"),
    name: stringOf(stored.name),
    calls: recordsOf(tool_calls).flatMap(callOf),
    resultIds: role === "tool" && typeof id === "string" && id !== "" ? [id] : [],
  };
}

function textOf({ type, ...part }: JsonObject): string {
  return type === "text" || type === "refusal" ? stringOf(part[type]) : "";
}

function callOf({ id, ...call }: JsonObject): Fields["calls"] {
  const [tool, written] = isRecord(call.function)
    ? [call.function, call.function.arguments]
    : [recordOf(call.custom), recordOf(call.custom).input];
  if (typeof id !== "string" || id === "" || typeof tool.name !== "string" || tool.name === "") {
    return [];
  }
  return [[id, tool.name, typeof written === "string" ? written : (JSON.stringify(written) ?? "")]];
}
