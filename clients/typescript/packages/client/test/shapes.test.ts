// What plain objects may have, beside the contract.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { DescMessage } from "@bufbuild/protobuf";
import * as v1 from "../src/generated/v1.js";
import { OUTPUT_ONLY } from "../src/shapes.js";
import { REPOSITORY } from "./server.js";

const FOLDER = join(REPOSITORY, "proto/remora/v1");

/** Names of fields that a contract's comments call output-only, by message. */
function outputOnly(proto: string): [message: string, field: string][] {
  const found: [string, string][] = [];
  let message = "";
  let comment = "";
  for (const line of proto.split("\n").map((text) => text.trim())) {
    message = /^message (\w+) /.exec(line)?.[1] ?? message;
    const field = /^(?:repeated |optional )?\S+ (\w+) = \d/.exec(line)?.[1];
    if (field !== undefined && comment.includes("Output only")) {
      found.push([message, field]);
    }
    comment = line.startsWith("//") ? comment + line : "";
  }
  return found;
}

test("the fields that the server alone sets are those of the contract", () => {
  const schemas = new Map(
    (Object.values(v1) as object[])
      .filter((item): item is DescMessage => "kind" in item && item.kind === "message")
      .map((schema) => [schema.name, schema]),
  );
  const expected: Record<string, string[]> = {};
  for (const name of readdirSync(FOLDER)) {
    for (const [message, field] of outputOnly(readFileSync(join(FOLDER, name), "utf8"))) {
      const localName = schemas.get(message)?.fields.find((other) => other.name === field)?.localName;
      (expected[message] ??= []).push(localName ?? assert.fail(`${message}.${field}`));
    }
  }

  assert.ok(expected.Message?.includes("sequence"));
  assert.deepEqual(OUTPUT_ONLY, expected);
});
