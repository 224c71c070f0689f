// What a saver keeps beyond what LangGraph's own tests ask for.

import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { describe, test } from "node:test";
import type { RunnableConfig } from "@langchain/core/runnables";
import {
  type Checkpoint,
  type CheckpointTuple,
  emptyCheckpoint,
  MemorySaver,
  type SerializerProtocol,
  uuid6,
} from "@langchain/langgraph-checkpoint";
import {
  InvalidArgumentError,
  InvalidFieldError,
  Remora,
  UnavailableError,
  UploadIncompleteError,
} from "@remora/client";
import { counted } from "../../client/test/counting.js";
import { PATIENCE_MS } from "../../client/test/failures.js";
import { server } from "../../client/test/fresh.js";
import { RemoraSaver } from "../src/index.js";
import { Saves } from "../src/saves.js";
import { collected } from "./collected.js";

const { fresh, restart } = server(true);

const METADATA = { source: "loop" as const, step: 1, parents: {} };
let clock = 0;

/** A later checkpoint each time. */
function checkpoint(values: Record<string, unknown>, version = 1): Checkpoint {
  const versions = Object.fromEntries(Object.keys(values).map((channel) => [channel, version]));
  return { ...emptyCheckpoint(), id: uuid6(clock++), channel_values: values, channel_versions: versions };
}

function put(saver: RemoraSaver, config: RunnableConfig, stored: Checkpoint): Promise<RunnableConfig> {
  return saver.put(config, stored, METADATA, stored.channel_versions);
}

function thread(thread_id = "t1", more: object = {}): RunnableConfig {
  return { configurable: { thread_id, ...more } };
}

async function all(tuples: AsyncIterable<CheckpointTuple>): Promise<string[]> {
  return (await collected(tuples)).map(({ checkpoint: { id } }) => id);
}

describe("a saver", () => {
  test("keeps values of any length, also when they fill a request together", async () => {
    const saver = new RemoraSaver(fresh());
    const values = {
      long: randomBytes(9_000_000).toString("hex"),
      first: "x".repeat(1_500_000),
      second: "y".repeat(1_500_000),
      short: [1, 2],
    };
    const config = await put(saver, thread(), checkpoint(values));
    await saver.putWrites(
      config,
      [
        ["long", values.long],
        ["short", 3],
      ],
      "task",
    );

    const found = await saver.getTuple(config);

    assert.deepEqual(found?.checkpoint.channel_values, values);
    assert.deepEqual(found.pendingWrites, [
      ["task", "long", values.long],
      ["task", "short", 3],
    ]);
  });

  test("keeps all values where nobody says which are new", async () => {
    const saver = new RemoraSaver(fresh());
    const config = await saver.put(thread(), checkpoint({ list: [1, 2] }), METADATA);

    assert.deepEqual((await saver.getTuple(config))?.checkpoint.channel_values, { list: [1, 2] });
  });

  test("keeps a value without a version, as MemorySaver does", async () => {
    const savers = [new RemoraSaver(fresh()), new MemorySaver()];
    const bare = { ...checkpoint({ list: [1, 2], loose: { n: 1 } }), channel_versions: { list: 1, gone: 2 } };
    const none = { ...checkpoint({ loose: 5 }), channel_versions: {} };

    const found = savers.map(async (saver) => {
      const first = await saver.put(thread(), bare, METADATA, { list: 1, loose: 1 });
      const second = await saver.put(first, none, METADATA, {});
      const tuples = await Promise.all([first, second].map((config) => saver.getTuple(config)));
      return tuples.map((tuple) => tuple?.checkpoint);
    });

    assert.deepEqual(await found[0], await found[1]);
    assert.deepEqual((await found[0])?.[0]?.channel_values, { list: [1, 2], loose: { n: 1 } });
  });

  test("has no value of what has no JSON, and the thread can be read", async () => {
    const saver = new RemoraSaver(fresh());
    const values = { call: () => 1, symbol: Symbol("s"), none: { toJSON: () => undefined }, list: [1] };
    const config = await put(saver, thread(), checkpoint(values));
    await saver.putWrites(config, Object.entries(values), "task");

    const [found] = await collected(saver.list(thread()));

    const [call, symbol, none] = [undefined, undefined, undefined];
    assert.deepStrictEqual(found?.checkpoint.channel_values, { call, symbol, none, list: [1] });
    assert.deepStrictEqual(
      found.pendingWrites?.map(([, channel, value]) => [channel, value]),
      Object.entries({ call, symbol, none, list: [1] }),
    );
  });

  test("gives bytes back as they were, with memory of their own", async () => {
    const saver = new RemoraSaver(fresh());
    const values = { short: new Uint8Array([1, 2]), long: new Uint8Array(3_000_000).fill(7) };
    const config = await put(saver, thread(), checkpoint(values));
    await saver.putWrites(config, [["short", values.short]], "task");

    const found = await saver.getTuple(config);

    const [[, , written] = []] = found?.pendingWrites ?? [];
    for (const bytes of [...Object.values(found?.checkpoint.channel_values ?? {}), written]) {
      assert.ok(bytes instanceof Uint8Array);
      assert.equal(bytes.buffer.byteLength, bytes.length);
    }
    assert.deepStrictEqual(found?.checkpoint.channel_values, values);
    assert.deepStrictEqual(written, values.short);
  });

  test("gives a channel the value of its own branch, where versions are the same", async () => {
    const saver = new RemoraSaver(fresh());
    const root = await put(saver, thread(), checkpoint({ way: "none" }, 1));
    const left = await put(saver, root, checkpoint({ way: "left" }, 2));
    const right = await put(saver, root, checkpoint({ way: "right" }, 2));

    assert.equal((await saver.get(left))?.channel_values.way, "left");
    assert.equal((await saver.get(right))?.channel_values.way, "right");
  });

  test("has no value of a channel that was emptied", async () => {
    const saver = new RemoraSaver(fresh());
    const full = await put(saver, thread(), checkpoint({ note: "here" }, 1));
    const emptied = { ...checkpoint({}), channel_versions: { note: 2 } };
    const config = await put(saver, full, emptied);

    assert.deepEqual((await saver.get(config))?.channel_values, {});
  });

  test("keeps the first write of a task, but the last of its errors and interrupts", async () => {
    const saver = new RemoraSaver(fresh());
    const config = await put(saver, thread(), checkpoint({}));
    for (const attempt of [1, 2]) {
      await saver.putWrites(
        config,
        [
          ["__error__", attempt],
          ["answer", attempt],
        ],
        "task",
      );
    }

    assert.deepEqual((await saver.getTuple(config))?.pendingWrites, [
      ["task", "__error__", 2],
      ["task", "answer", 1],
    ]);
  });

  test("orders pending writes by path, then by task, then as they were written", async () => {
    const saver = new RemoraSaver(fresh());
    const config = await put(saver, thread(), checkpoint({}));
    await saver.putWrites(
      config,
      [
        ["x", 1],
        ["x", 2],
      ],
      "b",
      "~2",
    );
    await saver.putWrites(config, [["x", 3]], "a", "~2");
    await saver.putWrites(config, [["x", 4]], "z", "~1");
    await saver.putWrites(config, [["x", 5]], "y");

    const writes = (await saver.getTuple(config))?.pendingWrites ?? [];

    assert.deepEqual(
      writes.map(([, , value]) => value),
      [5, 4, 3, 1, 2],
    );
  });

  test("takes tasks that are as deep in others as they like", async () => {
    const saver = new RemoraSaver(fresh());
    const config = await put(saver, thread(), checkpoint({}));
    await saver.putWrites(config, [["x", 2]], "task-2", "~b" + ", ~é".repeat(2_000));
    await saver.putWrites(config, [["x", 1]], "task-1", "~a" + ", ~é".repeat(2_000));

    const writes = (await saver.getTuple(config))?.pendingWrites;

    assert.deepEqual(writes, [
      ["task-1", "x", 1],
      ["task-2", "x", 2],
    ]);
  });

  test("takes writes before their checkpoint", async () => {
    const saver = new RemoraSaver(fresh());
    const stored = checkpoint({});
    await saver.putWrites(thread("t1", { checkpoint_id: stored.id, checkpoint_ns: "" }), [["x", 1]], "task");
    await put(saver, thread(), stored);

    assert.deepEqual((await saver.getTuple(thread()))?.pendingWrites, [["task", "x", 1]]);
  });

  test("sends the writes of tasks that end together in one call", async () => {
    const { client, calls } = counted(fresh());
    const saver = new RemoraSaver({ client });
    const config = await put(saver, thread(), checkpoint({}));
    calls.length = 0;

    await Promise.all([..."abcdefgh"].map((task) => saver.putWrites(config, [["x", task]], task)));

    assert.deepEqual(calls, ["saveCheckpoints"]);
    assert.equal((await saver.getTuple(config))?.pendingWrites?.length, 8);
    client.close();
  });

  test("keeps more writes of a task than one message takes", async () => {
    const saver = new RemoraSaver(fresh());
    const config = await put(saver, thread(), checkpoint({}));
    const sent = Array.from({ length: 25_000 }, (_, place): [string, number] => ["x", place]);

    await saver.putWrites(config, sent, "task");

    const found = await saver.getTuple(config);
    assert.deepEqual(
      found?.pendingWrites,
      sent.map(([channel, value]) => ["task", channel, value]),
    );
  });

  test("sends and reads long values side by side, a few at once", async () => {
    const most = { uploadCheckpointPart: 0, readCheckpointValue: 0 };
    const client = new Remora(fresh());
    for (const name of ["uploadCheckpointPart", "readCheckpointValue"] as const) {
      let underWay = 0;
      const rpc = client.checkpoints[name] as (request: object) => Promise<unknown>;
      Object.assign(client.checkpoints, {
        [name]: async (request: object) => {
          most[name] = Math.max(most[name], ++underWay);
          return rpc(request).finally(() => underWay--);
        },
      });
    }
    const saver = new RemoraSaver({ client });
    const values = Object.fromEntries(Array.from({ length: 70 }, (_, place) => [`c${place}`, "x".repeat(100_000)]));

    const config = await put(saver, thread(), checkpoint(values));
    const found = await saver.getTuple(config);

    assert.deepEqual(found?.checkpoint.channel_values, values);
    assert.deepEqual(most, { uploadCheckpointPart: 16, readCheckpointValue: 16 });
    client.close();
  });

  test("sends checkpoints of many channels in as many calls as they need", async () => {
    const saver = new RemoraSaver(fresh());
    const versions = Object.fromEntries(
      Array.from({ length: 3_000 }, (_, place) => [`channel with a long name ${place}`, 1]),
    );
    const wide = () => ({ ...checkpoint({}), channel_versions: versions });

    await Promise.all(Array.from({ length: 60 }, (_, place) => put(saver, thread(String(place)), wide())));

    assert.equal(Object.keys((await saver.get(thread("59")))?.channel_versions ?? {}).length, 3_000);
  });

  test("fails only the call whose request was refused", async () => {
    const saver = new RemoraSaver(fresh());
    const config = await put(saver, thread(), checkpoint({}));

    const [refused, stored] = await Promise.allSettled([
      saver.putWrites(config, [["x", 1]], "t".repeat(1_000)),
      saver.putWrites(config, [["x", 2]], "task"),
    ]);

    assert.equal(stored.status, "fulfilled");
    assert.ok(refused.status === "rejected" && refused.reason instanceof InvalidArgumentError);
    assert.deepEqual((await saver.getTuple(config))?.pendingWrites, [["task", "x", 2]]);
  });

  test("fails only the save whose upload is not there", async () => {
    const saver = new RemoraSaver(fresh());
    const config = await put(saver, thread(), checkpoint({}));
    const name = { threadId: "t1", checkpointNs: "", checkpointId: String(config.configurable?.checkpoint_id) };
    const written = (taskId: string, value: object) => ({
      writes: [{ name, taskId, writes: [{ channel: "x", index: 0, value: { type: "json", ...value } }] }],
      bytes: 1,
    });
    const saves = new Saves(saver.client);

    const [lost, stored] = await Promise.allSettled([
      saves.add(written("lost", { upload: { id: randomUUID(), parts: 1n } })),
      saves.add(written("task", { data: Buffer.from("2") })),
    ]);

    assert.ok(lost.status === "rejected" && lost.reason instanceof UploadIncompleteError);
    assert.equal(stored.status, "fulfilled");
    assert.deepEqual((await saver.getTuple(config))?.pendingWrites, [["task", "x", 2]]);
  });

  test("lists what its metadata matches, in pages, newest first", async () => {
    const saver = new RemoraSaver(fresh());
    const stored = Array.from({ length: 30 }, () => checkpoint({ x: 1 }));
    for (const [step, one] of stored.entries()) {
      await saver.put(thread(), one, { ...METADATA, step, odd: step % 2 === 1 } as never, {});
    }
    const newest = stored.map(({ id }) => id).reverse();

    assert.deepEqual(await all(saver.list(thread())), newest);
    assert.deepEqual(await all(saver.list(thread(), { limit: 3 })), newest.slice(0, 3));
    assert.deepEqual(await all(saver.list(thread(), { limit: 0 })), []);
    assert.deepEqual(await all(saver.list(thread(), { filter: { odd: true }, limit: 2 })), [newest[0], newest[2]]);
    assert.deepEqual(await all(saver.list({}, { filter: { step: 7 } })), [stored[7]?.id]);
    const before = thread("t1", { checkpoint_id: newest[27] });
    assert.deepEqual(await all(saver.list(thread(), { before })), newest.slice(28));
  });

  test("leaves the format of values to its serializer", async () => {
    const secret: SerializerProtocol = {
      dumpsTyped: (value) => Promise.resolve(["rot", Buffer.from(JSON.stringify(value)).map((byte) => byte ^ 0xff)]),
      loadsTyped: (type, data) => {
        assert.equal(type, "rot");
        return Promise.resolve(
          JSON.parse(
            Buffer.from(data)
              .map((byte) => byte ^ 0xff)
              .toString(),
          ) as unknown,
        );
      },
    };
    const options = fresh();
    const saver = new RemoraSaver({ ...options, serde: secret });
    const config = await put(saver, thread(), checkpoint({ note: "hidden" }));

    assert.equal((await saver.get(config))?.channel_values.note, "hidden");
    assert.deepEqual((await saver.getTuple(config))?.metadata, METADATA);
  });

  test("deletes, copies and prunes threads and runs", async () => {
    const saver = new RemoraSaver(fresh());
    const first = await put(saver, thread("a", { run_id: "r1" }), checkpoint({ x: 1 }));
    const second = await put(saver, { configurable: { ...first.configurable, run_id: "r2" } }, checkpoint({ x: 2 }, 2));

    await saver.copyThread("a", "b");
    await saver.prune(["b"]);
    await saver.deleteForRuns(["r1"]);

    assert.deepEqual(await all(saver.list(thread("a"))), [second.configurable?.checkpoint_id]);
    const kept = await saver.getTuple(thread("b"));
    assert.deepEqual(kept?.checkpoint.channel_values, { x: 2 });
    assert.equal(kept.parentConfig, undefined);
    await saver.deleteThread("b");
    assert.equal(await saver.getTuple(thread("b")), undefined);
    await assert.rejects(saver.prune(["a"], { strategy: "oldest" as never }), /Unknown strategy "oldest"/);
    await assert.rejects(saver.prune("a" as never), /^TypeError: threadIds is "a"; it must be an array of ids/);
    await assert.rejects(saver.deleteForRuns("a" as never), /^TypeError: runIds is "a"; it must be an array of ids/);
  });

  test("takes more ids than one call does, and threads that are numbers, and copies none to itself", async () => {
    const saver = new RemoraSaver(fresh());
    const many = Array.from({ length: 1_500 }, (_, number) => `${number}`);
    const [first, last] = [thread("0", { run_id: "0" }), { configurable: { thread_id: 1_499, run_id: "1499" } }];
    for (const config of [first, last]) {
      await put(saver, config, checkpoint({ x: 1 }));
      await put(saver, config, checkpoint({ x: 2 }));
    }

    await saver.copyThread(1_499, 7);
    await saver.copyThread(7, "7");
    await saver.prune(many);
    assert.equal((await all(saver.list({}))).length, 3);
    await saver.deleteThread(7);
    await saver.deleteForRuns(many);

    assert.deepEqual(await all(saver.list({})), []);
  });

  test("refuses what would delete or list something else", async () => {
    const saver = new RemoraSaver(fresh());
    await put(saver, thread(), checkpoint({ x: 1 }));

    await assert.rejects(
      saver.prune(["t1"], "delete" as never),
      /^TypeError: options is "delete"; it must be an object, such as \{ strategy: "delete" \}/,
    );
    await assert.rejects(
      all(saver.list(thread(), { filter: "loop" as never })),
      /^TypeError: filter is "loop"; it must be an object of members of the metadata/,
    );
    assert.equal((await all(saver.list(thread()))).length, 1);
  });

  test("keeps channels that are called as members of every object", async () => {
    const saver = new RemoraSaver(fresh());
    const values = { constructor: [1], toString: "a", valueOf: 2 };
    const config = await put(saver, thread(), checkpoint(values));
    const writes = Object.entries(values);
    await saver.putWrites(config, writes, "task");

    const found = await saver.getTuple(config);

    assert.deepEqual(found?.checkpoint.channel_values, values);
    assert.deepEqual(
      found.pendingWrites,
      writes.map(([channel, value]) => ["task", channel, value]),
    );
    const next = await put(saver, config, checkpoint({}));
    const history = await saver.getDeltaChannelHistory({ config: next, channels: ["constructor", "x"] });
    assert.deepEqual(history.constructor, { seed: [1], writes: [["task", "constructor", [1]]] });
  });

  test("deletes what a user left with the user", async () => {
    const options = fresh();
    const client = new Remora(options);
    const saver = new RemoraSaver({ client });
    await put(saver, thread("t1", { user_id: "ana" }), checkpoint({ x: 1 }));
    await put(saver, thread("t2", { user_id: 7 }), checkpoint({ x: 1 }));

    await client.users.deleteUser({ userId: "ana" });
    await client.users.deleteUser({ userId: "7" });

    assert.equal(await saver.getTuple(thread("t1")), undefined);
    assert.equal(await saver.getTuple(thread("t2")), undefined);
    client.close();
  });

  test("loses nothing of many threads while the server is killed and comes back", async () => {
    const saver = new RemoraSaver(fresh());
    const written = Array.from({ length: 32 }, async (_, number) => {
      let config = thread(`t${number}`);
      for (let step = 1; step <= 6; step++) {
        config = await put(saver, config, checkpoint({ step }, step));
        await saver.putWrites(config, [["step", step]], "task");
      }
    });
    await restart();
    await Promise.all(written);

    for (let number = 0; number < 32; number++) {
      assert.equal((await all(saver.list(thread(`t${number}`)))).length, 6);
      const newest = await saver.getTuple(thread(`t${number}`));
      assert.deepEqual(newest?.checkpoint.channel_values, { step: 6 });
      assert.deepEqual(newest.pendingWrites, [["task", "step", 6]]);
    }
  });

  test("says what is missing in a config", async () => {
    const saver = new RemoraSaver(fresh());

    await assert.rejects(saver.put({}, checkpoint({}), METADATA, {}), /"thread_id" is missing/);
    await assert.rejects(saver.putWrites(thread(), [["x", 1]], "task"), /"checkpoint_id" is missing/);
    assert.equal(await saver.getTuple({}), undefined);
  });

  test("refuses a config or a checkpoint of a wrong type by its name, and lists no other threads for it", async () => {
    const saver = new RemoraSaver(fresh());
    const stored = await put(saver, thread(), checkpoint({ x: 1 }));
    const without = (member: string) => ({ ...checkpoint({}), [member]: undefined });
    const wrong: [() => Promise<unknown>, string][] = [
      [() => put(saver, null as never, checkpoint({})), "config is null; it must be an object"],
      [() => put(saver, { configurable: "t" } as never, checkpoint({})), 'configurable is "t"; it must be an object'],
      [() => put(saver, thread(true as never), checkpoint({})), "thread_id is true; it must be a string"],
      [() => put(saver, thread("t1", { checkpoint_ns: 5 }), checkpoint({})), "checkpoint_ns is 5; it must be a string"],
      [
        () => put(saver, thread("t1", { checkpoint_id: {} }), checkpoint({})),
        "checkpoint_id is {}; it must be a string",
      ],
      [() => saver.put(thread(), undefined as never, METADATA, {}), "checkpoint is undefined; it must be an object"],
      [() => saver.put(thread(), without("channel_values"), METADATA, {}), "checkpoint.channel_values is undefined"],
      [
        () => saver.put(thread(), without("channel_versions"), METADATA, {}),
        "checkpoint.channel_versions is undefined",
      ],
      [() => saver.put(thread(), checkpoint({}), METADATA, null as never), "newVersions is null; it must be an object"],
      [() => saver.putWrites(stored, [["x", 1]], "task", 5 as never), "taskPath is 5; it must be a string"],
      [() => saver.getTuple(thread(["t1"] as never)), "thread_id is"],
      [() => all(saver.list(thread(false as never))), "thread_id is false; it must be a string"],
      [() => all(saver.list(thread(""))), '"thread_id" is missing'],
      [() => all(saver.list(thread(null as never))), '"thread_id" is missing'],
    ];
    for (const [ask, said] of wrong) {
      await assert.rejects(ask, (refused: Error) => {
        assert.equal(refused.message.slice(0, said.length), said);
        return true;
      });
    }
    assert.equal((await all(saver.list(thread()))).length, 1);
  });

  test("lists all threads for an empty config, and refuses another one that names no thread", async () => {
    const saver = new RemoraSaver(fresh());
    await put(saver, thread("t1", { user_id: "ana" }), checkpoint({ x: 1 }));
    await put(saver, thread("t2", { user_id: "ben" }), checkpoint({ x: 1 }));
    const forgotten: RunnableConfig[] = [
      { configurable: {} },
      { configurable: { user_id: "nobody" } },
      { configurable: { thread_id: undefined } },
      { configurable: { checkpoint_ns: "" } },
      { configurable: { thread_id: undefined, checkpoint_ns: "", user_id: "nobody" } },
      { metadata: { user_id: "nobody" } },
    ];

    for (const config of forgotten) {
      await assert.rejects(all(saver.list(config)), /^Error: "thread_id" is missing/, JSON.stringify(config));
    }

    assert.equal((await all(saver.list({}))).length, 2);
    assert.equal((await all(saver.list({ configurable: { thread_id: undefined, checkpoint_ns: "" } }))).length, 2);
  });

  test("is told what the server refuses by the names of a config", async () => {
    const saver = new RemoraSaver(fresh());
    const long = "x".repeat(5_000);
    const at = thread("t", { checkpoint_id: "1" });
    const wrong: [() => Promise<unknown>, string][] = [
      [() => put(saver, thread(long), checkpoint({})), "thread_id has 5,000 bytes; at most 1,024 are allowed"],
      [() => put(saver, thread(long), checkpoint({ x: "x".repeat(3_000_000) })), "thread_id has 5,000 bytes"],
      [() => put(saver, thread("t", { checkpoint_ns: long }), checkpoint({})), "checkpoint_ns has 5,000 bytes"],
      [() => put(saver, thread("t", { checkpoint_id: long }), checkpoint({})), "checkpoint_id has 5,000 bytes"],
      [() => put(saver, thread("t", { user_id: long }), checkpoint({})), "user_id has 5,000 bytes"],
      [() => put(saver, thread("t", { run_id: long }), checkpoint({})), "run_id has 5,000 bytes"],
      [() => put(saver, thread(), { ...checkpoint({}), id: "" }), "checkpoint.id is required"],
      [() => saver.getTuple(thread(long)), "thread_id has 5,000 bytes"],
      [() => saver.putWrites(at, [["x", 1]], ""), "taskId is required"],
      [() => all(saver.list(thread(), { before: thread("t", { checkpoint_id: long }) })), "before has 5,000 bytes"],
      [() => all(saver.list(thread(), { limit: Number.NaN })), "limit is NaN; it must be a whole number"],
      [() => saver.getDeltaChannelHistory({ config: thread(long), channels: ["x"] }), "thread_id has 5,000 bytes"],
    ];
    for (const [ask, said] of wrong) {
      await assert.rejects(ask, (refused: Error) => {
        assert.equal(refused.message.slice(0, said.length), said);
        return refused instanceof InvalidFieldError;
      });
    }
  });

  test("finds its server by address, and says when there is none", async () => {
    const { endpoint, tenant } = fresh();
    const saver = RemoraSaver.fromConnString(endpoint, { tenant, timeoutMs: PATIENCE_MS });
    await saver.setup();
    await saver.end();

    await assert.rejects(RemoraSaver.fromConnString("unix:/nowhere/s", { timeoutMs: 500 }).setup(), UnavailableError);
  });
});
