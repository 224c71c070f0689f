// Runs the tests of the package in the current directory: test/*.test.ts, or those that are named. Flags are Node's.
import { spawnSync } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { build } from "esbuild";

const given = process.argv.slice(2);
const flags = given.filter((argument) => argument.startsWith("--"));
const named = given.filter((argument) => !argument.startsWith("--"));
const entryPoints = named.length > 0 ? named : readdirSync("test").filter((name) => name.endsWith(".test.ts"));

rmSync(".build", { recursive: true, force: true });
await build({
  entryPoints: entryPoints.map((name) => join("test", basename(name))),
  outdir: ".build",
  bundle: true,
  packages: "external",
  platform: "node",
  format: "esm",
  target: "node20",
  sourcemap: true,
});
// Tests say themselves who calls.
delete process.env.REMORA_TOKEN;
delete process.env.REMORA_TENANT;
const built = readdirSync(".build").filter((name) => name.endsWith(".js"));
const ended = spawnSync(
  process.execPath,
  [
    "--enable-source-maps",
    ...flags,
    "--test",
    "--test-concurrency=2",
    "--test-timeout=600000",
    "--test-reporter=spec",
    ...built.map((name) => join(".build", name)),
  ],
  { stdio: "inherit" },
);
process.exit(ended.status ?? 1);
