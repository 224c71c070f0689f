// `@remora/langgraph`: Remora as the checkpointer and the store of LangGraph.js, and the edits of its messages.

export type { ConnectionOptions } from "@remora/client";
export { type Keep, type MessagesUpdate, RemoraMessages, type RemoraMessagesOptions } from "./messages.js";
export { type PruneOptions, RemoraSaver, type RemoraSaverOptions } from "./saver.js";
export {
  type RemoraIndexConfig,
  type RemoraPutOperation,
  RemoraStore,
  type RemoraStoreOptions,
  type TTLConfig,
} from "./store.js";
