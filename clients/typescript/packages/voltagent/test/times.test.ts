// Times between the server's microseconds and VoltAgent's milliseconds.

import assert from "node:assert/strict";
import { test } from "node:test";
import { dateOf, endOf, timestampOf } from "../src/times.js";

test("a date is of the millisecond in which the server's time lies", () => {
  for (const nanos of [1_000_000, 1_400_000, 1_500_000, 1_999_000]) {
    assert.equal(dateOf({ seconds: 7n, nanos }).getTime(), 7_001);
  }
  assert.equal(dateOf({ seconds: -1n, nanos: 999_600_000 }).getTime(), -1);
  assert.equal(dateOf(undefined).getTime(), 0);
});

test("the end of a date is its last microsecond", () => {
  const { seconds, nanos } = endOf(new Date(7_001));

  assert.deepEqual([seconds, nanos], [7n, 1_999_000]);
});

test("a time is a Date, a text, or milliseconds; what is none has no time", () => {
  for (const time of [new Date(7_001), "1970-01-01T00:00:07.001Z", 7_001]) {
    assert.equal(dateOf(timestampOf(time)).getTime(), 7_001);
  }
  for (const none of [undefined, null, "soon", Number.NaN, new Date(Number.NaN), {} as Date]) {
    assert.equal(timestampOf(none), undefined);
  }
});
