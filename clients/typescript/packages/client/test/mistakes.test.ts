// Wrong calls, and what answers them before anything is sent.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { ClientConnection, Remora } from "@remora/client";

type Call = (remora: Remora) => unknown;

/** JavaScript checks no types; what is wrong here is refused when it runs. */
const wrong = (value: unknown) => value as never;

function circle(): object {
  const made: { self?: object } = {};
  made.self = made;
  return made;
}

const chat = (remora: Remora) => remora.conversation("c", { userId: "ana" });

const CONTEXT_OPTIONS =
  "allowPartial, encoding, facts, includeUnrelated, indexWait, merge, minRevision, query, queryEmbedding, recall, " +
  "recentMessages, rendering, searchUserScope, shares, staticFacts, system, withoutReceipt, workingMemory";

const SEARCH_OPTIONS =
  "explain, filter, indexWait, k, minRevision, pageToken, profile, recencyHalfLife, threshold, weights, withoutReceipt";

const MESSAGE_FIELDS =
  "attributes, embedding, id, media, metadata, name, parts, role, sentTime, sessionId, text, toolCalls, toolResultIds";

const MISTAKES: readonly (readonly [what: string, call: Call, answer: RegExp])[] = [
  ["a relative socket as a URL", () => new Remora({ endpoint: "unix://run/s" }), /^InvalidFieldError: endpoint is /],
  [
    "a timeout as text",
    () => new Remora({ timeoutMs: wrong("5") }),
    /^WrongTypeError: timeoutMs is "5"; it must be a /,
  ],
  [
    "TLS that is switched on",
    () => new Remora({ endpoint: "localhost:1", tls: wrong(true) }),
    /^WrongTypeError: tls is true; it must be an object with ca, cert, key or serverName$/,
  ],
  [
    "an option that TLS does not have",
    () => new Remora({ endpoint: "localhost:1", tls: wrong({ caFile: "ca.pem" }) }),
    /^InvalidFieldError: tls\.caFile is no option of tls; there are ca, cert, key, serverName$/,
  ],
  [
    "an endpoint as a client",
    () => new ClientConnection({ client: wrong("localhost:1") }),
    /^WrongTypeError: client: must be a client, such as new Remora\(\{ endpoint \}\)$/,
  ],
  [
    "options as a client",
    () => new ClientConnection({ client: wrong({ endpoint: "localhost:1", token: "secret" }) }),
    /^WrongTypeError: client: must be a client, such as new Remora\(\{ endpoint \}\)$/,
  ],
  ["a token that is no text", () => new Remora({ token: wrong(5) }), /^WrongTypeError: token: must be a string$/],
  [
    "no id",
    (remora) => remora.conversation(wrong(undefined)),
    /^WrongTypeError: conversationId is undefined; it must /,
  ],
  [
    "a text as a message",
    (remora) => chat(remora).append(wrong("hi")),
    /^WrongTypeError: messages\[0\] is "hi"; it must /,
  ],
  [
    "OpenAI's content",
    (remora) => chat(remora).append(wrong({ role: "user", content: "hi" })),
    /^InvalidFieldError: messages\[0\]\.content is no field of Message; did you mean text\?$/,
  ],
  [
    "a field that no message has",
    (remora) => chat(remora).append(wrong({ role: "user", colour: "red" })),
    new RegExp(`^InvalidFieldError: messages\\[0\\]\\.colour is no field of Message; there are ${MESSAGE_FIELDS}$`),
  ],
  [
    "a time by another's name, which is like one of the server's",
    (remora) => chat(remora).append(wrong({ role: "user", text: "hi", createdAt: new Date() })),
    /^InvalidFieldError: messages\[0\]\.createdAt is no field of Message; did you mean sentTime\?$/,
  ],
  [
    "a number as a text",
    (remora) => chat(remora).append({ role: "user", text: wrong(5) }),
    /^WrongTypeError: messages\[0\]\.text is 5; it must be a string$/,
  ],
  [
    "milliseconds as a time",
    (remora) => chat(remora).append({ role: "user", text: "hi", sentTime: wrong(1_600_000_000_000) }),
    /^WrongTypeError: messages\[0\]\.sentTime is 1600000000000; it must be a valid Date or a Timestamp$/,
  ],
  [
    "a date that is none as a bound of a list",
    (remora) => chat(remora).messages(10, { sentAfter: new Date(Number.NaN) }),
    /^WrongTypeError: sentAfter is "Invalid Date"; it must be a valid Date or a Timestamp$/,
  ],
  [
    "a Date in place of a duration",
    (remora) => chat(remora).search("PIN", { indexWait: wrong(new Date(0)) }),
    /^WrongTypeError: indexWait is a Date; it must be an object with the fields of Duration$/,
  ],
  [
    "a bare attribute",
    (remora) => chat(remora).append({ role: "user", text: "hi", attributes: { topic: wrong("visa") } }),
    /^WrongTypeError: messages\[0\]\.attributes\["topic"\] is "visa"; it must be an object with the fields of Scalar$/,
  ],
  [
    "metadata as an object",
    (remora) => chat(remora).append({ role: "user", text: "hi", metadata: wrong({ a: 1 }) }),
    /^WrongTypeError: messages\[0\]\.metadata is \{"a":1\}; it must be a Uint8Array$/,
  ],
  [
    "a template and a schema",
    (remora) => chat(remora).workingMemory.using({ template: "# Notes", schema: {} }),
    /^InvalidFieldError: schema is given beside template; give one of them$/,
  ],
  [
    "a schema beside the template of the handle",
    (remora) => chat(remora).workingMemory.using({ template: "# Notes" }).edit("{}", { schema: {} }),
    /^InvalidFieldError: schema is given beside template; give one of them$/,
  ],
  [
    "JSON where there is a template",
    (remora) => chat(remora).workingMemory.using({ template: "# Notes" }).edit({}),
    /^InvalidFieldError: content must be text, because this working memory has a template$/,
  ],
  [
    "an empty template",
    (remora) => chat(remora).workingMemory.using({ template: "" }),
    /^InvalidFieldError: template is empty; give one, or leave it out$/,
  ],
  [
    "a schema as text",
    (remora) => chat(remora).workingMemory.using({ schema: wrong("{}") }),
    /^WrongTypeError: schema is "\{\}"; it must be an object with the members of a JSON Schema$/,
  ],
  [
    "an option that no form has",
    (remora) => chat(remora).workingMemory.using(wrong({ templates: "# Notes" })),
    /^InvalidFieldError: templates is no option; did you mean template\?$/,
  ],
  [
    "a mode that no edit has",
    (remora) => chat(remora).workingMemory.edit("x", { mode: wrong("add") }),
    /^InvalidFieldError: mode is "add"; it must be "replace" or "append"$/,
  ],
  [
    "a number that JSON does not have",
    (remora) => chat(remora).workingMemory.edit({ budget: Number.NaN }),
    /^InvalidFieldError: content cannot be stored as JSON: NaN is not a number of JSON; give what JSON can hold$/,
  ],
  [
    "nothing as a content",
    (remora) => chat(remora).workingMemory.set(wrong(undefined)),
    /^InvalidFieldError: content cannot be stored as JSON; give what JSON can hold$/,
  ],
  [
    "an option that no call has",
    (remora) => chat(remora).append({ role: "user", text: "hi" }, wrong({ timeout: 5 })),
    /^InvalidFieldError: timeout is no option of a call; did you mean timeoutMs\?$/,
  ],
  ...[
    (remora: Remora) => chat(remora).messages(10, {}, { requestId: "x" }),
    (remora: Remora) => chat(remora).search("PIN", {}, { requestId: "x" }),
    (remora: Remora) => chat(remora).context(4000, {}, { requestId: "x" }),
    (remora: Remora) => remora.text.countTokens({ texts: ["x"] }, { requestId: "x" }),
  ].map(
    (call) =>
      [
        `a request id of what does not write: ${String(call)}`,
        call,
        /^InvalidFieldError: requestId is for writes; \w+ takes none, leave it out$/,
      ] as const,
  ),
  ...[
    (remora: Remora) => chat(remora).summarize(() => "x", {}, { requestId: "x" }),
    (remora: Remora) => remora.facts("ana").extractFrom("c", {}, { requestId: "x" }),
    (remora: Remora) => remora.blocks("ana").update("c", "I like tea.", { requestId: "x" }),
    (remora: Remora) => remora.blocks("ana").delete("c", { requestId: "x" }),
  ].map(
    (call) =>
      [
        `a request id of what writes several times: ${String(call)}`,
        call,
        /^InvalidFieldError: requestId is for one write, and this call makes several; leave it out$/,
      ] as const,
  ),
  [
    "an empty request id",
    (remora) => chat(remora).append({ role: "user", text: "hi" }, { requestId: "" }),
    /^InvalidFieldError: requestId is empty; give one of 1 to 128 bytes, or leave it out$/,
  ],
  [
    "a number as a request id",
    (remora) => chat(remora).append({ role: "user", text: "hi" }, { requestId: wrong(5) }),
    /^WrongTypeError: requestId is 5; it must be a string$/,
  ],
  [
    "a conversation without a name, whose messages would be all of a user's",
    (remora) => remora.conversation("", { userId: "ana" }),
    /^InvalidFieldError: conversationId is empty; it must have 1 to 512 bytes$/,
  ],
  [
    "a user without a name",
    (remora) => remora.user(""),
    /^InvalidFieldError: userId is empty; it must have 1 to 512 bytes$/,
  ],
  [
    "nobody's messages to search",
    (remora) => remora.user(wrong(undefined)),
    /^WrongTypeError: userId is undefined; it must be a string$/,
  ],
  [
    "another's name for k in a search of a user",
    (remora) => remora.user("ana").search("PIN", wrong({ topK: 3 })),
    /^InvalidFieldError: topK is no option of a search; did you mean k\?$/,
  ],
  [
    "a user in a search of all",
    (remora) => remora.searchAllUsers("PIN", wrong({ userId: "ana" })),
    new RegExp(`^InvalidFieldError: userId is no option of a search; there are ${SEARCH_OPTIONS}$`),
  ],
  [
    "no ids to delete",
    (remora) => chat(remora).deleteMessages(wrong(undefined)),
    /^WrongTypeError: messageIds is undefined; it must be an id or an array of ids$/,
  ],
  [
    "options of a call as those of a deletion",
    (remora) => chat(remora).delete(wrong({ timeoutMs: 5 })),
    /^InvalidFieldError: timeoutMs is no option; there are allowMissing$/,
  ],
  [
    "no edit",
    (remora) => chat(remora).edit({} as never),
    /^InvalidFieldError: edits\[0\] has no edit; it must have one of append, replace, remove, removeAll, keep$/,
  ],
  [
    "two edits in one",
    (remora) => chat(remora).edit([{ remove: "x" }, { remove: "y", removeAll: true }]),
    /^InvalidFieldError: edits\[1\] has remove and removeAll; it must have one of append, /,
  ],
  [
    "an edit that there is not",
    (remora) => chat(remora).edit(wrong({ delete: "x" })),
    /^InvalidFieldError: edits\[0\]\.delete is no edit; there are append, keep, remove, removeAll, replace$/,
  ],
  [
    "OpenAI's content in an edit",
    (remora) => chat(remora).edit({ append: wrong({ role: "user", content: "hi" }) }),
    /^InvalidFieldError: edits\[0\]\.append\.content is no field of Message; did you mean text\?$/,
  ],
  [
    "a message in place of its id",
    (remora) => chat(remora).edit({ remove: wrong({ id: "x" }) }),
    /^WrongTypeError: edits\[0\]\.remove is \{"id":"x"\}; it must be a string$/,
  ],
  [
    "no removal of all",
    (remora) => chat(remora).edit({ removeAll: wrong(false) }),
    /^WrongTypeError: edits\[0\]\.removeAll is false; it must be true$/,
  ],
  [
    "a part of a position",
    (remora) => chat(remora).edit({ keep: { start: -1.5 } }),
    /^WrongTypeError: edits\[0\]\.keep\.start is -1.5; it must be a whole number$/,
  ],
  [
    "a number as a slice",
    (remora) => chat(remora).edit({ keep: wrong(5) }),
    /^WrongTypeError: edits\[0\]\.keep is 5; it must be an object with start and stop$/,
  ],
  [
    "a controller as its signal",
    (remora) => chat(remora).append({ role: "user", text: "hi" }, { signal: wrong(new AbortController()) }),
    /^WrongTypeError: signal is \{\}; it must be an AbortSignal$/,
  ],
  [
    "a bigint as a timeout",
    (remora) => chat(remora).append({ role: "user", text: "hi" }, { timeoutMs: wrong(5n) }),
    /^WrongTypeError: timeoutMs is 5n; it must be a number$/,
  ],
  [
    "what is in a circle",
    (remora) => chat(remora).append({ role: "user", text: wrong(circle()) }),
    /^WrongTypeError: messages\[0\]\.text is <ref \*1> \{ self: \[Circular \*1\] \}; it must be a string$/,
  ],
  [
    "no number as a limit",
    (remora) => chat(remora).messages(Number.NaN),
    /^WrongTypeError: limit is NaN; it must be a number$/,
  ],
  [
    "a limit as text",
    (remora) => chat(remora).messages(wrong("10")),
    /^WrongTypeError: limit is "10"; it must be a number$/,
  ],
  [
    "a role as roles",
    (remora) => chat(remora).messages(10, { roles: wrong("user") }),
    /^WrongTypeError: roles is "user"; /,
  ],
  [
    "a view",
    (remora) => chat(remora).messages(10, { view: wrong("every") }),
    /^InvalidFieldError: view is "every"; it must /,
  ],
  [
    "a misspelt role",
    (remora) =>
      chat(remora).append([
        { role: "user", text: "x" },
        { role: "asistant", text: "x" },
      ]),
    /^InvalidFieldError: messages\[1\]\.role is "asistant"; did you mean assistant\?$/,
  ],
  [
    "a role in capitals",
    (remora) => chat(remora).append({ role: "User", text: "x" }),
    /^InvalidFieldError: messages\[0\]\.role is "User"; did you mean user\?$/,
  ],
  [
    "no messages",
    (remora) => chat(remora).append([]),
    /^InvalidFieldError: messages is \[\]; it must have 1 to 1,000 messages$/,
  ],
  [
    "a budget of nothing",
    (remora) => chat(remora).context(0),
    /^InvalidFieldError: maxTokens is 0; it must be at least 1$/,
  ],
  [
    "the name of a rendering",
    (remora) => chat(remora).context(100, { rendering: wrong("system_prompt") }),
    /^WrongTypeError: rendering is "system_prompt"; it must be a Rendering of @remora\/client\/v1: Rendering\.MESSAGES, Rendering\.TRANSCRIPT or Rendering\.SYSTEM_PROMPT$/,
  ],
  [
    "the name of a merge",
    (remora) => chat(remora).context(100, { merge: wrong("earlier") }),
    /^WrongTypeError: merge is "earlier"; it must be a Merge of @remora\/client\/v1: Merge\.APPEND, .* or Merge\.EARLIER$/,
  ],
  [
    "LangChain's role",
    (remora) => chat(remora).append({ role: "human", text: "x" }),
    /^InvalidFieldError: messages\[0\]\.role is "human"; did you mean user\?$/,
  ],
  [
    "LangChain's other role",
    (remora) => chat(remora).append({ role: "ai", text: "x" }),
    /^InvalidFieldError: messages\[0\]\.role is "ai"; did you mean assistant\?$/,
  ],
  [
    "Gemini's role",
    (remora) => chat(remora).append({ role: "model", text: "x" }),
    /^InvalidFieldError: messages\[0\]\.role is "model"; did you mean assistant\?$/,
  ],
  [
    "LangChain's role in an edit",
    (remora) => chat(remora).edit({ append: { role: "human", text: "x" } }),
    /^InvalidFieldError: edits\[0\]\.append\.role is "human"; did you mean user\?$/,
  ],
  [
    "a misspelt role in an edit",
    (remora) => chat(remora).edit({ replace: { id: "m", role: "asistant", text: "x" } }),
    /^InvalidFieldError: edits\[0\]\.replace\.role is "asistant"; did you mean assistant\?$/,
  ],
  [
    "no query",
    (remora) => chat(remora).search(wrong(undefined)),
    /^WrongTypeError: query is undefined; it must be a string, or a vector that embedding\(model, values\) makes$/,
  ],
  [
    "another's name for k",
    (remora) => chat(remora).search("PIN", wrong({ topK: 3 })),
    /^InvalidFieldError: topK is no option of a search; did you mean k\?$/,
  ],
  [
    "a misspelt option of a search",
    (remora) => chat(remora).search("PIN", wrong({ explian: true })),
    /^InvalidFieldError: explian is no option of a search; did you mean explain\?$/,
  ],
  [
    "an option that no search has",
    (remora) => chat(remora).search("PIN", wrong({ colour: "red" })),
    new RegExp(`^InvalidFieldError: colour is no option of a search; there are ${SEARCH_OPTIONS}$`),
  ],
  [
    "null in place of the options of a search",
    (remora) => chat(remora).search("PIN", wrong(null)),
    new RegExp(`^WrongTypeError: options is null; it must be an object with ${SEARCH_OPTIONS}$`),
  ],
  [
    "a misspelt option of a context",
    (remora) => chat(remora).context(4000, wrong({ recal: false })),
    /^InvalidFieldError: recal is no option of a context; did you mean recall\?$/,
  ],
  [
    "the closest of names that are alike",
    (remora) => chat(remora).messages(10, wrong({ receivedBefor: new Date() })),
    /^InvalidFieldError: receivedBefor is no option of a list; did you mean receivedBefore\?$/,
  ],
  [
    "a name from elsewhere that is no own one of a table",
    (remora) => chat(remora).search("PIN", wrong({ constructor: 5 })),
    /^InvalidFieldError: constructor is no option of a search; there are explain, /,
  ],
  [
    "an address by another's name",
    () => new Remora(wrong({ url: "localhost:7411" })),
    /^InvalidFieldError: url is no option; did you mean endpoint\?$/,
  ],
  ["no hits", (remora) => chat(remora).search("PIN", { k: 0 }), /^InvalidFieldError: k is 0; it must be at least 1$/],
  [
    "no hits in a context",
    (remora) => chat(remora).context(4000, { recall: { k: 0 } }),
    /^InvalidFieldError: recall\.k is 0; it must be at least 1$/,
  ],
  [
    "no facts",
    (remora) => remora.facts("ana").search("PIN", { k: 0 }),
    /^InvalidFieldError: k is 0; it must be at least 1$/,
  ],
  [
    "a profile by its name",
    (remora) => chat(remora).search("PIN", { profile: wrong("hybrid") }),
    /^WrongTypeError: options\.profile is "hybrid"; it must be a Profile of @remora\/client\/v1: Profile\.HYBRID, .* or Profile\.HYBRID_LATE$/,
  ],
  [
    "a filter as an object",
    (remora) => chat(remora).messages(10, { filter: wrong({ topic: "visa" }) }),
    /^InvalidFieldError: filter\.topic is no field of Filter; there are kind$/,
  ],
  ...[{ conversationId: "d", userId: "tom" }, { maxTokens: 5 }, { search: { k: 1 } }].map(
    (what) =>
      [
        `what the handle or the call itself says of a context: ${Object.keys(what).join(" and ")}`,
        (remora: Remora) => chat(remora).context(4000, wrong(what)),
        new RegExp(
          `^InvalidFieldError: ${Object.keys(what)[0]} is no option of a context; there are ${CONTEXT_OPTIONS}$`,
        ),
      ] as const,
  ),
  [
    "an unknown option of recall",
    (remora) => chat(remora).context(4000, { recall: wrong({ topK: 3 }) }),
    /^InvalidFieldError: recall\.topK is no option of a search; did you mean k\?$/,
  ],
  [
    "a misspelt option, with which facts would be added",
    (remora) => remora.facts("ana").extract("I like tea.", wrong({ dryrun: true })),
    /^InvalidFieldError: dryrun is no option; did you mean dryRun\?$/,
  ],
  [
    "the same of a conversation",
    (remora) => remora.facts("ana").extractFrom("c", wrong({ dry_run: true })),
    /^InvalidFieldError: dry_run is no option; did you mean dryRun\?$/,
  ],
  [
    "a scope by its field",
    (remora) => remora.memory.searchMessages(wrong({ userId: "ana", text: "PIN" })),
    /^InvalidFieldError: userId is no field of SearchMessagesRequest; there are explain, .* scope, /,
  ],
  [
    "a scope that there is not",
    (remora) => remora.memory.searchMessages({ scope: wrong({ case: "user", value: "ana" }) }),
    /^InvalidFieldError: scope\.case is "user"; it must be conversation or userId or tenant$/,
  ],
  [
    "a scope without its value",
    (remora) => remora.memory.searchMessages({ scope: wrong({ case: "userId" }) }),
    /^WrongTypeError: scope\.userId is undefined; it must be a string$/,
  ],
  [
    "a text as options",
    () => new Remora(wrong("unix:/s")),
    /^WrongTypeError: options is "unix:\/s"; it must be an object with agentId, endpoint, /,
  ],
  [
    "null as options",
    () => new Remora(wrong(null)),
    /^WrongTypeError: options is null; it must be an object with agentId, /,
  ],
  [
    "an agent that is no text",
    () => new Remora({ agentId: wrong(5) }),
    /^WrongTypeError: agentId is 5; it must be a string$/,
  ],
  [
    "the user as options of a conversation",
    (remora) => remora.conversation("c", wrong("ana")),
    /^WrongTypeError: options is "ana"; it must be an object with attributes, .* userId$/,
  ],
  [
    "a policy by its name",
    (remora) => remora.conversation("c", { shortTerm: wrong("trim") }),
    /^WrongTypeError: shortTerm is "trim"; it must be an object with a type, such as \{ type: "trim" \}$/,
  ],
  ...(["messages", "search", "context"] as const).map(
    (name) =>
      [
        `null as options of ${name}`,
        (remora: Remora) => chat(remora)[name](wrong(name === "search" ? "x" : 10), wrong(null)),
        /^WrongTypeError: options is null; it must be an object with /,
      ] as const,
  ),
  [
    "null as options of a call",
    (remora) => chat(remora).append({ role: "user", text: "hi" }, wrong(null)),
    /^WrongTypeError: options is null; it must be an object with requestId, signal, timeoutMs$/,
  ],
  [
    "a number as options of a call",
    (remora) => chat(remora).get(wrong(5)),
    /^WrongTypeError: options is 5; it must be an object with requestId, signal, timeoutMs$/,
  ],
  ["nothing to update", (remora) => chat(remora).update(wrong(undefined)), /^WrongTypeError: options is undefined; /],
  [
    "null as options of a summary",
    (remora) => chat(remora).summarize(() => "x", wrong(null)),
    /^WrongTypeError: options is null; it must be an object with ifOver, keepMessages, model$/,
  ],
  [
    "an option that no list has",
    (remora) => chat(remora).messages(10, wrong({ limit: 5 })),
    /^InvalidFieldError: limit is no option of a list; there are .*oldestFirst, .* view$/,
  ],
  [
    "a part of a message",
    (remora) => chat(remora).messages(1.5),
    /^InvalidFieldError: limit is 1.5; it must be a whole number/,
  ],
  [
    "fewer than none",
    (remora) => chat(remora).messages(-1),
    /^InvalidFieldError: limit is -1; it must be a whole number/,
  ],
  ["an empty query", (remora) => chat(remora).search(""), /^InvalidFieldError: query is empty; it must have 1 to /],
  [
    "a part of a hit",
    (remora) => chat(remora).search("x", { k: 1.5 }),
    /^WrongTypeError: options.k is 1.5; it must be a whole number of at most 2147483647$/,
  ],
  [
    "a budget that is no number",
    (remora) => chat(remora).context(Number.NaN),
    /^WrongTypeError: maxTokens is NaN; it must be a whole number /,
  ],
  [
    "a message that is still promised",
    (remora) => chat(remora).append(wrong(Promise.resolve({ role: "user", text: "hi" }))),
    /^WrongTypeError: messages\[0\] is Promise .*; it must be an object with the fields of Message: await it$/,
  ],
  [
    "messages in a set",
    (remora) => chat(remora).append(wrong(new Set([1]))),
    /^WrongTypeError: messages\[0\] is Set\(1\) \{ 1 \}; it must be .*: an array is made of it by \[...it\]$/,
  ],
  [
    "facts of nobody",
    (remora) => remora.facts(wrong(undefined)),
    /^WrongTypeError: userId is undefined; it must be a string$/,
  ],
  [
    "a text as a time",
    (remora) => remora.facts("ana").listFacts({ validAt: wrong("2020") }),
    /^WrongTypeError: validAt is "2020"; it must be a valid Date or a Timestamp$/,
  ],
  [
    "a date that is none",
    (remora) => remora.facts("ana").search("x", { recordedAt: new Date(Number.NaN) }),
    /^WrongTypeError: recordedAt is "Invalid Date"; it must be a valid Date or a Timestamp$/,
  ],
  [
    "a session without a name",
    (remora) => remora.blocks("ana").update("", "x"),
    /^InvalidFieldError: sessionId is empty; /,
  ],
  [
    "a budget as text",
    (remora) => remora.blocks("ana").extractive.get("s", "x", { maxTokens: wrong("5") }),
    /^WrongTypeError: maxTokens is "5"; it must be a number$/,
  ],
  [
    "no request",
    (remora) => remora.memory.searchMessages(wrong(undefined)),
    /^WrongTypeError: request is undefined; it must /,
  ],
];

describe("a mistake is answered by its field, its value and what it must be", () => {
  const remora = new Remora({ endpoint: "unix:/nowhere.sock" });
  for (const [what, call, answer] of MISTAKES) {
    test(what, async () => {
      await assert.rejects(async () => call(remora), answer);
    });
  }
});

describe("what plugs into a framework refuses a misspelt option", () => {
  for (const [given, meant] of [
    ["tenantId", "tenant"],
    ["tenent", "tenant"],
    ["agent_id", "agentId"],
    ["end-point", "endpoint"],
    ["tokn", "token"],
    ["tlss", "tls"],
    ["endpointUrl", "endpoint"],
    ["idnex", "index"],
    ["embeder", "embedding"],
    ["embedder", "embedding"],
    ["embeddings", "embedding"],
  ] as const) {
    test(given, () => {
      assert.throws(() => new ClientConnection({ [given]: "x" }, ["index", "embedding"]), {
        name: "InvalidFieldError",
        message: `${given} is no option; did you mean ${meant}?`,
      });
    });
  }

  test("and leaves those of another store to it", () => {
    new ClientConnection(
      wrong({ storageLimit: 5, debug: true, url: "file::memory:", tablePrefix: "v", ttl: {} }),
    ).close();
    const [own, others] = [
      ["index", "strict", "collection", "cacheSize", "storage", "vector", "userLabel", "serde"],
      [
        "agents",
        "agentName",
        "cacheTTL",
        "storageLimit",
        "userId",
        "connection",
        "maxSpans",
        "store",
        "cache",
        "server",
      ],
    ];
    for (const name of others) {
      new ClientConnection(wrong({ [name]: "x" }), own).close();
    }
  });
});

test("a wrong call of a handle rejects, and does not throw", async () => {
  const remora = new Remora({ endpoint: "unix:/nobody/listens" });
  const facts = remora.facts("ana");
  const calls: (() => Promise<unknown>)[] = [
    () => chat(remora).append(wrong(5)),
    () => chat(remora).messages(10, wrong({ limit: 5 })),
    () => chat(remora).search("tea", wrong({ top: 5 })),
    () => chat(remora).context(100, wrong({ top: 5 })),
    () => facts.search("tea", wrong({ top: 5 })),
    () => facts.forget(wrong(5)),
    () => remora.receipts.replay("r", wrong({ user: "ana" })),
    () => remora.receipts.diff("r", "s", wrong({ user: "ana" })),
    () => remora.user("ana").search("tea", wrong({ top: 5 })),
    () => remora.searchAllUsers("tea", wrong({ top: 5 })),
    () => remora.blocks("ana").get("", "tea"),
    () => remora.memory.searchMessages(wrong({ query: 5 })),
  ];
  for (const call of calls) {
    await assert.rejects(call(), /^(InvalidField|WrongType)Error/, String(call));
  }
  remora.close();
});
