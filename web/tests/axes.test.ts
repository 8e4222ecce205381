import assert from "node:assert/strict";
import { test } from "node:test";
import { timeSpace, timeWidth } from "../src/panels/axes";
import { extremes, rowsAround } from "../src/panels/columns";
import { TIME_STEPS, timesBetween } from "../src/steps";
import { clock, useZone } from "../src/units";

test("times on an axis are exact, whatever fraction the range begins with", () => {
  const begin = Date.UTC(2026, 10, 24, 10, 0, 0);
  for (const fraction of [-0.5, 0.2, 0.5, 0.999]) {
    assert.deepEqual(timesBetween(begin - 1500 + fraction, begin + 2500, 1000), [begin - 1000, begin, begin + 1000, begin + 2000]);
  }
  assert.deepEqual(timesBetween(begin, begin, 1000), [begin]);
  assert.deepEqual(timesBetween(begin + 1, begin + 999, 1000), []);
});

test("long steps begin at midnight of the zone of the source, whatever that of the reader", () => {
  const from = Date.UTC(2026, 9, 22, 7, 13);
  try {
    for (const minutes of [330, 60, -210, null]) {
      useZone(minutes);
      const times = timesBetween(from, from + 6 * 86_400_000, 21_600_000);
      assert.equal(times.length, 24, String(minutes));
      for (const time of times) assert.match(clock(time), /^(00|06|12|18):00:00$/, String(minutes));
    }
  } finally {
    useZone(null);
  }
});

test("labels of times have room for their digits, and steps of days are dates", () => {
  assert.deepEqual([1, 10, 100, 1000].map(timeWidth), [72, 66, 60, 48]);
  for (const step of TIME_STEPS) {
    // As many ms per pixel as just fit this step.
    const space = timeSpace(step / (timeWidth(step) + 12));
    assert.equal(space, timeWidth(step) + 12, `${step} ms`);
  }
  assert.match(clock(0, 86_400_000), /^1970-01-01$/);
});

test("the scale includes the samples next to the range, to which lines lead", () => {
  const x = Float64Array.of(0, 10, 20, 30, 100);
  const drawn = { min: Float64Array.of(0, -7, 2, 3, 0), max: Float64Array.of(0, 90, 5, 80, 999), mean: Float64Array.of(0, 9, 4, 50, 500), floor: null };
  assert.deepEqual(rowsAround(x, 12, 19, 25), [1, 2]);
  assert.deepEqual(extremes(drawn, undefined, rowsAround(x, 12, 19, 25)), [-7, 90]);
  assert.deepEqual(extremes(drawn, undefined, rowsAround(x, 15, 25, 25)), [-7, 90]);
  assert.deepEqual(extremes(drawn, Float64Array.of(0, 0, 95, 0, 0), rowsAround(x, 15, 25, 25)), [-7, 95]);
  assert.deepEqual(extremes(drawn, undefined, rowsAround(x, 26, 90, 25)), [0, 80], "no line leads over a gap");
  assert.deepEqual(extremes(drawn, undefined, rowsAround(x, 40, 90, 25)), [0, 0]);
  assert.deepEqual(extremes(drawn, undefined, rowsAround(new Float64Array(0), 0, 9, 25)), [0, 0]);
});
