// Remora as a checkpointer of LangGraph: the state of threads after each step, and the writes that are pending.

import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  BaseCheckpointSaver,
  type ChannelVersions,
  type Checkpoint,
  type CheckpointListOptions,
  type CheckpointMetadata,
  type CheckpointPendingWrite,
  type CheckpointTuple,
  type DeltaChannelHistory,
  getCheckpointId,
  JsonPlusSerializer,
  maxChannelVersion,
  type PendingWrite,
  type SerializerProtocol,
  TASKS,
  WRITES_IDX_MAP,
} from "@langchain/langgraph-checkpoint";
import { ClientConnection, type ConnectionOptions, pages, refuseMisspelt, type Remora, shown } from "@remora/client";
import {
  type ChannelHistoryStep,
  type ChannelValue,
  ChannelVersionSchema,
  type FoundCheckpoint,
  type PendingWrite as FoundWrite,
  PruneStrategy,
  type Version,
  type VersionSchema,
} from "@remora/client/v1";
import { aboutCheckpoints, aboutLists, requireText } from "./refusals.js";
import { Saves } from "./saves.js";
import { fill, fromWire, type Omitted, type Place, serialised, toWire } from "./values.js";

const OWN = ["serde"] as const satisfies readonly (keyof RemoraSaverOptions)[];
const MOST_PER_PAGE = 1_000;
/** Ids of one request. */
const MOST_IDS = 1_000;
/** Writes of one message. */
const MOST_WRITES = 10_000;
/** Bytes of the path of a task, which only orders writes: that of tasks in tasks in tasks may be longer. */
const LONGEST_PATH = 4_096;
/** More than the version of a channel, or the index of a write, takes with what is around it. */
const CHANNEL_BYTES = 64;
/** The places of special writes. In an object, a channel that is called `constructor` would have one. */
const SPECIAL: ReadonlyMap<string, number> = new Map(Object.entries(WRITES_IDX_MAP));
/** What of `configurable` names a checkpoint. */
const NAMES: ReadonlySet<string> = new Set(["thread_id", "checkpoint_ns", "checkpoint_id"]);
/** What of `configurable` may be a number. */
const NUMBERS: ReadonlySet<string> = new Set(["thread_id", "user_id", "run_id"]);
const STRATEGIES = { keep_latest: PruneStrategy.KEEP_LATEST, delete: PruneStrategy.DELETE };

/** How a saver is made. */
export interface RemoraSaverOptions extends ConnectionOptions {
  /** Writes and reads values; the server never looks into them. Default: LangGraph's JsonPlusSerializer. */
  serde?: SerializerProtocol | undefined;
}

/** Which checkpoints of a thread stay. */
export interface PruneOptions {
  /** `keep_latest` (the default): the newest of each namespace, and what its channels are rebuilt from. `delete`: none. */
  strategy?: keyof typeof STRATEGIES | undefined;
}

/** As `thread_id` of a config has it. */
type ThreadId = string | number;

/** A checkpoint in a thread. */
interface Name extends Place {
  checkpointId: string;
}

/**
 * Keeps the checkpoints of LangGraph's threads in Remora: `graph.compile({ checkpointer: new RemoraSaver() })`.
 *
 * A value of a channel is stored once for each version, and as its difference from the one before. A put is acknowledged
 * when it is on disk. The user and the run of a checkpoint are `user_id` and `run_id` of `configurable`, if they are texts or numbers;
 * it is deleted with the user.
 */
export class RemoraSaver extends BaseCheckpointSaver {
  readonly #connection: ClientConnection;
  readonly #saves: Saves;
  /** Metadata stays readable for the server, whatever the serializer of values does. */
  readonly #json = new JsonPlusSerializer();

  constructor(options: RemoraSaverOptions = {}) {
    super(serdeOf(options));
    this.#connection = new ClientConnection(options, OWN);
    this.#saves = new Saves(this.client);
  }

  /** A saver for `unix:/path` or `host:port`, as other savers are made. */
  static fromConnString(endpoint: string, options: RemoraSaverOptions = {}): RemoraSaver {
    refuseMisspelt(options, OWN);
    return new RemoraSaver({ ...options, endpoint });
  }

  /** The client that the saver calls with. */
  get client(): Remora {
    return this.#connection.client;
  }

  /** Fails if the server does not answer. There is nothing to set up. */
  async setup(): Promise<void> {
    await this.client.admin.getStatus({});
  }

  /** Closes the connection, unless the client was given. */
  async end(): Promise<void> {
    this.#connection.close();
    await Promise.resolve();
  }

  async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    if (config.configurable?.thread_id === undefined) {
      return undefined;
    }
    const found = await this.#found(named(config, getCheckpointId(config)));
    return found && this.#tuple(found);
  }

  /**
   * Checkpoints, the newest first: those of a thread, or (with an empty config) of all threads.
   *
   * @throws Error for another config that names no thread: it would show those of others. LangGraph's own tests of checkpointers
   * ask for one exception: `thread_id: undefined` and a `checkpoint_ns`, with nothing else, list all threads.
   */
  async *list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    const { thread_id, checkpoint_ns, checkpoint_id } = textsIn(config);
    if (!asksForAll(config)) {
      requireThread(thread_id ?? "");
    }
    let left = options.limit ?? Infinity;
    if (left <= 0) {
      return;
    }
    const request = {
      threadId: thread_id ?? "",
      ...(checkpoint_ns !== undefined && { checkpointNs: checkpoint_ns }),
      checkpointId: checkpoint_id ?? "",
      beforeId: options.before ? getCheckpointId(options.before) : "",
      metadata: filterBytes(options.filter),
      pageSize: Math.min(left, MOST_PER_PAGE),
    };
    for await (const page of aboutLists(pages(this.client.checkpoints.listCheckpoints, request))) {
      for (const found of page.checkpoints) {
        yield await this.#tuple(found);
        if (--left <= 0) {
          return;
        }
      }
    }
  }

  /**
   * Without `newVersions`, all channels are new: MemorySaver and SqliteSaver do not need them. So are they in a copy of a checkpoint,
   * for which LangGraph names none: its parent is that of the original, and may have other values of the same versions.
   */
  async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions = checkpoint.channel_versions,
  ): Promise<RunnableConfig> {
    requireObject("checkpoint", checkpoint, "");
    requireObject("checkpoint.channel_values", checkpoint.channel_values, " of channels");
    requireObject("checkpoint.channel_versions", checkpoint.channel_versions, " of channels");
    requireObject("newVersions", newVersions, " of channels");
    const name = named(config, checkpoint.id);
    const { channel_values, channel_versions, id, ...rest } = checkpoint;
    const isCopy =
      (metadata as CheckpointMetadata | undefined)?.source === "fork" && Object.keys(newVersions).length === 0;
    const news = isCopy ? channel_versions : newVersions;
    const held = Object.keys(news).filter(
      (channel) => Object.hasOwn(channel_values, channel) && Object.hasOwn(channel_versions, channel),
    );
    const [own, said, ...values] = await Promise.all([
      serialised(this.serde, { ...rest, ...unversioned(checkpoint) }),
      serialised(this.#json, metadata),
      ...held.map((channel) => serialised(this.serde, channel_values[channel])),
    ]);
    const sent = await aboutCheckpoints(toWire(this.client, values, placeOf(name)));
    const saved = this.#saves.add({
      checkpoints: [
        {
          checkpoint: {
            ...placeOf(name),
            id,
            parentId: textsIn(config).checkpoint_id ?? "",
            runId: textsIn(config).run_id ?? "",
            type: own.type,
            data: own.data,
            metadata: said.data,
            channels: Object.entries(channel_versions).map(([channel, version]) => ({
              channel,
              version: versionToWire(version),
              empty: Object.hasOwn(news, channel) && !Object.hasOwn(channel_values, channel),
            })),
          },
          values: held.map((channel, index) => ({ channel, value: sent[index] ?? {} })),
        },
      ],
      bytes:
        own.data.length + said.data.length + bytesOf(sent) + bytesOfNames([...Object.keys(channel_versions), ...held]),
    });
    await aboutCheckpoints(saved);
    return configOf(name.threadId, name.checkpointNs, id);
  }

  async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string, taskPath = ""): Promise<void> {
    const name = named(config, getCheckpointId(config));
    if (name.checkpointId === "") {
      throw new Error('Failed to put writes: "checkpoint_id" is missing in the "configurable" of the config.');
    }
    requireText("taskPath", taskPath);
    const values = await Promise.all(writes.map(([, value]) => serialised(this.serde, value)));
    const sent = await aboutCheckpoints(toWire(this.client, values, placeOf(name)));
    const all = writes.map(([channel], position) => ({
      channel,
      index: SPECIAL.get(channel) ?? position,
      value: sent[position] ?? {},
    }));
    const common = { name: withoutUser(name), userId: name.userId, taskId, taskPath: shortened(taskPath) };
    const [special, ordinary] = [all.filter(({ index }) => index < 0), all.filter(({ index }) => index >= 0)];
    const tasks = [
      ...inGroups(special, MOST_WRITES).map((some) => ({ ...common, writes: some, replace: true })),
      ...inGroups(ordinary, MOST_WRITES).map((some) => ({ ...common, writes: some, replace: false })),
    ];
    if (tasks.length > 0) {
      const bytes = bytesOf(sent) + bytesOfNames(writes.map(([channel]) => channel));
      await aboutCheckpoints(this.#saves.add({ writes: tasks, bytes }));
    }
  }

  async deleteThread(threadId: ThreadId): Promise<void> {
    await this.client.checkpoints.deleteThread({ threadId: textOf(threadId) });
  }

  /** Deletes the checkpoints of some runs, in all threads. */
  async deleteForRuns(runIds: readonly string[]): Promise<void> {
    requireList("runIds", runIds);
    for (const some of inGroups(runIds, MOST_IDS)) {
      await this.client.checkpoints.deleteRuns({ runIds: some });
    }
  }

  /** Copies everything of a thread to another one. */
  async copyThread(sourceThreadId: ThreadId, targetThreadId: ThreadId): Promise<void> {
    const [source, target] = [textOf(sourceThreadId), textOf(targetThreadId)];
    if (source !== target) {
      await this.client.checkpoints.copyThread({ sourceThreadId: source, targetThreadId: target });
    }
  }

  /** Deletes old checkpoints of threads. */
  async prune(threadIds: readonly ThreadId[], options: PruneOptions = {}): Promise<void> {
    requireObject("options", options, ', such as { strategy: "delete" }');
    const { strategy = "keep_latest" } = options;
    if (!Object.hasOwn(STRATEGIES, strategy)) {
      throw new Error(`Unknown strategy ${JSON.stringify(strategy)}: it is "keep_latest" or "delete".`);
    }
    requireList("threadIds", threadIds);
    for (const some of inGroups(threadIds.map(textOf), MOST_IDS)) {
      await this.client.checkpoints.pruneThreads({ threadIds: some, strategy: STRATEGIES[strategy] });
    }
  }

  /** In one call, however long the chain of ancestors is. */
  override async getDeltaChannelHistory({
    config,
    channels,
  }: {
    config: RunnableConfig;
    channels: string[];
  }): Promise<Record<string, DeltaChannelHistory>> {
    const histories = Object.fromEntries(channels.map((channel) => [channel, { writes: [] } as DeltaChannelHistory]));
    if (channels.length === 0 || config.configurable?.thread_id === undefined) {
      return histories;
    }
    const name = named(config, getCheckpointId(config));
    const request = { name: withoutUser(name), channels };
    const steps: ChannelHistoryStep[] = [];
    for await (const page of aboutLists(pages(this.client.checkpoints.listChannelHistory, request))) {
      steps.push(...page.steps);
    }
    await fill(
      this.client,
      steps.flatMap((step) => omitted(step, { ...name, checkpointId: step.checkpointId })),
    );
    for (const step of steps.reverse()) {
      await this.#addStep(histories, step);
    }
    return histories;
  }

  /** The values of a step come before its writes. */
  async #addStep(histories: Record<string, DeltaChannelHistory>, step: ChannelHistoryStep): Promise<void> {
    const seeds = await this.#values(step.values);
    for (const [channel, seed] of Object.entries(seeds)) {
      Object.assign(histories[channel] ?? {}, { seed });
    }
    for (const write of await this.#writes(step.writes)) {
      histories[write[1]]?.writes.push(write);
    }
  }

  async #found(name: Name): Promise<FoundCheckpoint | undefined> {
    const reply = await aboutCheckpoints(this.client.checkpoints.getCheckpoints({ names: [withoutUser(name)] }));
    const [found] = reply.checkpoints;
    return found?.checkpoint && found;
  }

  async #tuple(found: FoundCheckpoint): Promise<CheckpointTuple> {
    const {
      threadId = "",
      checkpointNs = "",
      id = "",
      parentId = "",
      type = "",
      data,
      metadata,
      channels = [],
    } = found.checkpoint ?? {};
    const name = { threadId, checkpointNs, checkpointId: id, userId: "" };
    await fill(this.client, omitted({ ...found, channels }, name));
    const [rest, said, values, pendingWrites] = await Promise.all([
      this.serde.loadsTyped(type, data ?? new Uint8Array()) as Promise<Partial<Checkpoint>>,
      metadata?.length ? (this.#json.loadsTyped("json", metadata) as Promise<CheckpointMetadata>) : undefined,
      this.#values(found.values),
      this.#writes(found.writes),
    ]);
    const checkpoint: Checkpoint = {
      ...(rest as Checkpoint),
      id,
      channel_values: { ...rest.channel_values, ...values },
      channel_versions: Object.fromEntries(channels.map(({ channel, version }) => [channel, versionFromWire(version)])),
    };
    if (checkpoint.v < 4 && parentId !== "") {
      await this.#migrateSends(checkpoint, { ...name, checkpointId: parentId });
    }
    return {
      config: configOf(threadId, checkpointNs, id),
      checkpoint,
      ...(said && { metadata: said }),
      ...(parentId !== "" && { parentConfig: configOf(threadId, checkpointNs, parentId) }),
      pendingWrites,
    };
  }

  /** Before version 4, what a step sent to tasks was among the writes of the parent, and is now a channel. */
  async #migrateSends(checkpoint: Checkpoint, parent: Name): Promise<void> {
    const found = await this.#found(parent);
    const sends = found?.writes.filter(({ channel }) => channel === TASKS) ?? [];
    await fill(this.client, omitted({ values: [], channels: [], writes: sends }, parent));
    const writes = await this.#writes(sends);
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_values[TASKS] = writes.map(([, , value]) => value);
    checkpoint.channel_versions[TASKS] =
      versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
  }

  async #values(values: readonly ChannelValue[]): Promise<Record<string, unknown>> {
    const read = values.map(
      async ({ channel, value }) => [channel, value && (await fromWire(this.serde, value))] as const,
    );
    return Object.fromEntries(await Promise.all(read));
  }

  async #writes(writes: readonly FoundWrite[]): Promise<CheckpointPendingWrite[]> {
    return Promise.all(
      writes.map(async ({ taskId, channel, value }): Promise<CheckpointPendingWrite> => [
        taskId,
        channel,
        value && (await fromWire(this.serde, value)),
      ]),
    );
  }
}

/** The values that a reply had no room for: of channels of a checkpoint, and of its writes. */
function omitted(
  { values, channels, writes }: Pick<ChannelHistoryStep, "values" | "channels" | "writes">,
  name: Name,
): Omitted[] {
  const versions = new Map(channels.map((channel) => [channel.channel, channel]));
  const where = whereOf(name);
  const ofChannels = values.flatMap(({ channel, value }) => {
    const version = versions.get(channel) ?? create(ChannelVersionSchema, { channel });
    return value?.omitted
      ? [{ value, request: { ...where, value: { case: "channel" as const, value: version } } }]
      : [];
  });
  const ofWrites = writes.flatMap(({ taskId, index, value }) => {
    const written = { checkpointId: name.checkpointId, taskId, index };
    return value?.omitted ? [{ value, request: { ...where, value: { case: "write" as const, value: written } } }] : [];
  });
  return [...ofChannels, ...ofWrites];
}

/** @throws TypeError for what is no serializer; WrongTypeError for what are no options. */
function serdeOf(options: RemoraSaverOptions): SerializerProtocol | undefined {
  refuseMisspelt(options, OWN);
  const serde: Partial<SerializerProtocol> | undefined = options.serde;
  if (serde && !(typeof serde.dumpsTyped === "function" && typeof serde.loadsTyped === "function")) {
    throw new TypeError(`serde is ${shown(serde)}; it must be a serializer, with dumpsTyped and loadsTyped.`);
  }
  return options.serde;
}

/** The values of channels that have no version, which MemorySaver and SqliteSaver keep: they are stored in the checkpoint itself. */
function unversioned({ channel_values, channel_versions }: Checkpoint): Partial<Checkpoint> {
  const values = Object.entries(channel_values).filter(([channel]) => !Object.hasOwn(channel_versions, channel));
  return values.length > 0 ? { channel_values: Object.fromEntries(values) } : {};
}

/** What of `configurable` is a text, or a number in its place. @throws TypeError for a name of a checkpoint that is neither. */
function textsIn(config: RunnableConfig): Record<string, string | undefined> {
  requireObject("config", config, ', such as { configurable: { thread_id: "trip" } }');
  requireObject("configurable", config.configurable ?? {}, ', such as { thread_id: "trip" }');
  const entries = Object.entries(config.configurable ?? {}).flatMap(([key, value]: [string, unknown]) => {
    if (typeof value === "string" || (typeof value === "number" && NUMBERS.has(key))) {
      return [[key, String(value)]];
    }
    if (NAMES.has(key) && value !== undefined && value !== null) {
      throw new TypeError(`${key} is ${shown(value)}; it must be a string.`);
    }
    return [];
  });
  return Object.fromEntries(entries) as Record<string, string | undefined>;
}

/** @throws Error for a config without a thread. */
function named(config: RunnableConfig, checkpointId: string): Name {
  const { thread_id = "", checkpoint_ns = "", user_id = "" } = textsIn(config);
  requireThread(thread_id);
  return { threadId: thread_id, checkpointNs: checkpoint_ns, checkpointId, userId: user_id };
}

/** Whether a list is of all threads: the config is empty, or has what LangGraph's own tests of checkpointers list them by. */
function asksForAll(config: RunnableConfig): boolean {
  const configurable = config.configurable ?? {};
  const keys = Object.keys(configurable).sort().join();
  return (
    Object.keys(config).length === 0 || (keys === "checkpoint_ns,thread_id" && configurable.thread_id === undefined)
  );
}

/** @throws Error for an empty one: a list would show the checkpoints of all threads. */
function requireThread(threadId: string): void {
  if (threadId === "") {
    throw new Error(
      '"thread_id" is missing in the "configurable" of the config: it says which thread a checkpoint belongs to, ' +
        'as in graph.invoke(input, { configurable: { thread_id: "trip" } }).',
    );
  }
}

/** As much of the path of a task as is stored. */
function shortened(taskPath: string): string {
  const bytes = Buffer.from(taskPath);
  return bytes.length <= LONGEST_PATH
    ? taskPath
    : new TextDecoder().decode(bytes.subarray(0, LONGEST_PATH), { stream: true });
}

function placeOf({ threadId, checkpointNs, userId }: Name): Place {
  return { threadId, checkpointNs, userId };
}

function whereOf({ threadId, checkpointNs }: Name): { threadId: string; checkpointNs: string } {
  return { threadId, checkpointNs };
}

function withoutUser({ userId: _, ...name }: Name): Omit<Name, "userId"> {
  return name;
}

function configOf(thread_id: string, checkpoint_ns: string, checkpoint_id: string): RunnableConfig {
  return { configurable: { thread_id, checkpoint_ns, checkpoint_id } };
}

function filterBytes(filter: Record<string, unknown> | undefined): Uint8Array {
  requireObject("filter", filter ?? {}, " of members of the metadata");
  const given = Object.entries(filter ?? {}).filter(([, value]) => value !== undefined);
  return given.length === 0 ? new Uint8Array() : Buffer.from(JSON.stringify(Object.fromEntries(given)));
}

function bytesOf(values: readonly { data?: Uint8Array }[]): number {
  return values.reduce((sum, { data }) => sum + (data?.length ?? 0), 0);
}

/** What channels take besides their values. */
function bytesOfNames(channels: readonly string[]): number {
  return channels.reduce((sum, channel) => sum + Buffer.byteLength(String(channel)) + CHANNEL_BYTES, 0);
}

function versionToWire(version: number | string): MessageInitShape<typeof VersionSchema> {
  if (typeof version === "string") {
    return { kind: { case: "text", value: version } };
  }
  return Number.isSafeInteger(version)
    ? { kind: { case: "integer", value: BigInt(version) } }
    : { kind: { case: "number", value: version } };
}

function versionFromWire(version: Version | undefined): number | string {
  const value = version?.kind.value ?? 0;
  return typeof value === "bigint" ? Number(value) : value;
}

/** A thread as the server names it. What is no thread stays, and is refused. */
function textOf(threadId: ThreadId): string {
  return typeof threadId === "number" ? String(threadId) : threadId;
}

/** Items in groups of `most` and a rest, in their order. */
function inGroups<Item>(items: readonly Item[], most: number): Item[][] {
  return Array.from({ length: Math.ceil(items.length / most) }, (_, group) =>
    items.slice(group * most, (group + 1) * most),
  );
}

/** @throws TypeError for what is no object: it would be taken for one without members. */
function requireObject(name: string, given: unknown, what: string): void {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new TypeError(`${name} is ${shown(given)}; it must be an object${what}.`);
  }
}

/** @throws TypeError for one id: its letters would be taken for ids. */
function requireList(name: string, ids: unknown): void {
  if (!Array.isArray(ids)) {
    throw new TypeError(`${name} is ${shown(ids)}; it must be an array of ids.`);
  }
}
