// A real server for tests, run by the Python of the clone.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Remora } from "../src/index.js";

export const REPOSITORY = resolve("../../../..");
const PYTHON = process.env.REMORA_PYTHON ?? join(REPOSITORY, ".venv/bin/python");
/** Milliseconds after which something hangs: far more than anything takes on a busy machine. */
export const PATIENCE_MS = 300_000;

export type Listening = "unix" | "tcp";

/** `remora serve` in a process of its own. What it keeps is in a folder that goes with it. */
export class Server {
  readonly endpoint: string;
  readonly #folder: string;
  readonly #data: string;
  #process: ChildProcess | undefined;

  private constructor(folder: string, endpoint: string, data: string) {
    this.#folder = folder;
    this.endpoint = endpoint;
    this.#data = data;
  }

  /** A healthy server, all in memory unless it `keeps` its data. */
  static async start(listening: Listening = "unix", { keeps = false } = {}): Promise<Server> {
    const folder = mkdtempSync(join(tmpdir(), "remora-"));
    const endpoint = listening === "unix" ? `unix:${join(folder, "s")}` : `127.0.0.1:${await freePort()}`;
    const server = new Server(folder, endpoint, keeps ? join(folder, "data") : ":memory:");
    await server.run();
    return server;
  }

  /** Starts the process, also again. */
  async run(): Promise<void> {
    const command = [
      "-m",
      "remora_server",
      "--listen",
      this.endpoint,
      "--data",
      this.#data,
      "--model-dir",
      modelDirectory(),
    ];
    this.#process = spawn(PYTHON, command, { stdio: ["ignore", "ignore", "inherit"] });
    const client = new Remora({ endpoint: this.endpoint, timeoutMs: PATIENCE_MS });
    await Promise.race([client.admin.getStatus({}), once(this.#process, "exit").then(failToStart)]);
    client.close();
  }

  /** Ends the process at once, as a crash does. */
  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const running = this.#process;
    if (running?.exitCode === null && running.signalCode === null) {
      running.kill(signal);
      await once(running, "exit");
    }
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function modelDirectory(): string {
  return process.env.REMORA_MODEL_DIR ?? join(REPOSITORY, ".cache/model");
}

function failToStart(): never {
  throw new Error("the server did not start");
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  return typeof address === "object" && address !== null ? address.port : 0;
}
