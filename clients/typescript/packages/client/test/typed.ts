// Code of users, which is only type-checked: what is wrong with it has to be an error.

import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { type Message, Profile } from "../src/generated/v1.js";
import { type CallOptions, pages, Remora, timestampFromDate } from "../src/index.js";

export async function right(remora: Remora, options: CallOptions): Promise<Message[]> {
  const { revision } = await remora.conversations.appendMessages(
    { conversationId: "c", messages: [{ role: "user", text: "t", createTime: timestampFromDate(new Date()) }] },
    options,
  );
  remora.advanceTo(revision);
  const { hits } = await remora.memory.searchMessages({
    scope: { case: "userId", value: "u" },
    query: { case: "text", value: "t" },
    options: { profile: Profile.HYBRID },
  });
  const found = hits.flatMap(({ message }) => (message === undefined ? [] : [message]));
  for await (const page of pages(remora.conversations.listMessages, { conversationId: "c", minRevision: 1n })) {
    found.push(...page.messages);
  }
  return found;
}

/** What may be undefined is passed on as it is, also with `exactOptionalPropertyTypes`. */
export async function undecided(remora: Remora, signal: AbortSignal | undefined): Promise<void> {
  const timeoutMs: number | undefined = signal && 5;
  const chat = remora.conversation("c");
  await remora.conversations.getConversation({ conversationId: "c" }, { signal, timeoutMs });
  await chat.messages(5, { oldestFirst: signal?.aborted, view: signal && "all" }, { signal });
  await chat.context(500, { recall: signal?.aborted });
}

export async function wrong(remora: Remora): Promise<void> {
  // @ts-expect-error: the field has another name
  await remora.conversations.getConversation({ conversation_id: "c" });
  // @ts-expect-error: 64-bit integers are bigint
  await remora.conversations.getConversation({ conversationId: "c", minRevision: 1 });
  // @ts-expect-error: there is no such RPC
  await remora.conversations.getMessages({ conversationId: "c" });
  // @ts-expect-error: there is no such option
  await remora.conversations.getConversation({ conversationId: "c" }, { timeout: 1 });
  // @ts-expect-error: not a list
  for await (const _ of pages(remora.conversations.getConversation, { conversationId: "c" })) break;
  // @ts-expect-error: the tenant is a text
  new Remora({ tenant: 1 });
}

export async function conversations(remora: Remora): Promise<string[]> {
  const chat = remora.conversation("c", { userId: "u", title: "t", shortTerm: { type: "flush", ratio: 0.7 } });
  await chat.append([{ role: "user", text: "t" }]);
  const { items, receiptId } = await chat.context(500, { recall: { k: 3, profile: Profile.LEXICAL } });
  const { hits } = await chat.search("t", { k: 3, explain: true });
  await chat.summarize((instruction, text) => instruction + text, { ifOver: true });
  await chat.edit([{ append: { role: "user", text: "t" } }, { keep: { start: -20 } }], { allowMissing: true });
  await chat.edit({ remove: "m" }, {}, { requestId: "once" });
  const deleted: bigint = (await chat.deleteMessages("m")) + (await chat.clear()) + (await remora.user("u").delete());
  await remora.user("u").search("t", { k: Number(deleted) });
  const { reply } = await remora.receipts.replay(receiptId);
  const replayed = reply.case === "context" ? reply.value.items : [];
  return [...items, ...hits, ...replayed].map(({ message }) => message?.text ?? "");
}

export async function times(remora: Remora, time: Date | Timestamp): Promise<void> {
  const chat = remora.conversation("c");
  await chat.append({ role: "user", text: "t", sentTime: time });
  await chat.edit({ append: { role: "user", text: "t", sentTime: time } });
  await chat.messages(2, { sentAfter: time, receivedBefore: time });
  await chat.search("t", { filter: { sentAfter: time } });
  await chat.context(500, { facts: { times: { validAt: time } }, recall: { filter: { sentBefore: time } } });
  await remora.facts("u").add({ subject: "s", predicate: "p", object: "o", validFrom: time });
  await remora.facts("u").listFacts({ validAt: time, recordedAt: time });
  await remora.conversations.listMessages({ conversationId: "c", sentAfter: time });
  // @ts-expect-error: a text is no time
  await chat.messages(2, { sentAfter: "2020-01-01" });
}

export async function wrongConversations(remora: Remora): Promise<void> {
  // @ts-expect-error: keepTokens belongs to another policy
  remora.conversation("c", { shortTerm: { type: "flush", keepTokens: 5 } });
  // @ts-expect-error: there is no such policy
  remora.conversation("c", { shortTerm: { type: "forget" } });
  // @ts-expect-error: the conversation is the handle's
  await remora.conversation("c").context(500, { conversationId: "d" });
  // @ts-expect-error: there is no such edit
  await remora.conversation("c").edit({ delete: "m" });
  // @ts-expect-error: a search of all users has no user
  await remora.searchAllUsers("t", { userId: "u" });
  // @ts-expect-error: a summary is a text
  await remora.conversation("c").summarize(() => 5);
}
