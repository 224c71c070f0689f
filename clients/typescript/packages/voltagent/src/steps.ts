// Steps of VoltAgent's conversations as those of Remora, and back.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { shown } from "@remora/client";
import { type Step, type StepSchema, StepType } from "@remora/client/v1";
import type { ConversationStepRecord } from "@voltagent/core";
import { userOf } from "./conversations.js";
import { decodeJson } from "./json.js";
import { shortened, storedPart } from "./telemetry-sizes.js";
import { isoOf, timestampOf } from "./times.js";

const TYPES = {
  text: StepType.TEXT,
  tool_call: StepType.TOOL_CALL,
  tool_result: StepType.TOOL_RESULT,
} as const satisfies Record<ConversationStepRecord["type"], StepType>;
const NAMES = new Map(Object.entries(TYPES).map(([name, type]) => [type as StepType, name]));

const LARGEST_NAME_BYTES = 512;
const LARGEST_CONTENT_BYTES = 1024 * 1024;
const LARGEST_USAGE_BYTES = 65_536;

/** The step that a record is stored as. Of what is too long the beginning is kept: VoltAgent would lose all steps of the turn. */
export function storedStep(record: ConversationStepRecord): MessageInitShape<typeof StepSchema> {
  const createTime = timestampOf(record.createdAt);
  return {
    id: record.id,
    conversationId: record.conversationId,
    userId: userOf(record.userId),
    agentId: record.agentId,
    agentName: shortened(record.agentName, LARGEST_NAME_BYTES),
    operationId: record.operationId,
    stepIndex: record.stepIndex,
    ...storedType(record.type),
    role: record.role,
    content: shortened(record.content, LARGEST_CONTENT_BYTES),
    arguments: storedPart(record.arguments),
    result: storedPart(record.result),
    usage: storedPart(record.usage, LARGEST_USAGE_BYTES),
    subAgentId: record.subAgentId ?? "",
    subAgentName: shortened(record.subAgentName, LARGEST_NAME_BYTES),
    ...(createTime && { createTime }),
  };
}

/** The record that was stored. */
export function stepRecord(step: Step): ConversationStepRecord {
  const type = NAMES.get(step.type) ?? step.otherType;
  const rest = {
    agentName: step.agentName || undefined,
    content: step.content || (type === "text" ? "" : undefined),
    arguments: decodeJson(step.arguments),
    result: decodeJson(step.result),
    usage: decodeJson(step.usage),
    subAgentId: step.subAgentId || undefined,
    subAgentName: step.subAgentName || undefined,
  };
  return {
    id: step.id,
    conversationId: step.conversationId,
    userId: step.userId,
    agentId: step.agentId,
    operationId: step.operationId,
    stepIndex: step.stepIndex,
    type: type as ConversationStepRecord["type"],
    role: step.role as ConversationStepRecord["role"],
    createdAt: isoOf(step.createTime),
    ...present(rest),
  } as ConversationStepRecord;
}

/** VoltAgent's own stores keep a type that its types do not name, too. Throws TypeError for what is no text. */
function storedType(type: string): Pick<MessageInitShape<typeof StepSchema>, "type" | "otherType"> {
  if (typeof type !== "string") {
    throw new TypeError(`type is ${shown(type)}; it must be a text, such as ${Object.keys(TYPES).join(", ")}`);
  }
  return Object.hasOwn(TYPES, type)
    ? { type: TYPES[type as keyof typeof TYPES] }
    : { type: StepType.OTHER, otherType: type };
}

/** The properties that are not `undefined`. */
export function present<T extends object>(values: T): Partial<T> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as Partial<T>;
}
