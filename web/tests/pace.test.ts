import assert from "node:assert/strict";
import { test } from "node:test";
import { Pace } from "../src/panels/pace";

const WIDTH = 400;
const MINUTE = 60_000;

/** For each update whether it is drawn, while the range moves by `step` ms at a time. */
function drawn(pace: Pace, step: number, updates: number): boolean[] {
  return Array.from({ length: updates }, (_, at) => !pace.skips(WIDTH, [(at - 1) * step, (at - 1) * step + MINUTE], [at * step, at * step + MINUTE]));
}

test("a range that moves by less than a pixel is drawn when it has moved by one", () => {
  // A pixel is 150 ms.
  const often = drawn(new Pace(), 50, 61).filter(Boolean).length;
  assert.ok(often >= 20 && often <= 22, String(often));
  assert.ok(drawn(new Pace(), 200, 20).every(Boolean), "more than a pixel at a time");
});

test("a range that stands still, jumps back or has another length is always drawn", () => {
  const pace = new Pace();
  drawn(pace, 50, 4);
  for (const [before, now] of [[[150, 60_150], [150, 60_150]], [[150, 60_150], [100, 60_100]], [[100, 60_100], [110, 30_110]], [[0, 60_000], [10, 70_010]]] as const) {
    assert.equal(pace.skips(WIDTH, before, now), false, `${before} to ${now}`);
  }
});
