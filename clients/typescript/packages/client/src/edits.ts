// The edits that `Conversation.edit` applies, in order, all or none.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type { AppendedMessage } from "./conversation.js";
import type { EditSchema } from "./generated/remora/v1/conversation_service_pb.js";
import { MessageSchema } from "./generated/remora/v1/message_pb.js";
import { invalidField, otherType, requireKnown, requireRole, requireString } from "./refusals.js";
import { requireObject, requireShape } from "./shapes.js";
import type { Dated } from "./times.js";

const KINDS = ["append", "replace", "remove", "removeAll", "keep"] as const;

/** Which messages stay, by their positions in the conversation, as `Array.prototype.slice` counts them. */
export interface Kept {
  /** The position of the first; negative: counted from the end. Default: the first of all. */
  start?: number | undefined;
  /** The position of the first after them that goes; negative: counted from the end. Default: none does. */
  stop?: number | undefined;
}

/** One edit of the messages of a conversation: an object with one of these keys. */
export type Edit =
  /** Appends a message; if its id is already there, replaces that message. */
  | { append: AppendedMessage }
  /** Replaces the message with the id of this one; it keeps its sequence and createTime. */
  | { replace: AppendedMessage }
  /** Removes the message with this id. */
  | { remove: string }
  /** Removes all messages. */
  | { removeAll: true }
  /** Keeps a slice and removes the rest: `{ keep: { start: -20 } }`. */
  | { keep: Kept };

/** An edit on the wire. Throws InvalidFieldError and WrongTypeError for what is none. */
export function editToProto(edit: Edit, path: string): Dated<MessageInitShape<typeof EditSchema>> {
  const oneOf = `one of ${KINDS.join(", ")}`;
  requireObject(edit, path, oneOf);
  requireKnown(edit, KINDS, "edit", `${path}.`);
  const given = Object.keys(edit);
  if (given.length !== 1) {
    throw invalidField(path, `has ${given.join(" and ") || "no edit"}; it must have ${oneOf}`);
  }
  return { action: actionOf(edit, path) };
}

function actionOf(edit: Edit, path: string): NonNullable<Dated<MessageInitShape<typeof EditSchema>>["action"]> {
  if ("append" in edit) {
    requireMessage(edit.append, `${path}.append`);
    return { case: "append", value: edit.append };
  }
  if ("replace" in edit) {
    requireMessage(edit.replace, `${path}.replace`);
    return { case: "replace", value: edit.replace };
  }
  if ("remove" in edit) {
    requireString(edit.remove, `${path}.remove`);
    return { case: "remove", value: edit.remove };
  }
  if ("keep" in edit) {
    return { case: "keep", value: sliceOf(edit.keep, `${path}.keep`) };
  }
  if (edit.removeAll !== true) {
    throw otherType(`${path}.removeAll`, edit.removeAll, "true");
  }
  return { case: "removeAll", value: {} };
}

function requireMessage(message: AppendedMessage, path: string): void {
  requireShape(MessageSchema, message, path);
  requireRole(message.role, `${path}.role`);
}

function sliceOf(kept: Kept, path: string): { from?: bigint; to?: bigint } {
  requireObject(kept, path, "start and stop");
  requireKnown(kept, ["start", "stop"], "bound of a slice", `${path}.`);
  const { start, stop } = kept;
  return {
    ...(start !== undefined && { from: positionOf(start, `${path}.start`) }),
    ...(stop !== undefined && { to: positionOf(stop, `${path}.stop`) }),
  };
}

function positionOf(value: number, path: string): bigint {
  if (!Number.isSafeInteger(value)) {
    throw otherType(path, value, "a whole number");
  }
  return BigInt(value);
}
