// Builds the package in the current directory into dist/: ES modules in dist/esm, CommonJS in dist/cjs, both with types.
import { execFileSync } from "node:child_process";
import { cpSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const sources = readdirSync("src", { recursive: true }).filter((name) => name.endsWith(".ts"));
const entryPoints = sources.map((name) => join("src", name));

rmSync("dist", { recursive: true, force: true });
for (const format of ["esm", "cjs"]) {
  await build({ entryPoints, outbase: "src", outdir: `dist/${format}`, format, platform: "node", target: "node20" });
}
writeFileSync("dist/cjs/package.json", '{ "type": "commonjs" }\n');

const types = [
  "--noEmit",
  "false",
  "--declaration",
  "--emitDeclarationOnly",
  "--rootDir",
  "src",
  "--outDir",
  "dist/esm",
];
execFileSync("tsc", ["--project", "tsconfig.build.json", ...types], { stdio: "inherit" });
for (const name of sources) {
  const declaration = name.replace(/\.ts$/, ".d.ts");
  cpSync(join("dist/esm", declaration), join("dist/cjs", declaration));
}
