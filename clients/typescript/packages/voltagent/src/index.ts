// `@remora/voltagent`: Remora for VoltAgent 2. What is for its 0.1 is in `@remora/voltagent/legacy`.

export type { ConnectionOptions } from "@remora/client";
export { RemoraEmbeddingAdapter } from "./embedding-adapter.js";
export { type MergeStrategy, RemoraMemory, type RemoraMemoryOptions } from "./memory.js";
export { type OwnershipOptions, RemoraMemoryAdapter, type RemoraMemoryAdapterOptions } from "./memory-adapter.js";
export type { RecalledMessage } from "./messages.js";
export type { SimilarMessage } from "./similar.js";
export { RemoraVectorAdapter, type RemoraVectorAdapterOptions, type VectorStats } from "./vector-adapter.js";
export { type ObservabilityStats, RemoraObservabilityAdapter } from "./observability-adapter.js";
