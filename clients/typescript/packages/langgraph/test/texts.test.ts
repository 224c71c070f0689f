// The texts of a value at paths.

import assert from "node:assert/strict";
import { test } from "node:test";
import { textsAt } from "../src/texts.js";

const VALUE = {
  title: "T",
  count: 3,
  done: false,
  nothing: null,
  author: { name: "Ana", born: 1990 },
  chapters: [{ text: "one" }, { text: "two", note: "n" }],
  tags: ["a", "b", "c"],
};

const CASES: [string, string[]][] = [
  ["title", ["T"]],
  ["count", ["3"]],
  ["done", ["false"]],
  ["nothing", []],
  ["missing.deeper", []],
  ["author.name", ["Ana"]],
  ["author", [JSON.stringify(VALUE.author, undefined, 2)]],
  ["chapters[*].text", ["one", "two"]],
  ["chapters[0].text", ["one"]],
  ["chapters[-1].note", ["n"]],
  ["chapters[7].text", []],
  ["tags[*]", ["a", "b", "c"]],
  ["tags[-2]", ["b"]],
  ["title[0]", []],
  ["tags[]", []],
  ["tags[one]", []],
  ["author.*", ["Ana", "1990"]],
  ["{title,author.name}", ["T", "Ana"]],
  ["$", [JSON.stringify(VALUE, undefined, 2)]],
  ["", [JSON.stringify(VALUE, undefined, 2)]],
  ["constructor", []],
];

for (const [path, expected] of CASES) {
  test(`at ${JSON.stringify(path)}`, () => {
    assert.deepEqual(textsAt(VALUE, path), expected);
  });
}
