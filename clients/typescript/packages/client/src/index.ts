// `@remora/client`: the client and its errors. The contract's messages are in `@remora/client/v1`.

export {
  durationFromMs,
  durationMs,
  timestampDate,
  timestampFromDate,
  timestampFromMs,
  timestampMs,
} from "@bufbuild/protobuf/wkt";
export {
  type ContentWithin,
  ExtractiveMemory,
  type FactsWithin,
  MemoryBlocks,
  MemoryContent,
  type MessagesWithin,
  type Said,
  StaticMemory,
  UnsupportedByBlockError,
  VectorMemory,
} from "./blocks.js";
export type { CallOptions } from "./calls.js";
export { chatMessages, type ChatMessage, type ChatPart, type ChatToolCall } from "./chat-messages.js";
export { ClientConnection, type ConnectionOptions, refuseMisspelt } from "./client-connection.js";
export type { TlsOptions } from "./connection.js";
export {
  type AppendedMessage,
  type ContextOptions,
  Conversation,
  type ConversationFields,
  type ConversationOptions,
  type ListOptions,
  type MissingOptions,
  type SummarizeOptions,
  type SummaryWriter,
} from "./conversation.js";
export type { Edit, Kept } from "./edits.js";
export { embedding, littleEndian } from "./embeddings.js";
export { defaultEndpoint, ENDPOINT_VARIABLE } from "./endpoint.js";
export * from "./errors.js";
export {
  type AsOf,
  type ExtractedFacts,
  type Extracting,
  Facts,
  type FoundFacts,
  type ListedFacts,
  type NewFact,
  type SaidIn,
} from "./facts.js";
export {
  type FoundItems,
  type ListedItems,
  type MemberValue,
  MemoryItems,
  type NewMemoryItem,
  type WhichItems,
} from "./memory-items.js";
export { pages } from "./pages.js";
export { type ListedReceipts, type OfUser, Receipts } from "./receipts.js";
export { shown } from "./refusals.js";
export { Remora, type RemoraOptions } from "./remora.js";
export { REQUEST_BYTES } from "./requests.js";
export type { Query, RecallOptions, SearchOptions } from "./search.js";
export type { Rpc, ServiceClient } from "./services.js";
export {
  type DeleteOldest,
  type Flush,
  type ShortTerm,
  shortTermFromProto,
  type Summarize,
  type Trim,
  type Window,
} from "./short-term.js";
export { type ListedConversations, User } from "./user.js";
export {
  WorkingMemory,
  WorkingMemoryContent,
  type WorkingMemoryEdit,
  type WorkingMemoryForm,
  type WorkingMemorySchema,
} from "./working-memory.js";
