// `@remora/voltagent/legacy`: Remora for the `Memory` interface of VoltAgent 0.1.

export { RemoraStorage, type RemoraStorageOptions } from "./storage.js";
export type * from "./types.js";
