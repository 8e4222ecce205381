import assert from "node:assert/strict";
import { test } from "node:test";
import { sourceInfo } from "../dev/machine";
import { coarseSeries, known } from "../src/coarse";
import { distanceOf, holes } from "../src/panels/columns";
import type { Slice } from "../src/store";

const WINDOW = 100;

/** A counter of 10 ms of a CPU that is busy for a share of the time, sampled at an interval; as the server makes rates of it. */
function sampled(busy: number, intervalMs: number, seconds: number): { x: Float64Array; rates: Float64Array } {
  const rows = Math.floor((seconds * 1000) / intervalMs);
  const x = Float64Array.from({ length: rows }, (_, row) => row * intervalMs + 3.7);
  const counted = (ms: number) => Math.floor((busy * ms) / 10);
  let last = 0;
  const rates = x.map((time, row) => {
    const elapsed = time - (x[last] as number);
    if (row === 0 || elapsed < 10) return NaN;
    const rate = ((counted(time) - counted(x[last] as number)) * 10) / elapsed;
    last = row;
    return rate;
  });
  return { x, rates };
}

function slice(x: Float64Array, values: Float64Array, stepMs = 0): Slice {
  return { x, stepMs, raw: stepMs === 0, track: (series) => (series < 2 ? { min: values, max: values.map((value) => value * 2), mean: values } : undefined) };
}

for (const interval of [1, 7, 10, 14]) test(`a counter of 10 ms is no more than a CPU at an interval of ${interval} ms`, () => {
  const { x, rates } = sampled(1, interval, 4);
  if (interval === 14) assert.ok(rates.some((rate) => rate > 1.4), "as it is counted, it is more");
  const shown = known(slice(x, rates), new Map([[0, WINDOW]])).track(0);
  const inside = shown?.mean.filter((_, row) => (x[row] as number) > WINDOW && (x[row] as number) < 4000 - WINDOW) ?? new Float64Array(0);
  assert.ok(inside.length > 100 && inside.every((value) => value > 0.85 && value <= 1.15), `${Math.min(...inside)} to ${Math.max(...inside)}`);
  assert.equal(shown?.max, shown?.mean, "extremes of less than ten steps are not known");
});

test("a CPU that is half busy is shown so, in every sample", () => {
  const { x, rates } = sampled(0.5, 1, 4);
  const shown = known(slice(x, rates), new Map([[0, WINDOW]])).track(0)?.mean.filter((_, row) => (x[row] as number) > WINDOW) ?? [];
  assert.ok(shown.every((value) => Math.abs(value - 0.5) < 0.11), `${Math.min(...shown)} to ${Math.max(...shown)}`);
});

test("long buckets keep their means, exact series all their values, and gaps stay", () => {
  const x = Float64Array.from({ length: 30 }, (_, row) => row * 200);
  const values = x.map((_, row) => (row > 10 && row < 20 ? NaN : row));
  const shown = known(slice(x, values, 200), new Map([[0, WINDOW]]));
  assert.equal(shown.track(0)?.mean, values);
  assert.notEqual(shown.track(1)?.max, shown.track(1)?.mean);
  assert.equal(shown.track(2), undefined);
  const fine = known(slice(x, values), new Map([[0, WINDOW]])).track(0)?.mean;
  assert.deepEqual([...(fine ?? [])], [...values], "rows that are further apart than the window");
});

test("counters in ticks are coarse, others are not", () => {
  const info = sourceInfo(1, 0);
  const metrics = info.metrics.map((metric) => ({ ...metric, resolution_ns: metric.name === "cpu.user" || metric.name === "access.memory" ? 1e7 : 0 }));
  const coarse = coarseSeries({ ...info, metrics });
  assert.deepEqual([coarse.size, [...new Set(coarse.values())]], [16, [WINDOW]]);
});

test("a line that is read less often is one line, and its end without values is a hole", () => {
  const x = Float64Array.from({ length: 1000 }, (_, row) => row);
  const rare = x.map((time) => (time % 50 === 0 && time <= 800 ? 1 : NaN));
  assert.equal(distanceOf(x, rare), 50);
  assert.equal(distanceOf(x, x.fill(NaN).slice()), 0);
  const time = Float64Array.from({ length: 100 }, (_, row) => row * 100);
  const drawn = (values: Float64Array) => ({ min: values, max: values, mean: values, floor: null });
  const stopped = time.map((ms) => (ms <= 5000 ? 1 : NaN));
  assert.deepEqual(holes(time, [drawn(stopped)], 1000), [[5000, 9900]]);
  assert.deepEqual(holes(time, [drawn(stopped), drawn(time)], 1000), []);
  assert.deepEqual(holes(time, [drawn(time.map(() => NaN))], 1000), []);
});
