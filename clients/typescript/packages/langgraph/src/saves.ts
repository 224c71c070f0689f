// Joins what is saved in one turn of the event loop into one request: the writes of tasks that run side by side.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { InvalidArgumentError, type Remora, UploadIncompleteError } from "@remora/client";
import type { CheckpointDraftSchema, TaskWritesSchema } from "@remora/client/v1";

/** How many bytes several saves may have to travel together. */
const JOINED_BYTES = 2_500_000;
const MOST_CHECKPOINTS = 100;
const MOST_TASKS = 1_000;

/** What one call of the saver stores: all or nothing of it. */
export interface Save {
  checkpoints?: MessageInitShape<typeof CheckpointDraftSchema>[];
  writes?: MessageInitShape<typeof TaskWritesSchema>[];
  /** About how many bytes it has on the wire. */
  bytes: number;
}

interface Waiting {
  save: Save;
  done: (result: Promise<void>) => void;
}

/** The saves of one saver. */
export class Saves {
  readonly #client: Remora;
  #waiting: Waiting[] = [];

  constructor(client: Remora) {
    this.#client = client;
  }

  /** Resolves when what is saved is on disk. */
  add(save: Save): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ save, done: resolve });
      if (this.#waiting.length === 1) {
        setImmediate(() => {
          this.#flush();
        });
      }
    });
  }

  #flush(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const group of grouped(waiting)) {
      const sent = this.#send(group.map(({ save }) => save));
      for (const { save, done } of group) {
        done(group.length === 1 ? sent : sent.catch((failure: unknown) => this.#sendAlone(save, failure)));
      }
    }
  }

  /** A refusal may be meant for another save of the group. */
  async #sendAlone(save: Save, failure: unknown): Promise<void> {
    if (!(failure instanceof InvalidArgumentError || failure instanceof UploadIncompleteError)) {
      throw failure;
    }
    await this.#send([save]);
  }

  async #send(saves: readonly Save[]): Promise<void> {
    await this.#client.checkpoints.saveCheckpoints({
      checkpoints: saves.flatMap(({ checkpoints = [] }) => checkpoints),
      writes: saves.flatMap(({ writes = [] }) => writes),
    });
  }
}

/** The saves in groups that fit into a request, in their order. */
function grouped(waiting: readonly Waiting[]): Waiting[][] {
  const groups: Waiting[][] = [];
  let size = { bytes: Infinity, checkpoints: 0, writes: 0 };
  for (const one of waiting) {
    const { bytes, checkpoints = [], writes = [] } = one.save;
    size = {
      bytes: size.bytes + bytes,
      checkpoints: size.checkpoints + checkpoints.length,
      writes: size.writes + writes.length,
    };
    if (size.bytes > JOINED_BYTES || size.checkpoints > MOST_CHECKPOINTS || size.writes > MOST_TASKS) {
      groups.push([]);
      size = { bytes, checkpoints: checkpoints.length, writes: writes.length };
    }
    groups.at(-1)?.push(one);
  }
  return groups;
}
