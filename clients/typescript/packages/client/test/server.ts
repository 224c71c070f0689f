// A real server for tests, run by the Python of the clone.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Remora, type TlsOptions } from "../src/index.js";
import { PATIENCE_MS } from "./failures.js";

export const REPOSITORY = resolve("../../../..");
const { REMORA_PYTHON, ...rest } = process.env;
export const PYTHON = REMORA_PYTHON ?? join(REPOSITORY, ".venv/bin/python");
/** The environment of a server, which takes a variable that is no setting for a mistake. */
export const ENVIRONMENT = rest;

export type Listening = "unix" | "tcp";

/** More arguments of a server, and how it is asked then. */
export interface Secured {
  readonly arguments: readonly string[];
  readonly tls?: TlsOptions;
}

/** `remora serve` in a process of its own. What it keeps is in a folder that goes with it. */
export class Server {
  readonly endpoint: string;
  readonly #folder: string;
  readonly #data: string;
  readonly #secured: Secured;
  #process: ChildProcess | undefined;

  private constructor(folder: string, endpoint: string, data: string, secured: Secured = { arguments: [] }) {
    this.#secured = secured;
    this.#folder = folder;
    this.endpoint = endpoint;
    this.#data = data;
  }

  /** A healthy server, all in memory unless it `keeps` its data. */
  static async start(
    listening: Listening = "unix",
    { keeps = false, secured }: { keeps?: boolean; secured?: Secured } = {},
  ): Promise<Server> {
    const folder = mkdtempSync(join(tmpdir(), "remora-"));
    const endpoint = listening === "unix" ? `unix:${join(folder, "s")}` : `127.0.0.1:${await freePort()}`;
    const server = new Server(folder, endpoint, keeps ? join(folder, "data") : ":memory:", secured);
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
      ...this.#secured.arguments,
    ];
    const log = openSync(this.#log, "a");
    this.#process = spawn(PYTHON, command, { stdio: ["ignore", log, log], env: ENVIRONMENT });
    closeSync(log);
    const client = new Remora({ endpoint: this.endpoint, timeoutMs: PATIENCE_MS, tls: this.#secured.tls });
    await Promise.race([client.admin.getStatus({}), once(this.#process, "exit").then(() => this.#fail())]);
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

  /** Has connections end at once in the place of a process that was killed; `attempted` is resolved by the second one. */
  async refuseCalls(): Promise<{ attempted: Promise<void>; end(): Promise<void> }> {
    const path = this.endpoint.replace("unix:", "");
    rmSync(path, { force: true });
    let count = 0;
    let tell = () => {};
    const attempted = new Promise<void>((resolve) => (tell = resolve));
    const listening = createServer((socket) => {
      socket.destroy();
      count += 1;
      if (count === 2) {
        tell();
      }
    });
    listening.listen(path);
    await once(listening, "listening");
    return { attempted, end: () => new Promise((resolve) => listening.close(() => resolve())) };
  }

  /** Lets the process run no further until it is resumed. */
  pause(): void {
    this.#process?.kill("SIGSTOP");
    while (!/^T/.test(execFileSync("ps", ["-o", "state=", "-p", String(this.#process?.pid)], { encoding: "utf8" }))) {
      // the signal arrives soon
    }
  }

  resume(): void {
    this.#process?.kill("SIGCONT");
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  get #log(): string {
    return join(this.#folder, "log");
  }

  #fail(): never {
    throw new Error(`the server did not start; it says: ${readFileSync(this.#log, "utf8")}`);
  }
}

function modelDirectory(): string {
  return process.env.REMORA_MODEL_DIR ?? join(REPOSITORY, ".cache/model");
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  return typeof address === "object" && address !== null ? address.port : 0;
}
