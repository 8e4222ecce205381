import assert from "node:assert/strict";
import { test } from "node:test";
import { changeOf, isChange, largest, meanAndError, percentText } from "../src/compare/changes";
import type { Track } from "../src/frame";
import type { Line } from "../src/panels/lines";
import type { Slice } from "../src/store";
import { multiplesBetween } from "../src/steps";
import { offset } from "../src/units";

const ROWS = 800;
const track = (value: (row: number) => number): Track => {
  const mean = Float64Array.from({ length: ROWS }, (_, row) => value(row));
  return { min: mean, max: mean, mean };
};
const slice = (own: Track): Slice => ({ x: Float64Array.from({ length: ROWS }, (_, row) => row), stepMs: 1, raw: false, track: () => own });
const line = { series: { number: 0 }, label: "x", quantity: "count", offset: 0, factor: 1, slot: 0 } as unknown as Line;
const change = (own: Track, its: Track) => changeOf(line, slice(own), () => its, 0, ROWS);
/** Uniform between -1 and 1, the same at every run. */
const random = (seed: number) => (row: number) => {
  const x = Math.sin(row * 12.9898 + seed * 78.233) * 43758.5453;
  return 2 * (x - Math.floor(x)) - 1;
};

test("a difference within the noise of both is no change, and a larger one is", () => {
  const noisy = (level: number, seed: number) => track((row) => level + 20 * random(seed)(row));
  const same = Array.from({ length: 40 }, (_, seed) => change(noisy(100, seed), noisy(100, seed + 100))).filter((one) => one && isChange(one));
  assert.ok(same.length <= 4, `${same.length} of 40 controls`);
  const more = change(noisy(112, 1), noisy(100, 2));
  assert.ok(more && isChange(more) && Math.abs(more.percent - 12) < 3, JSON.stringify(more));
  const steady = change(track(() => 103), track(() => 100));
  assert.deepEqual(steady && [steady.percent, steady.noise, isChange(steady)], [3, 0, true]);
});

test("a slow wave is noise, though its neighbouring values are alike", () => {
  const wave = (phase: number) => track((row) => 100 + 50 * Math.sin(row / 300 + phase));
  const found = change(wave(0), wave(0.9));
  assert.ok(found && !isChange(found), JSON.stringify(found));
});

test("too few values, or none, tell nothing", () => {
  const few = track((row) => (row < 200 ? 1 : NaN));
  assert.equal(change(few, track(() => 2)), null);
  assert.equal(changeOf(line, slice(track(() => 1)), () => undefined, 0, ROWS), null);
  assert.ok(Number.isNaN(meanAndError(slice(few), few, 300, 800).mean));
});

test("the largest factor comes first, and what is new before all", () => {
  const of = (mean: number, other: number) => change(track(() => mean), track(() => other));
  const all = [of(110, 100), of(25, 100), of(5, 0), of(100, 100), of(300, 100)].flatMap((one) => one ?? []);
  assert.deepEqual(largest(all).map(({ percent }) => percentText(percent)), ["new", "−75 %", "+200 %", "+10 %"]);
  assert.deepEqual([0.55, -3.21, 5000, -Infinity, NaN].map(percentText), ["+0.6 %", "−3.2 %", "×51.0", "gone", "–"]);
});

test("times while comparing are distances from where both are aligned", () => {
  assert.deepEqual([0, 12_000, -500, 61_000, 3_725_000].map((ms) => offset(ms)), ["+0 s", "+12 s", "−1 s", "+1:01", "+1:02:05"]);
  assert.deepEqual([offset(1500, 100), offset(-20, 10), offset(65_250, 100)], ["+1.5 s", "−0.02 s", "+1:05.3"]);
  assert.deepEqual(multiplesBetween(1003, 1031, 10, 1000), [1010, 1020, 1030]);
  assert.deepEqual(multiplesBetween(1000, 1020, 10, 1005), [1005, 1015]);
});
